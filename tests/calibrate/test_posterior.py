"""The fit: planted factors are recovered with honest intervals, and limits hold."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from capmodel.calibrate.adjustment import PARAMETERS, Adjustment
from capmodel.calibrate.identifiability import forecasts, next_measurement, warnings
from capmodel.calibrate.observation import QUANTITIES, Observation
from capmodel.calibrate.posterior import Posterior, fit, noise_sigma, prior_sigma

RECORDED = ("output_tokens_per_s", "hit_rate", "tpot_mean_s")
DRAWS = 200


def toy(adjustment: Adjustment, concurrency: int) -> Mapping[str, float]:
    """A closed loop small enough to fit thousands of times: gap, prefill of misses, decode."""
    ratio = 3.2e6 * adjustment.usable_kv / (concurrency * 2.7e5 * adjustment.working_set)
    hit = 0.958 / (1.0 + math.exp(-6.0 * math.log(ratio)))
    tpot = 0.010 * adjustment.step_overhead + 0.004 * math.sqrt(concurrency) / (
        adjustment.bandwidth_efficiency
    )
    ttft = 1.35e5 * (1.0 - hit) / (1.0e4 * adjustment.compute_efficiency)
    cycle = 24.0 * adjustment.gap_scale + ttft + 900.0 * tpot
    return {
        "output_tokens_per_s": 900.0 * concurrency / cycle,
        "hit_rate": hit,
        "tpot_mean_s": tpot,
        "ttft_mean_s": ttft,
    }


def planted(rng: np.random.Generator) -> dict[str, float]:
    return {name: float(np.exp(prior_sigma(name) * rng.normal())) for name in PARAMETERS}


def measured(
    factors: Mapping[str, float], rng: np.random.Generator, loads: tuple[int, ...]
) -> list[Observation]:
    points = []
    for concurrency in loads:
        truth = toy(Adjustment(**factors), concurrency)
        figures = {}
        for name in RECORDED:
            error = noise_sigma(name) * rng.normal()
            relative = QUANTITIES[name] != "share"
            figures[name] = truth[name] * math.exp(error) if relative else truth[name] + error
        points.append(Observation(concurrency=concurrency, measured=figures))
    return points


def test_ninety_percent_intervals_hold_planted_factors_in_nine_of_ten_draws() -> None:
    rng = np.random.default_rng(20261201)
    inside = np.zeros(len(PARAMETERS))
    for _ in range(DRAWS):
        factors = planted(rng)
        found = fit(toy, measured(factors, rng, (1, 4, 8, 12, 16)))
        for at, name in enumerate(PARAMETERS):
            _, low, high = found.interval(name)
            inside[at] += low <= factors[name] <= high
    assert 0.85 <= inside.mean() / DRAWS <= 0.95
    # A single factor's share scatters by 2% over 200 draws.
    assert np.all(inside / DRAWS > 0.82)


def noiseless(loads: tuple[int, ...], **factors: float) -> list[Observation]:
    return [
        Observation(concurrency=c, measured={k: toy(Adjustment(**factors), c)[k] for k in RECORDED})
        for c in loads
    ]


def test_points_of_the_uncalibrated_model_leave_every_factor_at_one() -> None:
    found = fit(toy, noiseless((1, 8, 16)))
    np.testing.assert_allclose(np.exp(found.mode), 1.0, atol=1e-6)
    assert found.inflation == 1.0


def test_more_points_never_widen_an_interval() -> None:
    few, many = fit(toy, noiseless((1, 8))), fit(toy, noiseless((1, 4, 8, 12, 16)))
    assert np.all(many.deviations <= few.deviations + 1e-9)


def test_one_factor_is_recovered_exactly_from_exact_points_when_the_prior_is_weak() -> None:
    found = fit(toy, noiseless((1, 2, 4, 8), step_overhead=1.5), names=("step_overhead",),
                rate_noise=1e-3)  # fmt: skip
    assert found.adjustment.step_overhead == pytest.approx(1.5, rel=2e-3)


def test_points_that_scatter_more_than_their_noise_widen_the_intervals() -> None:
    points = noiseless((1, 4, 8, 12, 16))
    jumpy = [
        Observation(
            concurrency=p.concurrency,
            measured={k: v * (1.5 if at % 2 else 1 / 1.5) if k != "hit_rate" else v
                      for k, v in p.measured.items()},
        )
        for at, p in enumerate(points)
    ]  # fmt: skip
    calm, wide = fit(toy, points), fit(toy, jumpy)
    assert wide.inflation > 2.0
    assert wide.deviations.sum() > calm.deviations.sum()
    assert any("scatter" in text for text in warnings(wide))


def test_the_ratio_of_pool_and_working_set_is_all_that_hits_show() -> None:
    points = [Observation(concurrency=c, measured={"hit_rate": toy(Adjustment(), c)["hit_rate"]})
              for c in (8, 10, 12, 14)]  # fmt: skip
    found = fit(toy, points, names=("working_set", "usable_kv"))
    relation = _correlation(found, "working_set", "usable_kv")
    assert relation > 0.8
    assert any("start-up log" in text for text in warnings(found))


def _correlation(found: Posterior, first: str, second: str) -> float:
    i, j = found.names.index(first), found.names.index(second)
    return float(found.covariance[i, j] / (found.deviations[i] * found.deviations[j]))


def test_the_next_measurement_is_the_one_that_shrinks_the_posterior_most() -> None:
    found = fit(toy, noiseless((1, 2)))
    best = next_measurement(found, forecasts(toy, found, (1, 4, 12, 16)))
    assert best is not None

    def volume(concurrency: int, quantity: str) -> float:
        value = toy(Adjustment(), concurrency)[quantity]
        extra = Observation(concurrency=concurrency, measured={quantity: value})
        again = fit(toy, [*noiseless((1, 2)), extra])
        return float(np.linalg.slogdet(again.covariance)[1])

    options = [(c, q) for c in (1, 4, 12, 16) for q in (*RECORDED, "ttft_mean_s")]
    volumes = {option: volume(*option) for option in options}
    assert volumes[(best.concurrency, best.quantity)] <= min(volumes.values()) + 0.05


def test_leave_one_out_errors_match_refitting_without_the_figure() -> None:
    rng = np.random.default_rng(3)
    points = measured(dict.fromkeys(PARAMETERS, 1.0), rng, (1, 4, 8, 16))
    whole = fit(toy, points)
    label = (8, "output_tokens_per_s")
    rest = [
        Observation(
            concurrency=p.concurrency,
            measured={k: v for k, v in p.measured.items() if (p.concurrency, k) != label},
        )
        for p in points
    ]
    again = toy(fit(toy, rest).adjustment, 8)["output_tokens_per_s"]
    value = next(p for p in points if p.concurrency == 8).measured["output_tokens_per_s"]
    expected = math.log(value / again)
    assert whole.leave_one_out[whole.labels.index(label)] == pytest.approx(expected, abs=0.01)


def test_forecasts_hold_the_planted_answer_nine_times_in_ten() -> None:
    rng = np.random.default_rng(11)
    inside = 0
    draws = 60
    for _ in range(draws):
        factors = planted(rng)
        found = fit(toy, measured(factors, rng, (1, 4, 8)))
        (answer,) = forecasts(toy, found, (6,))
        _, low, high = answer.values["output_tokens_per_s"]
        inside += low <= toy(Adjustment(**factors), 6)["output_tokens_per_s"] <= high
    assert inside / draws > 0.8


def test_figures_per_accelerator_are_not_fitted_in_silence() -> None:
    eighth = [
        Observation(
            concurrency=p.concurrency,
            measured={"output_tokens_per_s": p.measured["output_tokens_per_s"] / 8},
        )
        for p in noiseless((1, 4, 8, 16))
    ]
    assert any("per accelerator" in text for text in warnings(fit(toy, eighth)))
    assert not any("per accelerator" in text for text in warnings(fit(toy, noiseless((1, 8)))))
