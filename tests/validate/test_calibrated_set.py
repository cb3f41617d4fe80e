"""Curves calibrated on their two lightest points, on one that ships."""

from __future__ import annotations

from capmodel.validate import calibrated_set
from capmodel.validate.agentic_cases import shipped_points


def test_heavier_points_of_a_calibrated_curve_are_predicted_within_the_target() -> None:
    points = [p for p in shipped_points() if p.source.endswith("pull/3198")]
    table = calibrated_set.run(points)
    assert table["curves"] == 1
    fitted = {"ax112", "ax113", "ax114", "ax115"}
    assert {row["id"] for row in table["errors"]} == {p.id for p in points} - fitted
    assert table["median_abs_pct_error"] <= 12.0
    assert table["median_abs_pct_error"] < table["uncalibrated_median_abs_pct_error"]


def test_short_curves_are_listed_and_not_fitted() -> None:
    points = [p for p in shipped_points() if p.source.endswith("pull/3361")]
    table = calibrated_set.run(points)
    assert table["n"] == 0 and table["curves"] == 0
    assert {row["reason"] for row in table["unusable"]} == {"no curve of four concurrencies"}
