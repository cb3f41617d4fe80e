"""Blocks: who holds them, which are idle, and which go first.

Idle entries form one list from least to most recently released; eviction takes blocks from the
tail of the entry at its old end, so a partly evicted session keeps the head of its prefix.
"""

from __future__ import annotations

from .compiled import compiled
from .state import (
    EVICTABLE,
    FREE,
    RESUME_BLOCK,
    RESUME_INTERVAL,
    SPARE_ENTRIES,
    TIER_USED,
    IntArray,
    Settings,
    State,
)


@compiled
def append(older: IntArray, newer: IntArray, entry: int) -> None:
    """Put `entry` at the recent end of a list."""
    last = older[0]
    older[entry] = last
    newer[entry] = 0
    newer[last] = entry
    older[0] = entry


@compiled
def insert_before(older: IntArray, newer: IntArray, entry: int, place: int) -> None:
    """Put `entry` just on the old side of `place`."""
    before = older[place]
    older[entry] = before
    newer[entry] = place
    newer[before] = entry
    older[place] = entry


@compiled
def remove(older: IntArray, newer: IntArray, entry: int) -> None:
    """Take `entry` out of a list."""
    newer[older[entry]] = newer[entry]
    older[newer[entry]] = older[entry]


@compiled
def new_entry(state: State, slot: int) -> int:
    """Return an unused entry, owned by `slot` (-1 for a dead one)."""
    state.tally[SPARE_ENTRIES] -= 1
    entry = int(state.spare[state.tally[SPARE_ENTRIES]])
    state.owner[entry] = slot
    state.blocks[entry] = 0
    state.kept[entry] = 0
    state.tier_kept[entry] = 0
    return entry


@compiled
def recycle_if_gone(state: State, entry: int) -> None:
    """Make a dead entry without blocks available again."""
    if state.owner[entry] < 0 and state.blocks[entry] == 0 and state.tier_kept[entry] == 0:
        state.spare[state.tally[SPARE_ENTRIES]] = entry
        state.tally[SPARE_ENTRIES] += 1


@compiled
def held_blocks(settings: Settings, tokens: int) -> int:
    """Blocks that a running request holds at `tokens` private tokens [blocks]."""
    blocks = -(-tokens // settings.block_tokens) + settings.running_state_blocks
    if settings.resume == RESUME_INTERVAL:
        blocks += (tokens // settings.interval_tokens) * settings.checkpoint_blocks
    return blocks


@compiled
def kept_blocks(settings: Settings, tokens: int) -> int:
    """Blocks that stay cached once `tokens` private tokens are released [blocks]."""
    blocks = tokens // settings.block_tokens
    if settings.resume == RESUME_BLOCK or blocks == 0:
        return blocks
    if settings.resume == RESUME_INTERVAL:
        return blocks + (tokens // settings.interval_tokens) * settings.checkpoint_blocks
    return blocks + settings.checkpoint_blocks


@compiled
def hit_tokens(settings: Settings, blocks: int, kept: int) -> int:
    """Tokens that a hit resumes from, with `blocks` left of `kept` [tokens]."""
    if settings.resume == RESUME_BLOCK:
        return blocks * settings.block_tokens
    if settings.resume == RESUME_INTERVAL:
        stride = settings.interval_tokens // settings.block_tokens + settings.checkpoint_blocks
        return (blocks // stride) * settings.interval_tokens
    if blocks < kept or kept == 0:
        return 0
    return (kept - settings.checkpoint_blocks) * settings.block_tokens


@compiled
def available_blocks(state: State) -> int:
    """Blocks that are free or can be evicted [blocks]."""
    return int(state.tally[FREE] + state.tally[EVICTABLE])


@compiled
def evict(state: State, needed: int) -> None:
    """Free idle blocks until `needed` are free; the caller has checked that they exist."""
    while state.tally[FREE] < needed:
        entry = state.newer[0]
        taken = min(state.blocks[entry], needed - state.tally[FREE])
        state.blocks[entry] -= taken
        state.tally[FREE] += taken
        state.tally[EVICTABLE] -= taken
        if state.blocks[entry] == 0:
            remove(state.older, state.newer, entry)
            recycle_if_gone(state, entry)


@compiled
def pin(state: State, entry: int) -> None:
    """Take an idle entry's blocks out of reach of eviction."""
    if state.blocks[entry] > 0:
        remove(state.older, state.newer, entry)
        state.tally[EVICTABLE] -= state.blocks[entry]


@compiled
def resize(state: State, entry: int, blocks: int) -> None:
    """Give a pinned entry exactly `blocks`; the caller has checked that they are available."""
    change = blocks - state.blocks[entry]
    if change > state.tally[FREE]:
        evict(state, change)
    state.tally[FREE] -= change
    state.blocks[entry] = blocks


@compiled
def unpin(settings: Settings, state: State, entry: int, tokens: int) -> None:
    """Release a running request's blocks; full blocks of its `tokens` stay cached."""
    kept = kept_blocks(settings, tokens) if settings.caching else 0
    # A short request may hold less than its checkpoint would need; it then leaves none.
    if kept > state.blocks[entry] + state.tally[FREE]:
        kept = 0
    resize(state, entry, kept)
    state.kept[entry] = kept
    if kept > 0:
        append(state.older, state.newer, entry)
        state.tally[EVICTABLE] += kept


@compiled
def write_tier(settings: Settings, state: State, entry: int) -> None:
    """Copy an entry through to the second tier and make it the most recent one there."""
    if settings.tier_blocks == 0:
        return
    if state.tier_kept[entry] > 0:
        remove(state.tier_older, state.tier_newer, entry)
    state.tally[TIER_USED] += state.kept[entry] - state.tier_kept[entry]
    state.tier_kept[entry] = state.kept[entry]
    if state.tier_kept[entry] > 0:
        append(state.tier_older, state.tier_newer, entry)
    while state.tally[TIER_USED] > settings.tier_blocks:
        oldest = state.tier_newer[0]
        taken = min(state.tier_kept[oldest], state.tally[TIER_USED] - settings.tier_blocks)
        state.tier_kept[oldest] -= taken
        state.tally[TIER_USED] -= taken
        if state.tier_kept[oldest] == 0:
            remove(state.tier_older, state.tier_newer, oldest)
            recycle_if_gone(state, oldest)


@compiled
def touch_tier(settings: Settings, state: State, entry: int) -> None:
    """Make an entry the most recent one of the second tier."""
    if settings.tier_blocks > 0 and state.tier_kept[entry] > 0:
        remove(state.tier_older, state.tier_newer, entry)
        append(state.tier_older, state.tier_newer, entry)


@compiled
def drop_tail(state: State, entry: int, blocks: int) -> None:
    """Split an idle entry: what lies beyond `blocks` is dead and goes before the rest."""
    extra = state.blocks[entry] - blocks
    tier_extra = state.tier_kept[entry] - blocks
    if extra > 0 or tier_extra > 0:
        dead = new_entry(state, -1)
        if extra > 0:
            state.blocks[dead] = extra
            insert_before(state.older, state.newer, dead, entry)
            state.blocks[entry] = blocks
            if blocks == 0:
                remove(state.older, state.newer, entry)
        if tier_extra > 0:
            state.tier_kept[dead] = tier_extra
            insert_before(state.tier_older, state.tier_newer, dead, entry)
            state.tier_kept[entry] = blocks
            if blocks == 0:
                remove(state.tier_older, state.tier_newer, entry)
    state.kept[entry] = min(state.kept[entry], blocks)
