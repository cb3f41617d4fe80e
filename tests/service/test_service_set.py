"""Measured cases: errors inside their targets, misses and unusable rows named, fit reproduced."""

from __future__ import annotations

import math
from typing import Any

import pytest

from capmodel.service.roofline import engine_constants
from capmodel.validate import service_fit, service_set
from capmodel.validate.service_cases import cases
from capmodel.validate.service_set import family, identical_spread, scores, summary

RESULT: dict[str, Any] = service_set.run()


def test_uncalibrated_medians_are_inside_the_targets() -> None:
    assert RESULT["n"] > 450
    assert RESULT["quantities"]["tpot_s"]["median_abs_pct_error"] <= 20.0
    assert RESULT["quantities"]["output_tokens_per_s"]["median_abs_pct_error"] <= 20.0
    assert abs(RESULT["bias"]) < 0.10


def test_constants_fitted_without_a_source_still_predict_it() -> None:
    # Held-out errors are larger than fitted ones, and that is what a new source should expect.
    unseen, seen = RESULT["leave_one_source_out"], RESULT["quantities"]
    for quantity, worst in (("tpot_s", 25.0), ("output_tokens_per_s", 27.0)):
        assert unseen[quantity]["median_abs_pct_error"] <= worst
        assert unseen[quantity]["median_abs_pct_error"] >= seen[quantity]["median_abs_pct_error"]


def test_a_factor_per_build_helps() -> None:
    build = RESULT["within_build_leave_one_point_out"]
    uncalibrated = build["same_rows_uncalibrated"]["median_abs_pct_error"]
    assert build["median_abs_pct_error"] < uncalibrated


def test_every_row_is_scored_or_says_why_not() -> None:
    scored = {score.case.id for score in scores()}
    unusable = {row["id"] for row in RESULT["unusable"]}
    for case in cases():
        assert (case.id in unusable) == bool(case.unusable)
        if not case.unusable:
            values = (case.ttft_s, case.tpot_s, case.output_tokens_per_s, case.total_tokens_per_s)
            assert case.id in scored or not any(values) or case.requests is not None
    assert not scored & unusable


def test_misses_are_listed_with_a_reason() -> None:
    assert RESULT["misses"]
    for row in RESULT["misses"]:
        assert row["reason"]
        ratio = abs(math.log(row["predicted"] / row["measured"]))
        assert ratio > math.log(service_set.MISS_RATIO)


def test_identical_configurations_moved_between_builds() -> None:
    spread = identical_spread(scores())
    assert spread[0]["ratio"] == pytest.approx(2.8, abs=0.1)
    assert all(row["ratio"] >= 1.0 for row in spread)


def test_groups_cover_accelerators_families_and_regimes() -> None:
    groups = RESULT["groups"]
    assert {row["regime"] for row in groups} == {"prefill-bound", "memory-bound", "saturated"}
    assert len({row["accelerator"] for row in groups}) >= 9
    assert len({row["family"] for row in groups}) >= 5


def test_summary_of_known_ratios() -> None:
    known = summary([math.log(1.1), math.log(0.9), math.log(1.3)])
    assert known["n"] == 3
    assert known["median_abs_pct_error"] == pytest.approx(10.0)
    assert known["p90_abs_pct_error"] == pytest.approx(30.0)
    assert known["bias"] == pytest.approx(0.1)
    assert summary([])["median_abs_pct_error"] is None


def test_families_follow_the_architecture() -> None:
    assert family("kimi-k3") == "hybrid MoE"
    assert family("llama-3.1-70b") == "grouped-query dense"
    assert family("deepseek-v3.2") == "sparse latent MoE"
    assert family("deepseek-v4-pro") == "compressed MoE"


def test_catalog_constants_are_the_shipped_fit() -> None:
    shipped = service_fit.held_out_values()
    values = dict(zip(shipped["parameters"], shipped["all"], strict=True))
    chosen = {}
    for case in service_fit.fitted_cases():
        assert case.deployment is not None
        chosen[(case.deployment.engine, case.deployment.engine_version, case.accelerator)] = case
    for case in chosen.values():
        assert case.deployment is not None
        expected = service_fit.constants_of(values, case)
        found = engine_constants(
            case.deployment.engine,
            "AMD" if case.accelerator.startswith("MI") else "NVIDIA",
            case.deployment.engine_version,
        )
        for name in expected.__slots__[1:]:
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=2e-3)


def test_the_fit_is_near_its_optimum() -> None:
    shipped = service_fit.held_out_values()
    values = dict(zip(shipped["parameters"], shipped["all"], strict=True))

    def cost(name: str, factor: float) -> float:
        rows, _ = service_fit.residuals({**values, name: values[name] * factor})
        soft = service_fit.SOFT_LOG
        return float((soft**2 * 2 * ((1 + (rows / soft) ** 2) ** 0.5 - 1)).sum())

    for name in ("sglang.kernel_floor_s", "vllm.kernel_floor_s"):
        base = cost(name, 1.0)
        assert base < cost(name, 1.6)
        assert base < cost(name, 0.6)


def test_kimi_k3_rows_are_in_no_fit() -> None:
    assert all(case.model != "kimi-k3" for case in service_fit.fitted_cases())
    assert any(case.model == "kimi-k3" and not case.unusable for case in cases())
