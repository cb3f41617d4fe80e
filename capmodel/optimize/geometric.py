"""A design that stays below its cliff, as a geometric programme: sessions, rate, cache, replicas.

Continuous and convex in logarithms, so its optimum is global and its multipliers are elasticities.
It is a first look and the price of memory; plans are searched on the solved model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import InfeasibleError, SpecError

NAMES = ("cycle", "server", "cache", "demand")


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignProblem:
    """What a below-cliff design depends on.

    Parameters
    ----------
    think_s, prefill_s, decode_s : float
        Think time, prefill of a hit, and decode of a request alone [s].
    decode_slope_s2 : float
        Decode time added per request per second [s^2].
    tokens_mean, tokens_cv : float
        Live tokens of a session: mean [tokens] and coefficient of variation [1].
    score : float
        Normal score of the tolerated overflow of the cache [1].
    demand_requests_per_s : float
        Rate that all replicas carry [requests/s].
    usd_per_hour : float
        Price of a replica without cache [USD/h].
    usd_per_token_hour : float
        Price of a token of cache [USD per token-hour].
    """

    think_s: float
    prefill_s: float
    decode_s: float
    decode_slope_s2: float
    tokens_mean: float
    tokens_cv: float
    score: float
    demand_requests_per_s: float
    usd_per_hour: float
    usd_per_token_hour: float

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if not getattr(self, name) > 0:
                raise SpecError(f"design: {name} must be positive.", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The continuous optimum, and by constraint the elasticity of cost to a tighter one.

    Parameters
    ----------
    sessions, requests_per_s, cache_tokens, replicas : float
        Per replica [1], [requests/s], [tokens]; and how many [1].
    usd_per_hour : float
        Cost of all replicas [USD/h].
    multipliers : dict of str to float
        Percent of cost per percent by which a constraint's right side shrinks [1].
    """

    sessions: float
    requests_per_s: float
    cache_tokens: float
    replicas: float
    usd_per_hour: float
    multipliers: dict[str, float]


def constraint_values(problem: DesignProblem, design: Design) -> dict[str, float]:
    """Left sides of the constraints, each at most 1 [1]."""
    x, c = design.requests_per_s, design.sessions
    p = problem
    cycle = p.think_s + p.prefill_s + p.decode_s + p.decode_slope_s2 * x
    live = p.tokens_mean * c + p.score * p.tokens_cv * p.tokens_mean * c**0.5
    return {
        "cycle": x * cycle / c,
        "server": x * p.prefill_s,
        "cache": live / design.cache_tokens,
        "demand": p.demand_requests_per_s / (design.replicas * x),
    }


def geometric_design(problem: DesignProblem) -> Design:
    """Return the cheapest continuous design whose sessions fit their cache.

    Raises
    ------
    InfeasibleError
        If the solver finds none.

    Notes
    -----
    ``min N (c_0 + c_1 B)`` subject to ``X (Z + s + D_0 + D_1 X)/C <= 1``, ``X s <= 1``,
    ``(mu C + z sigma C^(1/2))/B <= 1`` and ``L/(N X) <= 1``: posynomials, so a geometric
    programme. Derivation: ``critical_concurrency`` for the cache constraint.
    """
    import cvxpy as cp

    p = problem
    c, x, b, n = (cp.Variable(pos=True, name=name) for name in ("C", "X", "B", "N"))
    cycle = p.think_s + p.prefill_s + p.decode_s + p.decode_slope_s2 * x
    live = p.tokens_mean * c + p.score * p.tokens_cv * p.tokens_mean * c**0.5
    rules: list[Any] = [
        x * cycle / c <= 1.0,
        x * p.prefill_s <= 1.0,
        live / b <= 1.0,
        p.demand_requests_per_s / (n * x) <= 1.0,
    ]
    goal = n * (p.usd_per_hour + p.usd_per_token_hour * b)
    programme = cp.Problem(cp.Minimize(goal), rules)
    programme.solve(gp=True, solver=cp.CLARABEL)
    if programme.status != "optimal":
        raise InfeasibleError(f"the design problem is {programme.status}.")
    return Design(
        sessions=float(c.value),
        requests_per_s=float(x.value),
        cache_tokens=float(b.value),
        replicas=float(n.value),
        usd_per_hour=float(programme.value),
        multipliers={name: float(rule.dual_value) for name, rule in zip(NAMES, rules, strict=True)},
    )
