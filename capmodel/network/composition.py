"""The composition: how many tokens the live sessions hold in all, as a slow random variable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Grid of the sum Y of live contexts in the turn clock [tokens], and weights that sum to 1."""

    live_tokens: FloatArray
    weights: FloatArray


def gamma_composition(
    concurrency: int, tokens_mean: float, tokens_cv: float, points: int = 40
) -> Composition:
    """Return a grid of the sum of `concurrency` independent contexts, taken gamma.

    Parameters
    ----------
    concurrency : int
        Live sessions C [1].
    tokens_mean, tokens_cv : float
        Mean [tokens] and coefficient of variation [1] of one session's live context.
    points : int
        Grid points [1].

    Notes
    -----
    ``Y ~ Gamma(mean C mu, variance C sigma^2)``. Contexts advance by turns and not by seconds, so
    this law holds in the turn clock, and rates are averaged harmonically: ``X = C / E_Y[c(Y)]``.
    Exact for: exponential contexts. Approximate for: others, through two moments.
    """
    mean = concurrency * tokens_mean
    cv = tokens_cv / math.sqrt(concurrency)
    if cv < 1e-6:
        return Composition(live_tokens=np.asarray([mean]), weights=np.ones(1))
    shape = 1.0 / cv**2
    reach = cv * (4.0 + 2.0 * cv)
    low, high = mean * max(1.0 - 3.8 * cv, 0.02 * min(shape, 1.0)), mean * (1.0 + 1.25 * reach)
    live = np.linspace(low, high, points)
    log_density = (shape - 1.0) * np.log(live / mean) - shape * (live / mean - 1.0)
    density = np.exp(log_density - log_density.max())
    return Composition(live_tokens=live, weights=density / density.sum())
