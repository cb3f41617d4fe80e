"""The bundle: everything one answer depends on, as plain text and numbers, resolved once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import catalog
from .errors import IngestError, SpecError, nearest_names
from .ingest.hf_config import load_model
from .scenario_fields import checked
from .spec.deployment import Deployment, Offload, Speculation
from .spec.model import Model
from .spec.node import Node
from .spec.prices import Tariff, parse_tariff
from .spec.workload import Workload
from .units import parse_bytes, parse_quantity

BILLING = ("eligible", "actual", "none")

# Fields that hold a spec or the text that names one.
SPECS: dict[str, type] = {
    "model": Model,
    "node": Node,
    "workload": Workload,
    "offload": Offload,
    "speculate": Speculation,
    "price": Tariff,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is given, in the form people write it; `resolve` turns it into checked specs.

    Parameters
    ----------
    model : str or Model
        Catalog name, path to an HF ``config.json``, or a folder that holds one.
    node : str or Node
        ``"8xB300"`` and the like.
    workload : str or Workload
        Catalog name or a YAML file.
    nodes : int
        Nodes of one engine replica [1].
    tp, pp, dp, ep, dcp : int, optional
        Parallel degrees [1]; ``tp`` defaults to all accelerators left by ``pp`` and ``dp``.
    offload : str or Offload, optional
        ``"dram:1889GB"``, ``"none"``.
    speculate : str or Speculation, optional
        ``"dspark:2"``; append ``:real`` for the acceptance that long agentic prompts measure.
    price : str or Tariff, optional
        ``"in=3,cached=0.3,out=15"``; the catalog's floor for the model where there is one.
    gpu_hour_usd : float, optional
        Price per GPU-hour [USD]; July 2026 owner's price where the catalog has it.
    dram_gb_hour_usd : float
        Price of offload memory per GB-hour on top of the node [USD].
    bill_cached : {"eligible", "actual", "none"}
        Which input tokens are sold at the cached price.

    The remaining fields are those of `Deployment` and the overrides of `Workload`.
    """

    model: str | Model
    node: str | Node
    workload: str | Workload = "agentic-coding"
    nodes: int = 1
    tp: int | None = None
    pp: int = 1
    dp: int = 1
    ep: int = 1
    dcp: int = 1
    engine: str = "vllm"
    engine_version: str = ""
    weights: str = "auto"
    kv_dtype: str = "auto"
    gpu_memory_utilization: float = 0.90
    available_kv_gib: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    prefix_caching: bool = True
    offload: str | Offload | None = None
    offload_bandwidth: str | float | None = None
    speculate: str | Speculation | None = None
    scheduling: str = "first-come"
    price: str | Tariff | None = None
    gpu_hour_usd: float | None = None
    dram_gb_hour_usd: float = 0.0
    bill_cached: str = "eligible"
    context_tokens_mean: float | None = None
    tree_tokens_mean: float | None = None
    output_tokens_mean: float | None = None
    turns_mean: float | None = None
    think_time_cap_s: float | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            found = checked(
                field.name,
                getattr(self, field.name),
                optional=field.default is None,
                spec=SPECS.get(field.name),
            )
            object.__setattr__(self, field.name, found)

    def resolve(self) -> ResolvedScenario:
        """Return the checked specs; all reading of files happens here.

        Raises
        ------
        SpecError
            If a name is unknown or a value is outside its domain.
        """
        model = self.model if isinstance(self.model, Model) else load_model(self.model)
        node = self.node if isinstance(self.node, Node) else catalog.node(self.node, self.nodes)
        workload = (
            self.workload if isinstance(self.workload, Workload) else load_workload(self.workload)
        ).with_overrides(
            context_tokens_mean=self.context_tokens_mean,
            tree_tokens_mean=self.tree_tokens_mean,
            output_tokens_mean=self.output_tokens_mean,
            turns_mean=self.turns_mean,
            think_time_cap_s=self.think_time_cap_s,
        )
        if self.bill_cached not in BILLING:
            raise SpecError(
                f"bill_cached {self.bill_cached!r} is not one of {', '.join(BILLING)}.",
                field="bill_cached",
                nearest=nearest_names(self.bill_cached, BILLING),
            )
        build = catalog.reference_build(model.name, self.engine, self.engine_version)
        gpu_hour_usd, price_basis = self._gpu_hour(node)
        tariff, tariff_basis = self._tariff(model)
        return ResolvedScenario(
            model=model,
            node=node,
            deployment=self._deployment(node, build),
            workload=workload,
            tariff=tariff,
            tariff_basis=tariff_basis,
            gpu_hour_usd=gpu_hour_usd,
            gpu_hour_basis=price_basis,
            dram_gb_hour_usd=_non_negative(self.dram_gb_hour_usd, "dram_gb_hour_usd"),
            bill_cached=self.bill_cached,
        )

    def _deployment(self, node: Node, build: Mapping[str, Any]) -> Deployment:
        defaults = build.get("deployment", {})
        tp = self.tp or max(node.total_gpus // (self.pp * self.dp), 1)
        deployment = Deployment(
            engine=self.engine,
            engine_version=self.engine_version or str(build.get("engine_version", "")),
            tp=tp,
            pp=self.pp,
            dp=self.dp,
            ep=self.ep,
            dcp=self.dcp,
            weights=self.weights,
            kv_dtype=defaults.get("kv_dtype", "auto") if self.kv_dtype == "auto" else self.kv_dtype,
            gpu_memory_utilization=self.gpu_memory_utilization,
            available_kv_gib=self.available_kv_gib,
            max_model_len=self.max_model_len,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            prefix_caching=self.prefix_caching,
            offload=parse_offload(self.offload, self.offload_bandwidth),
            speculation=parse_speculation(self.speculate),
            scheduling=self.scheduling,
        )
        if deployment.gpus != node.total_gpus:
            raise SpecError(
                f"tp x pp x dp = {tp} x {self.pp} x {self.dp} = {deployment.gpus} accelerators, "
                f"but {node.nodes} x {node.name} has {node.total_gpus}.",
                field="tp",
            )
        return deployment

    def _gpu_hour(self, node: Node) -> tuple[float | None, str]:
        if self.gpu_hour_usd is not None:
            return _non_negative(self.gpu_hour_usd, "gpu_hour_usd"), "given"
        if not node.accelerator.gpu_hour_usd:
            return None, "unknown"
        return catalog.gpu_hour_usd(node.accelerator)

    def _tariff(self, model: Model) -> tuple[Tariff | None, str]:
        if isinstance(self.price, Tariff):
            return self.price, "given"
        if self.price is not None:
            return parse_tariff(self.price), "given"
        if model.name in catalog.names("prices"):
            tariff = catalog.tariff(model.name)
            return tariff, f"floor of {tariff.date}"
        return None, "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedScenario:
    """Checked specs of one scenario; stages read nothing else."""

    model: Model
    node: Node
    deployment: Deployment
    workload: Workload
    tariff: Tariff | None
    tariff_basis: str
    gpu_hour_usd: float | None
    gpu_hour_basis: str
    dram_gb_hour_usd: float
    bill_cached: str


FIELDS = tuple(f.name for f in dataclasses.fields(Scenario))


def given_values(scenario: Scenario) -> dict[str, Any]:
    """Return the fields of a scenario that differ from their defaults, as a scenario file has them.

    Objects stand under their names, for a file cannot hold them.
    """
    values = {}
    for field in dataclasses.fields(scenario):
        value = getattr(scenario, field.name)
        if field.default is dataclasses.MISSING or value != field.default:
            values[field.name] = getattr(value, "name", value)
    return values


def load_scenario(path: str | Path, **flags: Any) -> Scenario:
    """Return the scenario in a YAML, TOML or JSON file; `flags` win over the file.

    A file may name another with ``extends`` (relative to itself); its own keys win.

    Raises
    ------
    IngestError, SpecError
        If the file cannot be read or has an unknown key.
    """
    values = _scenario_mapping(Path(path), depth=0)
    values.update({key: value for key, value in flags.items() if value is not None})
    for key in values:
        if key not in FIELDS:
            raise SpecError(
                f"{path}: unknown scenario key {key!r}.",
                field=key,
                nearest=nearest_names(key, FIELDS),
            )
    for key in ("model", "node"):
        if key not in values:
            raise SpecError(f"{path}: a scenario needs {key!r}.", field=key)
    return Scenario(**values)


def _scenario_mapping(path: Path, depth: int) -> dict[str, Any]:
    if depth > 8:
        raise SpecError(f"{path}: 'extends' is nested more than 8 deep.", field="extends")
    values = catalog.read_mapping(path)
    values = {str(key).replace("-", "_"): value for key, value in values.items()}
    parent = values.pop("extends", None)
    if parent is None:
        return values
    return {**_scenario_mapping(path.parent / str(parent), depth + 1), **values}


def load_workload(text: str) -> Workload:
    """Return a workload by catalog name or from a YAML, TOML or JSON file."""
    if text in catalog.names("workloads") or not Path(text).suffix:
        return catalog.workload(text)
    if not Path(text).is_file():
        raise IngestError("no such workload file.", file=text)
    mapping = {"name": Path(text).stem, **catalog.read_mapping(Path(text))}
    return catalog.workload_from_mapping(mapping)


def parse_offload(text: str | Offload | None, bandwidth: str | float | None) -> Offload | None:
    """Return the tier written as ``dram:1889GB``, or None for ``none``."""
    if isinstance(text, Offload):
        return text
    rate = None if bandwidth is None else parse_quantity(bandwidth, "B/s", "offload_bandwidth")
    if text is None or text.strip().lower() == "none":
        return None
    tier, colon, size = text.partition(":")
    if not colon:
        raise SpecError(
            f"offload {text!r}: write TIER:BYTES, such as dram:1889GB.", field="offload"
        )
    return Offload(tier=tier.strip().lower(), bytes=parse_bytes(size, "offload"), bytes_per_s=rate)


def parse_speculation(text: str | Speculation | None) -> Speculation | None:
    """Return the draft written as ``dspark:2`` or ``dspark:2:real``, or None for ``none``."""
    if isinstance(text, Speculation):
        return text
    if text is None or text.strip().lower() == "none":
        return None
    name, _, rest = text.partition(":")
    depth, _, acceptance = rest.partition(":")
    if not (depth.isascii() and depth.isdigit()):
        raise SpecError(f"speculate {text!r}: write NAME:K, such as dspark:2.", field="speculate")
    return Speculation(
        name=name.strip().lower(), draft_tokens=int(depth), acceptance=acceptance or "golden"
    )


def _non_negative(value: float, field: str) -> float:
    if not (value >= 0 and math.isfinite(value)):
        raise SpecError(f"{field} must be finite and not negative, got {value}.", field=field)
    return float(value)
