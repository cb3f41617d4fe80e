"""The measured sets: every row accounted for, what was reached is kept, misses are printed."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any

import pytest

from capmodel.errors import SpecError
from capmodel.validate import agentic_set, hit_rate_set, offload_gain_set
from capmodel.validate.agentic_cases import DATA, shipped_hit_rates, shipped_points
from capmodel.validate.measured_point import regime
from capmodel.validate.validation import SETS, Validation, validate
from capmodel.validate.validation_page import validation_page


@cache
def agentic() -> dict[str, Any]:
    return agentic_set.run()


@cache
def gains() -> dict[str, Any]:
    return offload_gain_set.run()


def test_no_row_is_dropped_silently() -> None:
    table = agentic()
    compared = {row["id"] for row in table["errors"]}
    unusable = {row["id"] for row in table["unusable"]}
    assert compared | unusable == {point.id for point in shipped_points()}
    assert not compared & unusable
    assert all(row["reason"] for row in table["unusable"])


def test_the_tables_ship_figures_and_sources_only() -> None:
    for name in ("agentic_points.csv", "hit_rate_points.csv"):
        with (DATA / name).open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert all(row["source"].startswith("https://") for row in rows)
        assert "notes" not in rows[0]


def test_the_side_of_the_cliff_and_the_hits_are_called_within_what_was_reached() -> None:
    table = agentic()
    assert table["regimes"]["n"] >= 39
    assert table["regimes"]["share_right"] >= 0.70
    assert table["regimes"]["share_right_or_within_noise"] >= 0.72
    assert table["hit_rate_mean_abs_error"] <= 0.10
    assert table["cliffs"]["within_one_step"] == table["cliffs"]["n"] >= 1


def test_throughput_stays_near_the_stated_error_where_builds_are_current() -> None:
    table = agentic()
    assert table["n"] >= 80
    assert table["median_abs_pct_error"] <= 35.0
    assert table["current_builds"]["median_abs_pct_error"] <= 30.0


def test_every_miss_has_its_figures_and_a_group_of_its_own_regime() -> None:
    for row in agentic()["misses"]:
        assert row["measured"] >= 0 and row["predicted"] >= 0
        assert row["regime"] in ("before", "at", "past")


def test_the_published_gains_of_the_day_zero_recipe_are_compared_and_excess_is_named() -> None:
    table = gains()
    rows = {row["id"]: row for row in table["rows"]}
    assert rows["ax001+ax003"]["measured"] == pytest.approx(4.94, abs=0.01)
    assert rows["ax002+ax004"]["measured"] == pytest.approx(4.75, abs=0.01)
    named = {row["id"] for row in table["misses"] if "exceeds" in row["reason"]}
    over = {row["id"] for row in table["rows"] if row["predicted"] > 6.5}
    assert named == over
    printed = str(Validation(sets=(table,)))
    assert all(name in printed for name in over)


def test_hit_rates_of_sessions_are_compared_and_the_rest_is_explained() -> None:
    table = hit_rate_set.run()
    compared = {row["id"] for row in table["errors"]}
    unusable = {row["id"] for row in table["unusable"]}
    assert compared | unusable == {point.id for point in shipped_hit_rates()}
    assert table["median_abs_pct_error"] <= 5.0


@pytest.mark.parametrize(
    ("hits", "side"), [(0.90, "before"), (0.89, "at"), (0.10, "at"), (0.099, "past")]
)
def test_the_sides_meet_at_nine_tenths_and_one_tenth(hits: float, side: str) -> None:
    assert regime(hits, 1.0) == side


def test_the_page_is_whole_and_loads_nothing() -> None:
    page = validation_page(Validation(sets=(agentic(), gains())))
    assert page.count("<h2") == 2
    assert "agentic" in page and "<svg" in page
    for outside in ("src=", "href='http", 'href="http', "@import", "<script"):
        assert outside not in page


def test_the_answer_is_one_json_object_with_the_keys_of_the_contract() -> None:
    answer = json.loads(json.dumps(Validation(sets=(agentic(),)).to_dict(), allow_nan=False))
    assert {"name", "n", "median_abs_pct_error", "p90_abs_pct_error", "misses"} <= set(
        answer["sets"][0]
    )


def test_an_unknown_set_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SpecError, match="agentic"):
        validate("agentik")
    assert next(iter(SETS)) == "memory"
