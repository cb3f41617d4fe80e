"""Limits where the answer is known, and laws that every run must keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from capmodel.simulate import (
    SessionLaws,
    StateRule,
    Tier,
    published_case,
    simulate,
)

KIMI, LLAMA, DEEPSEEK = "kimi-k3-8xB300", "llama-3.1-70b-8xH100", "deepseek-v3-8xH200"
Laws = Callable[..., SessionLaws]


@pytest.mark.parametrize("name", [KIMI, LLAMA, DEEPSEEK])
def test_one_session_takes_what_the_step_law_says(
    name: str, constant_laws: Laws, lone_cycle_s: Callable[..., float]
) -> None:
    case = replace(published_case(name, concurrency=1), sessions=constant_laws())
    result = simulate(case, turns=600, seeds=1, start="fresh", warm_up=0.1)
    expected_s = lone_cycle_s(case, 5000, 700, 101, 6) + 6 * 4.0
    assert result.requests_per_s == pytest.approx(6 / expected_s, rel=1e-6)
    assert result.hit_rate.overall == pytest.approx(result.hit_rate.theoretical)


def test_population_and_littles_law_hold() -> None:
    case = published_case(DEEPSEEK, concurrency=11)
    result = simulate(case, turns=8000, seeds=3)
    phases = result.composition
    live = phases.thinking + phases.waiting + phases.loading + phases.prefilling + phases.decoding
    assert live == pytest.approx(11, rel=1e-9)
    away = phases.waiting + phases.prefilling + phases.decoding
    assert away == pytest.approx(result.requests_per_s * result.e2e_s.mean, rel=0.01)
    thinking_s = phases.thinking / result.requests_per_s
    assert thinking_s == pytest.approx(case.classes()[0][1].think_time.mean(), rel=0.03)
    assert result.utilization <= 1.0
    assert result.prefill_utilization <= result.utilization


def test_rare_visits_find_everything_in_a_large_cache(constant_laws: Laws) -> None:
    # Think time -> infinity: X -> C / Z, no queue; B -> infinity: hits at the ceiling.
    case = replace(
        published_case(LLAMA, concurrency=6), kv_tokens=1e8, sessions=constant_laws(think_time=2e4)
    )
    result = simulate(case, turns=1200, seeds=1)
    assert result.requests_per_s == pytest.approx(6 / 2e4, rel=0.02)
    assert result.hit_rate.overall == pytest.approx(result.hit_rate.theoretical)
    assert result.hit_rate.reusable == 1.0


def test_a_cyclic_order_over_too_small_a_cache_finds_nothing(constant_laws: Laws) -> None:
    # Equal think times and frozen contexts: the longest-idle session is always next.
    laws = constant_laws(think_time=60.0)
    case = replace(published_case(LLAMA, concurrency=20), sessions=laws)
    contexts = (90_000.0,) * 20  # 1.8 M live tokens on 1.39 M
    result = simulate(replace(case, frozen_context_tokens=contexts), turns=600, seeds=1)
    assert result.hit_rate.reusable < 0.02
    roomy = replace(case, frozen_context_tokens=contexts, kv_tokens=2.5e6)
    assert simulate(roomy, turns=600, seeds=1).hit_rate.reusable == 1.0


def test_no_prefix_cache_means_no_hits_and_more_prefill() -> None:
    case = published_case(LLAMA, concurrency=4)
    with_cache = simulate(case, turns=1500, seeds=1)
    without = simulate(replace(case, prefix_caching=False), turns=1500, seeds=1)
    assert without.hit_rate.overall == without.hit_rate.theoretical == 0.0
    assert without.input_tokens_per_s / without.requests_per_s == pytest.approx(
        with_cache.input_tokens_per_s / with_cache.requests_per_s, rel=0.1
    )
    assert without.prefill_utilization > 3 * with_cache.prefill_utilization


def test_more_memory_never_hurts() -> None:
    case = published_case(DEEPSEEK, concurrency=12)
    budgets = (4.5e5, 5.3e5, 6.5e5, 9e5)
    results = [simulate(replace(case, kv_tokens=b), turns=6000, seeds=2) for b in budgets]
    rates = [result.hit_rate.overall for result in results]
    assert rates == sorted(rates)
    throughputs = [result.requests_per_s for result in results]
    assert throughputs == sorted(throughputs)


def test_a_second_tier_takes_over_and_its_link_bounds_the_rate() -> None:
    case = published_case(DEEPSEEK, concurrency=14)
    alone = simulate(case, turns=4000, seeds=2)
    fast = replace(case, tier=Tier(tokens=5e6, bytes_per_token=70272, bytes_per_s=5e10))
    helped = simulate(fast, turns=4000, seeds=2)
    assert helped.hit_rate.offload > 0.1
    assert helped.hit_rate.overall == pytest.approx(helped.hit_rate.theoretical, abs=0.002)
    assert helped.requests_per_s > 1.5 * alone.requests_per_s
    slow = replace(fast, tier=Tier(tokens=5e6, bytes_per_token=70272, bytes_per_s=5e8))
    bound = simulate(slow, turns=3000, seeds=2)
    loaded = bound.hit_rate.offload * bound.input_tokens_per_s * 70272
    assert loaded <= 5e8 * 1.02
    assert loaded > 0.8 * 5e8  # the link is what binds
    assert bound.composition.loading > 1.0


def test_all_or_nothing_hits_fall_short_of_block_hits() -> None:
    case = published_case(DEEPSEEK, concurrency=11)
    block = simulate(case, turns=6000, seeds=2)
    whole = simulate(replace(case, state=StateRule(resume="turn_end")), turns=6000, seeds=2)
    assert whole.hit_rate.reusable < block.hit_rate.reusable - 0.02
    roomy = replace(case, state=StateRule(resume="turn_end"), kv_tokens=1e7)
    assert simulate(roomy, turns=2000, seeds=1).hit_rate.reusable == 1.0


def test_a_cold_start_ends_where_a_warm_one_does() -> None:
    case = published_case(DEEPSEEK, concurrency=8)
    warm = simulate(case, turns=8000, seeds=2, start="warm")
    cold = simulate(case, turns=8000, seeds=2, start="cold")
    width = warm.half_widths["requests_per_s"] + cold.half_widths["requests_per_s"]
    assert abs(warm.requests_per_s - cold.requests_per_s) < width
    first = simulate(case, turns=8, seeds=4, start="cold", warm_up=0.0)
    assert first.hit_rate.reusable < 0.2
