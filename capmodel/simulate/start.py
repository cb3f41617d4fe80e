"""How a run begins: which sessions are live, how old they are, and what the cache holds."""

from __future__ import annotations

import numpy as np

from ..errors import SpecError
from .case import SessionLaws, SimulationCase, Start
from .draws import sample, whole
from .state import (
    ARRIVAL,
    ASLEEP,
    EVICTABLE,
    FREE,
    LIVE_TOKENS,
    N_ASLEEP,
    N_THINKING,
    NEXT_SESSION,
    RESUME_BLOCK,
    RESUME_INTERVAL,
    RESUME_TURN_END,
    SPARE_ENTRIES,
    TIER_USED,
    Draws,
    FloatArray,
    IntArray,
    Settings,
    State,
    empty_state,
)

RESUME_CODES = {
    "block": RESUME_BLOCK,
    "interval": RESUME_INTERVAL,
    "turn_end": RESUME_TURN_END,
}


def run_settings(case: SimulationCase) -> Settings:
    """Return a case in the form the event loop reads."""
    law, block = case.step_law, case.block_tokens
    compute_s, memory_s = law.sides()
    shared = case.shared_prefix_tokens if case.prefix_caching else 0
    rule, tier = case.state, case.tier
    capacity = int(case.kv_tokens - shared) // block
    state_blocks = -(-rule.running_tokens // block)
    checkpoint_blocks = -(-rule.checkpoint_tokens // block)
    room = (capacity - max(state_blocks, checkpoint_blocks)) * block
    if rule.resume == "interval":
        stride = rule.interval_tokens + checkpoint_blocks * block
        room = room * rule.interval_tokens // stride - rule.interval_tokens
    agents = max(laws.agents.most if laws.agents else 0 for _, laws in case.classes())
    slots = case.concurrency * (1 + agents)
    widest = max(law.max_batched_tokens, law.verify_tokens * slots)
    return Settings(
        sessions=case.concurrency,
        slots=slots,
        agents=max(agents, 1),
        branches=case.branches,
        open_arrivals=case.session_arrivals_per_s > 0,
        longest_prefix_first=case.policy == "longest_prefix",
        block_tokens=block,
        capacity_blocks=capacity,
        shared_tokens=shared,
        limit_tokens=int(min(case.max_context_tokens - shared, room - law.accepted_tokens - block)),
        max_batched_tokens=law.max_batched_tokens,
        max_sequences=law.max_sequences,
        verify_tokens=law.verify_tokens,
        accepted_tokens=float(law.accepted_tokens),
        tier_blocks=0 if tier is None else int(tier.tokens) // block,
        load_s_per_token=0.0 if tier is None else tier.bytes_per_token / tier.bytes_per_s,
        caching=case.prefix_caching,
        resume=RESUME_CODES[rule.resume],
        interval_tokens=rule.interval_tokens,
        running_state_blocks=state_blocks,
        checkpoint_blocks=checkpoint_blocks,
        frozen=case.frozen_context_tokens is not None,
        compute_s=compute_s,
        memory_s=memory_s,
        coverage=law.coverage(np.arange(widest + 1)),
    )


def session_midway(laws: SessionLaws, rng: np.random.Generator) -> tuple[int, int, FloatArray]:
    """Return (finished turns, turns, context after each) of a session met at a random turn.

    A turn picked at random belongs to a long session more often: the number of turns is drawn
    with a weight of its own size.
    """
    candidates = whole(laws.turns, 256, rng)
    turns = int(rng.choice(candidates, p=candidates / candidates.sum()))
    done = int(rng.integers(1, turns + 1))
    added = whole(laws.new_tokens, done, rng) + whole(laws.output_tokens, done, rng)
    added[0] = whole(laws.first_tokens, 1, rng)[0] + whole(laws.output_tokens, 1, rng)[0]
    return done, turns, np.cumsum(added).astype(np.float64)


def start_state(
    case: SimulationCase,
    settings: Settings,
    draws: Draws,
    start: Start,
    rng: np.random.Generator,
) -> State:
    """Return the state at time zero: all sessions thinking, for a part of a think time."""
    state = empty_state(settings, draws.turns.shape[1])
    classes = case.classes()
    slots = case.concurrency
    bounds = np.cumsum([share for share, _ in classes])
    places = (np.arange(slots) + 0.5) / slots * bounds[-1]
    state.kind[:slots] = np.searchsorted(bounds, places)
    state.phase[slots:] = ASLEEP
    state.clock[ARRIVAL] = np.inf
    if case.session_arrivals_per_s > 0:
        # An open system begins empty and fills up during the warm-up.
        state.phase[:] = ASLEEP
        state.asleep[:slots] = np.arange(slots)[::-1]
        state.tally[N_ASLEEP] = slots
        state.clock[ARRIVAL] = 0.0
        return state
    state.entry[:slots] = np.arange(1, slots + 1)
    state.owner[1 : slots + 1] = np.arange(slots)
    others = slots * (case.branches - 1)
    state.other_entry[:others] = np.arange(slots + 1, slots + others + 1)
    state.owner[slots + 1 : slots + others + 1] = np.repeat(np.arange(slots), case.branches - 1)
    state.tally[SPARE_ENTRIES] -= slots + others
    state.tally[NEXT_SESSION] = slots
    for slot in range(slots):
        laws = classes[state.kind[slot]][1]
        state.turns[slot] = draws.turns[state.kind[slot], slot]
        if case.frozen_context_tokens is not None:
            state.context[slot] = int(case.frozen_context_tokens[slot])
            state.turns[slot] = np.iinfo(np.int64).max
        elif start != "fresh":
            done, turns, contexts = session_midway(laws, rng)
            if done < turns and contexts[-1] < settings.limit_tokens:
                state.turn[slot], state.turns[slot] = done, turns
                state.context[slot] = int(contexts[-1])
                for branch in range(case.branches - 1):
                    own = int(session_midway(laws, rng)[2][-1])
                    place = slot * (case.branches - 1) + branch
                    state.other_context[place] = min(own, settings.limit_tokens - 2)
        state.ready_s[slot] = sample(laws.think_time, 1, rng)[0] * rng.random()
    if state.context.max() > settings.limit_tokens - 2:
        raise SpecError(
            f"a frozen context of {state.context.max()} tokens leaves no room for a turn within "
            f"{settings.limit_tokens}.",
            field="frozen_context_tokens",
        )
    state.tally[LIVE_TOKENS] = int(state.context.sum() + state.other_context.sum())
    # What an infinite cache would hold, also where the real one begins empty.
    entries = state.entry[:slots]
    state.kept[entries] = full_cache_blocks(settings, state.context[:slots])
    aside = state.other_entry[:others]
    state.kept[aside] = full_cache_blocks(settings, state.other_context[:others])
    # A sorted list is a heap.
    state.thinking[:slots] = np.argsort(state.ready_s[:slots], kind="stable")
    state.tally[N_THINKING] = slots
    if start == "warm" and case.prefix_caching:
        fill_cache(settings, state)
    return state


def full_cache_blocks(settings: Settings, tokens: IntArray) -> IntArray:
    """Blocks that idle sessions of `tokens` keep, when nothing has been evicted [blocks]."""
    blocks = tokens // settings.block_tokens
    if settings.resume == RESUME_INTERVAL:
        blocks = blocks + tokens // settings.interval_tokens * settings.checkpoint_blocks
    elif settings.resume == RESUME_TURN_END:
        blocks = np.where(blocks > 0, blocks + settings.checkpoint_blocks, 0)
    return blocks


def fill_cache(settings: Settings, state: State) -> None:
    """Cache the sessions that return soonest, as far as both tiers reach."""
    soonest = [int(state.entry[slot]) for slot in state.thinking[: state.tally[N_THINKING]]]
    soonest += [int(entry) for entry in state.other_entry if entry > 0]
    tiers = (
        (state.blocks, state.older, state.newer, settings.capacity_blocks),
        (state.tier_kept, state.tier_older, state.tier_newer, settings.tier_blocks),
    )
    for number, (blocks, older, newer, capacity) in enumerate(tiers):
        room = capacity
        held = []
        for entry in soonest:
            blocks[entry] = min(room, int(state.kept[entry]))
            room -= int(blocks[entry])
            if blocks[entry] > 0:
                held.append(entry)
        # The soonest to return is put at the recent end, as the one that left last.
        order = [0, *reversed(held)]
        for before, after in zip(order, [*order[1:], 0], strict=True):
            newer[before] = after
            older[after] = before
        if number == 0:
            state.tally[FREE] = room
            state.tally[EVICTABLE] = capacity - room
        else:
            state.tally[TIER_USED] = capacity - room
