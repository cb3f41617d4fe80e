"""Bad points are refused with the reason, never fitted."""

from __future__ import annotations

import pytest

from capmodel.calibrate.checks import check_points, check_units
from capmodel.calibrate.observation import Observation
from capmodel.errors import IngestError


def point(concurrency: int, rate: float = 100.0, **extra: float) -> Observation:
    measured = {"output_tokens_per_s": rate * concurrency, **extra}
    return Observation(concurrency=concurrency, measured=measured, source=f"p.csv:{concurrency}")


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([point(4)], "at least two concurrencies"),
        ([point(4), point(4)], "at least two concurrencies"),
        ([point(1), point(4, hit_rate=95.0)], "in percent"),
        ([point(1), point(4, tpot_mean_s=30.0)], "in milliseconds"),
        ([point(1), point(4, rate=-1.0)], "positive"),
        ([point(1), point(4, rate=float("nan"))], "finite"),
        ([point(1), point(4), point(4, rate=200.0)], "contradicting points at concurrency 4"),
        ([point(1), point(4, hit_rate=0.9), point(4, hit_rate=0.2)], "contradicting"),
        ([point(1, 100), point(2, 50), point(4, 25)], "constant column"),
    ],
)
def test_points_that_no_fit_can_use_are_refused(points: list[Observation], said: str) -> None:
    with pytest.raises(IngestError, match=said):
        check_points(points)


def test_runs_of_two_engines_are_not_mixed() -> None:
    mixed = [
        Observation(concurrency=c, measured={"output_tokens_per_s": 9.0 * c},
                    identity={"engine": engine}, source=engine)
        for c, engine in ((1, "vllm"), (2, "sglang"))
    ]  # fmt: skip
    with pytest.raises(IngestError, match="mixed runs: engine is 'vllm'"):
        check_points(mixed)


def test_a_unit_that_is_off_by_a_thousand_is_named() -> None:
    points = [point(1, ttft_p50_s=800.0), point(4, ttft_p50_s=900.0)]
    predicted = [{"ttft_p50_s": 0.8, "output_tokens_per_s": 100.0 * c} for c in (1, 4)]
    with pytest.raises(IngestError, match="milliseconds"):
        check_units(points, predicted, gpus=8)


def test_ordinary_points_pass() -> None:
    points = [point(1, hit_rate=0.95), point(4, 90.0, hit_rate=0.0), point(4, 92.0)]
    check_points(points)
    check_units(points, [{"output_tokens_per_s": 120.0 * p.concurrency} for p in points], gpus=8)
