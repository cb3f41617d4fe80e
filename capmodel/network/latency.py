"""Percentiles of TTFT, TPOT and end-to-end time, from a stratified sample of requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..normal import quantile as normal_quantile
from ..service.step_law import StepLaw
from ..spec.workload import Workload
from .operating_point import OperatingPoint
from .service_demand import fresh_nodes, miss_nodes, prefill_moments

FloatArray = npt.NDArray[np.float64]

SAMPLE = 6000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and percentiles of one latency [s]."""

    mean: float
    p50: float
    p90: float
    p99: float

    def to_dict(self) -> dict[str, float]:
        """Return the four figures by name."""
        return {"mean": self.mean, "p50": self.p50, "p90": self.p90, "p99": self.p99}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """TTFT, TPOT and end-to-end time of requests [s], arrival to the last token.

    `s_per_output_token` is end-to-end time over output tokens [s]; its inverse is the interactivity
    that charges the wait for the first token to the user.
    """

    ttft_s: Spread
    tpot_s: Spread
    e2e_s: Spread
    s_per_output_token: Spread


def _spread(values: FloatArray) -> Spread:
    p50, p90, p99 = np.quantile(values, list(QUANTILES.values()))
    return Spread(mean=float(values.mean()), p50=float(p50), p90=float(p90), p99=float(p99))


def latency(point: OperatingPoint, law: StepLaw, workload: Workload) -> Latency:
    """Return the latency percentiles of an operating point.

    Parameters
    ----------
    point : OperatingPoint
        Solved network.
    law : StepLaw
        Seconds of an engine step.
    workload : Workload
        What sessions ask for.

    Notes
    -----
    Every request falls in a composition (turn-clock weights), waits with the probability that the
    server is busy, prefills as a hit or a miss, and decodes with interruptions by others' prefills.
    The wait, given that there is one, is gamma with the mean of the queue and the shape
    ``max(1, wait / prefill)``: exponential in light load, Erlang when many are ahead.
    Approximate for: all percentiles; the means are those of the network.
    """
    rng = np.random.default_rng(20260730)
    flow, weights = point.branch.flow, point.composition.weights
    strata = (np.arange(SAMPLE) + 0.5) / SAMPLE
    at = np.minimum(np.searchsorted(np.cumsum(weights), strata), len(weights) - 1)
    seen = (point.concurrency - 1) / point.concurrency
    busy = np.clip(flow.prefill_utilization[at] * seen, 1e-9, 1.0)
    waits = rng.random(SAMPLE) < np.maximum(busy, 1e-9)
    given = flow.wait_s[at] / busy
    shape = np.maximum(1.0, given / flow.prefill_s[at])
    wait = np.where(waits, rng.gamma(shape) * given / shape, 0.0)
    prefill = _prefill_sample(rng, point, law, workload, at)
    ttft = wait + flow.load_s[at] + prefill
    output = _lognormal_sample(rng, workload.output_tokens_mean, workload.output_tokens_cv)
    # A decode is stretched by whole prefills of others: compound Poisson, taken gamma.
    per_token = flow.decode_s[at] / max(workload.output_tokens_mean - 1.0, 1.0)
    rate = point.concurrency / flow.cycle_s[at]
    extra_variance = rate * per_token * flow.prefill_second_moment[at]
    length = np.maximum(output - 1.0, 1.0)
    variance = extra_variance / length
    stretch = np.maximum(per_token**2 / np.maximum(variance, 1e-30), 1e-3)
    tpot = rng.gamma(stretch) * per_token / stretch
    tpot = np.maximum(tpot, point.demand.decode_step_s[0] / law.accepted_tokens)
    e2e = ttft + tpot * (output - 1.0)
    return Latency(
        ttft_s=_spread(ttft),
        tpot_s=_spread(tpot),
        e2e_s=_spread(e2e),
        s_per_output_token=_spread(e2e / output),
    )


def _lognormal_sample(rng: np.random.Generator, mean: float, cv: float) -> FloatArray:
    sigma = float(np.sqrt(np.log1p(cv * cv)))
    strata = rng.permutation((np.arange(SAMPLE) + 0.5) / SAMPLE)
    sample: FloatArray = mean * np.exp(sigma * normal_quantile(strata) - 0.5 * sigma**2)
    return np.maximum(sample, 1.0)


def _prefill_sample(
    rng: np.random.Generator,
    point: OperatingPoint,
    law: StepLaw,
    workload: Workload,
    at: npt.NDArray[np.intp],
) -> FloatArray:
    batch = np.asarray([float(point.composition.weights @ point.branch.flow.decoding)])
    context = workload.request_tokens_mean + 0.5 * workload.output_tokens_mean
    missed = rng.random(SAMPLE) < point.branch.tier_miss[at]
    lost = point.composition.weights * point.branch.tier_miss
    longer = float(lost @ point.scale / lost.sum()) if lost.sum() > 0 else 1.0
    sample = np.empty(SAMPLE)
    for kind, nodes in (
        (False, fresh_nodes(workload)),
        (True, miss_nodes(workload.at_scale(longer))),
    ):
        seconds = np.asarray(
            [
                prefill_moments(law, new[None], end[None], np.ones(1), batch, context).seconds[0]
                for new, end in zip(nodes.new_tokens, nodes.end_tokens, strict=True)
            ]
        )
        pick = missed == kind
        sample[pick] = rng.choice(seconds, size=int(pick.sum()), p=nodes.weights)
    return sample
