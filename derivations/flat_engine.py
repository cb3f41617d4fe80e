"""An engine whose curves are flat: the service demand on which closed forms are exact."""

from __future__ import annotations

import numpy as np

from capmodel.network.amva import Flow
from capmodel.network.service_demand import Prefill, ServiceDemand

LARGEST_BATCH = 64


def flat_demand(
    *,
    think_s: float,
    step_s: float,
    decode_steps: float,
    hit_s: float,
    miss_s: float | None = None,
    hit_steps: float | None = None,
    variation: float = 1.0,
) -> ServiceDemand:
    """Return the demand of an engine whose step does not depend on the batch.

    Parameters
    ----------
    think_s, step_s : float
        Think time and engine step [s].
    decode_steps : float
        Steps of a decode [1].
    hit_s, miss_s : float
        Prefill of a hit and of a miss; alike if the second is not given [s].
    hit_steps : float, optional
        Steps of a prefill; if not given, as many as keep the decodes at full pace [1].
    variation : float
        Squared coefficient of variation of a prefill [1].
    """
    batch = np.arange(LARGEST_BATCH + 1, dtype=np.float64)

    def prefill(seconds: float) -> Prefill:
        steps = seconds / step_s if hit_steps is None else hit_steps
        flat = np.ones_like(batch)
        return Prefill(
            seconds=seconds * flat,
            seconds_squared=(1.0 + variation) * seconds**2 * flat,
            steps=steps * flat,
        )

    return ServiceDemand(
        batch=batch,
        decode_step_s=step_s * np.ones_like(batch),
        hit=prefill(hit_s),
        miss=prefill(hit_s if miss_s is None else miss_s),
        decode_steps=decode_steps,
        think_mean_s=think_s,
    )


def still_flow(cycle_s: float) -> Flow:
    """Return a flow of which only the cycle time matters [s]."""
    cycle = np.asarray([cycle_s])
    return Flow(
        cycle_s=cycle, wait_s=0 * cycle, prefill_s=cycle, load_s=0 * cycle, decode_s=cycle,
        prefill_second_moment=cycle**2, decoding=cycle / cycle, prefill_utilization=cycle / cycle,
    )  # fmt: skip
