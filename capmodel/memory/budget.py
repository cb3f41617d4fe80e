"""The KV budget of one replica: does it fit, how many tokens, and where every byte goes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import SpecError
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..spec.node import Node
from ..units import GIB
from . import engine_defaults, kv_layout, layouts
from .overhead import Overhead, overhead
from .pages import PagePlan
from .params import parameters
from .stages import stage_layers
from .weights import WeightBytes, rank_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class KvBudget:
    """What one engine replica has left for cached tokens; tokens count all its DP ranks.

    Parameters
    ----------
    model, node : str
        Names.
    fits : bool
        Whether the engine starts.
    shortfall_bytes_per_gpu : float
        Bytes missing on the tightest rank, 0 where it fits [bytes].
    weights_bytes_per_gpu, overhead_bytes_per_gpu, available_kv_bytes_per_gpu : float
        Parts of the engine's share of HBM on the tightest rank [bytes].
    kv_bytes_per_token : float
        Bytes each further token takes on one rank [bytes].
    state_bytes_per_sequence : float
        Fixed bytes per sequence on one rank: states, windows, chunks [bytes].
    block_tokens, kv_blocks, block_bytes : int, int, float
        Pool geometry of one rank [tokens], [1], [bytes].
    kv_tokens : int
        Nominal tokens, as the engine would log them [tokens].
    usable_kv_tokens : int
        Tokens left for contexts at `concurrency` live requests [tokens].
    max_concurrency : float
        Requests of maximal length that fit at once [1].
    blocks_per_request, resident_blocks_per_live_request, blocks_per_resume_point : int
        Blocks at maximal length; fixed per live request; per retained prefix of a hybrid [1].
    kv_replication : float
        Copies of one token's cache over the ranks of a replica [1].
    unique_kv_bytes_per_token, offload_bytes_per_token : float
        One copy of a token; what it costs in host memory per node, copies included [bytes].
    total_params, active_params : int
        Parameters; active without the input embedding [1].
    concurrency : int
        Live requests that `usable_kv_tokens` assumes [1].
    evidence : str
        Worst kind of what went in: given, measured, derived, fitted.
    warnings : tuple of str
        Limits that are not arithmetic.
    intervals : dict of str to (float, float)
        Ranges by field name.
    """

    model: str
    node: str
    fits: bool
    shortfall_bytes_per_gpu: float
    hbm_bytes_per_gpu: float
    budget_bytes_per_gpu: float
    weights_bytes_per_gpu: float
    overhead_bytes_per_gpu: float
    available_kv_bytes_per_gpu: float
    kv_bytes_per_token: float
    state_bytes_per_sequence: float
    block_tokens: int
    kv_blocks: int
    block_bytes: float
    kv_tokens: int
    usable_kv_tokens: int
    max_concurrency: float
    max_model_len: int
    blocks_per_request: int
    resident_blocks_per_live_request: int
    blocks_per_resume_point: int
    kv_replication: float
    unique_kv_bytes_per_token: float
    offload_bytes_per_token: float
    total_params: int
    active_params: int
    concurrency: int
    evidence: str
    warnings: tuple[str, ...] = ()
    weights_parts_bytes: dict[str, float] = field(default_factory=dict)
    overhead_parts_bytes: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["warnings"] = list(self.warnings)
        values["intervals"] = {k: list(v) for k, v in self.intervals.items()}
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    weights: WeightBytes
    plan: PagePlan
    available_bytes: float


def kv_budget(
    model: Model, node: Node, deployment: Deployment, *, concurrency: int | None = None
) -> KvBudget:
    """Return the KV budget of one replica of `model` on `node`.

    Parameters
    ----------
    model, node, deployment : Model, Node, Deployment
        What is served, where and how.
    concurrency : int, optional
        Live requests for `usable_kv_tokens`; None for one [1].

    Raises
    ------
    SpecError
        If the deployment needs more accelerators than the node has.
    """
    if deployment.gpus > node.total_gpus:
        raise SpecError(
            f"tp {deployment.tp} x pp {deployment.pp} x dp {deployment.dp} needs "
            f"{deployment.gpus} GPUs; {node.nodes} x {node.name} has {node.total_gpus}.",
            field="tp",
        )
    part = node.accelerator
    budget_bytes = deployment.gpu_memory_utilization * part.hbm_bytes
    beside = overhead(model, deployment, part)
    stages = _stages(model, deployment, node, budget_bytes, beside)
    longest = engine_defaults.max_model_len(deployment, model)
    tight = min(stages, key=lambda s: s.available_bytes / s.plan.block_bytes)
    blocks = max(0, math.floor(tight.available_bytes / tight.plan.block_bytes))
    per_request = tight.plan.blocks_per_request(longest)
    shortfall = max(0.0, per_request * tight.plan.block_bytes - tight.available_bytes)
    warnings: list[str] = []
    live = concurrency or 1
    tokens, most = _reported_tokens(tight.plan, blocks, longest, deployment)
    counts = parameters(model)
    per_token = _tightest_bytes_per_token(stages)
    return KvBudget(
        model=model.name,
        node=node.name if node.nodes == 1 else f"{node.nodes}x{node.name}",
        fits=shortfall <= 0,
        shortfall_bytes_per_gpu=shortfall,
        hbm_bytes_per_gpu=part.hbm_bytes,
        budget_bytes_per_gpu=budget_bytes,
        weights_bytes_per_gpu=tight.weights.total,
        overhead_bytes_per_gpu=beside.total,
        available_kv_bytes_per_gpu=max(0.0, tight.available_bytes),
        kv_bytes_per_token=per_token,
        state_bytes_per_sequence=kv_layout.state_bytes_per_sequence(model, deployment),
        block_tokens=tight.plan.block_tokens,
        kv_blocks=blocks,
        block_bytes=tight.plan.block_bytes,
        kv_tokens=tokens * deployment.dp,
        usable_kv_tokens=_usable_tokens(tight.plan, blocks, live, deployment),
        max_concurrency=most * deployment.dp,
        max_model_len=longest,
        blocks_per_request=per_request,
        resident_blocks_per_live_request=tight.plan.resident_blocks,
        blocks_per_resume_point=tight.plan.state_groups,
        kv_replication=kv_layout.kv_replication(model, deployment),
        unique_kv_bytes_per_token=kv_layout.unique_kv_bytes_per_token(model, deployment),
        offload_bytes_per_token=kv_layout.kv_bytes_per_token(model, deployment)
        * deployment.tp
        / node.nodes,
        total_params=counts.total,
        active_params=counts.active,
        concurrency=live,
        evidence="given" if deployment.available_kv_gib else "fitted",
        warnings=tuple(warnings),
        weights_parts_bytes=tight.weights.by_class(),
        overhead_parts_bytes=dict(beside.parts),
    )


def _stages(
    model: Model, deployment: Deployment, node: Node, budget_bytes: float, beside: Overhead
) -> list[_Stage]:
    plans = layouts.page_plans(model, deployment, node.accelerator)
    layers = stage_layers(model, deployment.pp)
    stages = []
    for number, (plan, held) in enumerate(zip(plans, layers, strict=True)):
        weights = rank_weights(
            model, deployment, held, first=number == 0, last=number == deployment.pp - 1
        )
        available = budget_bytes - weights.total - beside.total
        if deployment.available_kv_gib is not None:
            available = deployment.available_kv_gib * GIB
        stages.append(_Stage(weights=weights, plan=plan, available_bytes=available))
    return stages


def _tightest_bytes_per_token(stages: list[_Stage]) -> float:
    return max(s.plan.block_bytes * s.plan.growing_groups / s.plan.block_tokens for s in stages)


def _reported_tokens(
    plan: PagePlan, blocks: int, longest: int, deployment: Deployment
) -> tuple[int, float]:
    """Return (tokens as logged [tokens], requests of maximal length [1]) of one DP rank."""
    most = blocks / plan.blocks_per_request(longest)
    if engine_defaults.reports_by_concurrency(deployment):
        return int(most * longest), most
    return blocks // plan.groups * plan.block_tokens, most


def _usable_tokens(plan: PagePlan, blocks: int, live: int, deployment: Deployment) -> int:
    """Tokens of growing groups once each live request has its fixed blocks and half a block."""
    per_rank = math.ceil(live / deployment.dp)
    bounded = plan.blocks_per_request(10**9) - plan.blocks_per_request(0) if plan.bounded else 0
    if plan.bounded:
        grown = plan.growing_groups * math.ceil(10**9 / plan.block_tokens)
        bounded -= grown
    fixed = plan.resident_blocks + bounded + 0.5 * plan.growing_groups
    left = max(0.0, blocks - per_rank * fixed)
    groups = plan.growing_groups or 1
    return int(left / groups * plan.block_tokens) * deployment.dp


def what_if(model: Model, node: Node, deployment: Deployment, **changes: Any) -> KvBudget:
    """Return the budget with some fields of the deployment changed."""
    return kv_budget(model, node, replace(deployment, **changes))
