"""Equal pages: how a paged engine turns cache bytes into blocks, and blocks into requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .kv_layout import CachePart

# A smaller class is padded up to the larger one while that wastes less than a quarter.
PADDED_GROUP_RATIO = 1.25
# Longer than any request: what a pool without growing caches holds.
UNBOUNDED_TOKENS = 10**12

# A pipeline stage without any cache keeps as many blocks as asked for: it binds by weights alone.
LEAST_BLOCK_BYTES = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroups:
    """`groups` layer groups that share one cache rule, in the pool of equal blocks.

    Parameters
    ----------
    groups : int
        How many [1].
    block_tokens : int
        Tokens of one block of such a group, 0 for a recurrent state [tokens].
    bound_tokens : int, optional
        Most tokens kept; None where the cache grows [tokens].
    chunked : bool
        Whether the bound is a chunk, which starts empty, and not a window.
    page_share : float
        Bytes of this group's page over the pool's, where pages differ [1].
    """

    groups: int
    block_tokens: int
    bound_tokens: int | None = None
    chunked: bool = False
    page_share: float = 1.0

    def blocks(self, tokens: int, step_tokens: int) -> float:
        """Return the blocks of a request at `tokens`, while a step adds `step_tokens` [1].

        Notes
        -----
        A window keeps its last W - 1 tokens and what a step adds, and may start inside a block.
        """
        if self.bound_tokens is None:
            return self.groups * math.ceil(tokens / self.block_tokens) * self.page_share
        extra = 0 if self.chunked else 1
        kept = min(self.bound_tokens - extra + step_tokens, tokens)
        return self.groups * (math.ceil(kept / self.block_tokens) + extra) * self.page_share


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlan:
    """The block geometry of one rank.

    Parameters
    ----------
    block_tokens : int
        Tokens of the engine's block, over all context-parallel ranks [tokens].
    block_bytes : float
        Bytes of one pool block on one rank [bytes].
    growing, bounded : tuple of LayerGroups
        Groups whose cache grows with every token; windows and chunks.
    state_groups : int
        Groups that hold a recurrent state per sequence [1].
    state_blocks : int
        Blocks each state group holds for a running request [1].
    step_tokens : int
        Tokens of one step, which a window must hold besides its own [tokens].
    request_bytes : float
        Bytes a request takes beside its blocks while it prefills [bytes].
    resident_bytes : float
        Bytes of a live request beside its blocks whatever its length [bytes].
    pool_share : float
        Share of the available bytes that holds blocks; the rest holds states in slots [1].
    state_slot_bytes : float
        Bytes of one such slot, 0 where states live in blocks [bytes].
    """

    block_tokens: int
    block_bytes: float
    growing: tuple[LayerGroups, ...]
    bounded: tuple[LayerGroups, ...] = ()
    state_groups: int = 0
    state_blocks: int = 1
    step_tokens: int = 2048
    request_bytes: float = 0.0
    resident_bytes: float = 0.0
    pool_share: float = 1.0
    state_slot_bytes: float = 0.0

    @property
    def groups(self) -> int:
        """All layer groups of the pool [1]."""
        return self.state_groups + sum(g.groups for g in self.growing + self.bounded)

    @property
    def resident_blocks(self) -> int:
        """Blocks of a live request whatever its length: states and full windows [1]."""
        windows = sum(g.blocks(g.bound_tokens or 0, 0) for g in self.bounded)
        return self.state_groups * self.state_blocks + math.ceil(windows)

    @property
    def bytes_per_token(self) -> float:
        """Pool bytes of each further token of a context on one rank [bytes].

        Notes
        -----
        Where nothing grows, the bytes of a token inside the window.
        """
        kept = self.growing or self.bounded
        return self.block_bytes * sum(g.groups * g.page_share / g.block_tokens for g in kept)

    def blocks(self, available_bytes: float) -> int:
        """Return the blocks that the available bytes of a rank hold [1]."""
        return max(0, math.floor(available_bytes * self.pool_share / self.block_bytes))

    def state_slots(self, available_bytes: float) -> int | None:
        """Return the sequences whose states fit, None where states live in blocks [1]."""
        if not self.state_slot_bytes:
            return None
        return max(0, math.floor(available_bytes * (1 - self.pool_share) / self.state_slot_bytes))

    def blocks_per_request(self, tokens: int) -> int:
        """Return the blocks that the engine reserves for a request of `tokens` [1]."""
        parts = self.growing + self.bounded
        paged = sum(g.blocks(tokens, self.step_tokens) for g in parts)
        beside = self.request_bytes / self.block_bytes
        return math.ceil(paged + beside) + self.state_groups * self.state_blocks

    def longest_request(self, blocks: int) -> int:
        """Return the longest request that `blocks` hold [tokens]."""
        if blocks < self.blocks_per_request(1):
            return 0
        if blocks >= self.blocks_per_request(UNBOUNDED_TOKENS):
            return UNBOUNDED_TOKENS
        low, high = 1, max(1, int(blocks * self.block_bytes / max(self.bytes_per_token, 1e-9))) + 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.blocks_per_request(middle) <= blocks:
                low = middle
            else:
                high = middle - 1
        return low

    @property
    def tokens_per_live_request(self) -> float:
        """Tokens of pool that a live request takes beside its context [tokens].

        Notes
        -----
        States and windows, and half a block of every growing group, which is what the last
        block of a context leaves empty on average.
        """
        part_filled = 0.5 * sum(g.groups * g.page_share for g in self.growing)
        beside = self.resident_bytes / self.block_bytes
        return self.tokens_of_blocks(self.resident_blocks + part_filled + beside)

    def tokens_of_blocks(self, blocks: float) -> float:
        """Return the tokens that so many blocks would hold of a growing context [tokens]."""
        per_token = self.bytes_per_token
        return blocks * self.block_bytes / per_token if per_token else 0.0

    def usable_tokens(self, blocks: int, live_requests: int) -> int:
        """Return tokens left for contexts once each live request has its fixed share [tokens]."""
        taken = live_requests * self.tokens_per_live_request
        return max(0, math.floor(self.tokens_of_blocks(blocks) - taken))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerClass:
    """Layers of one kind: in the whole model and on one pipeline stage.

    Parameters
    ----------
    part : CachePart
        What each layer keeps.
    layers, stage_layers : int
        Layers of the model, and of the stage [1].
    draft : bool
        Layers of a drafter with a cache of its own shape, which are grouped by themselves.
    """

    part: CachePart
    layers: int
    stage_layers: int
    draft: bool = False


def plain_plan(
    bytes_per_token: float, block_tokens: int, *, dcp: int, step_tokens: int
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
    step_tokens : int
        Tokens of one step [tokens].
    """
    return PagePlan(
        block_tokens=block_tokens * dcp,
        block_bytes=max(bytes_per_token * block_tokens, LEAST_BLOCK_BYTES),
        growing=(LayerGroups(groups=1, block_tokens=block_tokens * dcp),),
        step_tokens=step_tokens,
    )


def state_block_tokens(classes: list[LayerClass], block_tokens: int, alignment_tokens: int) -> int:
    """Return the block length whose attention page holds one layer's state [tokens].

    Notes
    -----
    ``B = align * ceil(s / (align * a))`` with state bytes s and attention bytes a per token; the
    engine's own length where no layer has a state.
    """
    attention = max((c.part.bytes_per_token for c in classes), default=0.0)
    state = max((c.part.state_bytes for c in classes), default=0.0)
    if not state or not attention:
        return block_tokens
    return max(block_tokens, alignment_tokens * math.ceil(state / (alignment_tokens * attention)))


def unified_plan(
    classes: list[LayerClass],
    *,
    block_tokens: int,
    alignment_tokens: int,
    dcp: int,
    state_blocks: int,
    step_tokens: int,
) -> PagePlan:
    """Return the plan of a hybrid: one page size for every layer, layers in equal groups.

    Parameters
    ----------
    classes : list of LayerClass
        Growing, bounded and recurrent layer kinds.
    block_tokens : int
        The engine's block length where no state asks for a longer one [tokens].
    alignment_tokens : int
        Multiple that the attention kernel asks of a lengthened block [tokens].
    dcp : int
        Decode context parallel degree; states and windows are not divided by it [1].
    state_blocks : int
        Blocks per state group and running request [1].
    step_tokens : int
        Tokens of one step [tokens].

    Notes
    -----
    The page is the largest of the kinds; kinds with fewer bytes per token get longer blocks of
    the same page. A pool block is the group size times the page, and the group size is the
    smallest kind's layer count, or the largest where that pads less than a quarter.
    """
    length = state_block_tokens(classes, block_tokens, alignment_tokens)
    attention = max((c.part.bytes_per_token for c in classes), default=0.0)
    page = length * attention or max(c.part.state_bytes for c in classes)
    counts = [c.layers for c in classes]
    size = min(counts)
    if max(counts) < size * PADDED_GROUP_RATIO:
        size = max(counts)
    growing: list[LayerGroups] = []
    bounded: list[LayerGroups] = []
    state_groups = stage_size = 0
    for c in classes:
        groups = math.ceil(c.layers / size)
        stage_size = max(stage_size, math.ceil(c.stage_layers / groups))
        if c.part.state_bytes:
            state_groups += groups
            continue
        tokens = math.floor(page / c.part.bytes_per_token)
        kept = LayerGroups(
            groups=groups,
            block_tokens=tokens * (dcp if c.part.grows else 1),
            bound_tokens=c.part.bound_tokens,
            chunked=c.part.kind == "chunk",
        )
        (growing if c.part.grows else bounded).append(kept)
    return PagePlan(
        block_tokens=length * dcp,
        block_bytes=max(stage_size * page, LEAST_BLOCK_BYTES),
        growing=tuple(growing),
        bounded=tuple(bounded),
        state_groups=state_groups,
        state_blocks=state_blocks,
        step_tokens=step_tokens,
    )
