"""Service demands of one request, read off the step law once per engine and workload.

Everything the network needs of the engine is a few curves over the number of decoding sequences
j: the step of a pure decode batch, and the seconds and steps of a prefill run beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..service.step_law import StepLaw
from ..spec.workload import Workload

FloatArray = npt.NDArray[np.float64]

_GAUSS_X, _GAUSS_W = np.polynomial.legendre.leggauss(3)
_CHUNK_AT, _CHUNK_WEIGHT = 0.5 * (_GAUSS_X + 1.0), 0.5 * _GAUSS_W


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Moments of a prefill run beside j decodes, on the batch grid.

    Parameters
    ----------
    seconds, seconds_squared : ndarray
        E[PT] [s] and E[PT^2] [s^2].
    steps : ndarray
        Mean engine steps of a prefill, each of which advances every decode once [1].
    """

    seconds: FloatArray
    seconds_squared: FloatArray
    steps: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDemand:
    """Curves over the decode batch, and the workload means that go with them.

    Parameters
    ----------
    batch : ndarray
        Grid of decoding sequences j [1].
    decode_step_s : ndarray
        Step of a batch of j decodes [s].
    hit, miss : Prefill
        A request whose reusable prefix is in cache, and one that finds only the shared prefix.
    decode_steps : float
        Steps a request decodes for after its first token [1].
    think_mean_s : float
        Mean gap [s].
    """

    batch: FloatArray
    decode_step_s: FloatArray
    hit: Prefill
    miss: Prefill
    decode_steps: float
    think_mean_s: float

    def mixture(
        self,
        decoding: FloatArray,
        seen: FloatArray,
        miss: FloatArray,
        miss_size: FloatArray | float = 1.0,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return decode step at batch `seen`, and E[PT], E[PT^2], steps at batch `decoding`.

        Parameters
        ----------
        decoding, seen : ndarray
            Decoding sequences at a random time, and as a decoding request finds them [1].
        miss : ndarray
            Share of reusable tokens that are missing [1].
        miss_size : ndarray or float
            Share of its reusable tokens that a request with any loss has lost [1]. Losses that
            are many and small have the mean work of few and full ones, but not their variance.
        """
        curves = np.stack(
            [
                self.hit.seconds,
                self.miss.seconds,
                self.hit.seconds_squared,
                self.miss.seconds_squared,
                self.hit.steps,
                self.miss.steps,
            ]
        )
        at = np.clip(np.searchsorted(self.batch, decoding, side="right") - 1, 0, None)
        upper = np.minimum(at + 1, len(self.batch) - 1)
        gap = self.batch[upper] - self.batch[at]
        share = np.where(gap > 0, (decoding - self.batch[at]) / np.where(gap > 0, gap, 1.0), 0.0)
        values = curves[:, at] + (curves[:, upper] - curves[:, at]) * share
        hit = 1.0 - miss
        step = np.interp(seen, self.batch, self.decode_step_s)
        return (
            step,
            hit * values[0] + miss * values[1],
            values[2]
            + miss
            * (
                miss_size * (values[3] - values[2])
                + (1.0 - miss_size) * 2.0 * values[0] * (values[1] - values[0])
            ),
            hit * values[4] + miss * values[5],
        )


def lognormal_nodes(
    mean: float, cv: float, points: int, cap: float
) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of a lognormal of given mean and cv, cut at `cap`, mean kept."""
    if cv == 0:
        return np.asarray([mean]), np.ones(1)
    sigma = float(np.sqrt(np.log1p(cv * cv)))
    x, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    nodes = np.minimum(mean * np.exp(sigma * x - 0.5 * sigma * sigma), cap)
    return nodes * (mean / float(nodes @ weights)), weights


def batch_grid(limit: int) -> FloatArray:
    """Return decode-batch sizes from 0 to `limit`: each of the first 33, then a geometric grid."""
    head = np.arange(min(limit, 32) + 1, dtype=np.float64)
    if limit <= 32:
        return head
    return np.concatenate([head, np.unique(np.geomspace(33, limit, 24).round())])


def prefill_moments(
    law: StepLaw,
    new_tokens: FloatArray,
    end_tokens: FloatArray,
    weights: FloatArray,
    batch: FloatArray,
    decode_context_tokens: float,
) -> Prefill:
    """Moments of the seconds and steps of a prefill beside each batch of `batch` decodes.

    Parameters
    ----------
    new_tokens, end_tokens, weights : ndarray, shape (n,)
        Tokens computed and position they end at [tokens], and the share of each case [1].
    batch : ndarray, shape (j,)
        Decoding sequences [1].
    decode_context_tokens : float
        Their mean context [tokens].
    """
    budget = np.maximum(law.max_batched_tokens - law.verify_tokens * batch, 1.0)[:, None]
    steps = np.maximum(new_tokens[None, :] / budget, 1.0)
    chunk = new_tokens[None, :] / steps
    start = np.maximum(end_tokens - new_tokens, 0.0)[None, :]
    travel = np.maximum(new_tokens[None, :] - chunk, 0.0)
    seconds = np.zeros_like(steps)
    for at, weight in zip(_CHUNK_AT, _CHUNK_WEIGHT, strict=True):
        seconds += weight * law.step_s(
            chunk, start + at * travel, batch[:, None], decode_context_tokens
        )
    seconds = seconds * steps
    return Prefill(
        seconds=seconds @ weights, seconds_squared=(seconds**2) @ weights, steps=steps @ weights
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillNodes:
    """Quadrature of the prefills of one kind: tokens computed, where they end, and shares."""

    new_tokens: FloatArray
    end_tokens: FloatArray
    weights: FloatArray


def fresh_nodes(workload: Workload) -> PrefillNodes:
    """Return the prefills of requests whose reusable prefix is in cache."""
    if workload.theoretical_hit_rate <= 0:
        return miss_nodes(workload)
    mean = workload.request_tokens_mean
    new_mean = max(mean * (1.0 - workload.theoretical_hit_rate), 1.0)
    fresh, share = lognormal_nodes(new_mean, workload.new_tokens_cv, 9, mean)
    fresh = np.maximum(fresh, 1.0)
    return PrefillNodes(new_tokens=fresh, end_tokens=np.maximum(fresh, mean), weights=share)


def miss_nodes(workload: Workload) -> PrefillNodes:
    """Return the prefills of requests that find only the shared prefix."""
    context, share = lognormal_nodes(
        workload.request_tokens_mean, workload.request_tokens_cv, 9, workload.max_context_tokens
    )
    computed = np.maximum(context - workload.shared_prefix_tokens, 1.0)
    return PrefillNodes(new_tokens=computed, end_tokens=context, weights=share)


def service_demand(law: StepLaw, workload: Workload, concurrency: int) -> ServiceDemand:
    """Return the service demands of a workload on an engine, for up to `concurrency` sessions."""
    batch = batch_grid(min(concurrency, law.max_sequences))
    decode_context = workload.request_tokens_mean + 0.5 * workload.output_tokens_mean
    hit, miss = (
        prefill_moments(
            law, nodes.new_tokens, nodes.end_tokens, nodes.weights, batch, decode_context
        )
        for nodes in (fresh_nodes(workload), miss_nodes(workload))
    )
    gained = law.accepted_tokens
    steps = (workload.output_tokens_mean - 1.0) / gained + 0.5 * (1.0 - 1.0 / gained)
    return ServiceDemand(
        batch=batch,
        decode_step_s=law.step_s(0.0, 0.0, np.maximum(batch, 1.0), decode_context),
        hit=hit,
        miss=miss,
        decode_steps=max(steps, 1e-9),
        think_mean_s=workload.think_time.mean(),
    )
