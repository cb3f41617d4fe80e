"""Throughput of think, prefill and decode for a frozen miss fraction: approximate MVA.

One server prefills first come, first served; decodes share its steps. While a prefill runs every
decode advances one position per mixed step, otherwise one per pure decode step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .service_demand import ServiceDemand

FloatArray = npt.NDArray[np.float64]

ITERATIONS = 60
TOLERANCE = 1e-8
LEAST_SHRINK = 0.05  # on a plateau the bare rule would throw an end away


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Where C sessions settle for given miss fractions; arrays have one entry per composition.

    Parameters
    ----------
    cycle_s, wait_s, prefill_s, load_s, decode_s : ndarray
        Cycle time and its parts besides the think time [s].
    prefill_second_moment : ndarray
        E[PT^2] [s^2].
    decoding : ndarray
        Mean decoding sequences [1].
    prefill_utilization : ndarray
        Share of time the server prefills [1].
    """

    cycle_s: FloatArray
    wait_s: FloatArray
    prefill_s: FloatArray
    load_s: FloatArray
    decode_s: FloatArray
    prefill_second_moment: FloatArray
    decoding: FloatArray
    prefill_utilization: FloatArray


def met_share(utilization: FloatArray, concurrency: int) -> FloatArray:
    """Share of its decode during which a session meets a prefill, which is never its own [1].

    Parameters
    ----------
    utilization : ndarray
        Share of time U the server prefills [1].
    concurrency : int
        Sessions C [1].

    Notes
    -----
    The others prefill for U (C-1)/C of the time, the session itself for U/C, during which it does
    not decode: ``U (C-1) / (C - U)``. Nothing for one session, everything at saturation.
    """
    return utilization * (concurrency - 1) / (concurrency - utilization)


def request_rate(
    decoding: FloatArray,
    decode_steps: float,
    step_s: FloatArray,
    prefill_s: FloatArray,
    prefill_steps: FloatArray,
    concurrency: int,
) -> FloatArray:
    """Request rate that keeps `decoding` sequences in decode [requests/s].

    Parameters
    ----------
    decoding : ndarray
        Sequences in decode n [1].
    decode_steps : float
        Decode steps of a request N [1].
    step_s, prefill_s, prefill_steps : ndarray
        Pure decode step tau [s], prefill PT of a request [s] and its engine steps S [1].
    concurrency : int
        Sessions C [1].

    Notes
    -----
    A decode of N steps advances at ``(1 - b)/tau + b S/PT`` steps per second, b the `met_share`
    of ``U = X PT``. With ``n = X N / pace`` that is a quadratic in X, whose smaller root rises
    with n. Exact for: C = 1. Derivation: ``decode_pace``.
    """
    idle_pace = decoding / step_s
    slowing = np.maximum(prefill_s / step_s - prefill_steps, 0.0)
    middle = (
        decode_steps * concurrency + idle_pace * prefill_s + decoding * (concurrency - 1) * slowing
    )
    inside = middle**2 - 4.0 * decode_steps * prefill_s * idle_pace * concurrency
    rate: FloatArray = 2.0 * idle_pace * concurrency / (middle + np.sqrt(np.maximum(inside, 0.0)))
    return rate


def _flow(
    decoding: FloatArray,
    demand: ServiceDemand,
    miss: FloatArray,
    load_s: FloatArray,
    concurrency: int,
    miss_size: FloatArray | float,
) -> tuple[FloatArray, Flow]:
    """Request rate and residence times with `decoding` sequences in decode."""
    seen = (concurrency - 1) / concurrency
    step, prefill, second, steps = demand.mixture(decoding, 1.0 + seen * decoding, miss, miss_size)
    rate = request_rate(decoding, demand.decode_steps, step, prefill, steps, concurrency)
    busy = np.minimum(rate * prefill, 1.0)
    decode = decoding / np.maximum(rate, 1e-300)
    load = np.minimum(seen * busy, 1.0 - 1e-12)
    wait = load * second / (2.0 * prefill) / (1.0 - load)
    link = np.minimum(rate * load_s * seen, 1.0 - 1e-9)
    loading = load_s / (1.0 - link)
    flow = Flow(
        cycle_s=demand.think_mean_s + wait + loading + prefill + decode,
        wait_s=wait,
        prefill_s=prefill,
        load_s=loading,
        decode_s=decode,
        prefill_second_moment=second,
        decoding=decoding,
        prefill_utilization=busy,
    )
    return rate, flow


def solve(
    demand: ServiceDemand,
    miss: FloatArray,
    load_s: FloatArray,
    concurrency: int,
    running_limit: float = np.inf,
    miss_size: FloatArray | float = 1.0,
) -> Flow:
    """Return the flow of C sessions at given miss fractions, by false position on the decode batch.

    Parameters
    ----------
    demand : ServiceDemand
        Service curves of the engine and workload.
    miss : ndarray, shape (n,)
        Share of reusable tokens to be computed again [1].
    load_s : ndarray, shape (n,)
        Seconds a request spends loading from a tier, alone on the link [s].
    concurrency : int
        Sessions [1].
    running_limit : float
        Requests that may run at once, from memory or the engine's limit [1].
    miss_size : ndarray or float
        Share of its reusable tokens that a request with any loss has lost [1].

    Notes
    -----
    Solves ``X (Z + W + L + PT + D) = C`` under ``X PT <= 1`` and ``X (PT + D) <= limit``; all left
    sides increase with the decode batch, so the root is unique.
    ``W = rho S_r / (1 - rho)``, ``rho = (C-1)/C X PT``, ``S_r = E[PT^2] / (2 E[PT])``.
    """

    def load(log_decoding: FloatArray) -> tuple[FloatArray, FloatArray, Flow]:
        """Logarithm of the tightest constraint, which rises with the decode batch."""
        rate, flow = _flow(np.exp(log_decoding), demand, miss, load_s, concurrency, miss_size)
        tightest = np.maximum(rate * flow.cycle_s / concurrency, rate * flow.prefill_s)
        running = rate * (flow.prefill_s + flow.decode_s) / running_limit
        return np.log(np.maximum(tightest, running)), rate, flow

    # In logarithms the constraint is nearly linear, also where hardly anybody decodes.
    low = np.full_like(miss, np.log(concurrency * 1e-20))
    high = np.full_like(miss, np.log(concurrency))
    at_low, at_high = load(low)[0], load(high)[0]
    last = np.zeros_like(miss)
    for _ in range(ITERATIONS):
        gap = at_high - at_low
        between = (low * at_high - high * at_low) / np.where(gap > 0, gap, 1.0)
        middle = np.where(gap > 0, between, 0.5 * (low + high))
        found, rate, flow = load(middle)
        if float(np.max(np.abs(found))) < TOLERANCE:
            break
        # Anderson and Bjorck: an end that stays twice has its value shrunk, so both ends close in.
        above = found > 0
        stays = np.where(above, at_high, at_low)
        shrink = 1.0 - found / np.where(stays == 0, np.inf, stays)
        shrink = np.where(shrink > 0, np.maximum(shrink, LEAST_SHRINK), 0.5)
        shrink = np.where(last == np.sign(found), shrink, 1.0)
        at_low = np.where(above, at_low * shrink, found)
        at_high = np.where(above, found, at_high * shrink)
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
        last = np.sign(found)
    # Where the server or the running limit binds, the others wait: Little's law says how long.
    cycle = concurrency / rate
    wait = np.maximum(flow.wait_s + cycle - flow.cycle_s, 0.0)
    return Flow(
        cycle_s=cycle,
        wait_s=wait,
        prefill_s=flow.prefill_s,
        load_s=flow.load_s,
        decode_s=flow.decode_s,
        prefill_second_moment=flow.prefill_second_moment,
        decoding=flow.decoding,
        prefill_utilization=flow.prefill_utilization,
    )
