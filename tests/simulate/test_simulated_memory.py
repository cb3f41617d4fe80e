"""Blocks: which go first, what is left, and that none is ever lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capmodel.simulate import SimulationCase, StateRule, SubAgents, Tier, memory, published_case
from capmodel.simulate.draws import run_draws
from capmodel.simulate.engine import advance
from capmodel.simulate.start import run_settings, start_state
from capmodel.simulate.state import (
    DECODING,
    DELEGATING,
    EVICTABLE,
    FREE,
    LIVE_TOKENS,
    LOADING,
    N_DELEGATING,
    N_LOADING,
    N_RUNNING,
    N_THINKING,
    N_WAITING,
    PREFILLING,
    THINKING,
    TIER_USED,
    WAITING,
    Settings,
    State,
    empty_records,
    empty_state,
)
from capmodel.spec.distributions import LognormalMixture

CASE = published_case("deepseek-v3-8xH200", concurrency=4)


def small(blocks: int, **changes: object) -> tuple[Settings, State]:
    tokens = CASE.shared_prefix_tokens + 64 * blocks
    settings = run_settings(replace(CASE, kv_tokens=tokens, **changes))
    return settings, empty_state(settings, 100)


def hold(settings: Settings, state: State, slot: int, tokens: int) -> int:
    entry = memory.new_entry(state, slot)
    memory.resize(state, entry, memory.held_blocks(settings, tokens))
    return entry


def test_the_least_recent_session_goes_first_and_from_its_tail() -> None:
    settings, state = small(10)
    first, second = (hold(settings, state, slot, 256) for slot in (0, 1))
    for entry in (first, second):
        memory.unpin(settings, state, entry, 256)
    third = hold(settings, state, 2, 64 * 5)
    assert state.blocks[first] == 1  # 10 - 4 - 5: the head of the oldest prefix is left
    assert state.blocks[second] == 4
    memory.pin(state, first)  # used again, so the second is now the oldest
    memory.resize(state, first, 3)
    assert state.blocks[second] == 2
    assert state.blocks[third] == 5


def test_a_pinned_session_is_out_of_reach() -> None:
    settings, state = small(10)
    idle, running = (hold(settings, state, slot, 256) for slot in (0, 1))
    memory.unpin(settings, state, idle, 256)
    assert memory.available_blocks(state) == 6
    memory.evict(state, 6)
    assert state.blocks[running] == 4
    assert state.blocks[idle] == 0


def test_only_full_blocks_stay() -> None:
    settings, state = small(10)
    entry = hold(settings, state, 0, 200)
    assert state.blocks[entry] == 4
    memory.unpin(settings, state, entry, 200)
    assert state.blocks[entry] == 3
    assert memory.hit_tokens(settings, 3, 3) == 192


def test_a_dropped_tail_dies_before_the_kept_head() -> None:
    settings, state = small(10)
    entry = hold(settings, state, 0, 512)
    memory.unpin(settings, state, entry, 512)
    memory.drop_tail(state, entry, 2)
    assert state.blocks[entry] == 2
    memory.evict(state, 8)
    assert state.blocks[entry] == 2
    memory.evict(state, 9)
    assert state.blocks[entry] == 1


@pytest.mark.parametrize(
    ("rule", "blocks", "kept", "tokens"),
    [
        (StateRule(), 7, 10, 448),
        (StateRule(resume="turn_end", checkpoint_tokens=128), 9, 12, 0),
        (StateRule(resume="turn_end", checkpoint_tokens=128), 12, 12, 640),
        # An interval of 4 blocks and a checkpoint of 1: five blocks for every 256 tokens.
        (StateRule(resume="interval", interval_tokens=256, checkpoint_tokens=64), 9, 12, 256),
        (StateRule(resume="interval", interval_tokens=256, checkpoint_tokens=64), 10, 12, 512),
    ],
)
def test_where_a_hit_may_resume(rule: StateRule, blocks: int, kept: int, tokens: int) -> None:
    settings, _ = small(100, state=rule)
    assert memory.hit_tokens(settings, blocks, kept) == tokens


def balanced(settings: Settings, state: State) -> None:
    """Assert that every block is free, idle or pinned, and every session somewhere."""
    assert state.blocks.min() >= 0
    assert state.blocks.sum() + state.tally[FREE] == settings.capacity_blocks
    idle, entry = 0, state.newer[0]
    while entry != 0:
        assert state.blocks[entry] > 0
        idle += state.blocks[entry]
        assert state.newer[state.older[entry]] == entry
        entry = state.newer[entry]
    assert idle == state.tally[EVICTABLE]
    assert state.tier_kept.sum() == state.tally[TIER_USED] <= settings.tier_blocks
    live = state.context.sum() + state.other_context.sum()
    busy = np.isin(state.phase, [WAITING, LOADING, PREFILLING, DECODING])
    live += (state.prompt - state.context)[busy].sum()
    assert live == state.tally[LIVE_TOKENS]
    number = np.bincount(state.phase, minlength=7)
    assert number[THINKING] == state.tally[N_THINKING]
    assert number[WAITING] == state.tally[N_WAITING]
    assert number[LOADING] == state.tally[N_LOADING]
    assert number[PREFILLING] + number[DECODING] == state.tally[N_RUNNING]
    assert number[DELEGATING] == state.tally[N_DELEGATING]
    assert number.sum() == settings.slots


HELPERS = SubAgents(
    probability=0.1,
    count=LognormalMixture.from_mean_cv(2.0, 0.5),
    laws=replace(CASE.classes()[0][1], turns=LognormalMixture.from_mean_cv(5.0, 0.5)),
    most=4,
)
VARIANTS: dict[str, SimulationCase] = {
    "plain": replace(CASE, concurrency=14),
    "tight": replace(CASE, concurrency=14, kv_tokens=200_000, max_context_tokens=150_000),
    "tier": replace(
        CASE, concurrency=14, tier=Tier(tokens=7e5, bytes_per_token=70272, bytes_per_s=2e10)
    ),
    "hybrid": replace(
        CASE,
        concurrency=12,
        state=StateRule(resume="turn_end", running_tokens=4000, checkpoint_tokens=2000),
    ),
    "checkpoints": replace(
        CASE,
        concurrency=12,
        state=StateRule(
            resume="interval", interval_tokens=4096, running_tokens=900, checkpoint_tokens=300
        ),
    ),
    "resets": replace(
        CASE,
        concurrency=12,
        sessions=replace(CASE.sessions, reset_probability=0.1, reset_kept_tokens=3000),
        tier=Tier(tokens=3e5, bytes_per_token=70272, bytes_per_s=2e10),
    ),
    "frozen": replace(CASE, concurrency=12, frozen_context_tokens=(45_000.0,) * 12),
    "sub-agents": replace(CASE, concurrency=10, sessions=replace(CASE.sessions, agents=HELPERS)),
    "branches": replace(
        CASE,
        concurrency=7,
        branches=3,
        tier=Tier(tokens=7e5, bytes_per_token=70272, bytes_per_s=2e10),
    ),
    "open": replace(CASE, concurrency=10, session_arrivals_per_s=0.03),
    "longest prefix": replace(CASE, concurrency=14, policy="longest_prefix"),
    "no prefix cache": replace(CASE, concurrency=6, prefix_caching=False),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("start", ["warm", "fresh"])
def test_no_block_and_no_session_is_lost(name: str, start: str) -> None:
    case = VARIANTS[name]
    settings = run_settings(case)
    rng = np.random.default_rng(3)
    draws = run_draws(case, 3000, rng)
    state = start_state(case, settings, draws, start, rng)  # type: ignore[arg-type]
    records = empty_records(3000 + case.concurrency)
    balanced(settings, state)
    level, slope = np.zeros((2, 8))
    for done in (100, 500, 1500, 3000):
        advance(settings, draws, state, records, level, slope, done)
        balanced(settings, state)
    assert (records.finish_s[:3000] >= records.first_token_s[:3000]).all()
    assert (records.first_token_s[:3000] > records.arrival_s[:3000]).all()
    found = records.hbm_hit[:3000] + records.tier_hit[:3000]
    assert (found <= records.ceiling[:3000]).all()
    assert (found < records.prompt[:3000]).all()
