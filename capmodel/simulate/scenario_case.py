"""From a resolved scenario to a simulation of one data-parallel rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import InfeasibleError, SpecError
from ..memory.budget import KvBudget, kv_budget
from ..service.engine_law import engine_law
from ..service.transfer import tier_transfer
from .case import SimulationCase, StateRule, Tier
from .workload_laws import session_laws

if TYPE_CHECKING:
    from ..scenario import ResolvedScenario

Tree = Literal["whole", "branches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioCase:
    """A simulation case and what scales it to the replica.

    Parameters
    ----------
    case : SimulationCase
        One data-parallel rank.
    budget : KvBudget
        Memory of the replica.
    ranks, gpus, concurrency : int
        Data-parallel ranks, accelerators and live sessions of the replica [1].
    tree_factor : float
        Live tokens of a session tree over those of its branches; memory is divided by it [1].
    """

    case: SimulationCase
    budget: KvBudget
    ranks: int
    gpus: int
    concurrency: int
    tree_factor: float


def scenario_case(
    resolved: ResolvedScenario, concurrency: int, *, tree: Tree = "whole"
) -> ScenarioCase:
    """Return the case that a scenario describes.

    Parameters
    ----------
    resolved : ResolvedScenario
        Model, node, deployment and workload.
    concurrency : int
        Live sessions of the replica [1].
    tree : {"whole", "branches"}
        How the live tokens of a session tree beyond its prompt are held.

    Raises
    ------
    SpecError
        If the concurrency is not a whole number >= 1, or `tree` is unknown.
    InfeasibleError
        If the model does not fit.

    Notes
    -----
    A session tree holds more live tokens than a prompt reads. ``"whole"``: every turn uses the
    whole tree, so the memory is divided by tree over prompt and a running request pins its tree;
    with that the public K3 points come out best at 8 sessions and collapsed at 16. ``"branches"``:
    the tree is that many contexts of prompt size and a turn goes on with any one of them (what
    rounding leaves over divides the memory); idle branches then go first and the cliff is gentler.
    Which one holds is not published. Models with a recurrent state resume only where their
    last turn ended.
    """
    if isinstance(concurrency, bool) or int(concurrency) != concurrency or concurrency < 1:
        raise SpecError(
            f"concurrency must be a whole number >= 1, got {concurrency}.", field="concurrency"
        )
    if tree not in ("whole", "branches"):
        raise SpecError(f"tree {tree!r} is not whole or branches.", field="tree")
    deployment, workload = resolved.deployment, resolved.workload
    ranks = deployment.dp
    per_rank = max(math.ceil(concurrency / ranks), 1)
    budget = kv_budget(resolved.model, resolved.node, deployment, concurrency=concurrency)
    if not budget.fits:
        raise InfeasibleError(
            f"{budget.model} does not fit {budget.node}: "
            f"{budget.shortfall_bytes_per_gpu / 2**30:.1f} GiB short on each GPU.",
            details={"shortfall_bytes_per_gpu": budget.shortfall_bytes_per_gpu},
        )
    size = max(workload.tree_tokens_mean / workload.request_tokens_mean, 1.0)
    branches = round(size) if tree == "branches" else 1
    factor = size / branches
    hybrid = budget.blocks_per_resume_point > 0
    state = StateRule()
    tokens = budget.usable_kv_tokens / ranks
    if hybrid:
        # State blocks come out of the same pool, so they are charged one by one.
        tokens = float(budget.kv_blocks * budget.block_tokens)
        state = StateRule(
            resume="turn_end",
            running_tokens=_scaled(budget.resident_blocks_per_live_request, budget, factor),
            checkpoint_tokens=_scaled(budget.blocks_per_resume_point, budget, factor),
        )
    case = SimulationCase(
        name=f"{budget.model} on {budget.node}",
        step_law=engine_law(resolved.model, resolved.node, deployment),
        kv_tokens=tokens / factor,
        sessions=session_laws(workload, branches),
        concurrency=per_rank,
        shared_prefix_tokens=round(workload.shared_prefix_tokens),
        max_context_tokens=min(workload.max_context_tokens, budget.max_model_len),
        block_tokens=budget.block_tokens,
        tier=_tier(resolved, budget, factor),
        state=state,
        prefix_caching=deployment.prefix_caching,
        branches=branches,
    )
    return ScenarioCase(
        case=case,
        budget=budget,
        ranks=ranks,
        gpus=resolved.node.total_gpus,
        concurrency=int(concurrency),
        tree_factor=factor,
    )


def _scaled(blocks: int, budget: KvBudget, factor: float) -> int:
    return round(blocks * budget.block_tokens / factor)


def _tier(resolved: ResolvedScenario, budget: KvBudget, factor: float) -> Tier | None:
    offload = resolved.deployment.offload
    if offload is None:
        return None
    link = tier_transfer(resolved.model, resolved.node, resolved.deployment)
    held = offload.bytes * resolved.node.nodes / budget.offload_bytes_per_token
    return Tier(
        tokens=held / resolved.deployment.dp / factor,
        bytes_per_token=link.bytes_per_token,
        bytes_per_s=link.load_bytes_per_s,
    )
