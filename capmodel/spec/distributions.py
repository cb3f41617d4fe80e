"""Positive random quantities: mixtures of lognormals with a cap, in closed form.

Gaps, outputs and contexts of real sessions are mixtures of a few lognormals; everything the
models need (mean, variance, survival, mean excess) has a closed form in the normal integral.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..normal import cdf

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LognormalMixture:
    """A mixture of lognormals, cut at `cap` (values above the cap become the cap).

    Parameters
    ----------
    weights, medians, sigmas : sequence of float
        Share, median and log-standard deviation of each part.
    cap : float
        Largest value; infinity for none.
    """

    weights: tuple[float, ...]
    medians: tuple[float, ...]
    sigmas: tuple[float, ...]
    cap: float = math.inf

    def __post_init__(self) -> None:
        for name in ("weights", "medians", "sigmas"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # laws are dictionary keys
        if not (len(self.weights) == len(self.medians) == len(self.sigmas) >= 1):
            raise SpecError("a mixture needs as many weights as medians and sigmas.")
        if not abs(sum(self.weights) - 1.0) <= 1e-9 or min(self.weights) < 0:
            raise SpecError("mixture weights must be shares that sum to 1.", field="weights")
        if not all(v >= 0 for v in (*self.medians, *self.sigmas, self.cap)):
            raise SpecError("medians, sigmas and the cap must not be negative.", field="medians")

    @classmethod
    def constant(cls, value: float) -> LognormalMixture:
        """Return the law of a constant."""
        return cls(weights=(1.0,), medians=(value,), sigmas=(0.0,))

    @classmethod
    def from_mean_cv(cls, mean: float, cv: float) -> LognormalMixture:
        """Return the lognormal of given mean and coefficient of variation."""
        sigma = math.sqrt(math.log1p(cv * cv))
        return cls(weights=(1.0,), medians=(mean * math.exp(-sigma * sigma / 2),), sigmas=(sigma,))

    def capped(self, cap: float) -> LognormalMixture:
        """Return the same law under a smaller or larger cap."""
        return LognormalMixture(
            weights=self.weights, medians=self.medians, sigmas=self.sigmas, cap=cap
        )

    def scaled(self, factor: float) -> LognormalMixture:
        """Return the law of `factor` times the uncapped variable, under the same cap."""
        return LognormalMixture(
            weights=self.weights,
            medians=tuple(m * factor for m in self.medians),
            sigmas=self.sigmas,
            cap=self.cap,
        )

    def _partial_moment(self, x: FloatArray, order: int) -> FloatArray:
        """E[X^order; X <= x] of the uncapped mixture."""
        total = np.zeros_like(x)
        for weight, median, sigma in zip(self.weights, self.medians, self.sigmas, strict=True):
            if median == 0:
                total += weight * (1.0 if order == 0 else 0.0)
                continue
            with np.errstate(divide="ignore"):
                score = np.log(x / median)
            if sigma < 1e-9:  # as good as constant, and a division would overflow
                total += weight * median**order * (score >= 0)
                continue
            mean_power = median**order * math.exp(order**2 * sigma**2 / 2)
            total += weight * mean_power * cdf(score / sigma - order * sigma)
        return total

    def survival(self, x: Sequence[float] | FloatArray) -> FloatArray:
        """P(X > x), zero at and beyond the cap [1]."""
        grid = np.asarray(x, dtype=np.float64)
        inside = 1.0 - self._partial_moment(np.maximum(grid, 0.0), 0)
        return np.where(grid >= self.cap, 0.0, np.where(grid < 0, 1.0, inside))

    def limited_mean(self, x: Sequence[float] | FloatArray) -> FloatArray:
        """E[min(X, x)], in the unit of the variable."""
        grid = np.minimum(np.maximum(np.asarray(x, dtype=np.float64), 0.0), self.cap)
        tail = 1.0 - self._partial_moment(grid, 0)
        return self._partial_moment(grid, 1) + np.where(np.isfinite(grid), grid, 0.0) * tail

    def excess(self, x: Sequence[float] | FloatArray) -> FloatArray:
        """E[(X - x)^+], in the unit of the variable."""
        return np.maximum(self.mean() - self.limited_mean(x), 0.0)

    def mean(self) -> float:
        """E[X], in the unit of the variable."""
        return _mean(self)

    def variance(self) -> float:
        """Var X, in the squared unit of the variable."""
        cap = np.asarray([self.cap], dtype=np.float64)
        second = self._partial_moment(cap, 2)[0]
        if math.isfinite(self.cap):
            second += self.cap**2 * (1.0 - self._partial_moment(cap, 0)[0])
        return max(float(second) - self.mean() ** 2, 0.0)

    def cv(self) -> float:
        """Coefficient of variation; 0 for a zero mean [1]."""
        mean = self.mean()
        return math.sqrt(self.variance()) / mean if mean > 0 else 0.0

    def quantile(self, p: float) -> float:
        """The p-quantile, by bisection on the survival function, in the unit of the variable."""
        if not 0 < p < 1:
            raise SpecError(f"a quantile needs 0 < p < 1, got {p}.", field="p")
        low, high = 0.0, min(self.cap, max(self.medians) * math.exp(40.0))
        for _ in range(200):
            middle = 0.5 * (low + high)
            if float(self.survival(np.asarray([middle]))[0]) > 1.0 - p:
                low = middle
            else:
                high = middle
        return high


@cache
def _mean(law: LognormalMixture) -> float:
    return float(law.limited_mean(np.asarray([math.inf]))[0])
