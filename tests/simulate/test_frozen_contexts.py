"""Frozen contexts: the published ladder, and two states of one configuration."""

from __future__ import annotations

import numpy as np
import pytest

from capmodel.simulate import bistable_case, frozen_case, published_case, simulate

# Live tokens over budget, turns/s of the published simulator: 16 equal contexts, first case.
LADDER = [
    (0.98, 0.619), (1.02, 0.340), (1.05, 0.129), (1.08, 0.061),
    (1.12, 0.045), (1.20, 0.038), (1.40, 0.029),
]  # fmt: skip


@pytest.mark.parametrize(("level", "requests_per_s"), LADDER)
def test_the_frozen_ladder(level: float, requests_per_s: float) -> None:
    case = frozen_case(published_case("kimi-k3-8xB300", concurrency=16), level)
    result = simulate(case, turns=6000, seeds=2)
    assert result.composition.live_tokens_over_budget == pytest.approx(level, abs=0.02)
    width = result.half_widths["requests_per_s"]
    assert abs(result.requests_per_s - requests_per_s) < 2 * width + 0.03 * requests_per_s


def window_misses(think_time_cv: float, level: float, start: str) -> np.ndarray:
    case = bistable_case(think_time_cv, level)
    result = simulate(case, turns=25_000, seeds=2, start=start, window_s=600.0)  # type: ignore[arg-type]
    return 1.0 - np.asarray(result.windows.hit_rate) / result.hit_rate.theoretical


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_heavy_tailed_gaps_give_two_states(start: str) -> None:
    misses = window_misses(2.0, 1.06, start)
    good, between, bad = (
        ((misses >= low) & (misses < high)).mean()
        for low, high in ((-1.0, 0.12), (0.15, 0.50), (0.60, 1.01))
    )
    assert good > 0.05
    assert bad > 0.3
    # Windows gather at both ends: less in 0.35 of the range than in the narrow good state.
    assert between < bad
    assert between < 1.5 * good


def test_lighter_tails_give_one() -> None:
    misses = window_misses(1.0, 1.06, "warm")
    assert misses.min() > 0.5
    assert misses.std() < 0.08
