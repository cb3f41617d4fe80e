"""Spatially hashed sampling: a huge trace's hit rates from a few of its sessions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from .block_stack import BlockHistogram, BlockStack
from .sharding import session_hash, session_keys, subset

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_HASH_RANGE = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCurve:
    """Hit rates of a sample and how far they may be off.

    Parameters
    ----------
    hit_rate : ndarray, shape (capacities,)
        Token-weighted hit rate [1].
    half_width : ndarray, shape (capacities,)
        Half of the 95% confidence interval [1].
    sampled_requests : int
        Requests that were replayed [1].
    """

    hit_rate: FloatArray
    half_width: FloatArray
    sampled_requests: int


def sampled_hit_rates(
    block_ids: IntArray,
    offsets: IntArray,
    input_tokens: FloatArray,
    capacities_tokens: npt.ArrayLike,
    *,
    rate: float,
    block_tokens: int,
    groups: int = 8,
) -> SampledCurve:
    """Return the LRU hit rates of a block trace from a share of its sessions.

    Parameters
    ----------
    block_ids, offsets, input_tokens : ndarray
        The trace: blocks, where each request's begin, prompts [tokens].
    capacities_tokens : array_like
        Capacities B [tokens].
    rate : float
        Share of the sessions in all groups together, over 0 and at most 1 [1].
    block_tokens : int
        Tokens of a block [tokens].
    groups : int
        Disjoint groups that the sample is split into; their scatter is the error bound [1].

    Notes
    -----
    A session is in group g if its hash falls in the g-th slice of the hash range. Distances
    inside a group stretch by the inverse of its share, as in [1] but for whole sessions. The
    groups are independent samples, so 1.96 sd/sqrt(groups), widened to Student's law, holds the
    scatter of distances and of sessions alike.
    Approximate for: capacities that hold few sampled sessions; sample only where a capacity
    times the share of one group still holds many.

    References
    ----------
    [1] Waldspurger et al., Efficient MRC Construction with SHARDS, FAST 2015, section 3.
    """
    if not 0 < rate <= 1:
        raise SpecError(f"a sample needs a rate over 0 and at most 1, got {rate}.", field="rate")
    if groups < 2:
        raise SpecError("the error bound needs at least 2 groups.", field="groups")
    capacities = np.atleast_1d(np.asarray(capacities_tokens, dtype=np.float64))
    share = rate / groups
    spot = session_hash(session_keys(block_ids, offsets)) / _HASH_RANGE
    deepest = int(capacities.max() // block_tokens)
    rows, replayed = [], 0
    for group in range(groups):
        chosen = (spot >= group * share) & (spot < (group + 1) * share)
        if not np.any(chosen):
            continue
        part = subset(block_ids, offsets, chosen)
        stack = BlockStack(max(math.ceil(deepest * share) + 1, 1))
        runs = stack.feed(part.block_ids, part.offsets)
        histogram = BlockHistogram(block_tokens, deepest)
        histogram.add(runs, input_tokens[part.numbers], np.diff(part.offsets), 0, scale=1.0 / share)
        rows.append(histogram.hit_rate(capacities))
        replayed += int(part.numbers.size)
    if len(rows) < 2:
        raise SpecError("the sample holds too few sessions; raise the rate.", field="rate")
    table = np.array(rows)
    spread = table.std(axis=0, ddof=1) / math.sqrt(len(rows))
    return SampledCurve(
        hit_rate=table.mean(axis=0),
        half_width=student_quantile(len(rows) - 1) * spread,
        sampled_requests=replayed,
    )


def student_quantile(freedom: int) -> float:
    """Two-sided 95% quantile of Student's law; Cornish-Fisher around the normal one [1]."""
    exact = {1: 12.706, 2: 4.303, 3: 3.182}
    z = 1.959964
    terms = (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return exact.get(freedom, z + terms)
