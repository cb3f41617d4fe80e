"""Observations: what a run measured, in the model's names and units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# Quantities a point may carry and what kind of figure each is.
QUANTITIES = {
    "requests_per_s": "rate",
    "output_tokens_per_s": "rate",
    "total_tokens_per_s": "rate",
    "ttft_mean_s": "time",
    "ttft_p50_s": "time",
    "ttft_p90_s": "time",
    "tpot_mean_s": "time",
    "tpot_p50_s": "time",
    "tpot_p90_s": "time",
    "hit_rate": "share",
    "hit_rate_hbm": "share",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One measured load point.

    Parameters
    ----------
    concurrency : int
        Live sessions [1].
    measured : mapping of str to float
        Quantities by name, in the units of their names.
    identity : mapping of str to str
        What the run says of itself: model, hardware, engine, precision.
    source : str
        File, and line where there is one.
    """

    concurrency: int
    measured: Mapping[str, float]
    identity: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


def scaled(quantity: str, value: float) -> float:
    """Return a figure on the scale where its noise is constant: logarithms, shares as they are."""
    return value if QUANTITIES[quantity] == "share" else math.log(max(value, 1e-12))


def unscaled(quantity: str, value: float) -> float:
    """Return a figure from the scale of `scaled`; shares stay between zero and one."""
    return min(max(value, 0.0), 1.0) if QUANTITIES[quantity] == "share" else math.exp(value)
