"""The order argument: limits, monotonicity, and agreement with a direct simulation of the order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from capmodel.reuse.order_argument import binomial_pmf, missing_fraction, think_nodes
from capmodel.spec.distributions import LognormalMixture

EXPONENTIAL_LIKE = LognormalMixture.from_mean_cv(10.0, 1.0)


def missing(live: float, cycle: float, capacity: float, sessions: int, **changes: object) -> float:
    arguments: dict[str, object] = {
        "session_cv": 0.0,
        "ended_tokens_per_turn": 0.0,
        "think": think_nodes(EXPONENTIAL_LIKE),
        **changes,
    }
    return float(
        missing_fraction(
            live_tokens=np.asarray([live]),
            cycle_s=np.asarray([cycle]),
            capacity_tokens=capacity,
            concurrency=sessions,
            **arguments,  # type: ignore[arg-type]
        )[0]
    )


def test_nothing_is_missing_while_all_live_tokens_fit() -> None:
    assert missing(0.99e6, 30.0, 1e6, 16) == 0.0


def test_one_session_misses_what_does_not_fit() -> None:
    """C = 1: LRU of one session keeps its head; min(w, w - B)/w of it is gone."""
    assert missing(2e6, 30.0, 0.5e6, 1) == pytest.approx(0.75)
    assert missing(2e6, 30.0, 0.5e6, 1, all_or_nothing=True) == 1.0


def test_fluid_limit_of_many_sessions() -> None:
    """C -> infinity: missing share = P(Z > z*) where the mean excess of z* equals epsilon c."""
    cycle, over = 14.0, 1.25
    epsilon = 1 - 1 / over
    grid = np.geomspace(1e-3, 1e3, 40_000)
    excess = EXPONENTIAL_LIKE.excess(grid)
    edge = grid[np.searchsorted(-excess, -epsilon * cycle)]
    expected = float(EXPONENTIAL_LIKE.survival([edge])[0])
    think = think_nodes(EXPONENTIAL_LIKE, points=400)
    assert missing(over * 1e6, cycle, 1e6, 4000, think=think) == pytest.approx(expected, abs=0.01)


def test_equal_gaps_are_the_cyclic_worst_case() -> None:
    """Equal thinking: every other session is touched in between, so over budget all is lost."""
    constant = think_nodes(LognormalMixture.constant(10.0))
    assert missing(1.3e6, 40.0, 1e6, 200, think=constant) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("all_or_nothing", [False, True])
@pytest.mark.parametrize("sessions", [2, 8, 24, 25, 100])
def test_rises_with_live_tokens_and_cycle_and_falls_with_capacity(
    sessions: int, all_or_nothing: bool
) -> None:
    options = {"session_cv": 0.8, "all_or_nothing": all_or_nothing}
    by_live = [missing(y, 30.0, 1e6, sessions, **options) for y in np.linspace(0.9e6, 3e6, 12)]
    by_cycle = [missing(1.2e6, c, 1e6, sessions, **options) for c in np.geomspace(12, 1e3, 12)]
    by_room = [missing(1.2e6, 30.0, b, sessions, **options) for b in np.linspace(0.5e6, 1.3e6, 12)]
    assert all(b >= a - 1e-3 for a, b in itertools.pairwise(by_live))
    assert all(b >= a - 1e-3 for a, b in itertools.pairwise(by_cycle))
    assert all(b <= a + 1e-3 for a, b in itertools.pairwise(by_room))
    assert all(0.0 <= m <= 1.0 for m in by_live + by_cycle + by_room)


def test_binomial_weights_have_the_right_moments() -> None:
    p = np.asarray([0.0, 0.2, 0.9])
    pmf = binomial_pmf(12, p)
    k = np.arange(13)[:, None]
    assert pmf.sum(0) == pytest.approx(1.0)
    assert (k * pmf).sum(0) == pytest.approx(12 * p, abs=1e-12)
    assert (k**2 * pmf).sum(0) - (12 * p) ** 2 == pytest.approx(12 * p * (1 - p), abs=1e-9)


def test_agrees_with_a_direct_simulation_of_the_order() -> None:
    """Sessions of equal size think, then touch the cache at once: count what a stack of B keeps."""
    rng = np.random.default_rng(7)
    sessions, size, capacity = 12, 1.0, 9.3
    due = rng.exponential(10.0, sessions)
    order = list(range(sessions))  # least recently used first
    lost, turns = 0.0, 40_000
    for _ in range(turns):
        s = int(due.argmin())
        depth = (len(order) - order.index(s)) * size
        lost += min(size, max(depth - capacity, 0.0))
        order.remove(s)
        order.append(s)
        due[s] += rng.exponential(10.0)
    grid = np.random.default_rng(1).exponential(10.0, 4000)
    exponential = think_nodes(EXPONENTIAL_LIKE)
    exact = type(exponential)(
        z_s=grid, weights=np.full(4000, 1 / 4000), excess_s=10.0 * np.exp(-grid / 10.0)
    )
    found = missing(sessions * size, 10.0, capacity, sessions, think=exact)
    assert found == pytest.approx(lost / turns, abs=0.01)


def test_fluid_limit_of_exponential_gaps_is_excess_over_thinking_tokens() -> None:
    """m = (1 - B/Y) c / Z (equation 6 with an exponential law)."""
    cycle, over, mean = 14.0, 1.25, 10.0
    nodes = -mean * np.log((np.arange(4000) + 0.5) / 4000)
    template = think_nodes(EXPONENTIAL_LIKE)
    exact = type(template)(
        z_s=nodes, weights=np.full(4000, 1 / 4000), excess_s=mean * np.exp(-nodes / mean)
    )
    found = missing(over * 1e6, cycle, 1e6, 20_000, think=exact)
    assert found == pytest.approx((1 - 1 / over) * cycle / mean, abs=0.01)
