"""Error tables: known medians, intervals that hold the truth, and a floor from repeats."""

from __future__ import annotations

import numpy as np
import pytest

from capmodel.validate.error_table import Scored, grouped, scatter, statistics, worst


def scored(ratio: float, source: str = "a", **groups: str) -> Scored:
    return Scored(id=f"{ratio}", source=source, quantity="rate", measured=2.0,
                  predicted=2.0 * ratio, groups=groups)  # fmt: skip


def test_statistics_of_known_errors() -> None:
    found = statistics([scored(r) for r in (0.5, 0.9, 1.0, 1.1, 1.2)])
    assert found["n"] == 5
    assert found["median_abs_pct_error"] == pytest.approx(10.0)
    assert found["bias_pct"] == pytest.approx(0.0)
    assert found["median_interval_pct"] is None  # one source says nothing about others


def test_no_rows_are_said_to_be_none() -> None:
    assert statistics([])["median_abs_pct_error"] is None


def test_differences_of_shares_are_not_divided() -> None:
    item = Scored(id="x", source="a", quantity="hit_rate", measured=0.1, predicted=0.3,
                  groups={}, relative=False)  # fmt: skip
    assert statistics([item])["median_abs_pct_error"] == pytest.approx(20.0)


def test_the_interval_covers_the_true_median_nine_times_in_ten() -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(100):
        rows = [scored(float(np.exp(0.3 * rng.normal())), source=str(at)) for at in range(40)]
        low, high = statistics(rows)["median_interval_pct"]
        # |exp(0.3 z) - 1| has its median where the two tails hold half of the mass: 0.2013.
        inside += low <= 20.13 <= high
    assert inside >= 80


def test_groups_hold_every_row_once() -> None:
    rows = [scored(1.1, engine="x"), scored(1.2, engine="y"), scored(0.9)]
    table = grouped(rows, ("engine",))["engine"]
    assert sum(row["n"] for row in table) == 3
    assert {row["group"] for row in table} == {"x", "y", "not known"}


def test_a_half_and_a_double_are_equally_bad() -> None:
    order = [row["id"] for row in worst([scored(1.5), scored(0.4), scored(2.0)], 2)]
    assert order == ["0.4", "2.0"]


def test_the_floor_comes_from_repeats_only() -> None:
    found = scatter([(("a",), "1", 10.0), (("a",), "2", 15.0), (("b",), "3", 7.0)])
    assert found["n"] == 1
    assert found["rows"][0]["ratio"] == pytest.approx(1.5)
