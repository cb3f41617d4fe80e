"""The simulator's memory: plain arrays, so that one source runs compiled and interpreted.

A *slot* is one of the C live sessions, or one of the sub-agents it may have. An *entry* is one
session's blocks in the cache; entries of finished sessions stay behind as dead ones until they
are evicted. Entry 0 is the sentinel of both recency lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

THINKING, WAITING, LOADING, PREFILLING, DECODING, DELEGATING, ASLEEP = range(7)
PHASES = ("thinking", "waiting", "loading", "prefilling", "decoding", "delegating")

RESUME_BLOCK, RESUME_INTERVAL, RESUME_TURN_END = range(3)

# Positions in `State.tally`
(
    FREE,
    EVICTABLE,
    TIER_USED,
    N_RUNNING,
    WAIT_HEAD,
    N_WAITING,
    LOAD_HEAD,
    N_LOADING,
    N_THINKING,
    NEXT_TURN,
    NEXT_SESSION,
    DONE,
    PREEMPTIONS,
    SPARE_ENTRIES,
    LIVE_TOKENS,
    STEPS,
    N_DELEGATING,
    N_ASLEEP,
    NEXT_ARRIVAL,
    TURNED_AWAY,
) = range(20)

# Positions in `State.clock`
NOW, BUSY, LINK_FREE, PREFILL_BUSY, ARRIVAL = range(5)

COMPOSITION_BINS = 200
COMPOSITION_BIN = 0.02  # width in live tokens over budget


class Settings(NamedTuple):
    """What does not change during a run."""

    sessions: int
    slots: int  # sessions and the sub-agents they may have at once
    agents: int  # most sub-agents of a session at once
    branches: int  # contexts of a session; a turn goes on with one of them
    open_arrivals: bool
    longest_prefix_first: bool
    block_tokens: int
    capacity_blocks: int
    shared_tokens: int
    limit_tokens: int
    max_batched_tokens: int
    max_sequences: int
    verify_tokens: int
    accepted_tokens: float
    tier_blocks: int
    load_s_per_token: float
    caching: bool
    resume: int
    interval_tokens: int
    running_state_blocks: int
    checkpoint_blocks: int
    frozen: bool
    compute_s: FloatArray
    memory_s: FloatArray
    coverage: FloatArray


class Draws(NamedTuple):
    """Random input, by slot class where it depends on it: rows are classes."""

    new_tokens: IntArray
    output_tokens: IntArray
    think_s: FloatArray
    reset_tokens: IntArray  # 0 where the turn does not reset
    reset_kept_tokens: IntArray  # one value per class
    first_tokens: IntArray
    turns: IntArray
    branch: IntArray  # 0 where a turn goes on in the branch of the last one
    agents: IntArray  # sub-agents that a turn starts
    agent_kind: IntArray  # their class, one value per class
    arrival_gap_s: FloatArray


class State(NamedTuple):
    """Everything that changes."""

    tally: IntArray
    clock: FloatArray
    # per slot
    kind: IntArray
    phase: IntArray
    entry: IntArray
    turn: IntArray
    turns: IntArray
    context: IntArray
    prompt: IntArray
    output: IntArray
    target: IntArray
    computed: IntArray
    chunk: IntArray
    generated: FloatArray
    steps_left: IntArray
    looked_up: IntArray
    hbm_hit: IntArray
    tier_hit: IntArray
    ceiling: IntArray
    arrival_s: FloatArray
    first_token_s: FloatArray
    ready_s: FloatArray
    pending: IntArray
    # per slot and further branch
    other_entry: IntArray
    other_context: IntArray
    # orders of slots
    running: IntArray
    waiting: IntArray
    loading: IntArray
    thinking: IntArray
    asleep: IntArray
    # per entry
    owner: IntArray
    blocks: IntArray
    kept: IntArray
    tier_kept: IntArray
    older: IntArray
    newer: IntArray
    tier_older: IntArray
    tier_newer: IntArray
    spare: IntArray
    # time-weighted
    phase_s: FloatArray
    pinned_block_s: FloatArray
    composition_s: FloatArray


class Records(NamedTuple):
    """One row per finished turn, in the order of finishing."""

    arrival_s: FloatArray
    first_token_s: FloatArray
    finish_s: FloatArray
    prompt: IntArray
    output: IntArray
    hbm_hit: IntArray
    tier_hit: IntArray
    ceiling: IntArray
    kind: IntArray


def empty_records(turns: int) -> Records:
    """Return room for `turns` finished turns."""
    columns: list[Any] = [np.zeros(turns, dtype=np.float64) for _ in range(3)]
    columns += [np.zeros(turns, dtype=np.int64) for _ in range(6)]
    return Records(*columns)


def rows(records: Records, first: int, last: int) -> Records:
    """Return the turns from `first` up to `last`."""
    columns: list[Any] = [column[first:last] for column in records]
    return Records(*columns)


def joined(parts: Sequence[Records]) -> Records:
    """Return the turns of all parts, one part after the other."""
    columns: list[Any] = [np.concatenate(same) for same in zip(*parts, strict=True)]
    return Records(*columns)


def empty_state(settings: Settings, turns: int) -> State:
    """Return a state for `turns` turns: an empty cache, every slot idle before its first turn."""
    slots = settings.slots
    # A dead entry holds a block, and a turn leaves few behind: its session's branches, a cut tail.
    left = (1 + settings.branches) * (turns + slots)
    dead = min(settings.capacity_blocks + settings.tier_blocks, left)
    entries = 2 + 2 * slots * settings.branches + dead

    def ints(size: int) -> IntArray:
        return np.zeros(size, dtype=np.int64)

    def floats(size: int) -> FloatArray:
        return np.zeros(size, dtype=np.float64)

    state = State(
        tally=ints(20), clock=floats(5),
        kind=ints(slots), phase=ints(slots), entry=ints(slots), turn=ints(slots),
        turns=ints(slots), context=ints(slots), prompt=ints(slots), output=ints(slots),
        target=ints(slots), computed=ints(slots), chunk=ints(slots), generated=floats(slots),
        steps_left=ints(slots), looked_up=ints(slots), hbm_hit=ints(slots), tier_hit=ints(slots),
        ceiling=ints(slots), arrival_s=floats(slots), first_token_s=floats(slots),
        ready_s=floats(slots), pending=ints(slots),
        other_entry=ints(slots * (settings.branches - 1)),
        other_context=ints(slots * (settings.branches - 1)),
        running=ints(slots), waiting=ints(slots), loading=ints(slots), thinking=ints(slots),
        asleep=ints(slots),
        owner=np.full(entries, -1, dtype=np.int64), blocks=ints(entries), kept=ints(entries),
        tier_kept=ints(entries), older=ints(entries), newer=ints(entries),
        tier_older=ints(entries), tier_newer=ints(entries),
        spare=np.arange(entries - 1, 0, -1, dtype=np.int64),
        phase_s=floats(len(PHASES)), pinned_block_s=floats(1),
        composition_s=floats(COMPOSITION_BINS),
    )  # fmt: skip
    state.tally[FREE] = settings.capacity_blocks
    state.tally[SPARE_ENTRIES] = entries - 1
    return state
