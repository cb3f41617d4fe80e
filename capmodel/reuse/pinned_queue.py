"""The reference server as a closed queue: think, wait for memory, FIFO prefill, decode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..normal import cdf

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePoint:
    """Where the queue settles, per node.

    Parameters
    ----------
    cycle_s : ndarray
        Time from one request of a lane to its next [s].
    memory_wait_s : ndarray
        Wait until the running contexts leave room; the prefix is not pinned yet [s].
    prefill_wait_s : ndarray
        Wait in the prefill queue, pinned [s].
    """

    cycle_s: FloatArray
    memory_wait_s: FloatArray
    prefill_wait_s: FloatArray


def pinned_queue(
    concurrency: int,
    prefill_s: FloatArray,
    decode_s: float,
    think_s: float,
    context_mean: FloatArray,
    context_variance: FloatArray,
    capacity_tokens: float,
) -> QueuePoint:
    """Return the closed queue of C lanes in which running contexts must fit in the cache.

    Parameters
    ----------
    concurrency : int
        Lanes C [1].
    prefill_s : ndarray, shape (nodes,)
        Mean prefill of a request [s].
    decode_s, think_s : float
        Mean decode and think time [s].
    context_mean, context_variance : ndarray, shape (nodes,)
        Of the contexts that run [tokens], [tokens^2].
    capacity_tokens : float
        Cache B [tokens].

    Notes
    -----
    With k lanes inside, the exact mean-value recursion of one FIFO server and a delay gives the
    rate mu(k). At most N run, N the number of contexts that fit: the sum of k of the C frozen
    contexts has variance k (1 - k/C) C/(C-1) Var w, so that P(N >= k) is a Normal integral and
    the rate with n present is the sum of P(N >= k) (mu(k) - mu(k-1)) over k <= n. A birth-death
    chain over n closes the loop. Nothing is fitted.
    Exact for: exponential service and think times of any law, memory aside.
    """
    count = np.arange(1, concurrency + 1)[:, None]
    rates = np.zeros((concurrency + 1, prefill_s.size))
    queued = np.zeros_like(prefill_s)
    for inside in range(1, concurrency + 1):
        stay = prefill_s * (1.0 + queued)
        rates[inside] = inside / (decode_s + stay)
        queued = rates[inside] * stay
    drawn = count * (1.0 - count / concurrency) * concurrency / max(concurrency - 1, 1)
    spread = np.sqrt(np.maximum(drawn * context_variance, 1.0))
    fits = cdf((capacity_tokens - count * context_mean) / spread)
    fits[0] = 1.0  # a single request always runs
    fits = np.minimum.accumulate(fits, axis=0)
    rate = np.cumsum(np.diff(rates, axis=0) * fits, axis=0)
    running = np.cumsum(fits, axis=0)
    births = np.log(concurrency - count + 1.0) - np.log(max(think_s, 1e-9))
    log_weight = np.cumsum(births - np.log(np.maximum(rate, 1e-300)), axis=0)
    log_weight = np.vstack([np.zeros_like(prefill_s), log_weight])
    chance = np.exp(log_weight - log_weight.max(axis=0))
    chance /= chance.sum(axis=0)
    throughput = (chance[1:] * rate).sum(axis=0)
    pinned_s = (chance[1:] * running).sum(axis=0) / throughput
    inside_s = (chance[1:] * count).sum(axis=0) / throughput
    return QueuePoint(
        cycle_s=concurrency / throughput,
        memory_wait_s=np.maximum(inside_s - pinned_s, 0.0),
        prefill_wait_s=np.maximum(pinned_s - decode_s - prefill_s, 0.0),
    )
