"""Inverse questions: what makes it fit, the longest context, the smallest node, tokens to GiB."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import InfeasibleError, SpecError
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..spec.node import Node
from ..units import GIB
from . import kv_layout
from .budget import KvBudget, kv_budget
from .engine_defaults import max_model_len
from .layouts import page_plans

HIGHEST_UTILIZATION = 0.99
UTILIZATION_STEPS = 100
MOST_NODES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSize:
    """A pool for a wanted number of tokens.

    Parameters
    ----------
    tokens : int
        Tokens wanted [tokens].
    blocks : int
        Blocks of one rank [1].
    available_kv_gib : float
        Bytes per GPU for them [GiB].
    gpu_memory_utilization : float or None
        Share of HBM that leaves them, None where no share does [1].
    """

    tokens: int
    blocks: int
    available_kv_gib: float
    gpu_memory_utilization: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        share = self.gpu_memory_utilization
        reached = "more than the GPU has" if share is None else f"utilization {share:.3f}"
        return f"wanted     {self.tokens:,} tokens need {self.available_kv_gib:.2f} GiB: {reached}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """One change that makes the model fit: the field, its new value, the tokens it leaves."""

    field: str
    value: str | int | float
    kv_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def fitting_utilization(model: Model, node: Node, deployment: Deployment) -> float:
    """Return the smallest share of HBM, to 1%, at which the engine starts [1].

    Raises
    ------
    InfeasibleError
        If it does not start at 99%.
    """
    lowest = next(
        (
            step / UTILIZATION_STEPS
            for step in range(1, UTILIZATION_STEPS)
            if _fits(model, node, deployment, gpu_memory_utilization=step / UTILIZATION_STEPS)
        ),
        None,
    )
    if lowest is None:
        budget = kv_budget(
            model, node, replace(deployment, gpu_memory_utilization=HIGHEST_UTILIZATION)
        )
        raise InfeasibleError(
            f"{model.name} does not fit {node.name} at any utilization: "
            f"{budget.shortfall_bytes_per_gpu / GIB:.1f} GiB per GPU missing at 99%.",
            details={"shortfall_bytes_per_gpu": budget.shortfall_bytes_per_gpu},
        )
    return lowest


def _fits(model: Model, node: Node, deployment: Deployment, **changes: Any) -> bool:
    return kv_budget(model, node, replace(deployment, **changes)).fits


def longest_context(model: Model, node: Node, deployment: Deployment) -> int:
    """Return the longest single request that the pool holds, at most the model's own [tokens]."""
    budget = kv_budget(model, node, replace(deployment, max_model_len=1))
    plans = page_plans(model, deployment, node.accelerator)
    fitting = min(plan.longest_request(budget.kv_blocks) for plan in plans)
    return min(fitting, model.max_position_tokens)


def pool_for_tokens(model: Model, node: Node, deployment: Deployment, tokens: int) -> PoolSize:
    """Return the pool that the engine logs as at least `tokens` [tokens].

    Raises
    ------
    SpecError
        If no tokens are wanted.
    """
    if tokens < 1:
        raise SpecError("tokens: at least one is wanted.", field="tokens")
    free = replace(deployment, available_kv_gib=None)
    now = kv_budget(model, node, free)
    low, high = 0, max(1, now.kv_blocks)
    while _tokens_at(model, node, free, now, high) < tokens:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = _tokens_at(model, node, free, now, middle) >= tokens
        low, high = (low, middle) if enough else (middle, high)
    needed_bytes = high * now.block_bytes
    beside = now.weights_bytes_per_gpu + now.overhead_bytes_per_gpu
    share = (beside + needed_bytes) / now.hbm_bytes_per_gpu
    return PoolSize(
        tokens=tokens,
        blocks=high,
        available_kv_gib=needed_bytes / GIB,
        gpu_memory_utilization=share if share <= 1 else None,
    )


def _tokens_at(model: Model, node: Node, deployment: Deployment, now: KvBudget, blocks: int) -> int:
    gib = (blocks + 0.5) * now.block_bytes / GIB
    given = replace(deployment, available_kv_gib=gib, max_model_len=now.max_model_len)
    return kv_budget(model, node, given).kv_tokens


def smallest_node(
    model: Model, node: Node, deployment: Deployment, *, tokens: int = 0
) -> tuple[Node, Deployment]:
    """Return the fewest accelerators of the node's kind that hold the model and `tokens`.

    Notes
    -----
    Tensor parallelism within a node in powers of two, then pipeline stages over whole nodes.

    Raises
    ------
    InfeasibleError
        If 64 nodes are too few.
    """
    shapes = [(gpus, 1) for gpus in (1, 2, 4, 8, 16) if gpus < node.gpus]
    shapes += [(node.gpus, count) for count in range(1, MOST_NODES + 1)]
    for gpus, count in shapes:
        if count > model.layer_count:
            break
        smaller = replace(node, gpus=gpus, nodes=count)
        alone = replace(deployment, tp=gpus, pp=count, dp=1, dcp=1)
        copies = kv_layout.fewest_copies(model, alone)
        shared = gpus % deployment.dcp == 0 and deployment.dcp <= copies
        layout = replace(alone, dcp=deployment.dcp if shared else 1)
        budget = kv_budget(model, smaller, layout)
        if budget.fits and budget.kv_tokens >= tokens:
            return smaller, layout
    raise InfeasibleError(
        f"{model.name} does not fit {MOST_NODES} nodes of {node.name}.",
        details={"nodes": MOST_NODES},
    )


def relaxations(model: Model, node: Node, deployment: Deployment) -> list[Relaxation]:
    """Return single changes that make the model fit, cheapest first; empty where none does."""
    found = []
    for change in _changes(model, node, deployment):
        changed = replace(deployment, **change)
        budget = kv_budget(model, node, changed)
        # A start with room for a few tokens is no remedy: the longest request must fit too.
        if budget.fits and budget.max_model_len >= max_model_len(changed, model):
            field, value = next(iter(change.items()))
            found.append(Relaxation(field=field, value=value, kv_tokens=budget.kv_tokens))
    try:
        smaller, layout = smallest_node(model, node, deployment)
    except InfeasibleError:
        return found
    if smaller.total_gpus > deployment.gpus:
        larger = kv_budget(model, smaller, layout)
        found.append(
            Relaxation(field="nodes", value=smaller.nodes, kv_tokens=larger.kv_tokens)
            if smaller.nodes > 1
            else Relaxation(field="tp", value=smaller.gpus, kv_tokens=larger.kv_tokens)
        )
    return found


def shortage(model: Model, node: Node, deployment: Deployment, budget: KvBudget) -> InfeasibleError:
    """Return the error for a model that does not fit: what is short, and what would fit."""
    remedies = [change.to_dict() for change in relaxations(model, node, deployment)]
    fixes = "; ".join(f"{r['field']} {r['value']}" for r in remedies) or "none with one change"
    missing = budget.shortfall_bytes_per_gpu / GIB
    return InfeasibleError(
        f"{budget.model} does not fit {budget.node}: {missing:.2f} GiB per GPU missing. "
        f"Fits with: {fixes}.",
        details={
            "shortfall_bytes_per_gpu": budget.shortfall_bytes_per_gpu,
            "remedies": remedies,
        },
    )


def _changes(model: Model, node: Node, deployment: Deployment) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    if deployment.available_kv_gib is None:
        try:
            share = fitting_utilization(model, node, deployment)
        except InfeasibleError:
            share = 1.0
        if deployment.gpu_memory_utilization < share < 1:
            changes.append({"gpu_memory_utilization": share})
    if deployment.max_model_len is not None:
        fitting = longest_context(model, node, deployment)
        if 0 < fitting < deployment.max_model_len:
            changes.append({"max_model_len": fitting})
    if deployment.kv_dtype != "fp8":
        changes.append({"kv_dtype": "fp8"})
    copies = kv_layout.fewest_copies(model, deployment)
    if deployment.dcp == 1 and copies > 1 and deployment.tp % copies == 0:
        changes.append({"dcp": copies})
    return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a model, a node and a deployment can be bent.

    Parameters
    ----------
    lowest_utilization : float or None
        Smallest share of HBM at which the engine starts, None where none does [1].
    longest_context_tokens : int
        Longest single request that the pool holds [tokens].
    smallest_node : str or None
        Fewest accelerators of the kind that hold the model, None where 64 nodes do not.
    fp8_kv_tokens : int
        Nominal tokens with fp8 KV [tokens].
    """

    lowest_utilization: float | None
    longest_context_tokens: int
    smallest_node: str | None
    fp8_kv_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        lowest = "-" if self.lowest_utilization is None else f"{self.lowest_utilization:.2f}"
        return (
            f"starts     from utilization {lowest}; longest request "
            f"{self.longest_context_tokens:,} tokens\n"
            f"smallest   {self.smallest_node or 'none of 64 nodes'}\n"
            f"fp8 KV     {self.fp8_kv_tokens:,} tokens"
        )


def reach(model: Model, node: Node, deployment: Deployment) -> Reach:
    """Return the answers to the inverse questions about one deployment."""
    free = replace(deployment, available_kv_gib=None)
    try:
        lowest: float | None = fitting_utilization(model, node, free)
    except InfeasibleError:
        lowest = None
    try:
        smaller, _ = smallest_node(model, node, free)
        count = "" if smaller.nodes == 1 else f"{smaller.nodes}x "
        smallest: str | None = count + smaller.name
    except InfeasibleError:
        smallest = None
    return Reach(
        lowest_utilization=lowest,
        longest_context_tokens=longest_context(model, node, deployment),
        smallest_node=smallest,
        fp8_kv_tokens=kv_budget(model, node, replace(deployment, kv_dtype="fp8")).kv_tokens,
    )
