"""Exact stack distances of a trace of block ids, in memory bounded by the working set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from .block_kernel import RUNS, TOP, compact, count_touched_since, touch_requests
from .compiled import compiled

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_FIRST_SLOTS = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Reused prefixes in runs: blocks that one earlier request left side by side.

    Parameters
    ----------
    request, earlier : ndarray of int
        Number of the request, and of the one that touched the run last.
    rank : ndarray of int
        Distinct blocks more recent than the first of the run; it grows by one a block [1].
    first, length : ndarray of int
        Place of the run in the prompt, and its blocks [1].
    """

    request: IntArray
    earlier: IntArray
    rank: IntArray
    first: IntArray
    length: IntArray


class BlockStack:
    """LRU stack of blocks that takes requests in chunks.

    Parameters
    ----------
    deepest_blocks : float
        Largest capacity that will be asked for; what lies deeper is forgotten, so memory
        follows the working set and not the trace [blocks].
    plain : bool
        Run the uncompiled kernels.

    Notes
    -----
    Exact for: LRU with prefix hits and leaf-first eviction, requests that take no time.
    """

    def __init__(self, deepest_blocks: float = math.inf, *, plain: bool = False):
        if not deepest_blocks >= 1:
            raise SpecError("deepest_blocks must be at least 1.", field="deepest_blocks")
        self._deepest = int(min(deepest_blocks, 2**62))
        self._touch = compiled(touch_requests, plain=plain)
        self._compact = compiled(compact, plain=plain)
        self._count = compiled(count_touched_since, plain=plain)
        self._state = np.zeros(3, np.int64)
        self._scratch = np.zeros((1 << 10, 5), np.int64)
        self._arrays: tuple[Any, ...] = (
            np.zeros(2 * _FIRST_SLOTS, np.int64),
            np.full(2 * _FIRST_SLOTS, -1, np.int64),
            np.zeros(_FIRST_SLOTS, np.int64),
            np.zeros(_FIRST_SLOTS, np.int64),
            np.zeros(_FIRST_SLOTS >> 5, np.int64),
            np.zeros((_FIRST_SLOTS >> 5) + 1, np.int64),
        )

    @property
    def live_blocks(self) -> int:
        """Distinct blocks on the stack [1]."""
        return int(self._state[1])

    @property
    def nbytes(self) -> int:
        """Memory that the stack holds [bytes]."""
        return int(sum(array.nbytes for array in self._arrays))

    def feed(self, block_ids: IntArray, offsets: IntArray, first_number: int = 0) -> Runs:
        """Touch requests in order and return what they reused.

        Parameters
        ----------
        block_ids, offsets : ndarray of int
            Blocks in prefix order and where each request's begin.
        first_number : int
            Number of the first request; numbers grow from chunk to chunk.
        """
        numbers = np.arange(first_number, first_number + offsets.size - 1)
        return self.feed_numbered(block_ids, offsets, numbers)

    def feed_numbered(self, block_ids: IntArray, offsets: IntArray, numbers: IntArray) -> Runs:
        """The same for requests that carry their own, growing numbers."""
        if offsets.size < 2 or offsets[-1] != block_ids.size or np.any(np.diff(offsets) < 1):
            raise SpecError("offsets must grow and end at the number of blocks.", field="offsets")
        longest = int(np.diff(offsets).max())
        parts = []
        done = 0
        if longest > self._scratch.shape[0]:
            self._scratch = np.zeros((2 * longest, 5), np.int64)
        runs = self._scratch
        while done < offsets.size - 1:
            self._state[RUNS] = 0
            after = int(
                self._touch(
                    block_ids, offsets, numbers, done, *self._arrays, self._state, runs
                )
            )  # fmt: skip
            parts.append(runs[: self._state[RUNS]].copy())
            slots = self._arrays[2].size
            if after < offsets.size - 1 and self._state[TOP] + longest > slots:
                self._make_room(longest)
            done = after
        merged = np.concatenate(parts)
        return Runs(
            request=merged[:, 0], earlier=merged[:, 1], rank=merged[:, 2],
            first=merged[:, 3], length=merged[:, 4],
        )  # fmt: skip

    def _make_room(self, longest: int) -> None:
        alive = min(self.live_blocks, self._deepest)
        slots = max(self._arrays[2].size, _FIRST_SLOTS)
        while slots < 2 * (alive + longest):
            slots *= 2
        self._arrays = self._compact(*self._arrays, self._state, self._deepest, slots, 2 * slots)

    def count_since(self, since: IntArray) -> IntArray:
        """Return how many live blocks were touched after each given request number [1]."""
        counts = np.zeros(since.size, np.int64)
        _, _, _, request_at, words, tree = self._arrays
        self._count(
            since, since, 0, since.size, request_at, words, tree, self._state, counts
        )  # fmt: skip
        return counts


class BlockHistogram:
    """Hit tokens by stack distance, added up while a trace streams by.

    Parameters
    ----------
    block_tokens : int
        Tokens of a full block [tokens].
    deepest_blocks : int
        Largest distance kept apart [blocks].
    """

    def __init__(self, block_tokens: int, deepest_blocks: int):
        self.block_tokens = block_tokens
        self.deepest_blocks = deepest_blocks
        self.total_tokens = 0.0
        self._slope: FloatArray = np.zeros(deepest_blocks + 2)
        self._point: FloatArray = np.zeros(deepest_blocks + 2)

    def add(
        self, runs: Runs, input_tokens: FloatArray, blocks: IntArray, first_number: int,
        scale: float = 1.0,
    ) -> None:  # fmt: skip
        """Add the runs of a chunk whose requests have these prompts and block counts.

        `scale` stretches the distances, for a sample of the sessions.
        """
        self.total_tokens += float(input_tokens.sum())
        row = runs.request - first_number
        begin = np.round(runs.rank * scale).astype(np.int64)
        end = np.round((runs.rank + runs.length) * scale).astype(np.int64)
        top = self.deepest_blocks + 1
        weight = self.block_tokens * runs.length / np.maximum(end - begin, 1)
        np.add.at(self._slope, np.minimum(begin, top), weight)
        np.add.at(self._slope, np.minimum(np.maximum(end, begin + 1), top), -weight)
        # The last block of a prompt may be partly filled.
        last = runs.first + runs.length == blocks[row]
        short = blocks[row] * self.block_tokens - input_tokens[row]
        at = np.minimum(np.maximum(end - 1, begin), top)
        np.add.at(self._point, at[last], -short[last])

    def hit_rate(self, capacity_tokens: npt.ArrayLike) -> FloatArray:
        """Token-weighted hit rate at each capacity [1]."""
        by_distance = np.cumsum(self._slope) + self._point
        hits = np.append(0.0, np.cumsum(by_distance[:-1]))
        blocks = np.asarray(capacity_tokens, dtype=np.float64) // self.block_tokens
        if np.any(blocks > self.deepest_blocks):
            raise SpecError("a capacity is larger than the distances that were kept.")
        found = hits[blocks.astype(np.int64)]
        return np.asarray(found / max(self.total_tokens, 1.0))

    @property
    def theoretical_hit_rate(self) -> float:
        """Hit rate at the largest distance kept, nothing deeper known [1]."""
        return float(self.hit_rate(self.deepest_blocks * self.block_tokens))
