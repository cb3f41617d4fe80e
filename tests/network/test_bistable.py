"""Two operating points: many sessions, heavy-tailed gaps, live tokens just over the budget."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from published_systems import CASES

from capmodel.network.operating_point import Cache, solve
from capmodel.service.step_law import StepLaw
from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.workload import Workload

SESSIONS = 64


def four_fold(law: StepLaw) -> StepLaw:
    """Return the law of an engine four times as fast, fixed overheads kept."""
    terms = tuple(
        t
        if t.name == "overhead"
        else dataclasses.replace(
            t,
            compute_s=tuple(r / 4 for r in t.compute_s),
            memory_s=tuple(r / 4 for r in t.memory_s),
        )
        for t in law.terms
    )
    return dataclasses.replace(law, terms=terms)


def frozen(live_over_budget: float, think_cv: float) -> tuple[StepLaw, Workload, Cache]:
    case = CASES["kimi-k3-8xB300"]
    budget = 4 * case.kv_tokens
    shared, new = case.workload.shared_prefix_tokens, 2480.0
    context = live_over_budget * (budget - shared) / SESSIONS
    prompt = shared + context + new
    workload = dataclasses.replace(
        case.workload,
        tree_tokens_mean=context,
        tree_tokens_cv=0.0,
        request_tokens_mean=prompt,
        request_tokens_cv=0.0,
        theoretical_hit_rate=(shared + context) / prompt,
        turns_mean=1e6,
        new_tokens_cv=1.0,
        think_time=LognormalMixture.from_mean_cv(15.0, think_cv),
    )
    return four_fold(case.law), workload, Cache(hbm_tokens=budget)


def test_heavy_tailed_gaps_have_two_stable_states() -> None:
    """cv 2, Y/B = 1.06: misses of 0.035, 0.246 and 0.801 in the published analysis."""
    law, workload, cache = frozen(1.06, 2.0)
    point = solve(law, workload, cache, SESSIONS)
    assert point.several
    warm, unstable, cold = point.all_states
    misses = [1 - s.hit_rate / workload.theoretical_hit_rate for s in (warm, unstable, cold)]
    assert misses[0] < 0.08
    assert 0.1 < misses[1] < 0.5
    assert 0.6 < misses[2] < 0.95
    assert [s.stable for s in point.all_states] == [True, False, True]
    assert point.headline is cold or point.headline == cold


@pytest.mark.parametrize("live_over_budget", [0.9, 1.3])
def test_far_from_the_budget_there_is_one_state(live_over_budget: float) -> None:
    law, workload, cache = frozen(live_over_budget, 2.0)
    assert not solve(law, workload, cache, SESSIONS).several


def test_light_tailed_gaps_have_one_state() -> None:
    """Exponential-like gaps (cv 1): the transition is steep but single-valued."""
    states = []
    for live in np.linspace(0.98, 1.2, 8):
        law, workload, cache = frozen(float(live), 1.0)
        states.append(solve(law, workload, cache, SESSIONS).several)
    assert sum(states) == 0
