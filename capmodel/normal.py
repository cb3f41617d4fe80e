"""The normal law on arrays, in numpy alone.

`scipy.special` gives the same numbers but costs a quarter of a second to import, half of the
time an estimate may take; a test holds the two together to 1e-13.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_SQRT_HALF = math.sqrt(0.5)
_INV_SQRT_PI = 1.0 / math.sqrt(math.pi)

# Rational minimax coefficients of W. J. Cody, Math. Comp. 23 (1969) 631-637, tables I to III.
_A = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
      3.77485237685302021e2, 3.20937758913846947e3)  # fmt: skip
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2,
      1.28261652607737228e3, 2.84423683343917062e3)  # fmt: skip
_C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
      6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
      1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3)  # fmt: skip
_D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
      1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
      3.43936767414372164e3, 1.23033935480374942e3)  # fmt: skip
_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
      1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_Q = (1.0, 2.56852019228982242e0, 1.87295284992346725e0,
      5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3)  # fmt: skip


def _horner(coefficients: tuple[float, ...], x: FloatArray) -> FloatArray:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def erfc(x: npt.ArrayLike) -> FloatArray:
    """Complementary error function, elementwise, to a relative error under 1e-13 [1]."""
    value = np.asarray(x, dtype=np.float64)
    size = np.minimum(np.abs(value), 27.0)
    small = size <= 0.46875
    large = size > 4.0
    square = size * size
    near = 1.0 - size * _horner(_A, np.where(small, square, 0.0)) / _horner(
        _B, np.where(small, square, 0.0)
    )
    middle_size = np.where(small | large, 1.0, size)
    middle = _horner(_C, middle_size) / _horner(_D, middle_size)
    inverse = 1.0 / np.where(large, square, 16.0)
    far = (_INV_SQRT_PI - inverse * _horner(_P, inverse) / _horner(_Q, inverse)) / np.where(
        large, size, 4.0
    )
    # exp(-x^2) split at 1/16 so that the square of the leading part is exact.
    lead = np.trunc(size * 16.0) / 16.0
    decay = np.exp(-lead * lead) * np.exp(-(size - lead) * (size + lead))
    positive = np.where(small, near, decay * np.where(large, far, middle))
    return np.where(value < 0, 2.0 - positive, positive)


def cdf(y: npt.ArrayLike) -> FloatArray:
    """Standard normal distribution function Phi(y), elementwise [1]."""
    return 0.5 * erfc(-np.asarray(y, dtype=np.float64) * _SQRT_HALF)


def pdf(y: npt.ArrayLike) -> FloatArray:
    """Standard normal density phi(y), elementwise [1]."""
    value = np.asarray(y, dtype=np.float64)
    return np.exp(-0.5 * value * value) / math.sqrt(2.0 * math.pi)


def mean_excess(y: npt.ArrayLike) -> FloatArray:
    """psi(y) = E[(y + N)^+] = y Phi(y) + phi(y) for standard normal N, elementwise [1]."""
    value = np.asarray(y, dtype=np.float64)
    return np.maximum(value * cdf(value) + pdf(value), 0.0)


def quantile(p: npt.ArrayLike) -> FloatArray:
    """Standard normal quantile, elementwise, by Newton's method on `cdf` from a rational start [1].

    Notes
    -----
    The start is Abramowitz and Stegun 26.2.23 (absolute error under 4.5e-4); three Newton steps
    with the exact density bring it to machine precision for 1e-12 < p < 1 - 1e-12.
    """
    probability = np.asarray(p, dtype=np.float64)
    tail = np.clip(np.minimum(probability, 1.0 - probability), 1e-300, 0.5)
    t = np.sqrt(-2.0 * np.log(tail))
    start = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    y: FloatArray = -start
    for _ in range(3):
        y = y - (cdf(y) - tail) / np.maximum(pdf(y), 1e-300)
    return np.where(probability < 0.5, y, -y)
