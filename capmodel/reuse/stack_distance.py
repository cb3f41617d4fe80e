"""Exact prefix-LRU stack distances of a closed-loop replay: the hit rate at every capacity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from .compiled import compiled
from .replay_kernel import replay_lanes
from .service_model import ServiceModel
from .session_table import SessionTable

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """State checkpoints of a hybrid model: where a prefix can be resumed, and what one costs.

    Parameters
    ----------
    every_tokens : float
        Distance between resume points [tokens]; infinity for one at the end of a prompt only.
    state_tokens : float
        Cache that the retained state of one request takes [tokens].
    """

    every_tokens: float
    state_tokens: float = 0.0

    def __post_init__(self) -> None:
        if not self.every_tokens > 0 or not self.state_tokens >= 0:
            raise SpecError("checkpoints need a positive distance and a nonnegative cost.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Requests of one replay after its warm-up.

    Parameters
    ----------
    input_tokens, prefix_tokens, recent_tokens : ndarray
        Prompt, reusable prefix and the part of it touched by the previous request [tokens].
    distance_tokens, deep_distance_tokens : ndarray
        Tokens more recent than the recent and than the older part; infinite where forgotten.
    hit_tokens : ndarray
        Hits at the replayed capacity [tokens].
    start_s, finish_s : ndarray
        When the request was looked up, and when it was done [s].
    shared_prefix_tokens : float
        Prefix of all sessions, held once [tokens].
    every_tokens : float
        Distance between resume points, 0 for any token [tokens].
    """

    input_tokens: FloatArray
    prefix_tokens: FloatArray
    recent_tokens: FloatArray
    distance_tokens: FloatArray
    deep_distance_tokens: FloatArray
    hit_tokens: FloatArray
    start_s: FloatArray
    finish_s: FloatArray
    shared_prefix_tokens: float = 0.0
    every_tokens: float = 0.0

    @property
    def requests_per_s(self) -> float:
        """Completed requests over the time they took [1/s]."""
        span = float(self.start_s[-1] - self.start_s[0])
        return (self.start_s.size - 1) / span if span > 0 else math.inf

    def hit_rate(self, capacity_tokens: float) -> float:
        """Token-weighted hit rate at a capacity, when timing does not depend on it [1]."""
        room = capacity_tokens - self.shared_prefix_tokens
        near = np.clip(room - self.distance_tokens, 0.0, self.recent_tokens)
        old = np.clip(
            room - self.deep_distance_tokens, 0.0, self.prefix_tokens - self.recent_tokens
        )
        hit = near + np.where(near >= self.recent_tokens, old, 0.0)
        return self._rate(hit, capacity_tokens)

    @property
    def replayed_hit_rate(self) -> float:
        """Token-weighted hit rate at the capacity that was replayed [1]."""
        return self._rate(self.hit_tokens, math.inf)

    @property
    def theoretical_hit_rate(self) -> float:
        """The same of an infinite cache [1]."""
        return self._rate(self.prefix_tokens, math.inf)

    def _rate(self, hit: FloatArray, capacity_tokens: float) -> float:
        if self.every_tokens > 0:
            whole = hit >= self.prefix_tokens
            steps = np.floor(hit / self.every_tokens) if self.every_tokens < math.inf else 0.0
            resumed = steps * self.every_tokens if self.every_tokens < math.inf else 0.0
            hit = np.where(whole, hit, resumed)
        shared = min(self.shared_prefix_tokens, capacity_tokens)
        total = self.input_tokens.sum() + self.shared_prefix_tokens * hit.size
        return float((hit.sum() + shared * hit.size) / total)


def replay(
    table: SessionTable,
    concurrency: int,
    service: ServiceModel,
    *,
    seed: int = 0,
    requests: int = 100_000,
    capacity_tokens: float = math.inf,
    deepest_tokens: float = math.inf,
    shared_prefix_tokens: float = 0.0,
    checkpoints: Checkpoints | None = None,
    warm_up: float = 0.2,
    plain: bool = False,
) -> Replay:
    """Return one closed-loop replay: C lanes, always busy, each taking session after session.

    Parameters
    ----------
    table : SessionTable
        Sessions; gaps already capped.
    concurrency : int
        Lanes C [1].
    service : ServiceModel
        Time in service; with a prefill server it follows the hits at `capacity_tokens`.
    seed, requests : int
        Order of the sessions, and how many requests to replay [1].
    capacity_tokens, deepest_tokens : float
        Cache of a replay with feedback, and the largest capacity asked for later [tokens].
    warm_up : float
        Share of the requests left out at the start [1].
    plain : bool
        Run the uncompiled kernel.

    Notes
    -----
    Exact for: LRU by completion with prefix hits, leaf-first eviction, pinned running requests.
    """
    if not (isinstance(concurrency, int | np.integer) and concurrency >= 1):
        raise SpecError(f"concurrency must be a whole number from 1, got {concurrency}.")
    if requests < 10:
        raise SpecError("a replay needs at least 10 requests.", field="requests")
    private = table.without_shared_prefix(shared_prefix_tokens)
    generator = np.random.default_rng(seed)
    rounds = 1 + int(2 * (requests / table.requests) + concurrency / table.sessions)
    order = np.concatenate([generator.permutation(table.sessions) for _ in range(rounds)])
    extra, every = 0.0, 0.0
    if checkpoints is not None:
        extra, every = checkpoints.state_tokens, checkpoints.every_tokens
    kernel = compiled(replay_lanes, plain=plain)
    rows, depth, deep, hits, begun, ended = kernel(
        order, private.session_starts, private.input_tokens, private.prefix_tokens,
        private.recent_prefix_tokens, private.prefix_lag, private.output_tokens,
        private.think_s, private.service_s if service.kind == "recorded" else 0 * private.think_s,
        int(concurrency), int(requests), float(deepest_tokens), service.has_feedback,
        float(capacity_tokens - shared_prefix_tokens), float(service.prefill_tokens_per_s or 1.0),
        float(service.output_token_s), float(extra), float(min(every, 1e15)),
    )  # fmt: skip
    kept = slice(int(requests * warm_up), None)
    rows = rows[kept]
    prefix = private.prefix_tokens[rows]
    recent = np.where(
        private.prefix_lag[rows] <= 1,
        prefix,
        np.minimum(private.recent_prefix_tokens[rows], prefix),
    )
    return Replay(
        input_tokens=private.input_tokens[rows],
        prefix_tokens=prefix,
        recent_tokens=recent,
        distance_tokens=depth[kept],
        deep_distance_tokens=deep[kept],
        hit_tokens=hits[kept],
        start_s=begun[kept],
        finish_s=ended[kept],
        shared_prefix_tokens=shared_prefix_tokens,
        every_tokens=every,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayJob:
    """One unit of work for an executor: a table, a concurrency, a seed, and capacities."""

    table: SessionTable
    concurrency: int
    service: ServiceModel
    seed: int
    capacities_tokens: tuple[float, ...]
    requests: int
    shared_prefix_tokens: float
    checkpoints: Checkpoints | None


def replayed_hit_rates(job: ReplayJob) -> tuple[list[float], float]:
    """Return the hit rate at each capacity of a job, and the ceiling [1]."""
    rates: list[float] = []
    if not job.service.has_feedback:
        run = replay(
            job.table, job.concurrency, job.service, seed=job.seed, requests=job.requests,
            deepest_tokens=max(job.capacities_tokens), checkpoints=job.checkpoints,
            shared_prefix_tokens=job.shared_prefix_tokens,
        )  # fmt: skip
        rates = [run.hit_rate(capacity) for capacity in job.capacities_tokens]
        return rates, run.theoretical_hit_rate
    for capacity in job.capacities_tokens:
        run = replay(
            job.table, job.concurrency, job.service, seed=job.seed, requests=job.requests,
            capacity_tokens=capacity, deepest_tokens=capacity, checkpoints=job.checkpoints,
            shared_prefix_tokens=job.shared_prefix_tokens,
        )  # fmt: skip
        rates.append(run.replayed_hit_rate)
    return rates, run.theoretical_hit_rate


def exact_hit_rates(
    table: SessionTable,
    concurrencies: Sequence[int],
    capacities_tokens: Sequence[float],
    service: ServiceModel,
    *,
    seeds: int = 4,
    requests: int = 100_000,
    shared_prefix_tokens: float = 0.0,
    checkpoints: Checkpoints | None = None,
    executor: Executor | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the replayed hit rates and ceilings, shape (concurrencies, seeds, capacities).

    The jobs, one per concurrency and seed, run on any `concurrent.futures.Executor`.
    """
    jobs = [
        ReplayJob(
            table=table, concurrency=c, service=service, seed=seed, requests=requests,
            capacities_tokens=tuple(capacities_tokens), checkpoints=checkpoints,
            shared_prefix_tokens=shared_prefix_tokens,
        )
        for c in concurrencies
        for seed in range(seeds)
    ]  # fmt: skip
    if executor is None:
        done = [replayed_hit_rates(job) for job in jobs]
    else:
        done = [
            future.result() for future in [executor.submit(replayed_hit_rates, j) for j in jobs]
        ]
    shape = (len(concurrencies), seeds, len(capacities_tokens))
    rates = np.array([rate for rate, _ in done]).reshape(shape)
    ceilings = np.array([top for _, top in done]).reshape(shape[:2])
    return rates, ceilings
