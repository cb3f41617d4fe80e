"""The Gamma law of what others hold, fast enough for a whole surface at once.

A sum of few positive parts is skewed; a Gamma law of the same mean and variance follows it far
better than a Normal one, and its cube root is nearly normal.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from ..normal import cdf

FloatArray = npt.NDArray[np.float64]


_REACH = 8.0
_STEPS = 1 << 13


@cache
def _normal_table() -> tuple[FloatArray, FloatArray]:
    """Values at the points of the table and the rises to the next point."""
    values = cdf(np.linspace(-_REACH, _REACH, _STEPS + 1))
    return values, np.append(np.diff(values), 0.0)


def tabulated_cdf(y: FloatArray) -> FloatArray:
    """Standard normal distribution function from a table of 8,193 points, to 2e-7 [1]."""
    place = np.clip((y + _REACH) * (_STEPS / (2.0 * _REACH)), 0.0, _STEPS)
    index = place.astype(np.intp)
    values, rises = _normal_table()
    return np.asarray(values.take(index) + (place - index) * rises.take(index))


def gamma_shape(mean: npt.ArrayLike, variance: npt.ArrayLike) -> FloatArray:
    """Shape of the Gamma law of given mean and variance [1]."""
    return np.asarray(mean, dtype=np.float64) ** 2 / np.maximum(variance, 1e-300)


def gamma_cdf(x: FloatArray, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """P(G <= x) of a Gamma law, by the cube-root normal approximation [1].

    Parameters
    ----------
    x, mean : ndarray
        Point and mean, in the same unit.
    shape : ndarray
        Shape k [1].

    Notes
    -----
    (G/mean)^(1/3) is near Normal(1 - 1/(9k), 1/(9k)). Approximate for: small shapes; the
    distribution function is off by at most 0.05 at k = 0.5, 0.013 at 1, 0.004 from 2 on.

    References
    ----------
    Wilson and Hilferty, Proc. Natl. Acad. Sci. 17 (1931) 684-688.
    """
    score = np.cbrt(np.maximum(x, 0.0) / mean) - (1.0 - 1.0 / (9.0 * shape))
    return np.where(x > 0, tabulated_cdf(3.0 * np.sqrt(shape) * score), 0.0)


def gamma_excess(x: FloatArray, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """E[(G - x)^+] of a Gamma law, in its unit.

    Notes
    -----
    E[(G - x)^+] = m P(G' > x) - x P(G > x), G' of the same scale and shape k + 1; both tails
    by the cube-root normal approximation.
    """
    reach = np.maximum(x, 0.0)
    ratio = np.cbrt(reach / mean)
    longer = shape + 1.0
    tail = tabulated_cdf(3.0 * np.sqrt(shape) * (1.0 - 1.0 / (9.0 * shape) - ratio))
    tilted = ratio * np.cbrt(shape / longer)
    heavy = tabulated_cdf(3.0 * np.sqrt(longer) * (1.0 - 1.0 / (9.0 * longer) - tilted))
    return np.where(x <= 0, mean - x, np.maximum(mean * heavy - reach * tail, 0.0))
