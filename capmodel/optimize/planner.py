"""From a question to a plan: search, the smallest DRAM that is as good, and the certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..answer import BEFORE_CLIFF
from ..errors import SpecError
from ..scenario import ResolvedScenario, Scenario
from ..units import MILLION, SECONDS_PER_HOUR
from .branch_and_bound import Found, Search, search
from .certificate import Certificate, Question, fingerprint, scenario_fields
from .configuration import Configuration, configurations, planning_limit
from .evaluation import Rules
from .evidence import Evidence, lower_bound, monotonicities, point_value
from .infeasible import infeasible
from .objective import Objective, revenue_usd, tokens_per_request
from .plan import Plan
from .slo import parse_slos


def optimize(
    scenario: Scenario | ResolvedScenario,
    *,
    on: Sequence[str] = (),
    slo: Iterable[str] | Mapping[str, float] = (),
    objective: str = "cost",
    search_axes: Sequence[str] = (),
    largest_dram_bytes: float | None = None,
    demand_sessions_per_hour: float | None = None,
    demand_turns_per_s: float | None = None,
    headroom: float | None = None,
    spare_replicas: int = 0,
    budget_usd_per_hour: float | None = None,
    cliff_margin: float = 0.0,
    level: str = "fast",
    allow_past_cliff: bool = False,
) -> Plan:
    """Return the best plan that keeps its cache and meets the SLOs, with a proof.

    Parameters
    ----------
    scenario : Scenario
        What is given. Its offload tier is the most DRAM a plan may take; ``"none"`` allows none,
        and a `Scenario` that does not say allows the usual share of the node's host memory.
    on : sequence of str
        Further nodes to choose from.
    slo : iterable of str, or mapping
        ``["ttft_p90=5"]`` or ``{"ttft_p90_s": 5}``; seconds, interactivity in tokens/s.
    objective : {"cost", "margin", "throughput"}
        Cost per token, cost over revenue, or rate of one replica.
    search_axes : sequence of {"layout", "speculation", "kv_dtype"}
        What else may be chosen.
    largest_dram_bytes : float, optional
        DRAM per node that a plan may take, in place of the scenario's [bytes].
    demand_sessions_per_hour, demand_turns_per_s : float, optional
        Traffic that the replicas carry together [sessions/h], [requests/s].
    headroom : float, optional
        Share of a replica's rate that a demand is planned on; None for the catalog's [1].
    spare_replicas : int
        Replicas beyond the demand, N + k [1].
    budget_usd_per_hour : float, optional
        Most that all replicas may cost [USD/h].
    cliff_margin : float
        The hits must hold with ``C/(1 - margin)`` sessions too [1].
    level : {"closed", "fast", "exact"}
        Queue model.
    allow_past_cliff : bool
        True to let the plan lose more than a tenth of the theoretical hits.

    Raises
    ------
    SpecError
        If an input is unknown or a price is missing.
    InfeasibleError
        If no plan keeps every rule; names what binds and the cheapest relaxation.

    Examples
    --------
    >>> s = Scenario(model="kimi-k3", node="8xB300", workload="agentic-coding", offload="none")
    >>> 6 <= optimize(s).concurrency <= 12
    True
    """
    given = _scenarios(scenario, on)
    resolved = [s.resolve() if isinstance(s, Scenario) else s for s in given]
    texts = [f"{k}={v}" for k, v in slo.items()] if isinstance(slo, Mapping) else list(slo)
    keeps_cache = resolved[0].deployment.prefix_caching and not allow_past_cliff
    rules = Rules(
        slos=parse_slos(texts),
        hit_share=BEFORE_CLIFF if keeps_cache else 0.0,
        cliff_margin=cliff_margin,
    )
    goal = _goal(
        resolved[0],
        objective,
        demand_sessions_per_hour,
        demand_turns_per_s,
        headroom,
        spare_replicas,
        budget_usd_per_hour,
    )
    _check_prices(resolved, goal)
    if largest_dram_bytes is None:
        largest_dram_bytes = _stated_dram(scenario, resolved[0])
    question = Question(
        scenarios=scenario_fields(given),
        fingerprint=fingerprint(resolved),
        level=level,
        objective=goal,
        rules=rules,
        axes=tuple(search_axes),
        largest_dram_bytes=largest_dram_bytes,
    )
    return solve(resolved, question)


def solve(resolved: Sequence[ResolvedScenario], question: Question) -> Plan:
    """Return the plan that answers a question about resolved scenarios."""
    space = plan_space(resolved, question)
    found = search(space, question.objective, question.rules, question.level)
    if found.best is None:
        raise infeasible(found, question)
    plan, smaller = _least_dram(found, found.best, question)
    plan = _fewest_sessions(found, plan, question)
    return Plan(
        search=found,
        found=plan,
        certificate=_certificate(found, plan, smaller, question),
        question=question,
    )


def plan_space(resolved: Sequence[ResolvedScenario], question: Question) -> list[Configuration]:
    """Return every configuration that a question may choose from."""
    return [
        configuration
        for scenario in resolved
        for configuration in configurations(
            scenario, largest_dram=question.largest_dram_bytes, axes=question.axes
        )
    ]


def _scenarios(
    scenario: Scenario | ResolvedScenario, on: Sequence[str]
) -> list[Scenario | ResolvedScenario]:
    if not on:
        return [scenario]
    if not isinstance(scenario, Scenario):
        raise SpecError("several nodes need a Scenario, not a resolved one.", field="on")
    return [scenario, *(replace(scenario, node=node, tp=None) for node in on)]


def _stated_dram(given: Scenario | ResolvedScenario, resolved: ResolvedScenario) -> float | None:
    """DRAM the scenario allows; None where it leaves it to the plan."""
    offload = resolved.deployment.offload
    if offload is not None:
        return offload.bytes
    if isinstance(given, Scenario) and given.offload is None:
        return None if resolved.deployment.prefix_caching else 0.0
    return 0.0


def _goal(
    scenario: ResolvedScenario,
    kind: str,
    sessions_per_hour: float | None,
    turns_per_s: float | None,
    headroom: float | None,
    spare: int,
    budget: float | None,
) -> Objective:
    if sessions_per_hour is not None and turns_per_s is not None:
        raise SpecError("give one demand: sessions per hour or turns per second.", field="demand")
    demand = turns_per_s
    if sessions_per_hour is not None:
        demand = sessions_per_hour * scenario.workload.turns_mean / SECONDS_PER_HOUR
    if headroom is not None and not 0 < headroom <= 1:
        raise SpecError("headroom must be in (0, 1].", field="headroom")
    planned = planning_limit("headroom") if headroom is None else headroom
    return Objective(
        kind=kind,
        demand_requests_per_s=demand,
        headroom=1.0 if demand is None else planned,
        spare_replicas=spare,
        budget_usd_per_hour=budget,
    )


def _check_prices(resolved: Sequence[ResolvedScenario], goal: Objective) -> None:
    for scenario in resolved:
        if scenario.gpu_hour_usd is None:
            raise SpecError(
                f"no GPU-hour price for {scenario.node.accelerator.name}; give --gpu-hour-usd.",
                field="gpu_hour_usd",
            )
    if goal.kind == "margin":
        revenue_usd(resolved[0], 0.0)


def _least_dram(
    found: Search, best: Found, question: Question
) -> tuple[Found, tuple[Evidence, ...]]:
    """Return the plan at the smallest DRAM that is nearly as good, where DRAM costs nothing."""
    made = found.evaluators[best.configuration]
    sizes = made.configuration.dram_sizes_bytes
    at = sizes.index(best.evaluated.dram_bytes)
    if made.scenario.dram_gb_hour_usd > 0 or at == 0:
        return best, ()
    configuration = made.configuration
    limit = best.value / (1.0 - planning_limit("negligible_loss"))

    def at_size(size: int, beat: float, first: bool) -> Search:
        one = made.at_size(sizes[size])
        return search(
            [one.configuration],
            question.objective,
            question.rules,
            question.level,
            evaluator=lambda *_: one,
            beat=beat,
            first=first,
        )

    def good_enough(size: int) -> bool:
        """True where the best concurrency is within the limit; another one may be."""
        point = made.point(best.evaluated.concurrency, sizes[size])
        value = None if point.broken else point_value(question.objective, configuration, point)
        return value is not None and value < limit

    low, high = -1, at
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good_enough(middle) else (middle, high)
    # Now the proof: at the next smaller size no concurrency at all is good enough.
    smaller: tuple[Evidence, ...] = ()
    while high > 0:
        tried = at_size(high - 1, limit, True)
        if tried.best is None:
            smaller = tuple(tried.evidence)
            break
        high -= 1
    chosen = at_size(high, limit, False).best if high < at else best
    assert chosen is not None  # a point at this size was found just before
    return replace(chosen, configuration=best.configuration), smaller


def _fewest_sessions(found: Search, plan: Found, question: Question) -> Found:
    """Return the plan with the fewest sessions that carry a demand at the same price."""
    objective = question.objective
    if objective.demand_requests_per_s is None:
        return plan
    made = found.evaluators[plan.configuration]
    low, high, chosen = 0, plan.evaluated.concurrency, plan
    while high - low > 1:
        middle = (low + high) // 2
        point = made.point(middle, plan.evaluated.dram_bytes)
        value = None if point.broken else point_value(objective, made.configuration, point)
        if value is not None and value <= plan.value * (1.0 + 1e-12):
            high, chosen = middle, replace(plan, evaluated=point, value=value)
        else:
            low = middle
    return chosen


def _certificate(
    found: Search, plan: Found, smaller: tuple[Evidence, ...], question: Question
) -> Certificate:
    best = found.best
    assert best is not None  # an infeasible search has no certificate
    checked = tuple(monotonicities(list(found.evaluators.values())))
    scenario = found.configurations[plan.configuration].scenario
    money = {"cost": 1.0, "margin": None, "throughput": None}[question.objective.kind]
    if question.objective.kind == "margin" and scenario.bill_cached != "actual":
        money = revenue_usd(scenario, 0.0) / tokens_per_request(scenario) * MILLION
    certificate = Certificate(
        question=question,
        configurations=tuple(found.configurations),
        largest_concurrency=tuple(
            found.evaluators[i].largest_concurrency if i in found.evaluators else 0
            for i in range(len(found.configurations))
        ),
        evidence=tuple(found.evidence),
        optimum=best.value,
        lower_bound=found.lower_bound,
        optimum_at=_place(best),
        plan_value=plan.value,
        accepted_loss=plan.value / best.value - 1.0,
        plan_at=_place(plan),
        smaller_dram=smaller,
        monotonicities=checked,
        evaluated=found.evaluated,
        usd_per_mtok_per_value=money,
    )
    if certificate.assumptions_hold:
        return certificate
    return replace(certificate, lower_bound=min(best.value, _lossless_bound(found)))


def _lossless_bound(found: Search) -> float:
    """Bound that assumes nothing about hits: the lossless rate at the price without DRAM."""
    return min(
        lower_bound(
            found.objective, made.configuration, 0.0, made.rate_bound(1, made.largest_concurrency)
        )
        for made in found.evaluators.values()
    )


def _place(found: Found) -> tuple[int, int, float]:
    return found.configuration, found.evaluated.concurrency, found.evaluated.dram_bytes


def without_dram(plan: Plan) -> Plan | None:
    """Return the best plan of the same question with no DRAM, None where there is none."""
    if plan.found.evaluated.dram_bytes <= 0:
        return plan
    question = replace(plan.question, largest_dram_bytes=0.0)
    configuration = plan.search.configurations[plan.found.configuration]
    found = search(
        [replace(configuration, dram_sizes_bytes=(0.0,))],
        question.objective,
        question.rules,
        question.level,
    )
    if found.best is None:
        return None
    best = _fewest_sessions(found, found.best, question)
    certificate = _certificate(found, best, (), question)
    return Plan(search=found, found=best, certificate=certificate, question=question)
