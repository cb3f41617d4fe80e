"""Queue feedback: limits, conservation, and agreement with replays of the same server."""

import numpy as np
import pytest

from capmodel.reuse.characteristic_time import finite_population_hit_rate
from capmodel.reuse.composition import composition
from capmodel.reuse.feedback import feedback_point, upper_branch_share
from capmodel.reuse.lane_law import lane_law
from capmodel.reuse.pinned_queue import pinned_queue
from capmodel.reuse.service_model import ServiceModel
from capmodel.reuse.stack_distance import exact_hit_rates

from .sessions_for_tests import drawn_table


def server(rate, output_token_s=0.02):
    return ServiceModel(
        kind="prefill", prefill_tokens_per_s=rate, output_token_s=output_token_s
    )  # fmt: skip


LAW = lane_law(drawn_table(seed=1, sessions=200).capped(20.0))


def test_a_composition_holds_every_request_once():
    mix = composition(LAW, 9)
    assert mix.weight.sum() == pytest.approx(1.0)
    assert mix.found_share.sum() == pytest.approx(LAW.share.sum())
    tokens = (mix.weight * mix.context_mean).sum()
    assert tokens == pytest.approx(LAW.context_mean, rel=1e-9)
    mean = (mix.weight * mix.total_tokens).sum()
    assert mean == pytest.approx(9 * LAW.context_mean, rel=0.02)


def test_the_queue_without_memory_is_the_exact_closed_queue():
    # Machine-repair model with exponential service: X s = 1 - Erlang B(C, Z/s).
    lanes, think, service = 6, 7.0, 2.0
    point = pinned_queue(
        lanes, np.array([service]), 0.0, think, np.array([1.0]), np.array([0.0]), 1e9
    )  # fmt: skip
    load, blocked = think / service, 1.0
    for n in range(1, lanes + 1):
        blocked = load * blocked / (n + load * blocked)
    assert lanes / point.cycle_s[0] * service == pytest.approx(1.0 - blocked, rel=1e-9)
    assert point.memory_wait_s[0] == 0.0


def test_memory_for_one_makes_lanes_take_turns():
    point = pinned_queue(
        5, np.array([2.0]), 3.0, 1e-6, np.array([10.0]), np.array([0.0]), 15.0
    )  # fmt: skip
    assert point.cycle_s[0] == pytest.approx(5 * 5.0, rel=1e-3)
    assert point.prefill_wait_s[0] == pytest.approx(0.0, abs=1e-6)


def test_a_fast_server_gives_the_curve_without_feedback():
    free = finite_population_hit_rate(LAW, 12, 9_000.0)
    point = feedback_point(LAW, 12, 9_000.0, server(1e12, output_token_s=0.0))
    assert point.hit_rate == pytest.approx(float(free), abs=0.02)
    assert point.requests_per_s == pytest.approx(12 / LAW.gap_mean_s, rel=0.01)


def test_limits_in_capacity():
    # Everything fits: the ceiling. Nothing fits: every prompt is computed, one after another.
    roomy = feedback_point(LAW, 8, 1e12, server(1000.0))
    assert roomy.hit_rate == pytest.approx(LAW.theoretical_hit_rate, rel=1e-3)
    tight = feedback_point(LAW, 8, 10.0, server(50.0))
    assert tight.hit_rate < 0.02
    alone = feedback_point(LAW, 1, 1e12, server(1000.0))
    assert alone.hit_rate == pytest.approx(LAW.theoretical_hit_rate, rel=1e-9)


@pytest.mark.parametrize("rate", [200.0, 2000.0])
def test_hits_grow_with_capacity_and_with_the_server(rate):
    rates = [feedback_point(LAW, 8, b, server(rate)).hit_rate for b in (3e3, 6e3, 9e3, 14e3)]
    assert np.all(np.diff(rates) >= -1e-3)
    faster = [feedback_point(LAW, 8, b, server(4 * rate)).hit_rate for b in (3e3, 6e3, 9e3, 14e3)]
    assert np.all(np.array(faster) >= np.array(rates) - 1e-3)


def test_the_long_run_lies_between_cold_and_warm():
    for room in (4e3, 7e3, 1e4):
        point = feedback_point(LAW, 20, room, server(300.0))
        assert point.cold_hit_rate - 1e-9 <= point.hit_rate <= point.warm_hit_rate + 1e-9


def test_the_closure_agrees_with_replays_of_the_server():
    table = drawn_table(seed=1, sessions=200).capped(20.0)
    lanes, rooms, model = [4, 12], [2e3, 4e3, 6e3, 9e3, 12e3, 18e3], server(300.0)
    exact, _ = exact_hit_rates(table, lanes, rooms, model, seeds=3, requests=60_000)
    closed = np.array([[feedback_point(LAW, c, b, model).hit_rate for b in rooms] for c in lanes])
    difference = np.abs(closed - exact.mean(axis=1))
    assert difference.mean() < 0.03
    free = finite_population_hit_rate(LAW, np.array(lanes)[:, None], rooms)
    assert difference.mean() < 0.4 * np.abs(free - exact.mean(axis=1)).mean()


def test_a_branch_is_kept_until_it_ends():
    # Equal weights on an even grid: the scale function is linear between the two ends.
    total, weight = np.arange(10.0), np.full(10, 0.1)
    two = np.zeros(10, dtype=bool)
    two[4:8] = True
    share = upper_branch_share(total, weight, two)
    assert share[4:8] == pytest.approx([0.875, 0.625, 0.375, 0.125])
    assert np.all(share[~two] == 1.0)
