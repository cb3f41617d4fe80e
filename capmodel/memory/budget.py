"""The KV budget of one replica: does it fit, how many tokens, and where every byte goes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..errors import SpecError
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..spec.node import Node
from ..units import GIB
from . import engine_defaults, kv_layout, layouts, limits
from .kv_budget import KvBudget as KvBudget
from .overhead import Overhead, overhead
from .pages import PagePlan
from .params import parameters
from .recorded_build import RecordedBuild, recorded_build, with_recipe
from .stages import layer_kinds, stage_layers
from .weights import WeightBytes, rank_weights

# Logs print available memory to two decimals.
LOGGED_GIB_STEP = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """One pipeline stage: what its ranks hold and what is left [bytes]."""

    weights: WeightBytes
    loaded_bytes: float
    plan: PagePlan
    available_bytes: float
    bytes_per_token: float

    @property
    def blocks(self) -> int:
        return self.plan.blocks(self.available_bytes)


def kv_budget(
    model: Model,
    node: Node,
    deployment: Deployment,
    *,
    concurrency: int | None = None,
    request_tokens: float | None = None,
) -> KvBudget:
    """Return the KV budget of one replica of `model` on `node`.

    Parameters
    ----------
    model, node, deployment : Model, Node, Deployment
        What is served, where and how.
    concurrency : int, optional
        Live requests for `usable_kv_tokens`; None for one [1].
    request_tokens : float, optional
        Their mean context: only as many requests as fit with it hold a fixed share [tokens].

    Returns
    -------
    KvBudget
        The budget of the tightest rank, and the tokens of the whole replica.

    Raises
    ------
    SpecError
        If the deployment needs more accelerators than the node has.

    Notes
    -----
    ``available = utilization * HBM - weights - overhead``, ``blocks = floor(available / block)``;
    with several pipeline stages the one with the fewest blocks decides.
    Exact for: blocks and tokens, given the available bytes (median error 0.01% over 58 logged
    starts). Approximate for: the available bytes, whose overhead is fitted (median error 1.4% of
    the engine's share, 90% within 5%, over 69 starts; see `intervals`).

    Examples
    --------
    >>> from capmodel import catalog
    >>> deployment = Deployment(tp=8, kv_dtype="fp8", available_kv_gib=42.23)
    >>> kv_budget(catalog.model("kimi-k3"), catalog.node("8xB300"), deployment).kv_tokens
    3249215
    """
    _check_size(node, deployment)
    _check_context_parallelism(model, deployment)
    part = node.accelerator
    build = recorded_build(model, deployment)
    deployment = with_recipe(deployment, build)
    beside = overhead(model, deployment, part)
    stages = _stages(model, deployment, node, beside.total, build)
    tight = min(stages, key=lambda s: s.available_bytes / s.plan.block_bytes)
    blocks, plan = tight.blocks, tight.plan
    longest, warnings = _longest_request(model, deployment, plan, blocks)
    warnings += limits.utilization_warnings(model, node, deployment)
    per_request = plan.blocks_per_request(longest)
    shortfall = _shortfall_bytes(tight, per_request, deployment)
    tokens, most = _reported_tokens(plan, blocks, longest, deployment)
    live = concurrency or 1
    per_rank = math.ceil(live / deployment.dp)
    if request_tokens is not None:
        each = request_tokens + plan.tokens_per_live_request
        per_rank = min(per_rank, max(math.floor(plan.tokens_of_blocks(blocks) / each), 1))
    kinds = replace(model, layers=layer_kinds(model.layers))
    counts = parameters(kinds)
    usable = plan.usable_tokens(blocks, per_rank) * deployment.dp
    ranges = _intervals(tight, beside, longest, deployment)
    warnings += limits.layout_warnings(kinds, deployment)
    warnings += limits.draft_warnings(model, deployment)
    warnings += limits.state_warnings(plan, tight.available_bytes, node, deployment)
    if shortfall > 0:
        warnings.insert(0, _refusal(tight, longest, deployment))
    return KvBudget(
        model=model.name,
        node=node.name if node.nodes == 1 else f"{node.nodes}x {node.name}",
        fits=shortfall <= 0,
        fit_is_certain=_is_certain(tight, ranges, per_request, deployment),
        shortfall_bytes_per_gpu=shortfall,
        hbm_bytes_per_gpu=part.hbm_bytes,
        budget_bytes_per_gpu=deployment.gpu_memory_utilization * part.hbm_bytes,
        weights_bytes_per_gpu=tight.loaded_bytes,
        overhead_bytes_per_gpu=beside.total,
        available_kv_bytes_per_gpu=max(0.0, tight.available_bytes),
        kv_bytes_per_token=max(s.bytes_per_token for s in stages),
        state_bytes_per_sequence=kv_layout.state_bytes_per_sequence(kinds, deployment),
        block_tokens=plan.block_tokens,
        kv_blocks=blocks,
        block_bytes=plan.block_bytes,
        kv_tokens=tokens * deployment.dp,
        usable_kv_tokens=min(usable, tokens * deployment.dp) if not plan.bounded else usable,
        max_concurrency=most * deployment.dp,
        max_model_len=longest,
        blocks_per_request=per_request,
        resident_blocks_per_live_request=plan.resident_blocks,
        blocks_per_resume_point=plan.state_groups,
        tokens_per_live_request=plan.tokens_per_live_request,
        tokens_per_resume_point=plan.tokens_of_blocks(plan.state_groups),
        kv_replication=kv_layout.kv_replication(kinds, deployment),
        unique_kv_bytes_per_token=kv_layout.unique_kv_bytes_per_token(kinds, deployment),
        offload_bytes_per_token=sum(s.bytes_per_token for s in stages) * deployment.tp / node.nodes,
        offload_bytes_per_resume_point=kv_layout.recurrent_bytes_per_sequence(kinds, deployment)
        * deployment.tp
        / node.nodes,
        total_params=counts.total,
        active_params=counts.active,
        concurrency=live,
        evidence=_evidence(deployment, build),
        evidence_by_part=_evidence_by_part(deployment, build),
        warnings=tuple(warnings),
        weights_parts_bytes=_weight_parts(tight),
        overhead_parts_bytes=dict(beside.parts),
        intervals=ranges,
    )


def _evidence(deployment: Deployment, build: RecordedBuild | None) -> str:
    """Kind of the largest part: the pool where it was given, else the weights."""
    parts = _evidence_by_part(deployment, build)
    return parts["pool"] if deployment.available_kv_gib else parts["weights"]


def _evidence_by_part(deployment: Deployment, build: RecordedBuild | None) -> dict[str, str]:
    given = deployment.available_kv_gib is not None
    return {
        "weights": "derived" if build is None else "measured",
        "overhead": "fitted",
        "pool": "given" if given else "fitted",
        "blocks": "derived",
    }


def _check_size(node: Node, deployment: Deployment) -> None:
    if deployment.gpus > node.total_gpus:
        raise SpecError(
            f"tp {deployment.tp} x pp {deployment.pp} x dp {deployment.dp} needs "
            f"{deployment.gpus} GPUs; {node.nodes} x {node.name} has {node.total_gpus}.",
            field="tp",
        )


def _check_context_parallelism(model: Model, deployment: Deployment) -> None:
    copies = kv_layout.fewest_copies(model, deployment)
    if deployment.dcp > copies:
        raise SpecError(
            f"dcp {deployment.dcp} divides the tokens among ranks with the same KV heads; "
            f"{model.name} at tp {deployment.tp} has {copies} such rank{'s' * (copies > 1)}.",
            field="dcp",
        )


def _stages(
    model: Model,
    deployment: Deployment,
    node: Node,
    overhead_bytes: float,
    build: RecordedBuild | None,
) -> list[_Stage]:
    held_by_stage = stage_layers(model, deployment.pp)
    kinds = replace(model, layers=layer_kinds(model.layers))
    stages = []
    for number, held in enumerate(held_by_stage):
        last = number == deployment.pp - 1
        plan = layouts.stage_plan(kinds, held, deployment, node.accelerator, last=last)
        weights = rank_weights(kinds, deployment, held, first=number == 0, last=last)
        loaded = build.weights_bytes if build else weights.total
        available = _available_bytes(node, deployment, loaded + overhead_bytes)
        if deployment.available_kv_gib is not None:
            available = deployment.available_kv_gib * GIB
        stages.append(
            _Stage(
                weights=weights,
                loaded_bytes=loaded,
                plan=plan,
                available_bytes=available,
                bytes_per_token=layouts.stage_bytes_per_token(kinds, held, deployment, last=last),
            )
        )
    return stages


def _available_bytes(node: Node, deployment: Deployment, taken_bytes: float) -> float:
    """Return the pool's bytes: a share of HBM less what is taken, or a share of what is free."""
    hbm_bytes, share = node.accelerator.hbm_bytes, deployment.gpu_memory_utilization
    if deployment.engine == "trtllm":
        return share * (hbm_bytes - taken_bytes)
    return share * hbm_bytes - taken_bytes


def _longest_request(
    model: Model, deployment: Deployment, plan: PagePlan, blocks: int
) -> tuple[int, list[str]]:
    """Return the longest request served [tokens], cut to what fits where the user set none."""
    longest = engine_defaults.max_model_len(deployment, model)
    if deployment.max_model_len is not None or plan.blocks_per_request(longest) <= blocks:
        return longest, []
    fitting = plan.longest_request(blocks)
    if fitting == 0:
        return longest, []
    outcome = "the engine would refuse to start" if limits.refuses_long_requests(deployment) else ""
    return fitting, [
        f"one request of the model's own {longest:,} tokens does not fit"
        f"{' and ' + outcome if outcome else ''}; the figures are for --max-model-len {fitting}."
    ]


def _shortfall_bytes(tight: _Stage, per_request: int, deployment: Deployment) -> float:
    if limits.refuses_long_requests(deployment):
        needed = per_request * tight.plan.block_bytes / tight.plan.pool_share
    else:
        needed = tight.plan.block_bytes / tight.plan.pool_share
    if tight.blocks >= (per_request if limits.refuses_long_requests(deployment) else 1):
        return 0.0
    return max(1.0, needed - tight.available_bytes)


def _is_certain(
    tight: _Stage,
    ranges: dict[str, tuple[float, float]],
    per_request: int,
    deployment: Deployment,
) -> bool:
    """Whether the ends of the range of blocks agree with the verdict at its middle."""
    needed = per_request if limits.refuses_long_requests(deployment) else 1
    return len({n >= needed for n in (*ranges["kv_blocks"], tight.blocks)}) == 1


def _refusal(tight: _Stage, longest: int, deployment: Deployment) -> str:
    fitting = tight.plan.longest_request(tight.blocks)
    if fitting and limits.refuses_long_requests(deployment):
        return (
            f"the engine refuses to start: one request of {longest:,} tokens does not fit; "
            f"up to --max-model-len {fitting} does."
        )
    return "weights and overhead leave no room for a KV pool."


def _reported_tokens(
    plan: PagePlan, blocks: int, longest: int, deployment: Deployment
) -> tuple[int, float]:
    """Return (tokens as logged [tokens], requests of maximal length [1]) of one DP rank."""
    most = blocks / plan.blocks_per_request(longest)
    by_concurrency = engine_defaults.reports_by_concurrency(deployment)
    if by_concurrency and limits.refuses_long_requests(deployment):
        return int(most * longest), most
    return blocks // plan.groups * plan.block_tokens, most


def _weight_parts(tight: _Stage) -> dict[str, float]:
    parts = {name: size for name, size in tight.weights.by_class().items() if size}
    unexplained = tight.loaded_bytes - tight.weights.total
    if unexplained:
        parts["beyond_architecture"] = unexplained
    return parts


def _intervals(
    tight: _Stage, beside: Overhead, longest: int, deployment: Deployment
) -> dict[str, tuple[float, float]]:
    """Ranges that follow from the overhead's, or from the rounding of a given GiB figure."""
    if deployment.available_kv_gib is not None:
        half = 0.5 * LOGGED_GIB_STEP * GIB
        low, high = tight.available_bytes - half, tight.available_bytes + half
    else:
        low = tight.available_bytes - (beside.high - beside.total)
        high = tight.available_bytes + (beside.total - beside.low)
    ends = [tight.plan.blocks(edge) for edge in (low, high)]
    tokens = [_reported_tokens(tight.plan, n, longest, deployment)[0] for n in ends]
    return {
        "available_kv_bytes_per_gpu": (max(0.0, low), max(0.0, high)),
        "kv_blocks": (float(ends[0]), float(ends[1])),
        "kv_tokens": (
            float(tokens[0] * deployment.dp),
            float(tokens[1] * deployment.dp),
        ),
    }
