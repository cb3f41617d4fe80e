"""Rooflines: the rates kernels reach, as shares of nominal peaks, each with its evidence."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..catalog import efficiencies, names
from ..errors import SpecError, nearest_names
from ..memory.engine_defaults import is_before
from ..spec.accelerator import Accelerator
from ..spec.deployment import Deployment
from ..spec.precision import number_format

Row = tuple[float, float, float, int]
UNTUNED_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A kernel efficiency.

    Parameters
    ----------
    value, low, high : float
        Share of the nominal peak and its interval [1].
    kind : str
        ``"measured"``, ``"assumed"`` or ``"given"``.
    source : str
        The table and row it came from.
    """

    value: float
    low: float
    high: float
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """Rates of one accelerator under one engine.

    Parameters
    ----------
    accelerator : Accelerator
        Nominal peaks.
    engine : str
        Serving engine, which picks kernels.
    given : mapping of str to float
        A user's own shares by kernel class, such as ``"gemm_compute"``, or class and path, such
        as ``"experts_compute.w4a16"`` [1].
    """

    accelerator: Accelerator
    engine: str
    given: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = efficiencies("defaults")["kernels"]
        for name, value in self.given.items():
            kernel = name.split(".")[0]
            if kernel not in known:
                raise SpecError(
                    f"no kernel class {kernel!r} to give an efficiency for.",
                    field="efficiencies",
                    nearest=nearest_names(kernel, known) or sorted(known),
                )
            if not value > 0:
                raise SpecError(f"efficiency {name} must be positive.", field="efficiencies")

    def path(self, format_name: str, *, latent: bool = False) -> str:
        """Kernel family that computes a stored format here, such as ``"w4a16"``.

        Parameters
        ----------
        format_name : str
            Format the weights are stored in.
        latent : bool
            Whether they are routed experts behind a latent projection.
        """
        table = efficiencies("engines")
        family = _family(format_name)
        choices = dict(table["paths"].get(family, {"default": "bf16"}))
        if latent:
            choices |= table["latent_paths"].get(family, {})
        vendor = f"{self.engine}_{self.accelerator.vendor.casefold()}"
        path: str = choices.get(vendor) or choices.get(self.engine) or choices["default"]
        unit = table["requires"].get(path, table["units"][path])
        wide: str = table["weight_only"].get(path, path)
        return path if unit in self.accelerator.flop_per_s else wide

    def unit(self, path: str) -> str:
        """Matrix unit of a kernel family: ``"bf16"``, ``"fp8"`` or ``"fp4"``."""
        unit: str = efficiencies("engines")["units"][path]
        return unit

    def share(self, kernel: str, path: str) -> Share:
        """Efficiency of a kernel class on a path, from the nearest table that has it.

        Notes
        -----
        The median over the engines in the table, rows under half the best one aside: engines share
        kernel libraries, and one that is untuned for a shape in the table is not what is served.
        """
        for name in (f"{kernel}.{path}", kernel):
            if name in self.given:
                value = self.given[name]
                return Share(value=value, low=value, high=value, kind="given", source="the user")
        return _share(self.accelerator.name, kernel, path)

    def flop_per_s(self, kernel: str, path: str) -> float:
        """Rate a kernel class computes at [FLOP/s]."""
        return self.accelerator.peak_flop_per_s(self.unit(path)) * self.share(kernel, path).value

    def bytes_per_s(self, kernel: str, path: str) -> float:
        """Rate a kernel class streams HBM at [bytes/s]."""
        return self.accelerator.hbm_bytes_per_s * self.share(kernel, path).value

    def scan_tokens_per_s(self, heads: float) -> float:
        """Prefill rate of a delta-rule layer of so many 128-wide heads on one rank [tokens/s]."""
        return self.share("recurrent_prefill", "fp32").value * 96.0 / heads


def _family(format_name: str) -> str:
    known = efficiencies("engines")["paths"]
    if format_name in known:
        return format_name
    bare = format_name.split("_")[0]
    return bare if bare in known else number_format(format_name).compute


@cache
def _share(part: str, kernel: str, path: str) -> Share:
    defaults = efficiencies("defaults")
    table_name, kind = efficiency_table(part)
    order = [path, *defaults["precision_fallbacks"].get(path, [])]
    table: Mapping[str, Any] = efficiencies(table_name) if table_name else {"kernels": {}}
    for step in order:
        rows = table["kernels"].get(kernel, {}).get(step)
        if rows:
            value, low, high = _pooled(rows)
            certain = kind if step == path else "assumed"
            return Share(
                value=value, low=low, high=high, kind=certain,
                source=f"{table_name} {kernel} {step}: {table['source']}",
            )  # fmt: skip
    generic = defaults["kernels"]
    for step in order:
        row = generic.get(kernel, {}).get(step)
        if row:
            return Share(
                value=row[0], low=row[1], high=row[2], kind="assumed",
                source=f"defaults {kernel} {step}: {generic['source']}",
            )  # fmt: skip
    raise KeyError(f"no efficiency for {kernel} on {path}")


def efficiency_table(part: str) -> tuple[str | None, str]:
    known = {name.casefold(): name for name in names("efficiencies")}
    if part.casefold() in known:
        return known[part.casefold()], "measured"
    defaults = efficiencies("defaults")
    stand_in = defaults["stand_ins"].get(part)
    return stand_in, defaults["stand_in_kind"]


def _pooled(rows: Mapping[str, Row]) -> tuple[float, float, float]:
    best = max(row[0] for row in rows.values())
    tuned = [row for row in rows.values() if row[0] >= UNTUNED_SHARE * best]
    value = statistics.median(row[0] for row in tuned)
    return value, min(row[1] for row in tuned), max(row[2] for row in tuned)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConstants:
    """End-to-end losses of an engine beyond its kernels; each is fitted, with an interval.

    Parameters
    ----------
    mixed_steps : bool
        True where prefill chunks and decodes share a step; else a prefill runs alone.
    prefill_efficiency, decode_efficiency : float
        Share of the kernel rates that whole prefill and decode steps reach [1].
    kernel_floor_s : float
        Least time of one kernel in a captured graph [s].
    host_step_s : float
        Scheduling, sampling and bookkeeping that a step waits for [s].
    host_sequence_s : float
        The same per running sequence [s].
    request_s : float
        Front-end time of a request before its first step [s].
    expert_dispersion : float
        Squared coefficient of variation of expert popularity: batches repeat popular experts [1].
    experts_efficiency : float
        Share of the expert-kernel rate left by uneven routing, padded tiles and narrow slices [1].
    """

    mixed_steps: bool
    prefill_efficiency: float
    decode_efficiency: float
    kernel_floor_s: float
    host_step_s: float
    host_sequence_s: float
    request_s: float
    expert_dispersion: float
    experts_efficiency: float


def engine_constants(engine: str, vendor: str, version: str = "") -> EngineConstants:
    """Return the fitted constants of an engine's build on a vendor's accelerators.

    Parameters
    ----------
    engine, vendor : str
        Serving engine and maker of the accelerator.
    version : str
        Build; an empty or unreadable one is taken as current.
    """
    table = efficiencies("engines")["engines"]
    row: dict[str, Any] = {}
    layers = [table["all"], table[engine]]
    layers += [b for b in table[engine].get("builds", ()) if precedes(version, b["before"])]
    for layer in layers:
        row |= {**layer, **layer.get(vendor.casefold(), {})}
    value = {name: float(row[name][0]) for name in EngineConstants.__slots__[1:]}
    return EngineConstants(mixed_steps=bool(row["mixed_steps"]), **value)


def precedes(version: str, limit: str) -> bool:
    """True where a readable version is older than `limit`; unreadable ones count as current."""
    return bool(_release(version)) and _release(version) < _release(limit)


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"\s*v?(\d+(?:\.\d+)+)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def replicated_latent(deployment: Deployment) -> bool:
    """True where a build computes the projections of a latent MoE whole on every rank."""
    before = efficiencies("engines")["replicated_latent_before"].get(deployment.engine)
    if before is None:
        return False
    return deployment.engine_version in ("", "day-0") or is_before(
        deployment.engine_version, before
    )
