"""When no plan keeps every rule: what binds, and the cheapest way to relax it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InfeasibleError
from .branch_and_bound import Search, search
from .evaluation import Evaluated, Evaluator
from .objective import hourly_usd

if TYPE_CHECKING:
    from .certificate import Question
    from .slo import Slo


def infeasible(found: Search, question: Question) -> InfeasibleError:
    """Return the error of a search that found no plan.

    Notes
    -----
    One session with the most DRAM is the easiest point of a configuration: rules it breaks bind.
    Where it breaks none, the budget does. Relaxations are ordered by how far, relatively, the
    limit moves; a latency needs at least what one session sees.
    """
    if not found.evaluators:
        reasons = [item.broken[0] for item in found.evidence]
        more = f" (and {len(reasons) - 1} more configurations)" if len(reasons) > 1 else ""
        return InfeasibleError(
            f"no configuration can run: {reasons[0]}{more}",
            details={"binding": ["hbm_bytes"], "refused": reasons, "relaxations": []},
        )
    easiest = [
        (made, made.point(1, made.configuration.dram_sizes_bytes[-1]))
        for made in found.evaluators.values()
    ]
    if any(not point.broken for _, point in easiest):
        return _over_budget(found, question)
    made, point = min(easiest, key=lambda pair: _distance(pair[1], question))
    relaxations = _relaxations(point, question)
    if not relaxations:
        relaxations = [_other_room(made)]
    first = relaxations[0]
    return InfeasibleError(
        f"no concurrency meets {'; '.join(point.broken)}: one session already breaks it on "
        f"{made.configuration}. Cheapest relaxation: {first['change']}.",
        details={"binding": list(point.broken), "relaxations": relaxations},
    )


def _ratio(slo: Slo, point: Evaluated) -> float:
    """How far the limit must move for the point to meet it, at least 1 [1]."""
    figure = point.figures.get(slo.key)
    if figure is None:
        return float("inf")
    return max(figure / slo.limit, slo.limit / figure) if not _met(slo, figure) else 1.0


def _met(slo: Slo, figure: float) -> bool:
    return figure >= slo.limit if slo.key.startswith("interactivity") else figure <= slo.limit


def _distance(point: Evaluated, question: Question) -> float:
    worst = 1.0 if point.run is not None else float("inf")
    for slo in question.rules.slos:
        worst = max(worst, _ratio(slo, point))
    return worst


def _relaxations(point: Evaluated, question: Question) -> list[dict[str, Any]]:
    found = []
    for slo in question.rules.slos:
        ratio = _ratio(slo, point)
        if 1.0 < ratio < float("inf"):
            figure = point.figures[slo.key]
            found.append(
                {
                    "change": f"{slo.key} from {slo.limit:g} to {figure:.3g}",
                    "key": slo.key,
                    "limit": slo.limit,
                    "needed": figure,
                    "factor": ratio,
                }
            )
    if any(text.startswith("hits") for text in point.broken):
        found.append(
            {
                "change": "--allow-past-cliff, or more HBM or DRAM per session",
                "key": "hit_share",
                "limit": question.rules.hit_share,
                "needed": point.hit_share,
                "factor": question.rules.hit_share / max(point.hit_share, 1e-9),
            }
        )
    return sorted(found, key=lambda item: item["factor"])


def _other_room(made: Evaluator) -> dict[str, Any]:
    budget, workload = made.budget(1), made.scenario.workload
    needed = workload.request_tokens_mean + workload.shared_prefix_tokens
    have = max(budget.usable_kv_tokens / made.scenario.deployment.dp, 1.0)
    return {
        "change": f"a KV pool of {needed:.0f} tokens per rank in place of {have:.0f}",
        "key": "kv_tokens",
        "limit": have,
        "needed": needed,
        "factor": needed / have,
    }


def _over_budget(found: Search, question: Question) -> InfeasibleError:
    free = replace(question.objective, budget_usd_per_hour=None, kind="cost")
    made = found.evaluators
    rerun = search(
        [e.configuration for e in made.values()],
        free,
        question.rules,
        question.level,
        evaluator=lambda configuration, *_: next(
            e for e in made.values() if e.configuration is configuration
        ),
    )
    budget = question.objective.budget_usd_per_hour
    assert rerun.best is not None and budget is not None  # only the budget was in the way
    best = rerun.best.evaluated
    scenario = rerun.configurations[rerun.best.configuration].scenario
    replicas = free.replicas(best.requests_per_s)
    hourly = hourly_usd(scenario, best.dram_bytes) * replicas
    relaxations: list[dict[str, Any]] = [
        {
            "change": f"a budget of ${hourly:.2f}/h in place of ${budget:.2f}/h",
            "key": "budget_usd_per_hour",
            "limit": budget,
            "needed": hourly,
            "factor": hourly / budget,
        }
    ]
    demand = free.demand_requests_per_s
    affordable = int(budget / (hourly / replicas)) - free.spare_replicas
    if demand is not None and affordable > 0:
        carried = affordable * free.headroom * best.requests_per_s
        relaxations.append(
            {
                "change": f"a demand of {carried:.3g} turns/s in place of {demand:.3g}",
                "key": "demand_turns_per_s",
                "limit": demand,
                "needed": carried,
                "factor": demand / carried,
            }
        )
    relaxations.sort(key=lambda item: item["factor"])
    return InfeasibleError(
        f"the budget of ${budget:.2f}/h binds: the cheapest plan takes {replicas} replicas at "
        f"${hourly:.2f}/h. Cheapest relaxation: {relaxations[0]['change']}.",
        details={"binding": ["budget"], "relaxations": relaxations},
    )
