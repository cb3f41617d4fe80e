"""KKT and duality of the geometric programme, and its agreement with closed forms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from capmodel.errors import SpecError
from capmodel.network.critical import critical_concurrency
from capmodel.optimize.geometric import (
    NAMES,
    Design,
    DesignProblem,
    constraint_values,
    geometric_design,
)

# Kimi K3 on 8xB300 as theory-network.md section 3.1 assumes it.
K3 = DesignProblem(
    think_s=15.0, prefill_s=0.25, decode_s=4.5, decode_slope_s2=1.5, tokens_mean=148e3,
    tokens_cv=0.75, score=2.3, demand_requests_per_s=2.0, usd_per_hour=18.08,
    usd_per_token_hour=1e-7,
)  # fmt: skip


def _random(rng: np.random.Generator) -> DesignProblem:
    factors = np.exp(rng.uniform(-0.7, 0.7, len(K3.__dataclass_fields__)))
    values = {
        name: getattr(K3, name) * float(factor)
        for name, factor in zip(K3.__dataclass_fields__, factors, strict=True)
    }
    return DesignProblem(**values)


def _log_cost(problem: DesignProblem, design: Design) -> float:
    price = problem.usd_per_hour + problem.usd_per_token_hour * design.cache_tokens
    return math.log(design.replicas * price)


VARIABLES = ("sessions", "requests_per_s", "cache_tokens", "replicas")


@pytest.mark.parametrize("seed", range(10))
def test_kkt_conditions_hold(seed: int) -> None:
    problem = _random(np.random.default_rng(seed))
    design = geometric_design(problem)
    values = constraint_values(problem, design)
    for name in NAMES:
        assert values[name] <= 1 + 1e-6
        assert design.multipliers[name] >= -1e-7
        assert design.multipliers[name] * (1 - values[name]) == pytest.approx(0, abs=1e-5)
    # Stationarity of the Lagrangian in the logarithm of every variable.
    step = 1e-5
    for name in VARIABLES:
        slopes = []
        for sign in (1, -1):
            moved = replace(design, **{name: getattr(design, name) * math.exp(sign * step)})
            after = constraint_values(problem, moved)
            terms = sum(design.multipliers[k] * math.log(after[k]) for k in NAMES)
            slopes.append(_log_cost(problem, moved) + terms)
        assert (slopes[0] - slopes[1]) / (2 * step) == pytest.approx(0, abs=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_strong_duality(seed: int) -> None:
    problem = _random(np.random.default_rng(100 + seed))
    design = geometric_design(problem)
    rng = np.random.default_rng(seed)

    # The Lagrangian at the optimal multipliers is convex in logarithms: no point is below it.
    def lagrangian(point: Design) -> float:
        after = constraint_values(problem, point)
        terms = sum(design.multipliers[k] * math.log(after[k]) for k in NAMES)
        return _log_cost(problem, point) + terms

    at = lagrangian(design)
    assert at == pytest.approx(math.log(design.usd_per_hour), abs=1e-5)
    for _ in range(200):
        moves = {name: getattr(design, name) * math.exp(rng.normal(0, 0.5)) for name in VARIABLES}
        assert lagrangian(replace(design, **moves)) >= at - 1e-5


def test_multipliers_are_elasticities() -> None:
    design = geometric_design(K3)
    # Replicas are free to grow, so cost is proportional to demand.
    assert design.multipliers["demand"] == pytest.approx(1.0, abs=1e-5)
    step = 0.01
    more = geometric_design(replace(K3, tokens_mean=K3.tokens_mean * (1 + step)))
    elasticity = math.log(more.usd_per_hour / design.usd_per_hour) / math.log(1 + step)
    assert elasticity == pytest.approx(design.multipliers["cache"], rel=0.02)


def test_sessions_are_the_critical_concurrency_of_the_cache_they_pay_for() -> None:
    design = geometric_design(K3)
    expected = critical_concurrency(
        design.cache_tokens, K3.tokens_mean, K3.tokens_cv, score=K3.score
    )
    assert design.sessions == pytest.approx(expected, rel=1e-4)


def test_a_design_needs_positive_inputs() -> None:
    with pytest.raises(SpecError, match="positive"):
        replace(K3, think_s=0.0)
