"""Hit rates of a trace of blocks: open loop, the trace's own arrivals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..ingest.mooncake import BLOCK_TOKENS, BlockChunk, block_chunks
from .block_stack import BlockHistogram, BlockStack, Runs
from .open_loop import ReuseTimes, open_loop_hit_rate
from .sharding import session_hash, sharded_runs

FloatArray = npt.NDArray[np.float64]

_PLACES = 1 << 25


def streamed_hit_rates(
    path: str, capacities_tokens: Sequence[float], notes: list[str],
    block_tokens: int = BLOCK_TOKENS,
) -> tuple[FloatArray, float]:  # fmt: skip
    """Return the exact LRU hit rate at each capacity, and the ceiling, in bounded memory [1]."""
    deepest = max(int(max(capacities_tokens) // block_tokens), 1)
    stack = BlockStack(deepest + 1)
    histogram = BlockHistogram(block_tokens, deepest)
    distinct = _DistinctBlocks()
    number = 0
    for chunk in block_chunks(path, notes, block_tokens=block_tokens):
        runs = stack.feed(chunk.block_ids, chunk.offsets, number)
        histogram.add(runs, chunk.input_tokens, np.diff(chunk.offsets), number)
        distinct.add(chunk.block_ids)
        number += chunk.time_s.size
    rates = histogram.hit_rate(capacities_tokens)
    # The ceiling counts blocks; the last block of a prompt may be partly filled.
    return rates, max(distinct.reused_share, float(rates.max()))


def split_hit_rates(
    path: str, capacities_tokens: Sequence[float], notes: list[str], *, shards: int,
    executor: Executor | None, block_tokens: int = BLOCK_TOKENS,
) -> tuple[FloatArray, float]:  # fmt: skip
    """Return the same numbers, the work split by session over an executor."""
    chunk = _whole(path, notes, block_tokens)
    runs = sharded_runs(chunk.block_ids, chunk.offsets, shards, executor)
    deepest = int(max(max(capacities_tokens) // block_tokens, _deepest(runs)))
    histogram = BlockHistogram(block_tokens, deepest)
    histogram.add(runs, chunk.input_tokens, np.diff(chunk.offsets), 0)
    return histogram.hit_rate(capacities_tokens), histogram.theoretical_hit_rate


def survival_hit_rates(
    path: str, capacities_tokens: Sequence[float], notes: list[str],
    block_tokens: int = BLOCK_TOKENS,
) -> tuple[FloatArray, float]:  # fmt: skip
    """Return the open-loop closed form on the trace's own reuse times, and the ceiling [1]."""
    stack = BlockStack()
    gaps: list[FloatArray] = []
    weights: list[FloatArray] = []
    times: list[FloatArray] = []
    touched, number = 0.0, 0
    for chunk in block_chunks(path, notes, block_tokens=block_tokens):
        times.append(chunk.time_s)
        clock = np.concatenate(times)
        runs = stack.feed(chunk.block_ids, chunk.offsets, number)
        gaps.append(clock[runs.request] - clock[runs.earlier])
        weights.append(block_tokens * runs.length.astype(np.float64))
        touched += float(block_tokens * chunk.block_ids.size)
        number += chunk.time_s.size
    span = float(clock[-1] - clock[0])
    if span <= 0:
        raise SpecError("the open-loop form needs arrivals spread over time; use exact.")
    reuse = ReuseTimes.from_gaps(np.concatenate(gaps), np.concatenate(weights), touched, span)
    return open_loop_hit_rate(reuse, capacities_tokens), float(1.0 - reuse.survival[-1])


class _DistinctBlocks:
    """Counts distinct ids in fixed memory, by the share of a bit map that stays empty.

    Linear counting; with 2^25 places the error is under 3e-4 up to 100 million distinct ids.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(_PLACES, dtype=np.bool_)
        self._references = 0

    def add(self, block_ids: npt.NDArray[np.int64]) -> None:
        self._seen[session_hash(block_ids) % _PLACES] = True
        self._references += block_ids.size

    @property
    def reused_share(self) -> float:
        """Share of the block references that are not the first of their block [1]."""
        empty = _PLACES - int(np.count_nonzero(self._seen))
        distinct = -_PLACES * math.log(max(empty, 1) / _PLACES)
        return max(1.0 - distinct / max(self._references, 1), 0.0)


def _whole(path: str, notes: list[str], block_tokens: int) -> BlockChunk:
    chunks = list(block_chunks(path, notes, block_tokens=block_tokens))
    sizes = np.cumsum([0] + [chunk.block_ids.size for chunk in chunks])
    offsets = [np.zeros(1, np.int64)]
    offsets += [c.offsets[1:] + base for c, base in zip(chunks, sizes[:-1], strict=True)]
    return BlockChunk(
        time_s=np.concatenate([chunk.time_s for chunk in chunks]),
        input_tokens=np.concatenate([chunk.input_tokens for chunk in chunks]),
        offsets=np.concatenate(offsets),
        block_ids=np.concatenate([chunk.block_ids for chunk in chunks]),
    )


def _deepest(runs: Runs) -> float:
    if runs.rank.size == 0:
        return 1.0
    return math.ceil(float((runs.rank + runs.length).max()))
