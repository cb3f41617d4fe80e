"""The closed forms against every shipped replay, at the accuracy that is promised."""

import json
from functools import cache

import numpy as np
import pytest

from capmodel.reuse.characteristic_time import finite_population_hit_rate
from capmodel.reuse.lane_law import lane_law
from capmodel.validate.reuse_cases import recorded_law, replay_cases
from capmodel.validate.reuse_set import run

from .sessions_for_tests import needs_reference, recorded_table


@cache
def report():
    return {item["name"]: item for item in run()["sets"]}


def test_without_feedback_the_table_gives_the_curve():
    errors = report()["finite-population"]
    assert errors["n"] == 900
    assert errors["mean_abs_error"] <= 0.004
    assert errors["worst_setting"] <= 0.006
    assert errors["regimes"]["transition"]["mean_abs_error"] <= 0.012
    assert errors["regimes"]["transition"]["worst_setting"] <= 0.025


def test_moments_alone_come_near():
    assert report()["moments"]["worst_setting"] <= 0.017


@pytest.mark.parametrize("method", ["finite-population", "moments"])
def test_with_feedback_the_cliff_is_where_it_was_measured(method):
    errors = report()[f"{method} with feedback"]
    assert errors["worst_setting"] <= 0.012
    assert errors["regimes"]["transition"]["worst_setting"] <= 0.06


def test_simpler_forms_are_worse_and_said_to_be():
    sets = report()
    order = ["finite-population", "mean-field", "fluid"]
    assert np.all(np.diff([sets[name]["mean_abs_error"] for name in order]) > 0)


def test_open_traces_follow_the_survival_form():
    assert report()["open loop"]["worst_setting"] <= 0.012


def test_the_report_is_json_and_lists_what_it_left_out():
    body = json.loads(json.dumps(run(), allow_nan=False))
    assert body["n"] + len(body["unusable"]) == len(replay_cases())
    assert all("scatter" in row["reason"] for row in body["unusable"])
    assert body["misses"] == []


@needs_reference
@pytest.mark.parametrize("cap", [10.0, 60.0, 300.0])
def test_the_shipped_law_is_the_law_of_the_sessions(cap):
    shipped, computed = recorded_law(cap), lane_law(recorded_table().capped(cap))
    rooms = np.geomspace(2.5e5, 1.6e7, 20)
    for service in ("none", "recorded"):
        assert finite_population_hit_rate(shipped, 16, rooms, service) == pytest.approx(
            finite_population_hit_rate(computed, 16, rooms, service), abs=1e-4
        )
