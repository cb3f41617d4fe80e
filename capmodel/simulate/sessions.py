"""Sessions: thinking, arriving with the next prompt, finishing a turn, being replaced."""

from __future__ import annotations

from .compiled import compiled
from .memory import drop_tail, hit_tokens, kept_blocks, new_entry, recycle_if_gone
from .state import (
    ARRIVAL,
    ASLEEP,
    DELEGATING,
    DONE,
    LIVE_TOKENS,
    N_ASLEEP,
    N_DELEGATING,
    N_THINKING,
    N_WAITING,
    NEXT_ARRIVAL,
    NEXT_SESSION,
    NEXT_TURN,
    NOW,
    THINKING,
    TURNED_AWAY,
    WAIT_HEAD,
    WAITING,
    Draws,
    Settings,
    State,
)


@compiled
def think(state: State, slot: int, until_s: float) -> None:
    """Put a slot to thinking until a time: a push on the heap of wake-up times."""
    heap, ready_s = state.thinking, state.ready_s
    state.phase[slot] = THINKING
    ready_s[slot] = until_s
    place = state.tally[N_THINKING]
    state.tally[N_THINKING] += 1
    while place > 0:
        parent = (place - 1) // 2
        if ready_s[heap[parent]] <= until_s:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = slot


@compiled
def wake(state: State) -> int:
    """Take the slot that thinks shortest off the heap."""
    heap, ready_s = state.thinking, state.ready_s
    first = int(heap[0])
    state.tally[N_THINKING] -= 1
    size = state.tally[N_THINKING]
    last = heap[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and ready_s[heap[child + 1]] < ready_s[heap[child]]:
            child += 1
        if ready_s[heap[child]] >= ready_s[last]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last
    return first


@compiled
def enqueue(state: State, slot: int, front: bool) -> None:
    """Put a slot at the end of the waiting queue, or at its front after a preemption."""
    size = state.waiting.shape[0]
    state.phase[slot] = WAITING
    if front:
        state.tally[WAIT_HEAD] = (state.tally[WAIT_HEAD] - 1) % size
        state.waiting[state.tally[WAIT_HEAD]] = slot
    else:
        state.waiting[(state.tally[WAIT_HEAD] + state.tally[N_WAITING]) % size] = slot
    state.tally[N_WAITING] += 1


@compiled
def begin_session(draws: Draws, state: State, slot: int) -> None:
    """Give a slot a fresh session that has nothing in cache."""
    number = state.tally[NEXT_SESSION] % draws.turns.shape[1]
    state.tally[NEXT_SESSION] += 1
    state.entry[slot] = new_entry(state, slot)
    others = state.other_entry.shape[0] // state.entry.shape[0]
    for place in range(slot * others, (slot + 1) * others):
        state.other_entry[place] = new_entry(state, slot)
        state.other_context[place] = 0
    state.turn[slot] = 0
    state.turns[slot] = draws.turns[state.kind[slot], number]
    state.context[slot] = 0


@compiled
def switch_branch(settings: Settings, state: State, slot: int, branch: int) -> None:
    """Go on with another of a session's contexts; the last one stays as it is."""
    if branch == 0:
        return
    place = slot * (settings.branches - 1) + branch - 1
    entry, context = state.entry[slot], state.context[slot]
    state.entry[slot] = state.other_entry[place]
    state.context[slot] = state.other_context[place]
    state.other_entry[place] = entry
    state.other_context[place] = context


@compiled
def arrive(settings: Settings, draws: Draws, state: State, slot: int) -> None:
    """Draw the slot's next turn and queue it."""
    kind = state.kind[slot]
    number = state.tally[NEXT_TURN] % draws.new_tokens.shape[1]
    state.tally[NEXT_TURN] += 1
    state.turn[slot] += 1
    if slot < settings.sessions:
        switch_branch(settings, state, slot, draws.branch[number])
    entry = state.entry[slot]
    before = state.context[slot]
    output = draws.output_tokens[kind, number]
    new = draws.new_tokens[kind, number]
    kept = before
    if settings.frozen:
        kept = max(before - new - output, 0)
    elif before == 0:
        new = draws.first_tokens[kind, number]
    elif draws.reset_tokens[kind, number] > 0:
        new = draws.reset_tokens[kind, number]
        kept = min(draws.reset_kept_tokens[kind], before)
    if kept < before:
        drop_tail(state, entry, kept_blocks(settings, kept) if settings.resume < 2 else 0)
        state.context[slot] = kept
    context = state.context[slot]
    room = settings.limit_tokens - context
    if new + output > room:
        output = max(1, min(output, room - 1))
        new = max(1, room - output)
        state.turns[slot] = state.turn[slot]
    state.prompt[slot] = context + new
    state.output[slot] = output
    state.target[slot] = context + new
    state.generated[slot] = 0.0
    state.looked_up[slot] = 0
    state.tally[LIVE_TOKENS] += context + new - before
    state.arrival_s[slot] = state.ready_s[slot]
    state.ceiling[slot] = hit_tokens(settings, state.kept[entry], state.kept[entry])
    enqueue(state, slot, False)


@compiled
def delegate(settings: Settings, draws: Draws, state: State, slot: int, agents: int) -> None:
    """Start a session's sub-agents; it goes on when the last of them has ended."""
    state.phase[slot] = DELEGATING
    state.tally[N_DELEGATING] += 1
    state.pending[slot] = agents
    first = settings.sessions + slot * settings.agents
    for agent in range(first, first + agents):
        state.kind[agent] = draws.agent_kind[state.kind[slot]]
        begin_session(draws, state, agent)
        think(state, agent, state.clock[NOW])


@compiled
def end_session(settings: Settings, draws: Draws, state: State, slot: int, think_s: float) -> None:
    """Leave the session's blocks behind, and say who comes next on its slot."""
    state.owner[state.entry[slot]] = -1
    recycle_if_gone(state, state.entry[slot])
    state.tally[LIVE_TOKENS] -= state.prompt[slot] + state.output[slot]
    others = settings.branches - 1
    for place in range(slot * others, (slot + 1) * others):
        state.owner[state.other_entry[place]] = -1
        recycle_if_gone(state, state.other_entry[place])
        state.tally[LIVE_TOKENS] -= state.other_context[place]
    state.context[slot] = 0
    now_s = state.clock[NOW]
    if slot >= settings.sessions:
        state.phase[slot] = ASLEEP
        parent = (slot - settings.sessions) // settings.agents
        state.pending[parent] -= 1
        if state.pending[parent] == 0:
            state.tally[N_DELEGATING] -= 1
            think(state, parent, now_s)
    elif settings.open_arrivals:
        state.phase[slot] = ASLEEP
        state.asleep[state.tally[N_ASLEEP]] = slot
        state.tally[N_ASLEEP] += 1
    else:
        begin_session(draws, state, slot)
        think(state, slot, now_s + think_s)


@compiled
def admit_session(settings: Settings, draws: Draws, state: State) -> None:
    """Let the next session of an open stream in, or turn it away where every slot is taken."""
    arrived_s = state.clock[ARRIVAL]
    number = state.tally[NEXT_ARRIVAL] % draws.arrival_gap_s.shape[0]
    state.tally[NEXT_ARRIVAL] += 1
    state.clock[ARRIVAL] = arrived_s + draws.arrival_gap_s[number]
    if state.tally[N_ASLEEP] == 0:
        state.tally[TURNED_AWAY] += 1
        return
    state.tally[N_ASLEEP] -= 1
    slot = int(state.asleep[state.tally[N_ASLEEP]])
    begin_session(draws, state, slot)
    think(state, slot, arrived_s)


@compiled
def leave(settings: Settings, draws: Draws, state: State, slot: int) -> None:
    """End a slot's turn: think, start sub-agents, or end the session with it."""
    number = state.tally[DONE] % draws.think_s.shape[1]
    kind = state.kind[slot]
    think_s = draws.think_s[kind, number]
    state.tally[LIVE_TOKENS] += state.output[slot]
    state.context[slot] = state.prompt[slot] + state.output[slot]
    if state.turn[slot] >= state.turns[slot]:
        end_session(settings, draws, state, slot, think_s)
    elif draws.agents[kind, number] > 0 and slot < settings.sessions:
        delegate(settings, draws, state, slot, draws.agents[kind, number])
    else:
        think(state, slot, state.clock[NOW] + think_s)
