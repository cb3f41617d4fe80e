"""The cliff under calibrated factors, its interval, and whether a decision survives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answer import BEFORE_CLIFF, PAST_CLIFF, first_below
from .adjustment import Adjustment
from .forward import Forward
from .posterior import NORMAL_95, Posterior

# Factors that move the cliff, and the way in which they bring it closer.
CLOSER = {"working_set": 1.0, "usable_kv": -1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedCliff:
    """Sessions at which half of the hits are lost, with a 90% interval.

    Parameters
    ----------
    concurrency, low, high : int or None
        Cliff and its ends [1].
    session_cap : int or None
        Sessions that keep nine tenths of the hits at the low end [1].
    """

    concurrency: int | None
    low: int | None
    high: int | None
    session_cap: int | None

    def robustness(self, most_measured: int) -> str:
        """Say whether the interval decides on the side of the cliff of a measured load."""
        if self.low is None or self.high is None:
            return "no cliff in reach: the decision does not hang on the factors"
        if most_measured < self.low:
            return f"robust: C = {most_measured} is before the cliff over the whole interval"
        if most_measured >= self.high:
            return f"robust: C = {most_measured} is past the cliff over the whole interval"
        return (
            f"not robust: the cliff's interval [{self.low}, {self.high}] holds C = {most_measured}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "concurrency": self.concurrency, "low": self.low, "high": self.high,
            "session_cap": self.session_cap,
        }  # fmt: skip


def calibrated_cliff(
    forward: Forward, posterior: Posterior, theoretical_hit_rate: float, guess: int
) -> CalibratedCliff | None:
    """Return the cliff at the posterior's mode and its ends, None where nothing is reused.

    Parameters
    ----------
    forward : callable
        Hits at an adjustment and a concurrency.
    posterior : Posterior
        The fit.
    theoretical_hit_rate : float
        Hits of an infinite cache [1].
    guess : int
        Where to begin [1].

    Notes
    -----
    The ends move the factors along their joint deviation of ``log(working set / usable KV)``, on
    which the cliff depends to first order.
    """
    if theoretical_hit_rate <= 0:
        return None
    middle = posterior.adjustment
    weights = np.array([CLOSER.get(name, 0.0) for name in posterior.names])
    spread = posterior.covariance @ weights
    deviation = float(np.sqrt(max(weights @ spread, 0.0)))
    shift = spread / deviation * NORMAL_95 if deviation > 0 else np.zeros(len(weights))

    def moved(sign: float) -> Adjustment:
        logs = posterior.mode + sign * shift
        return replace(middle, **dict(zip(posterior.names, np.exp(logs).tolist(), strict=True)))

    def first(adjustment: Adjustment, threshold: float, start: int) -> int | None:
        def share(concurrency: int) -> float:
            found: Mapping[str, float] = forward(adjustment, concurrency)
            return found["hit_rate"] / theoretical_hit_rate

        return first_below(share, threshold, start)

    cliff = first(middle, PAST_CLIFF, guess)
    near = moved(1.0)
    low = first(near, PAST_CLIFF, cliff or guess)
    high = first(moved(-1.0), PAST_CLIFF, cliff or guess)
    lost = first(near, BEFORE_CLIFF, max(low - 1, 1) if low else guess)
    return CalibratedCliff(
        concurrency=cliff, low=low, high=high, session_cap=None if lost is None else lost - 1
    )
