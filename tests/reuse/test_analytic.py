"""Closed forms: limits, properties, and agreement with the exact engine."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capmodel.errors import SpecError
from capmodel.reuse.characteristic_time import (
    finite_population_hit_rate,
    fluid_hit_rate,
    mean_field_hit_rate,
)
from capmodel.reuse.gamma_law import gamma_cdf, gamma_excess
from capmodel.reuse.granularity import (
    block_loss,
    checkpoint_hit_rate,
    checkpointed,
    state_room,
    with_shared_prefix,
)
from capmodel.reuse.lane_law import lane_law
from capmodel.reuse.moments import SessionMoments, lane_law_of_moments, moments_of_table
from capmodel.reuse.open_loop import ReuseTimes, open_loop_hit_rate
from capmodel.reuse.service_model import parse_service
from capmodel.reuse.stack_distance import exact_hit_rates
from capmodel.reuse.tiers import reachable_tokens, tiered_hit_rate
from capmodel.spec.distributions import LognormalMixture

from .sessions_for_tests import drawn_table

FORMS = (finite_population_hit_rate, mean_field_hit_rate)


@pytest.mark.parametrize("service", ["none", "recorded"])
def test_the_finite_population_form_agrees_with_the_exact_replay(service):
    table = drawn_table(seed=1, sessions=200)
    lanes, rooms = [4, 12], list(np.linspace(1e3, 3e4, 12))
    exact, _ = exact_hit_rates(table, lanes, rooms, parse_service(service), requests=60_000)
    law = lane_law(table)
    closed = finite_population_hit_rate(law, np.array(lanes)[:, None], rooms, service)
    # All points lie in the transition here.
    assert np.abs(closed - exact.mean(axis=1)).mean() < 0.012


@pytest.mark.parametrize("form", FORMS)
def test_limits_in_capacity(form):
    law = lane_law(drawn_table())
    # No cache finds nothing; a huge one finds every reusable token.
    assert form(law, 8, 0.0) == pytest.approx(0.0, abs=1e-9)
    assert form(law, 8, 1e12) == pytest.approx(law.theoretical_hit_rate, rel=1e-6)


@given(lanes=st.integers(2, 200), room=st.floats(1e2, 1e6))
def test_hits_grow_with_capacity_and_fall_with_concurrency(lanes, room):
    law = _LAW
    here = finite_population_hit_rate(law, lanes, room)
    assert finite_population_hit_rate(law, lanes, 1.1 * room) >= here - 1e-9
    assert finite_population_hit_rate(law, lanes + 1, room) <= here + 2e-3
    assert 0 <= here <= law.theoretical_hit_rate + 1e-9


_LAW = lane_law(drawn_table(seed=7))


def test_one_lane_finds_what_the_capacity_holds():
    law, room = _LAW, 900.0
    expected = (law.share * np.minimum(law.prefix_tokens, room)).sum() / law.context_mean
    assert finite_population_hit_rate(law, 1, room) == pytest.approx(expected)


def test_arrays_give_what_scalars_give():
    lanes, rooms = np.array([[2], [9], [40]]), np.array([1e3, 8e3])
    for form in (*FORMS, fluid_hit_rate):
        grid = form(_LAW, lanes, rooms)
        alone = [[float(form(_LAW, int(c), b)) for b in rooms] for c in lanes[:, 0]]
        assert grid == pytest.approx(np.array(alone), abs=1e-12)


def test_the_law_conserves_tokens():
    law = _LAW
    depth = law.depth_weight.sum()
    assert depth == pytest.approx(law.prefix_mean, rel=1e-9)
    assert law.share.sum() + law.fresh_share.sum() == pytest.approx(1.0)
    # Little's law: what thinks before and after z adds up.
    assert np.all(law.untouched_token_s + law.live_token_s <= law.context_gap_s * (1 + 1e-9))


@given(
    shape=st.floats(1.0, 60.0), mean=st.floats(0.1, 1e3), ratio=st.floats(0.01, 4.0)
)  # fmt: skip
def test_the_gamma_approximation_is_close_to_the_gamma_law(shape, mean, ratio):
    from scipy.special import gammainc

    x = np.array([ratio * mean])
    exact = gammainc(shape, shape * ratio)
    assert gamma_cdf(x, np.array([mean]), np.array([shape]))[0] == pytest.approx(exact, abs=0.013)
    excess = mean * (1 - gammainc(shape + 1, shape * ratio)) - x[0] * (1 - exact)
    close = gamma_excess(x, np.array([mean]), np.array([shape]))[0]
    assert close == pytest.approx(excess, abs=0.012 * mean)


def test_moments_agree_with_the_table_they_come_from():
    # Independent draws are what the moments assume: then both laws give the same curve.
    rng = np.random.default_rng(2)
    count = 60_000
    context = rng.lognormal(7.0, 0.6, count)
    gaps = rng.lognormal(2.0, 0.9, count)
    gaps[0] = 0.0
    table = replace(
        drawn_table(),
        session_starts=np.array([0, count], dtype=np.int64),
        input_tokens=context,
        prefix_tokens=np.where(np.arange(count) > 0, 0.95 * context, 0.0),
        recent_prefix_tokens=0.95 * context,
        prefix_lag=(np.arange(count) > 0).astype(np.int64),
        output_tokens=np.ones(count),
        think_s=gaps,
        service_s=np.zeros(count),
    )
    gap = LognormalMixture(weights=(1.0,), medians=(math.exp(2.0),), sigmas=(0.9,))
    few = lane_law_of_moments(moments_of_table(table, gap))
    many = lane_law(table)
    rooms = np.linspace(2e3, 3e4, 15)
    gap_of_curves = finite_population_hit_rate(few, 10, rooms) - finite_population_hit_rate(
        many, 10, rooms
    )
    assert np.abs(gap_of_curves).max() < 0.02


def test_equal_gaps_give_the_cyclic_limit():
    # With equal reuse times LRU over more than fits finds almost nothing; just below, all.
    moments = SessionMoments(
        context_mean=1000.0, context_cv=0.0, theoretical_hit_rate=0.95,
        think_time=LognormalMixture.constant(10.0),
    )  # fmt: skip
    law = lane_law_of_moments(moments)
    assert mean_field_hit_rate(law, 100, 80_000.0) < 0.02
    assert mean_field_hit_rate(law, 100, 120_000.0) == pytest.approx(0.95)


def test_inclusive_tiers_do_not_add_and_exclusive_ones_do():
    def rate(tokens):
        return float(finite_population_hit_rate(_LAW, 12, tokens))

    both = tiered_hit_rate(rate, 4e3, 9e3)
    assert both.overall == rate(9e3)
    assert both.hbm == rate(4e3)
    assert tiered_hit_rate(rate, 4e3, 9e3, "exclusive").overall == rate(13e3)
    assert reachable_tokens(5.0, 3.0) == 5.0
    with pytest.raises(SpecError, match="inclusive"):
        reachable_tokens(1.0, 1.0, "both")


def test_checkpoints_and_states_only_lose():
    law = _LAW
    assert checkpoint_hit_rate(law, math.inf) == law.theoretical_hit_rate
    assert checkpoint_hit_rate(law, 200.0) < checkpoint_hit_rate(law, 20.0)
    assert state_room(1000.0, law, 0.0) == 1000.0
    assert state_room(1000.0, law, law.context_mean) == pytest.approx(500.0)
    ends = checkpointed(law, math.inf)
    assert ends.depth_weight.sum() == pytest.approx(law.prefix_mean, rel=1e-9)
    assert finite_population_hit_rate(ends, 12, 6e3) < finite_population_hit_rate(law, 12, 6e3)
    assert 0 < block_loss(law, 16) < block_loss(law, 64)


def test_a_shared_prefix_lifts_the_floor():
    assert with_shared_prefix(0.0, 850.0, 150.0, 1e6) == pytest.approx(0.15)
    assert with_shared_prefix(0.5, 850.0, 150.0, 1e6) == pytest.approx((425 + 150) / 1000)
    assert with_shared_prefix(0.0, 850.0, 150.0, 50.0) == pytest.approx(0.05)


def test_the_open_loop_form_is_exact_for_poisson_touches_of_equal_items():
    # N items touched at rate r each: the cache of B items keeps the last B distinct ones,
    # each touched next with probability B/N (independent references).
    items, rate = 1000.0, 0.01
    time = np.linspace(0.0, 2000.0, 200_001)
    reuse = ReuseTimes(
        time_s=time, survival=np.exp(-rate * time), tokens_per_s=items * rate
    )  # fmt: skip
    rooms = np.array([100.0, 400.0, 900.0])
    assert open_loop_hit_rate(reuse, rooms) == pytest.approx(rooms / items, abs=2e-4)


def test_reuse_times_must_make_sense():
    with pytest.raises(SpecError, match="must grow"):
        ReuseTimes(time_s=np.array([1.0, 0.0]), survival=np.array([1.0, 0.5]), tokens_per_s=1.0)
    with pytest.raises(SpecError, match="not grow"):
        ReuseTimes(time_s=np.array([0.0, 1.0]), survival=np.array([0.5, 1.0]), tokens_per_s=1.0)
