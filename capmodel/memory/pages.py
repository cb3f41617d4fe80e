"""Equal pages: how a paged engine turns cache bytes into blocks, and blocks into requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .kv_layout import CachePart

# A smaller class is padded up to the larger one while that wastes less than a quarter.
PADDED_GROUP_RATIO = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedGroups:
    """Layer groups whose cache stops growing: `groups` of them, at `bound_tokens` each [tokens]."""

    groups: int
    bound_tokens: int
    chunked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlan:
    """The block geometry of one rank.

    Parameters
    ----------
    block_tokens : int
        Tokens of one block of a growing group, over all context-parallel ranks [tokens].
    block_bytes : float
        Bytes of one pool block on one rank [bytes].
    growing_groups, state_groups : int
        Layer groups that take blocks per token, and per sequence state [1].
    bounded : tuple of BoundedGroups
        Windows and chunks.
    state_blocks : int
        Blocks each state group holds for a running request [1].
    prefill_tokens : int
        Tokens of one step, which a window must hold besides its own [tokens].
    """

    block_tokens: int
    block_bytes: float
    growing_groups: int
    state_groups: int = 0
    bounded: tuple[BoundedGroups, ...] = ()
    state_blocks: int = 1
    prefill_tokens: int = 2048

    @property
    def groups(self) -> int:
        """All layer groups of the pool [1]."""
        return self.growing_groups + self.state_groups + sum(b.groups for b in self.bounded)

    @property
    def resident_blocks(self) -> int:
        """Blocks of a live request that do not depend on its length [1]."""
        return self.state_groups * self.state_blocks

    def blocks_per_request(self, tokens: int) -> int:
        """Return the blocks that a request of `tokens` takes at its end [1]."""
        blocks = self.growing_groups * math.ceil(tokens / self.block_tokens)
        for part in self.bounded:
            kept = part.bound_tokens + self.prefill_tokens - (0 if part.chunked else 1)
            extra = 0 if part.chunked else 1
            blocks += part.groups * (math.ceil(min(kept, tokens) / self.block_tokens) + extra)
        return blocks + self.resident_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerClass:
    """Layers of one kind on one pipeline stage and in the whole model."""

    part: CachePart
    layers: int
    stage_layers: int


def plain_plan(
    bytes_per_token: float, block_tokens: int, *, dcp: int, prefill_tokens: int
) -> PagePlan:
    """Return the plan of a model whose layers all grow: one block holds all of them.

    Parameters
    ----------
    bytes_per_token : float
        All layers of the stage on one rank, before context parallelism [bytes].
    block_tokens : int
        Tokens of one rank's block [tokens].
    dcp : int
        Decode context parallel degree [1].
    prefill_tokens : int
        Tokens of one step [tokens].
    """
    return PagePlan(
        block_tokens=block_tokens * dcp,
        block_bytes=bytes_per_token * block_tokens,
        growing_groups=1,
        prefill_tokens=prefill_tokens,
    )


def unified_plan(
    classes: list[LayerClass],
    *,
    block_tokens: int,
    alignment_tokens: int,
    dcp: int,
    state_blocks: int,
    prefill_tokens: int,
) -> PagePlan:
    """Return the plan of a hybrid: one page size for every layer, layers in equal groups.

    Parameters
    ----------
    classes : list of LayerClass
        Growing, bounded and recurrent layer kinds; the growing kinds have one page size.
    block_tokens : int
        The engine's block length where no state asks for a longer one [tokens].
    alignment_tokens : int
        Multiple that the attention kernel asks of a lengthened block [tokens].
    dcp : int
        Decode context parallel degree; states are not divided by it [1].
    state_blocks : int
        Blocks per state group and running request [1].
    prefill_tokens : int
        Tokens of one step [tokens].

    Notes
    -----
    The block length is the smallest multiple of the alignment whose attention page holds one
    layer's state, ``B = align * ceil(s / (align * a))``; a pool block is the group size times
    the page.
    """
    per_token = max((c.part.bytes_per_token for c in classes if not c.part.state_bytes), default=0)
    state = max((c.part.state_bytes for c in classes), default=0.0)
    length = block_tokens
    if state and per_token:
        needed = alignment_tokens * math.ceil(state / (alignment_tokens * per_token))
        length = max(block_tokens, needed)
    page = length * per_token if per_token else state
    counts = [c.layers for c in classes]
    size = min(counts)
    if max(counts) < size * PADDED_GROUP_RATIO:
        size = max(counts)
    groups = [math.ceil(c.layers / size) for c in classes]
    stage_size = max(math.ceil(c.stage_layers / g) for c, g in zip(classes, groups, strict=True))
    pairs = list(zip(classes, groups, strict=True))
    return PagePlan(
        block_tokens=length * dcp,
        block_bytes=stage_size * page,
        growing_groups=sum(g for c, g in pairs if c.part.grows),
        state_groups=sum(g for c, g in pairs if c.part.state_bytes),
        bounded=tuple(
            BoundedGroups(
                groups=g, bound_tokens=c.part.bound_tokens, chunked=c.part.kind == "chunk"
            )
            for c, g in pairs
            if c.part.bound_tokens is not None
        ),
        state_blocks=state_blocks,
        prefill_tokens=prefill_tokens,
    )
