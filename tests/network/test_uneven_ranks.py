"""Sessions that do not divide by the ranks, or that never think; tiers without anything to keep."""

from __future__ import annotations

import pytest

import capmodel as cm
from capmodel.pipeline import Run, run

LLAMA = cm.Scenario(model="llama-3.1-8b", node="8xH200", tp=1, dp=8, workload="8k1k")


def solved(sessions: int, **changes: object) -> Run:
    scenario = {"model": "deepseek-v3", "node": "8xH200", "dp": 8, "ep": 8, "tp": 1, **changes}
    return run(cm.Scenario(**scenario), concurrency=sessions, level="closed")


def test_rates_of_uneven_ranks_add() -> None:
    pool = solved(12).budget
    few, many = (solved(c) for c in (8, 16))
    between = solved(12)
    assert pool.fits
    rate = 0.5 * (few.requests_per_s + many.requests_per_s)
    assert between.requests_per_s == pytest.approx(rate, rel=0.02)
    low, high = many.point.headline.hit_rate, few.point.headline.hit_rate
    assert low < between.point.headline.hit_rate < high


def test_one_session_more_costs_at_most_its_rank() -> None:
    rates = [run(LLAMA, concurrency=c).requests_per_s for c in (8, 9, 12, 16)]
    assert rates == sorted(rates)


@pytest.mark.parametrize("workload", ["1k1k", "8k1k"])
def test_levels_agree_on_sessions_that_never_think(workload: str) -> None:
    scenario = cm.Scenario(model="llama-3.1-8b", node="1xH200", workload=workload)
    rates = [
        run(scenario, concurrency=4, level=level).requests_per_s
        for level in ("closed", "fast", "exact")
    ]
    assert rates == pytest.approx([rates[0]] * 3, rel=0.02)


def test_a_tier_does_nothing_for_a_workload_that_reuses_nothing() -> None:
    plain = {"model": "qwen3-32b", "node": "2xH200", "workload": "8k1k"}
    rates = [
        run(
            cm.Scenario(**plain, context_tokens_mean=300_000, offload=offload), concurrency=5
        ).requests_per_s
        for offload in (None, "dram:400GB", "dram:1500GB")
    ]
    assert rates == pytest.approx([rates[0]] * 3, rel=1e-9)


def test_more_sessions_than_fit_wait_instead_of_taking_memory() -> None:
    scenario = cm.Scenario(model="gemma-3-27b", node="1xH100-80GB", workload="8k1k")
    rates = [run(scenario, concurrency=c).requests_per_s for c in (24, 100, 1000)]
    assert rates == pytest.approx([rates[0]] * 3, rel=0.03)
