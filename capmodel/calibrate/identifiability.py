"""Identifiability: which factors the points tell apart, and which measurement would help most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CapmodelError
from .adjustment import Adjustment
from .forward import Forward
from .observation import scaled, unscaled
from .posterior import NORMAL_95, STEP, FloatArray, Posterior, noise_sigma, prior_sigma

UNINFORMED_SHARE = 0.8
CONFOUNDED = 0.8
EXTREME_SIGMAS = 2.0
TOLD_APART_BY = {
    frozenset({"bandwidth_efficiency", "step_overhead"}): "measure at C = 1 and at a large batch",
    frozenset({"compute_efficiency", "bandwidth_efficiency"}): (
        "measure the TTFT of long prompts at C = 1 beside the TPOT"
    ),
    frozenset({"working_set", "usable_kv"}): (
        "read the pool's tokens from the engine's start-up log; hits see only their ratio"
    ),
    frozenset({"gap_scale", "working_set"}): "measure the hit rate near the cliff",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A measurement that could be made next.

    Parameters
    ----------
    concurrency : int
        Live sessions [1].
    quantity : str
        What to record.
    gain : float
        Expected drop of the log-volume of the posterior [1].
    factor : str
        The factor whose interval it narrows most.
    """

    concurrency: int
    quantity: str
    gain: float
    factor: str


def warnings(posterior: Posterior) -> tuple[str, ...]:
    """Return what the points leave open, in words a user can act on."""
    found = []
    for name, deviation in zip(posterior.names, posterior.deviations, strict=True):
        if deviation > UNINFORMED_SHARE * prior_sigma(name):
            found.append(f"{name}: these points say little about it; its interval is the prior's")
    spread = posterior.deviations
    for i, first in enumerate(posterior.names):
        for j in range(i + 1, len(posterior.names)):
            second = posterior.names[j]
            relation = posterior.covariance[i, j] / (spread[i] * spread[j])
            if abs(relation) > CONFOUNDED:
                remedy = TOLD_APART_BY.get(
                    frozenset({first, second}), "measure at another concurrency"
                )
                found.append(f"these points cannot tell {first} from {second}: {remedy}")
    for name, log in zip(posterior.names, posterior.mode, strict=True):
        if abs(log) > EXTREME_SIGMAS * prior_sigma(name):
            found.append(
                f"{name} would have to be {math.exp(log):.2f}, {abs(log) / prior_sigma(name):.1f} "
                "deviations from what is known: check units (per accelerator or in all), the "
                "scenario and the build before trusting it"
            )
    if posterior.inflation > 1.5:
        found.append(
            f"the points scatter {posterior.inflation:.1f} times more than their noise around the "
            "best fit; intervals are widened by it"
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the calibrated model says of one load, with a 90% interval per quantity.

    Parameters
    ----------
    concurrency : int
        Live sessions [1].
    values : dict of str to (value, low, high)
        By quantity; the interval is that of the factors, without a run's own noise.
    slopes : dict of str to ndarray
        Of each quantity over its noise, by log factor [1].
    """

    concurrency: int
    values: dict[str, tuple[float, float, float]]
    slopes: dict[str, FloatArray]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        spans = {
            name: {"value": value, "low": low, "high": high}
            for name, (value, low, high) in self.values.items()
        }
        return {"concurrency": self.concurrency, **spans}


def forecasts(
    forward: Forward,
    posterior: Posterior,
    concurrencies: Sequence[int],
    quantities: Sequence[str] = ("output_tokens_per_s", "hit_rate", "tpot_mean_s", "ttft_mean_s"),
) -> tuple[Forecast, ...]:
    """Return the calibrated answer at each load that can be solved.

    Notes
    -----
    ``sd = sqrt(j' S j)`` with the slopes j at the mode: first order in the log factors.
    """
    found = []
    for concurrency in concurrencies:
        try:
            found.append(_forecast(forward, posterior, concurrency, quantities))
        except CapmodelError:
            continue
    return tuple(found)


def next_measurement(posterior: Posterior, options: Sequence[Forecast]) -> Candidate | None:
    """Return the measurement expected to shrink the posterior most, None without options.

    Notes
    -----
    One more figure with slope j over its noise shrinks the volume by ``sqrt(1 + j' S j)``.
    """
    best: Candidate | None = None
    for option in options:
        for quantity, slope in option.slopes.items():
            spread = posterior.covariance @ slope
            gain = 0.5 * math.log1p(float(slope @ spread))
            if best is None or gain > best.gain:
                drops = spread**2 / np.diag(posterior.covariance)
                factor = posterior.names[int(np.argmax(drops))]
                best = Candidate(
                    concurrency=option.concurrency, quantity=quantity, gain=gain, factor=factor
                )
    return best


def _forecast(
    forward: Forward, posterior: Posterior, concurrency: int, quantities: Sequence[str]
) -> Forecast:
    sigmas = np.array([noise_sigma(name) for name in quantities])

    def figures(logs: FloatArray) -> FloatArray:
        factors = dict(zip(posterior.names, np.exp(logs).tolist(), strict=True))
        found = forward(Adjustment(**factors), concurrency)
        return np.array([scaled(name, found[name]) for name in quantities])

    here = figures(posterior.mode)
    steps = STEP * np.eye(len(posterior.names))
    table = np.stack([(figures(posterior.mode + step) - here) / STEP for step in steps])
    half = NORMAL_95 * np.sqrt(np.einsum("kq,kl,lq->q", table, posterior.covariance, table))
    values = {
        name: tuple(unscaled(name, x) for x in (middle, middle - spread, middle + spread))
        for name, middle, spread in zip(quantities, here.tolist(), half.tolist(), strict=True)
    }
    return Forecast(
        concurrency=concurrency,
        values={name: (v[0], v[1], v[2]) for name, v in values.items()},
        slopes={name: table[:, at] / sigmas[at] for at, name in enumerate(quantities)},
    )
