"""The closed level: cycle time in closed form from asymptotic regimes, for sweeps and bounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .amva import Flow, met_share, request_rate
from .service_demand import ServiceDemand

FloatArray = npt.NDArray[np.float64]


def solve(
    demand: ServiceDemand,
    miss: FloatArray,
    load_s: FloatArray,
    concurrency: int,
    running_limit: float = np.inf,
    miss_size: FloatArray | float = 1.0,
) -> Flow:
    """Return the flow of C sessions at given miss fractions, from asymptotic bounds.

    Parameters
    ----------
    demand, miss, load_s, concurrency, running_limit, miss_size
        As in `amva.solve`.

    Notes
    -----
    ``c = max(Z + D + L + s, C s, C (s + D) / limit)`` with the prefill ``s = s_h + m (s_m - s_h)``
    and the decode D slowed by mixed steps, a few damped substitutions of D.
    Exact for: C = 1, and both asymptotes of the machine-repair model. Approximate near their
    crossing, where the cycle is underestimated.
    """
    seen = (concurrency - 1) / concurrency
    decoding = np.zeros_like(miss)
    cycle = np.full_like(miss, np.inf)
    for _ in range(10):
        step, prefill, second, steps = demand.mixture(
            decoding, 1.0 + seen * decoding, miss, miss_size
        )
        busy = met_share(np.minimum(concurrency * prefill / cycle, 1.0), concurrency)
        decode = demand.decode_steps / ((1.0 - busy) / step + busy * steps / prefill)
        free = demand.think_mean_s + load_s + prefill + decode
        held = concurrency * (prefill + decode) / running_limit
        slowest = np.maximum(np.maximum(free, concurrency * prefill), held)
        cycle = np.where(np.isfinite(cycle), np.sqrt(np.minimum(cycle, 1e12) * slowest), slowest)
        decoding = np.minimum(concurrency * decode / cycle, concurrency)
    # With the cycle fixed, the decode batch fixes the pace; the rest of the cycle is waiting.
    pace_rate = request_rate(decoding, demand.decode_steps, step, prefill, steps, concurrency)
    decode = np.where(decoding > 0, decoding / np.maximum(pace_rate, 1e-300), decode)
    cycle = np.maximum(cycle, demand.think_mean_s + load_s + prefill + decode)
    return Flow(
        cycle_s=cycle,
        wait_s=np.maximum(cycle - demand.think_mean_s - load_s - prefill - decode, 0.0),
        prefill_s=prefill,
        load_s=load_s + np.zeros_like(miss),
        decode_s=decode,
        prefill_second_moment=second,
        decoding=decoding,
        prefill_utilization=np.minimum(concurrency * prefill / cycle, 1.0),
    )
