"""The composition: how many tokens the live contexts of all lanes add up to.

Contexts grow and restart over a session's life, far slower than the queue moves. The sum Y of
the C contexts is therefore frozen for the queue: solve for each Y, then average over turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .lane_law import LaneLaw

FloatArray = npt.NDArray[np.float64]

# Scores of the Y nodes in the cube-root normal scale; beyond them lies 0.1% of the turns.
_SCORES = np.linspace(-2.7, 3.4, 17)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Nodes of Y, seen from the turn of one lane.

    Parameters
    ----------
    total_tokens : ndarray, shape (nodes,)
        Y, the own context included [tokens].
    weight : ndarray, shape (nodes,)
        Share of the turns that see it [1].
    found_share : ndarray, shape (nodes, gaps, lengths)
        Share of all requests that see Y and are of that kind [1].
    context_mean : ndarray, shape (nodes,)
        E[w | Y] [tokens].
    """

    total_tokens: FloatArray
    weight: FloatArray
    found_share: FloatArray
    context_mean: FloatArray


def composition(law: LaneLaw, concurrency: int) -> Composition:
    """Return the law of Y for C >= 2 lanes, on the clock of turns.

    Notes
    -----
    Y = w + G, own context and the Gamma sum of C - 1 independent ones; each kind of request
    gets weights over Y that add up to its share, so that an infinite cache gives the ceiling.
    """
    mean = law.context_mean
    spread = max(law.context_square / mean**2 - 1.0, 1e-4)
    shape = concurrency / spread
    base = 1.0 - 1.0 / (9.0 * shape) + _SCORES / (3.0 * np.sqrt(shape))
    total = concurrency * mean * np.maximum(base, 0.05) ** 3
    width = np.gradient(total)
    others_shape, scale = (concurrency - 1) / spread, mean * spread

    def chances(own: FloatArray) -> FloatArray:
        """Weights over the nodes, first axis, for each own context."""
        rest = np.maximum(total.reshape(-1, *[1] * own.ndim) - own, 1e-9 * mean)
        log_density = (others_shape - 1.0) * np.log(rest / scale) - rest / scale
        density = np.exp(log_density - log_density.max(axis=0))
        density = density * width.reshape(-1, *[1] * own.ndim)
        normalised: FloatArray = density / density.sum(axis=0)
        return normalised

    found = chances(law.context_tokens) * law.share
    fresh = chances(law.fresh_tokens) * law.fresh_share
    weight = found.sum(axis=(1, 2)) + fresh.sum(axis=1)
    tokens = (found * law.context_tokens).sum(axis=(1, 2)) + (fresh * law.fresh_tokens).sum(axis=1)
    return Composition(
        total_tokens=total,
        weight=weight,
        found_share=found,
        context_mean=tokens / np.maximum(weight, 1e-300),
    )
