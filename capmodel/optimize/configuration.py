"""Configurations: what a plan chooses besides concurrency, DRAM and the number of replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from .. import catalog
from ..errors import SpecError, nearest_names
from ..memory.kv_layout import kv_bytes_per_token, unique_kv_bytes_per_token
from ..scenario import ResolvedScenario
from ..service.speculation import draft
from ..spec.deployment import Deployment, Offload, Speculation
from ..spec.model import MixtureOfExperts, Model
from ..spec.node import Node
from ..units import GB

AXES = ("layout", "speculation", "kv_dtype")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A scenario without its offload tier, and the DRAM sizes that may be put behind it.

    Parameters
    ----------
    scenario : ResolvedScenario
        Node, layout, precision and draft are chosen; no tier.
    dram_sizes_bytes : tuple of float
        Ascending, the first is 0; per node [bytes].
    tier : Offload or None
        Kind of tier and its rate, the size is replaced; None for plain DRAM.
    """

    scenario: ResolvedScenario
    dram_sizes_bytes: tuple[float, ...]
    tier: Offload | None = None

    def with_dram(self, dram_bytes: float) -> ResolvedScenario:
        """Return the scenario with a tier of this size per node [bytes]; none for 0."""
        offload = None
        if dram_bytes > 0:
            kind = "dram" if self.tier is None else self.tier.tier
            rate = None if self.tier is None else self.tier.bytes_per_s
            offload = Offload(tier=kind, bytes=dram_bytes, bytes_per_s=rate)
        deployment = replace(self.scenario.deployment, offload=offload)
        return replace(self.scenario, deployment=deployment)

    @property
    def label(self) -> dict[str, Any]:
        """What tells this configuration from the others."""
        deployment, node = self.scenario.deployment, self.scenario.node
        speculation = deployment.speculation
        return {
            "node": node.name,
            "nodes": node.nodes,
            "tp": deployment.tp,
            "pp": deployment.pp,
            "dp": deployment.dp,
            "ep": deployment.ep,
            "dcp": deployment.dcp,
            "kv_dtype": deployment.kv_dtype,
            "speculation": None if speculation is None else speculation.name,
            "draft_tokens": 0 if speculation is None else speculation.draft_tokens,
        }

    def __str__(self) -> str:
        label = self.label
        parts = [f"{label['nodes']}x {label['node']}" if label["nodes"] > 1 else label["node"]]
        parts += [f"{n.upper()}{label[n]}" for n in ("tp", "pp", "dp", "ep", "dcp") if label[n] > 1]
        parts.append(f"{label['kv_dtype']} KV")
        if label["speculation"]:
            parts.append(f"{label['speculation']}:{label['draft_tokens']}")
        return " ".join(parts)


@cache
def planning_limit(name: str) -> float:
    """Return a planning limit of the catalog."""
    return float(catalog.efficiencies("planning")[name]["value"][0])


def largest_dram_bytes(node: Node) -> float:
    """Host memory of one node that offload may take, 0 where it is unknown [bytes]."""
    return planning_limit("host_dram_share") * node.host_dram_bytes


def dram_sizes(largest_bytes: float) -> tuple[float, ...]:
    """Return DRAM sizes from 0 to the largest, whole steps of a power of two in GB [bytes]."""
    if largest_bytes < GB:
        return (0.0,) if largest_bytes <= 0 else (0.0, largest_bytes)
    step, least = GB, planning_limit("dram_sizes")
    while largest_bytes / (2.0 * step) >= least:
        step *= 2.0
    whole = [step * i for i in range(int(largest_bytes / step) + 1)]
    return (*whole, largest_bytes) if whole[-1] < largest_bytes else tuple(whole)


def configurations(
    scenario: ResolvedScenario,
    *,
    largest_dram: float | None = None,
    axes: Sequence[str] = (),
) -> list[Configuration]:
    """Return the configurations of one node: the scenario's own first, then those along the axes.

    Parameters
    ----------
    scenario : ResolvedScenario
        What is given.
    largest_dram : float, optional
        DRAM per node that a plan may take; None for the usual share of the node's [bytes].
    axes : sequence of {"layout", "speculation", "kv_dtype"}
        What else may be chosen; the scenario's own value is always among the choices.

    Raises
    ------
    SpecError
        If an axis is unknown.
    """
    for axis in axes:
        if axis not in AXES:
            raise SpecError(
                f"search: unknown axis {axis!r}; one of {', '.join(AXES)}.",
                field="search",
                nearest=nearest_names(axis, AXES),
            )
    own = scenario.deployment
    largest = largest_dram_bytes(scenario.node) if largest_dram is None else largest_dram
    sizes = dram_sizes(largest)
    plain = replace(own, offload=None)
    layouts = _layouts(plain, scenario) if "layout" in axes else [plain]
    found: dict[Deployment, None] = {plain: None}
    for layout in layouts:
        for dtype in ("bf16", "fp8") if "kv_dtype" in axes else (own.kv_dtype,):
            for speculation in _depths(own, axes):
                found[replace(layout, kv_dtype=dtype, speculation=speculation)] = None
    return [
        Configuration(
            scenario=replace(scenario, deployment=deployment),
            dram_sizes_bytes=sizes,
            tier=own.offload,
        )
        for deployment in found
    ]


def _layouts(own: Deployment, scenario: ResolvedScenario) -> Iterator[Deployment]:
    """Splits of the accelerators over TP, PP and DP; experts and contexts shared where it helps."""
    model, gpus = scenario.model, scenario.node.total_gpus
    sparse = any(isinstance(group.feed_forward, MixtureOfExperts) for group in model.layers)
    for pp in _divisors(gpus, 2 if gpus <= scenario.node.gpus else gpus // 2):
        for dp in _divisors(gpus // pp, gpus):
            tp = gpus // pp // dp
            if dp > 1 and not sparse:
                continue  # a dense model over DP ranks is the same as more, smaller replicas
            spreads = {gpus // pp} if dp > 1 else {1, gpus // pp} if sparse else {1}
            for ep in sorted(spreads):
                for dcp in sorted({1, tp} if replicated(model, own, tp) else {1}):
                    yield replace(own, tp=tp, pp=pp, dp=dp, ep=ep, dcp=dcp)


def replicated(model: Model, own: Deployment, tp: int) -> bool:
    """True where ranks of a tensor-parallel group hold copies of the same cached tokens."""
    if tp == 1:
        return False
    alone = replace(own, tp=tp, pp=1, dp=1, ep=1, dcp=1)
    copies = kv_bytes_per_token(model, alone) * tp / unique_kv_bytes_per_token(model, alone)
    return copies > 1.001


def _divisors(number: int, largest: int) -> list[int]:
    return [d for d in range(1, min(number, largest) + 1) if number % d == 0]


def _depths(own: Deployment, axes: Sequence[str]) -> list[Speculation | None]:
    """No draft, and every measured depth of the scenario's draft."""
    if "speculation" not in axes:
        return [own.speculation]
    if own.speculation is None:
        raise SpecError(
            "search: to choose the depth, name the draft, such as --speculate dspark:1.",
            field="speculate",
        )
    curve = draft(own.speculation.name)[own.speculation.acceptance]
    depths = sorted(depth for depth in curve if isinstance(depth, int))
    return [None, *(replace(own.speculation, draft_tokens=depth) for depth in depths)]
