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
    Every request falls in a composition (turn-clock weights) and prefills as a hit or a miss. With
    the probability that the server is busy it waits for the residual of a prefill, drawn in
    proportion to its length, and for those queued before it: gamma with the mean that the queue
    leaves and the shape ``max(1, wait / prefill)``. Else it waits for the rest of a decode step.
    Decodes are interrupted by others' prefills: compound Poisson, taken gamma.
    Approximate for: all percentiles; the means are those of the network.
    """
    rng = np.random.default_rng(20260730)
    flow, weights = point.branch.flow, point.composition.weights
    strata = (np.arange(SAMPLE) + 0.5) / SAMPLE
    at = np.minimum(np.searchsorted(np.cumsum(weights), strata), len(weights) - 1)
    seen = (point.concurrency - 1) / point.concurrency
    busy = np.clip(flow.prefill_utilization[at] * seen, 1e-9, 1.0)
    prefill = _prefill_sample(rng, point, law, workload, at)
    # The prefill in progress is found in proportion to its length, anywhere in its course.
    longer = rng.choice(SAMPLE, size=SAMPLE, p=prefill / prefill.sum())
    residual = prefill[longer] * rng.random(SAMPLE)
    mean_residual = flow.prefill_second_moment[at] / (2.0 * flow.prefill_s[at])
    queued = np.maximum(flow.wait_s[at] / busy - mean_residual, 0.0)
    shape = np.maximum(1.0, queued / flow.prefill_s[at])
    ahead = rng.gamma(shape) * queued / shape
    step = np.interp(flow.decoding[at], point.demand.batch, point.demand.decode_step_s)
    anyone = 1.0 - np.exp(-flow.decoding[at] * seen)
    tail = step * rng.random(SAMPLE) * (rng.random(SAMPLE) < anyone)
    wait = np.where(rng.random(SAMPLE) < busy, residual + ahead, tail)
    ttft = wait + flow.load_s[at] + prefill
    output = _lognormal_sample(rng, workload.output_tokens_mean, workload.output_tokens_cv)
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
    """Prefill seconds of a stratified sample: a hit's new tokens, or a miss's whole context."""
    weights = point.composition.weights
    batch = np.asarray([float(weights @ point.branch.flow.decoding)])
    context = workload.request_tokens_mean + 0.5 * workload.output_tokens_mean
    lost = weights * point.branch.tier_miss
    longer = float(lost @ point.scale / lost.sum()) if lost.sum() > 0 else 1.0
    size = point.loss_size[at]
    missed = rng.random(SAMPLE) < point.branch.tier_miss[at] / size
    sample, hit_mean = np.empty(SAMPLE), 0.0
    kinds = (
        (False, fresh_nodes(workload), workload.new_tokens_cv),
        (True, miss_nodes(workload.at_scale(longer)), workload.request_tokens_cv),
    )
    for kind, nodes, cv in kinds:
        seconds = np.asarray(
            [
                prefill_moments(law, new[None], end[None], np.ones(1), batch, context).seconds[0]
                for new, end in zip(nodes.new_tokens, nodes.end_tokens, strict=True)
            ]
        )
        mean = float(nodes.weights @ nodes.new_tokens)
        tokens = np.clip(
            _lognormal_sample(rng, mean, cv), nodes.new_tokens[0], nodes.new_tokens[-1]
        )
        pick = missed == kind
        sample[pick] = np.interp(tokens, nodes.new_tokens, seconds)[pick]
        if not kind:
            hit_mean = float(nodes.weights @ seconds)
    # A partial loss computes its lost share besides what a hit would.
    return np.where(missed, hit_mean + size * np.maximum(sample - hit_mean, 0.0), sample)
