"""What runs in the next step: decodes first, then the oldest prefills, then who waits.

Memory is allocated chunk by chunk; when a running request cannot grow, the newest running
request is preempted and recomputed later (it keeps what nobody evicts meanwhile).
"""

from __future__ import annotations

from .compiled import compiled
from .memory import (
    available_blocks,
    held_blocks,
    hit_tokens,
    pin,
    resize,
    touch_tier,
    unpin,
    write_tier,
)
from .sessions import enqueue
from .state import (
    DECODING,
    LINK_FREE,
    LOAD_HEAD,
    LOADING,
    N_LOADING,
    N_RUNNING,
    N_WAITING,
    NOW,
    PREEMPTIONS,
    PREFILLING,
    WAIT_HEAD,
    Settings,
    State,
)


@compiled
def cached_tokens(settings: Settings, state: State, slot: int) -> int:
    """KV tokens that a running slot has computed, private ones [tokens]."""
    if state.phase[slot] == DECODING:
        return int(state.prompt[slot] + state.generated[slot]) - 1
    return int(state.computed[slot])


@compiled
def preempt_newest(settings: Settings, state: State) -> int:
    """Send the newest running request back to the front of the queue; return its slot."""
    state.tally[N_RUNNING] -= 1
    slot = int(state.running[state.tally[N_RUNNING]])
    tokens = cached_tokens(settings, state, slot)
    unpin(settings, state, state.entry[slot], tokens)
    write_tier(settings, state, state.entry[slot])
    state.generated[slot] = float(int(state.generated[slot]))
    state.target[slot] = state.prompt[slot] + int(state.generated[slot])
    state.chunk[slot] = 0
    state.tally[PREEMPTIONS] += 1
    enqueue(state, slot, True)
    return slot


@compiled
def grow(settings: Settings, state: State, slot: int, tokens: int) -> bool:
    """Hold room for `tokens`; False if the slot itself had to be preempted for lack of it."""
    entry = state.entry[slot]
    wanted = held_blocks(settings, tokens)
    while wanted - state.blocks[entry] > available_blocks(state):
        if preempt_newest(settings, state) == slot:
            return False
    if wanted > state.blocks[entry]:
        resize(state, entry, wanted)
    return True


@compiled
def found_tokens(settings: Settings, state: State, slot: int) -> tuple[int, int]:
    """Tokens that a look-up finds now: (in HBM, to load from the second tier) [tokens]."""
    entry = state.entry[slot]
    # At least one token is computed: the first output needs its logits.
    most = (state.target[slot] - 1) // settings.block_tokens * settings.block_tokens
    hbm = min(hit_tokens(settings, state.blocks[entry], state.kept[entry]), most)
    tier = 0
    if settings.tier_blocks > 0:
        tier = min(hit_tokens(settings, state.tier_kept[entry], state.kept[entry]), most)
    return hbm, max(tier - hbm, 0)


@compiled
def next_waiting(settings: Settings, state: State) -> int:
    """Place in the queue of the request that starts next: the first, or the best cached one."""
    best = 0
    if not settings.longest_prefix_first:
        return best
    size = state.waiting.shape[0]
    most = -1
    for place in range(state.tally[N_WAITING]):
        slot = state.waiting[(state.tally[WAIT_HEAD] + place) % size]
        hbm, loaded = found_tokens(settings, state, slot)
        if hbm + loaded > most:
            most = hbm + loaded
            best = place
    return best


@compiled
def leave_queue(state: State, place: int) -> None:
    """Take the request at a place out of the queue; those before it move up."""
    size = state.waiting.shape[0]
    head = state.tally[WAIT_HEAD]
    for before in range(place, 0, -1):
        state.waiting[(head + before) % size] = state.waiting[(head + before - 1) % size]
    state.tally[WAIT_HEAD] = (head + 1) % size
    state.tally[N_WAITING] -= 1


@compiled
def start(settings: Settings, state: State, slot: int, budget: int) -> bool:
    """Begin a waiting request if its first chunk, or its load, finds room."""
    entry = state.entry[slot]
    hbm, loaded = found_tokens(settings, state, slot)
    cached = hbm + loaded
    chunk = 0 if loaded > 0 else min(budget, state.target[slot] - cached)
    wanted = held_blocks(settings, cached + chunk)
    if wanted > available_blocks(state):
        return False
    pin(state, entry)
    resize(state, entry, wanted)
    touch_tier(settings, state, entry)
    state.computed[slot] = cached
    state.chunk[slot] = chunk
    if state.looked_up[slot] == 0:
        state.looked_up[slot] = 1
        state.hbm_hit[slot] = hbm
        state.tier_hit[slot] = loaded
    if loaded > 0:
        begin_s = max(state.clock[NOW], state.clock[LINK_FREE])
        state.clock[LINK_FREE] = begin_s + loaded * settings.load_s_per_token
        state.ready_s[slot] = state.clock[LINK_FREE]
        state.phase[slot] = LOADING
        size = state.loading.shape[0]
        state.loading[(state.tally[LOAD_HEAD] + state.tally[N_LOADING]) % size] = slot
        state.tally[N_LOADING] += 1
    else:
        state.phase[slot] = PREFILLING
        state.running[state.tally[N_RUNNING]] = slot
        state.tally[N_RUNNING] += 1
    return True


@compiled
def schedule(settings: Settings, state: State) -> int:
    """Set every running slot's chunk for one step; return the step's prefill tokens [tokens]."""
    preemptions = state.tally[PREEMPTIONS]
    budget = settings.max_batched_tokens
    place = 0
    while place < state.tally[N_RUNNING]:
        slot = state.running[place]
        state.chunk[slot] = 0
        if state.phase[slot] == DECODING:
            after = int(state.prompt[slot] + state.generated[slot] + settings.accepted_tokens)
            if grow(settings, state, slot, after):
                budget -= settings.verify_tokens
        place += 1
    prefill = 0
    place = 0
    while place < state.tally[N_RUNNING] and budget > 0:
        slot = state.running[place]
        if state.phase[slot] == PREFILLING:
            chunk = min(budget, state.target[slot] - state.computed[slot])
            if grow(settings, state, slot, state.computed[slot] + chunk):
                state.chunk[slot] = chunk
                budget -= chunk
                prefill += chunk
        place += 1
    while (
        state.tally[PREEMPTIONS] == preemptions
        and budget > 0
        and state.tally[N_WAITING] > 0
        and state.tally[N_RUNNING] + state.tally[N_LOADING] < settings.max_sequences
    ):
        place = next_waiting(settings, state)
        slot = state.waiting[(state.tally[WAIT_HEAD] + place) % state.waiting.shape[0]]
        if not start(settings, state, slot, budget):
            break
        leave_queue(state, place)
        budget -= state.chunk[slot]
        prefill += state.chunk[slot]
    return prefill
