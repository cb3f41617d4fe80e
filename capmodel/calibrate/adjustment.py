"""Adjustments: the few factors by which one deployment differs from the uncalibrated model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from ..errors import SpecError
from ..memory.budget import KvBudget
from ..pipeline import Run, cache_of, fitting_budget, solved
from ..scenario import ResolvedScenario
from ..service.engine_law import engine_law
from ..service.step_law import StepLaw, StepTerm

# Terms that cost time without moving or computing anything.
OVERHEAD_TERMS = ("kernel_launch", "host", "overhead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """Factors on the uncalibrated model; one everywhere leaves it as it is.

    Parameters
    ----------
    compute_efficiency : float
        On the rate of the matrix units [1].
    bandwidth_efficiency : float
        On the rate of memory and links [1].
    step_overhead : float
        On the fixed time of a step: launches and the host [1].
    working_set : float
        On the live tokens of a session tree [1].
    gap_scale : float
        On the gaps between a session's requests, before the cap [1].
    usable_kv : float
        On the KV tokens that the engine can use [1].
    """

    compute_efficiency: float = 1.0
    bandwidth_efficiency: float = 1.0
    step_overhead: float = 1.0
    working_set: float = 1.0
    gap_scale: float = 1.0
    usable_kv: float = 1.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not (value > 0 and math.isfinite(value)):
                raise SpecError(f"{item.name} must be positive, got {value}.", field=item.name)


PARAMETERS = tuple(item.name for item in fields(Adjustment))


def adjusted_law(law: StepLaw, adjustment: Adjustment) -> StepLaw:
    """Return the step law with its compute side, memory side and overheads scaled."""
    return replace(law, terms=tuple(_adjusted_term(term, adjustment) for term in law.terms))


def _adjusted_term(term: StepTerm, adjustment: Adjustment) -> StepTerm:
    if term.name in OVERHEAD_TERMS:
        compute = memory = adjustment.step_overhead
    else:
        compute = 1.0 / adjustment.compute_efficiency
        memory = 1.0 / adjustment.bandwidth_efficiency
    return replace(
        term,
        compute_s=tuple(compute * rate for rate in term.compute_s),
        memory_s=tuple(memory * rate for rate in term.memory_s),
    )


def adjusted_scenario(resolved: ResolvedScenario, adjustment: Adjustment) -> ResolvedScenario:
    """Return the scenario with the working set and the gaps scaled."""
    workload = resolved.workload
    if adjustment.working_set == adjustment.gap_scale == 1.0:
        return resolved
    changed = replace(
        workload,
        tree_tokens_mean=workload.tree_tokens_mean * adjustment.working_set,
        think_time=workload.think_time.scaled(adjustment.gap_scale),
    )
    return replace(resolved, workload=changed)


def adjusted_run(
    resolved: ResolvedScenario,
    *,
    concurrency: int,
    adjustment: Adjustment | None = None,
    accepted_tokens: float | None = None,
    level: str = "fast",
) -> Run:
    """Return the solved scenario under an adjustment; without one, as the pipeline solves it.

    Parameters
    ----------
    resolved : ResolvedScenario
        What is given.
    concurrency : int
        Live sessions [1].
    adjustment : Adjustment, optional
        Factors; None for the uncalibrated model.
    accepted_tokens : float, optional
        Accepted length of the draft in place of its curve [tokens].
    level : str
        Queue model.

    Raises
    ------
    InfeasibleError
        If the model does not fit.
    SpecError
        If HBM cannot hold one request under the adjustment.
    """
    budget = fitting_budget(resolved, concurrency)
    law = base_law(resolved, accepted_tokens)
    return solved_under(resolved, budget, law, adjustment or Adjustment(), concurrency, level)


def base_law(resolved: ResolvedScenario, accepted_tokens: float | None) -> StepLaw:
    """Return the uncalibrated step law of one data-parallel rank."""
    return engine_law(
        resolved.model, resolved.node, resolved.deployment, accepted_tokens=accepted_tokens
    )


def solved_under(
    resolved: ResolvedScenario,
    budget: KvBudget,
    law: StepLaw,
    adjustment: Adjustment,
    concurrency: int,
    level: str,
) -> Run:
    """Return the solved scenario from its uncalibrated budget and law and an adjustment."""
    scenario = adjusted_scenario(resolved, adjustment)
    scaled_law = adjusted_law(law, adjustment)
    cache = cache_of(scenario, budget)
    cache = replace(cache, hbm_tokens=cache.hbm_tokens * adjustment.usable_kv)
    return solved(scenario, budget, scaled_law, cache, concurrency=concurrency, level=level)
