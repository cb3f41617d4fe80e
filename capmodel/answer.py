"""Answers: from solved runs to the estimate and the sweep that people and programs read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from .errors import SpecError
from .pipeline import Run
from .results import Cliff, Estimate, NearestCase, Sweep, WorkingSetEnd
from .scenario import ResolvedScenario, Scenario
from .solver import Solver
from .validate.nearest import nearest_case

# Workload fields whose evidence interval is carried into the answer.
UNCERTAIN = ("tree_tokens_mean", "request_tokens_mean", "output_tokens_mean")
BEFORE_CLIFF = 0.9
PAST_CLIFF = 0.5
LARGEST_CONCURRENCY = 1_000_000


def estimate(
    scenario: Scenario | ResolvedScenario, concurrency: int, *, level: str = "fast"
) -> Estimate:
    """Return one operating point: throughput, hits, latency, cost, the cliff and its interval.

    Parameters
    ----------
    scenario : Scenario
        What is given.
    concurrency : int
        Live sessions of the replica [1].
    level : {"closed", "fast", "exact"}
        Queue model.

    Raises
    ------
    SpecError, InfeasibleError
        If an input is outside its domain, or the model does not fit.

    Examples
    --------
    >>> s = Scenario(model="kimi-k3", node="8xB300", workload="agentic-coding")
    >>> estimate(s, 8).stable
    True
    """
    solver = Solver(scenario, level)
    solved = solver(concurrency)
    cliff, session_cap = _cliff_and_cap(solver)
    return _estimate(solver, solved, cliff, session_cap, nearest_case(solver, concurrency))


def sweep(
    scenario: Scenario | ResolvedScenario, concurrency: Sequence[int], *, level: str = "fast"
) -> Sweep:
    """Return the estimates over concurrency, the peak of output and the cliff among them.

    Parameters
    ----------
    scenario : Scenario
        What is given.
    concurrency : sequence of int
        Live sessions [1].
    level : {"closed", "fast", "exact"}
        Queue model.

    Raises
    ------
    SpecError
        If there is no concurrency, or one that is not a whole number >= 1.
    """
    if not isinstance(concurrency, Iterable) or not (sessions := list(concurrency)):
        raise SpecError("a sweep needs a list of concurrencies.", field="concurrency")
    solver = Solver(scenario, level)
    cliff, session_cap = _cliff_and_cap(solver)
    rows = []
    for c in sessions:
        case = nearest_case(solver, c, exact_only=True)
        rows.append(_estimate(solver, solver(c), cliff, session_cap, case))
    return Sweep(rows=tuple(rows))


def _estimate(
    solver: Solver,
    solved: Run,
    cliff: Cliff,
    session_cap: int | None,
    case: NearestCase | None,
) -> Estimate:
    intervals, shares, ends = _intervals(solver, solved)
    return Estimate.from_run(
        solved,
        cliff=cliff,
        session_cap=session_cap,
        intervals=intervals,
        spread_shares=shares,
        working_set_ends=ends,
        nearest=case,
    )


def find_cliff(
    scenario: Scenario | ResolvedScenario, *, level: str = "fast"
) -> tuple[Cliff, int | None]:
    """Return the cliff with its interval, and the session cap that stays clear of it.

    The cliff is the smallest concurrency whose hit rate is under half of the theoretical one; its
    interval comes from the evidence interval of the live tokens of a session. The cap is the
    largest concurrency that keeps nine tenths of the theoretical hits at the upper end of that
    interval.
    """
    return _cliff_and_cap(Solver(scenario, level))


def _cliff_and_cap(solver: Solver) -> tuple[Cliff, int | None]:
    workload = solver.resolved.workload
    if workload.theoretical_hit_rate <= 0:
        return Cliff(concurrency=None, low=None, high=None), None
    guess = 12
    found = first_below(solver.hit_share, PAST_CLIFF, guess)
    ends = workload.intervals.get("tree_tokens_mean")
    if ends is None or found is None:
        cap = first_below(solver.hit_share, BEFORE_CLIFF, found or guess)
        return Cliff(concurrency=found, low=found, high=found), _one_less(cap)

    def edge(tokens: float, threshold: float, start: float) -> int | None:
        at_end = partial(solver.hit_share, tree_tokens_mean=tokens)
        return first_below(at_end, threshold, max(math.floor(start), 1))

    low, high = (
        edge(tokens, PAST_CLIFF, round(found * workload.tree_tokens_mean / tokens))
        for tokens in (ends[1], ends[0])
    )
    cap = edge(ends[1], BEFORE_CLIFF, 0.75 * (low or found))
    return Cliff(concurrency=found, low=low, high=high), _one_less(cap)


def _one_less(concurrency: int | None) -> int | None:
    return None if concurrency is None else max(concurrency - 1, 0)


def first_below(share: Callable[[int], float], threshold: float, guess: int) -> int | None:
    """Return the smallest whole number at which a falling function is under a threshold.

    Starts at `guess`, doubles its stride until the answer is bracketed, then bisects; None where
    the function is still above at one million.
    """
    known: dict[int, bool] = {}

    def below(c: int) -> bool:
        if c not in known:
            known[c] = share(c) < threshold
        return known[c]

    stride, low, high = 1, 0, guess
    if below(guess):
        while high - stride >= 1 and below(high - stride):
            high, stride = high - stride, 2 * stride
        low = max(high - stride, 0)
    else:
        low = guess
        while not below(low + stride):
            low, stride = low + stride, 2 * stride
            if low > LARGEST_CONCURRENCY:
                return None
        high = low + stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return high


def _intervals(
    solver: Solver,
    solved: Run,
) -> tuple[dict[str, tuple[float, float]], dict[str, float], tuple[WorkingSetEnd, ...]]:
    """Return answer intervals from the workload's evidence intervals, and each input's share.

    The third part is the operating point itself at both ends of the working set.

    One input at a time is moved to the ends of its interval; the deviations of an answer add in
    quadrature, on a logarithmic scale for rates and costs.
    """
    center = _figures(solved)
    down = dict.fromkeys(center, 0.0)
    up = dict.fromkeys(center, 0.0)
    shares: dict[str, float] = {}
    edges = []
    for name in UNCERTAIN:
        ends = solved.scenario.workload.intervals.get(name)
        if ends is None:
            continue
        swing = 0.0
        for value in ends:
            end = solver(solved.concurrency, **{name: value})
            moved = _figures(end)
            if name == "tree_tokens_mean":
                edges.append(_working_set_end(end))
            for key, figure in moved.items():
                change = math.log(figure / center[key]) if center[key] > 0 < figure else 0.0
                side = up if change > 0 else down
                side[key] += change * change
            swing += math.log(moved[_HEADLINE] / center[_HEADLINE]) ** 2
        shares[name] = swing
    if not shares:
        return {}, {}, ()
    total = sum(shares.values())
    spans = {
        key: (
            figure * math.exp(-math.sqrt(down[key])),
            min(figure * math.exp(math.sqrt(up[key])), _CEILING.get(key, math.inf)),
        )
        for key, figure in center.items()
        if figure > 0
    }
    parts = {name: value / total if total > 0 else 0.0 for name, value in shares.items()}
    return spans, parts, tuple(edges)


def _working_set_end(end: Run) -> WorkingSetEnd:
    hour, workload = end.benchmark_hour(), end.scenario.workload
    return WorkingSetEnd(
        tree_tokens_mean=workload.tree_tokens_mean,
        hit_rate=end.point.headline.hit_rate,
        hour_hit_rate=hour.quantiles(hour.hit_rate)["p50"],
        p_collapsed=hour.collapsed(workload.theoretical_hit_rate),
    )


_HEADLINE = "throughput.output_tokens_per_s"
_CEILING = {"hit_rate.overall": 1.0, "utilization": 1.0}


def _figures(solved: Run) -> dict[str, float]:
    cost = solved.cost
    figures = {
        "throughput.requests_per_s": solved.requests_per_s,
        _HEADLINE: solved.output_tokens_per_s,
        "hit_rate.overall": solved.point.headline.hit_rate,
    }
    for key in ("usd_per_mtok_total", "usd_per_mtok_output", "usd_per_session"):
        value = getattr(cost, key)
        if value is not None:
            figures[f"cost.{key}"] = value
    return figures
