"""Reduction: intervals, windows, seeds, refusals, and what a result prints."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from capmodel.errors import SpecError
from capmodel.simulate import StateRule, Tier, published_case, published_cases, simulate
from capmodel.simulate.draws import sample, whole
from capmodel.simulate.result import ratio_half_width, student_quantile
from capmodel.spec.distributions import LognormalMixture

CASE = published_case("deepseek-v3-8xH200", concurrency=8)


@pytest.mark.parametrize("degrees", [3, 5, 10, 19, 100])
def test_student_quantile(degrees: int) -> None:
    exact = stats.t.ppf(0.975, degrees)
    assert student_quantile(degrees) == pytest.approx(exact, rel=0.01 if degrees > 3 else 0.03)


def test_ratio_intervals_cover_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        bottom = rng.gamma(20.0, 1.0, size=20)
        top = 3.0 * bottom + rng.normal(size=20)
        half = ratio_half_width(top, bottom)
        covered += abs(top.sum() / bottom.sum() - 3.0) < half
    assert 0.93 < covered / 2000 < 0.97


def test_draws_follow_their_law() -> None:
    law = LognormalMixture(weights=(0.7, 0.3), medians=(7.0, 57.0), sigmas=(0.5, 1.6), cap=300.0)
    values = sample(law, 200_000, np.random.default_rng(0))
    assert values.mean() == pytest.approx(law.mean(), rel=0.02)
    assert values.max() <= 300.0
    assert (values > 60.0).mean() == pytest.approx(float(law.survival([60.0])[0]), abs=0.005)
    assert whole(LognormalMixture.constant(0.2), 5, np.random.default_rng(0)).min() == 1


def test_a_seed_is_a_run() -> None:
    once, again = (simulate(CASE, turns=2000, seeds=2) for _ in range(2))
    assert replace(once, wall_s=0.0) == replace(again, wall_s=0.0)
    other = simulate(CASE, turns=2000, seeds=2, first_seed=7)
    assert other.requests_per_s != once.requests_per_s
    width = once.half_widths["requests_per_s"] + other.half_widths["requests_per_s"]
    assert abs(other.requests_per_s - once.requests_per_s) < 2 * width


def test_windows_add_up_to_the_whole() -> None:
    result = simulate(CASE, turns=6000, seeds=2, window_s=600.0)
    mean = np.mean(result.windows.output_tokens_per_s)
    assert mean == pytest.approx(result.output_tokens_per_s, rel=0.02)
    spread = result.windows.percentiles()
    assert spread is not None
    assert spread["p5"] < spread["p50"] < spread["p95"]
    short = simulate(CASE, turns=200, seeds=1, window_s=1e6)
    assert short.windows.percentiles() is None


def test_a_result_is_plain_json() -> None:
    result = simulate(CASE, turns=500, seeds=1)
    read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert read["requests_per_s"] == result.requests_per_s
    assert read["hit_rate"]["hbm"] + read["hit_rate"]["offload"] == pytest.approx(
        read["hit_rate"]["overall"]
    )
    assert "turns/s" in str(result)


def test_progress_rises_to_one_and_time_is_bounded() -> None:
    seen: list[float] = []
    simulate(CASE, turns=3000, seeds=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    cut = simulate(CASE, turns=50_000_000 // 100, seeds=2, time_limit_s=1.5, warm_up=0.0)
    assert not cut.complete
    assert 0 < cut.turns < 1_000_000
    assert cut.wall_s < 15.0
    with pytest.raises(SpecError, match="time limit"):
        simulate(CASE, turns=1000, seeds=1, time_limit_s=0.0)


def test_bad_cases_are_refused() -> None:
    with pytest.raises(SpecError, match="Nearest: kimi-k3-8xB300"):
        published_case("kimi-k3-8xB30", 4)
    with pytest.raises(SpecError, match="no published second tier"):
        published_case("llama-3.1-70b-8xH100", 4, tier=True)
    with pytest.raises(SpecError, match="no room"):
        replace(CASE, kv_tokens=4100)
    with pytest.raises(SpecError, match="one context per session"):
        replace(CASE, frozen_context_tokens=(1.0,))
    with pytest.raises(SpecError, match="no room for a turn"):
        simulate(replace(CASE, frozen_context_tokens=(5e5,) * 8), turns=10)
    with pytest.raises(SpecError, match="interval_tokens"):
        StateRule(resume="interval")
    with pytest.raises(SpecError, match="tier"):
        Tier(tokens=1e6, bytes_per_token=0.0, bytes_per_s=1.0)
    with pytest.raises(SpecError, match="positive"):
        simulate(CASE, turns=0)
    with pytest.raises(SpecError, match="warm, cold or fresh"):
        simulate(CASE, turns=10, start="hot")  # type: ignore[arg-type]


def test_the_published_cases_are_three() -> None:
    cases = published_cases(9)
    assert list(cases) == ["kimi-k3-8xB300", "llama-3.1-70b-8xH100", "deepseek-v3-8xH200"]
    assert {case.concurrency for case in cases.values()} == {9}
