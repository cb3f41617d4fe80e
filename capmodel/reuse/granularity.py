"""What coarse resume points and a shared prefix do to a hit rate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..errors import SpecError
from .lane_law import LaneLaw


def block_loss(law: LaneLaw, block_tokens: float) -> float:
    """Hit rate lost because a prefix counts in whole blocks: half a block a found prefix [1].

    Exact for: prefix lengths uniform within a block, much longer than one.
    """
    if not block_tokens >= 1:
        raise SpecError("a block holds at least one token.", field="block_tokens")
    found = float(law.share.sum())
    return min(found * 0.5 * (block_tokens - 1.0) / law.context_mean, law.theoretical_hit_rate)


def checkpoint_hit_rate(law: LaneLaw, every_tokens: float) -> float:
    """Ceiling of a hybrid model that can resume only at every so many tokens [1].

    Parameters
    ----------
    law : LaneLaw
        One lane.
    every_tokens : float
        Distance between resume points [tokens]; infinity for prompt ends only, where a whole
        earlier prompt is resumed and nothing is lost.

    Notes
    -----
    E[floor(l/k) k] = E[l] - k/2 for prefixes l spread evenly over a step. Approximate for:
    prefixes of one step or less.
    """
    if not every_tokens > 0:
        raise SpecError("resume points need a positive distance.", field="every_tokens")
    if math.isinf(every_tokens):
        return law.theoretical_hit_rate
    # A prefix that ends anywhere between two resume points loses half a step on average.
    resumed = np.maximum(law.prefix_tokens - 0.5 * every_tokens, 0.0)
    return float((law.share * resumed).sum() / law.context_mean)


def checkpointed(law: LaneLaw, every_tokens: float) -> LaneLaw:
    """Return the law of sessions that can resume only at checkpoints.

    With a finite distance each prefix loses half a step; with prompt ends only, a prefix is
    found whole or not at all, so all its tokens are as deep as its last one.
    """
    if not math.isinf(every_tokens):
        kept = checkpoint_hit_rate(law, every_tokens) / max(law.theoretical_hit_rate, 1e-12)
        return replace(
            law,
            depth_weight=law.depth_weight * kept,
            share=law.share,
            prefix_tokens=law.prefix_tokens * kept,
            prefix_mean=law.prefix_mean * kept,
        )
    width = np.diff(law.depth_tokens)
    edges = np.append(law.depth_tokens[:-1] + 0.5 * width, np.inf)
    weight = np.zeros_like(law.depth_weight)
    cell = np.searchsorted(edges, law.prefix_tokens)
    rows = np.broadcast_to(np.arange(weight.shape[0])[:, None], cell.shape)
    np.add.at(weight, (rows, cell), law.share * law.prefix_tokens)
    return replace(law, depth_weight=weight)


def state_room(capacity_tokens: float, law: LaneLaw, state_tokens: float) -> float:
    """Capacity left for tokens when every retained context also holds a state [tokens].

    Notes
    -----
    A context of E[w] tokens costs E[w] + s, so B shrinks by E[w]/(E[w] + s).
    """
    if not state_tokens >= 0:
        raise SpecError("a state cannot cost a negative number of tokens.", field="state_tokens")
    return capacity_tokens * law.context_mean / (law.context_mean + state_tokens)


def with_shared_prefix(
    private_hit_rate: float, private_mean_tokens: float, shared_prefix_tokens: float,
    capacity_tokens: float,
) -> float:  # fmt: skip
    """Hit rate over whole prompts, given the one of the private parts at B less the prefix [1].

    The shared blocks are the head of the latest request: they are the floor in a thrash.
    """
    shared = min(shared_prefix_tokens, capacity_tokens)
    total = private_mean_tokens + shared_prefix_tokens
    return (private_hit_rate * private_mean_tokens + shared) / total
