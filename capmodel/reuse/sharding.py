"""Exact stack distances split by session over workers.

Sessions that share no block do not touch each other's order: what a reused run finds above it
is the sum, over the shards, of the blocks touched since. Each shard first finds its own runs,
then counts for the runs of the others. The sum is the distance of the whole trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from .block_stack import BlockStack, Runs

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Requests of some sessions, with their numbers in the whole trace.

    Parameters
    ----------
    block_ids, offsets : ndarray of int
        Blocks in prefix order and where each request's begin.
    numbers : ndarray of int
        Growing numbers of the requests in the whole trace.
    """

    block_ids: IntArray
    offsets: IntArray
    numbers: IntArray


def session_keys(block_ids: IntArray, offsets: IntArray) -> IntArray:
    """Return the first block of each request: prefixes that differ there share nothing."""
    return block_ids[offsets[:-1]]


def session_hash(keys: IntArray) -> IntArray:
    """Return a well-mixed 31-bit hash of session keys, the same on every machine."""
    mixed = keys.astype(np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(33)
    return (mixed >> np.uint64(33)).astype(np.int64)


def subset(block_ids: IntArray, offsets: IntArray, chosen: npt.NDArray[np.bool_]) -> Shard:
    """Return the chosen requests of a trace as a shard."""
    rows = np.flatnonzero(chosen)
    counts = np.diff(offsets)[rows]
    ends = np.cumsum(counts)
    begin = np.repeat(offsets[:-1][rows] - (ends - counts), counts)
    return Shard(
        block_ids=block_ids[begin + np.arange(counts.sum())],
        offsets=np.append(0, ends).astype(np.int64),
        numbers=rows.astype(np.int64),
    )


def split_by_session(block_ids: IntArray, offsets: IntArray, shards: int) -> list[Shard]:
    """Return up to `shards` shards, no session in two of them."""
    if shards < 1:
        raise SpecError("a trace splits into at least one shard.", field="shards")
    home = session_hash(session_keys(block_ids, offsets)) % shards
    parts = [subset(block_ids, offsets, home == k) for k in range(shards)]
    return [part for part in parts if part.numbers.size]


def own_runs(shard: Shard) -> Runs:
    """Return the reused runs of a shard, ranked among its own blocks."""
    return BlockStack().feed_numbered(shard.block_ids, shard.offsets, shard.numbers)


def blocks_since(shard: Shard, at: IntArray, since: IntArray) -> IntArray:
    """Return how many distinct blocks a shard touched after `since` and before `at` [1].

    Parameters
    ----------
    shard : Shard
        Sessions to replay.
    at, since : ndarray of int
        Request numbers; `at` must not decrease.
    """
    counts = np.zeros(at.size, np.int64)
    if at.size == 0:
        return counts
    stack = BlockStack()
    marks, first = np.unique(at, return_index=True)
    last = np.append(first[1:], at.size)
    cuts = np.searchsorted(shard.numbers, marks, side="left")
    done = 0
    for cut, begin, end in zip(cuts, first, last, strict=True):
        if cut > done:
            offsets = shard.offsets[done : cut + 1]
            stack.feed_numbered(
                shard.block_ids[offsets[0] : offsets[-1]],
                offsets - offsets[0],
                shard.numbers[done:cut],
            )
            done = int(cut)
        counts[begin:end] = stack.count_since(since[begin:end])
    return counts


def _mapped(
    executor: Executor | None, work: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> list[Any]:
    if executor is None:
        return [work(*call) for call in calls]
    return [future.result() for future in [executor.submit(work, *call) for call in calls]]


def sharded_runs(
    block_ids: IntArray, offsets: IntArray, shards: int, executor: Executor | None = None
) -> Runs:
    """Return the reused runs of a trace with their distances in the whole trace.

    Parameters
    ----------
    block_ids, offsets : ndarray of int
        The trace.
    shards : int
        Parts to split it into by session [1].
    executor : Executor, optional
        Any `concurrent.futures.Executor`, a Dask one included; in line without.

    Notes
    -----
    Exact for: traces in which equal blocks have equal prefixes. Where all sessions begin with
    the same block there is nothing to split, and one shard does the work.
    """
    parts = split_by_session(block_ids, offsets, shards)
    runs = _mapped(executor, own_runs, [(part,) for part in parts])
    calls = []
    targets = []
    for k, found in enumerate(runs):
        for j, part in enumerate(parts):
            if j != k:
                calls.append((part, found.request, found.earlier))
                targets.append(k)
    ranks = [found.rank.copy() for found in runs]
    for k, counts in zip(targets, _mapped(executor, blocks_since, calls), strict=True):
        ranks[k] += counts
    joined = [replace(found, rank=rank) for found, rank in zip(runs, ranks, strict=True)]
    order = np.argsort(np.concatenate([r.request for r in joined]), kind="stable")
    return Runs(
        **{
            name: np.concatenate([getattr(r, name) for r in joined])[order]
            for name in ("request", "earlier", "rank", "first", "length")
        }
    )
