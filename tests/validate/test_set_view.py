"""Sets of every shape are shown alike."""

from __future__ import annotations

from capmodel.validate.set_view import bias_percent, facts, groups, unusable_reasons, worst
from capmodel.validate.validation import Validation, validate
from capmodel.validate.validation_page import validation_page

METHODS = {
    "name": "reuse", "n": 3, "median_abs_pct_error": 0.1, "p90_abs_pct_error": 0.4,
    "mean_abs_error": 0.002, "misses": [],
    "sets": [{"name": "fluid", "n": 3, "mean_abs_error": 0.07,
              "regimes": {"past": {"n": 1, "mean_abs_error": 0.15}}}],
    "worst": [{"case": "C=2 <&>", "measured": 0.5, "predicted": 0.25}],
    "unusable": [{"case": name, "reason": "seeds scatter"} for name in ("a", "b")],
}  # fmt: skip


def test_methods_are_told_apart_by_regime() -> None:
    assert "fluid: mean 0.0700 (past 0.1500), n = 3" in facts(METHODS)
    assert unusable_reasons(METHODS) == [("seeds scatter", 2)]
    (row,) = worst(METHODS)
    assert (row.id, row.measured, row.predicted) == ("C=2 <&>", "0.5", "0.25")


def test_a_bias_is_a_percentage_whether_stated_as_one_or_as_a_share() -> None:
    assert bias_percent({"bias": 0.05}) == bias_percent({"bias_pct": 5.0}) == 5.0
    assert bias_percent({}) is None


def test_groups_of_several_quantities_show_the_one_with_most_cases() -> None:
    row = {
        "accelerator": "B200", "regime": "saturated",
        "tpot_s": {"n": 1, "median_abs_pct_error": 9.0, "p90_abs_pct_error": 9.0, "bias": 0.09},
        "ttft_s": {"n": 4, "median_abs_pct_error": 5.0, "p90_abs_pct_error": 8.0, "bias": -0.01},
    }  # fmt: skip
    ((group,),) = groups({"groups": [row]}).values()
    assert group.name == "B200, saturated: ttft_s"
    assert (group.n, group.median, group.bias) == (4, "5.0", "-1.0")


def test_the_sets_of_the_stages_print_and_make_a_page() -> None:
    found = validate("memory", "service")
    whole = Validation(sets=(*found.sets, METHODS))
    text, page = str(whole), validation_page(whole)
    for name in ("memory", "service", "reuse", "exact replay"):
        assert name in text and name in page
    assert "C=2 &lt;&amp;&gt;" in page and "C=2 <&>" not in page
