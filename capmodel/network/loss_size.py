"""How much a request loses when it loses anything: near the peak, often but little.

The queue needs two figures of the losses, how many tokens and in what portions. Both follow from
the order argument, and along the compositions of one system they move together; so the portion is
tabulated once per system as a function of the missing share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..reuse.order_argument import ThinkNodes, missing_fraction
from ..spec.workload import Workload
from .composition import Composition

FloatArray = npt.NDArray[np.float64]

SMALLEST = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSizes:
    """Lost share of a request with any loss, against the missing share of all tokens [1]."""

    missing: FloatArray
    size: FloatArray

    @classmethod
    def whole(cls) -> LossSizes:
        """Return the curve of caches that lose all or nothing."""
        return cls(missing=np.asarray([0.0, 1.0]), size=np.ones(2))

    def __call__(self, missing: FloatArray) -> FloatArray:
        """Lost share of a request with any loss; never under the missing share itself [1]."""
        return np.maximum(np.interp(missing, self.missing, self.size), missing)


def loss_sizes(
    composition: Composition,
    workload: Workload,
    capacity_tokens: float,
    concurrency: int,
    think: ThinkNodes,
) -> LossSizes:
    """Return the sizes of losses along the compositions of a system.

    Parameters
    ----------
    composition : Composition
        Live tokens of the sessions.
    workload : Workload
        Session sizes and think time.
    capacity_tokens : float
        Capacity of the cache, or of the tier behind it [tokens].
    concurrency : int
        Live sessions [1].
    think : ThinkNodes
        Quadrature of the think-time law.

    Notes
    -----
    Size = E[lost share] / P(any loss), at a cycle of twice the think time, where half the sessions
    think; the ratio depends little on the cycle once the missing share is given.
    """
    live = composition.live_tokens
    cycle = np.full_like(live, 2.0 * max(workload.think_time.mean(), 1e-9))
    share, often = (
        missing_fraction(
            live_tokens=live,
            cycle_s=cycle,
            capacity_tokens=capacity_tokens,
            concurrency=concurrency,
            session_cv=workload.tree_tokens_cv,
            ended_tokens_per_turn=0.0,
            think=think,
            all_or_nothing=whole,
        )
        for whole in (False, True)
    )
    known = (share > 1e-6) & (often > 1e-6)
    if not known.any():
        return LossSizes.whole()
    order = np.argsort(share[known])
    missing = share[known][order]
    size = np.clip(missing / often[known][order], SMALLEST, 1.0)
    # The portion grows with the deficit; ends are held, and a full loss has size one.
    size = np.maximum.accumulate(size)
    return LossSizes(missing=np.append(missing, 1.0), size=np.append(size, 1.0))
