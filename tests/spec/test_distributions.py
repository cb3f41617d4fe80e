"""Mixtures of lognormals against sampling and scipy; the normal law against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from capmodel import normal
from capmodel.errors import SpecError
from capmodel.reuse import gamma_law
from capmodel.spec.distributions import LognormalMixture

GAPS = LognormalMixture(weights=(0.67, 0.33), medians=(3.03, 24.3), sigmas=(0.53, 1.66), cap=300)


def test_normal_law_matches_scipy() -> None:
    x = np.concatenate([np.linspace(-9, 26, 20_001), [0.0, 0.46875, 4.0, -0.46875]])
    assert normal.erfc(x) == pytest.approx(special.erfc(x), rel=1e-13, abs=1e-300)
    assert normal.cdf(x) == pytest.approx(special.ndtr(x), rel=1e-12)
    p = np.concatenate([np.geomspace(1e-10, 0.5, 200), 1 - np.geomspace(1e-10, 0.5, 200)])
    assert normal.quantile(p) == pytest.approx(special.ndtri(p), rel=1e-9, abs=1e-9)
    y = np.linspace(-5, 5, 41)
    assert normal.mean_excess(y) == pytest.approx(
        y * special.ndtr(y) + stats.norm.pdf(y), abs=1e-14
    )


@pytest.mark.parametrize(("shape", "error"), [(0.6, 0.04), (1.0, 0.013), (1.6, 0.006), (10, 7e-4)])
def test_gamma_law_is_as_close_as_stated(shape: float, error: float) -> None:
    x = np.linspace(0.01, 4, 200)
    mean, shapes = np.ones_like(x), np.full_like(x, shape)
    law = stats.gamma(shape, scale=1.0 / shape)
    assert gamma_law.gamma_cdf(x, mean, shapes) == pytest.approx(law.cdf(x), abs=error)
    exact = stats.gamma.sf(x * shape, shape + 1) - x * law.sf(x)
    assert gamma_law.gamma_excess(x, mean, shapes) == pytest.approx(exact, abs=error)


def test_published_gap_statistics() -> None:
    """Median 3.84 s and about 10% of gaps above 60 s, from one scale factor."""
    assert GAPS.quantile(0.5) == pytest.approx(3.84, rel=0.02)
    assert float(GAPS.survival([60.0])[0]) == pytest.approx(0.10, abs=0.005)


@settings(max_examples=40, deadline=None)
@given(
    share=st.floats(0.05, 0.95),
    medians=st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)),
    sigmas=st.tuples(st.floats(0, 1.5), st.floats(0, 1.5)),
    cap=st.one_of(st.just(math.inf), st.floats(1, 500)),
)
def test_moments_match_sampling(
    share: float, medians: tuple[float, float], sigmas: tuple[float, float], cap: float
) -> None:
    law = LognormalMixture(weights=(share, 1 - share), medians=medians, sigmas=sigmas, cap=cap)
    strata = normal.quantile((np.arange(20_000) + 0.5) / 20_000)
    parts = [np.minimum(m * np.exp(s * strata), cap) for m, s in zip(medians, sigmas, strict=True)]
    mean = share * parts[0].mean() + (1 - share) * parts[1].mean()
    assert law.mean() == pytest.approx(mean, rel=0.01)
    x = 0.7 * mean
    excess = (
        share * np.maximum(parts[0] - x, 0).mean()
        + (1 - share) * np.maximum(parts[1] - x, 0).mean()
    )
    assert float(law.excess([x])[0]) == pytest.approx(excess, rel=0.03, abs=1e-9)
    above = share * (parts[0] > x).mean() + (1 - share) * (parts[1] > x).mean()
    assert float(law.survival([x])[0]) == pytest.approx(above, abs=2e-3)


def test_limits() -> None:
    assert LognormalMixture.constant(4.0).mean() == pytest.approx(4.0)
    assert LognormalMixture.constant(4.0).variance() == pytest.approx(0.0, abs=1e-9)
    assert LognormalMixture.constant(0.0).mean() == pytest.approx(0.0, abs=1e-300)
    law = LognormalMixture.from_mean_cv(10, 0.8)
    assert (law.mean(), law.cv()) == (pytest.approx(10), pytest.approx(0.8))
    assert law.scaled(2).mean() == pytest.approx(20)
    assert law.capped(0).mean() == pytest.approx(0.0, abs=1e-300)


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": (0.5,)},
        {"weights": (0.7, 0.7)},
        {"medians": (-1.0, 1.0)},
        {"sigmas": (math.nan, 1.0)},
        {"cap": -1.0},
    ],
)
def test_bad_mixtures_are_refused(changes: dict[str, object]) -> None:
    good = {"weights": (0.5, 0.5), "medians": (1.0, 2.0), "sigmas": (0.5, 0.5)}
    with pytest.raises(SpecError):
        LognormalMixture(**{**good, **changes})  # type: ignore[arg-type]


def test_tabulated_normal_law_is_as_close_as_stated() -> None:
    x = np.linspace(-40, 40, 80_001)
    assert gamma_law.tabulated_cdf(x) == pytest.approx(special.ndtr(x), abs=2e-7)
