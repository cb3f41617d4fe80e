"""Sessions: thinking, arriving with the next prompt, finishing a turn, being replaced."""

from __future__ import annotations

from .compiled import compiled
from .memory import drop_tail, hit_tokens, kept_blocks, new_entry, recycle_if_gone
from .state import (
    DONE,
    LIVE_TOKENS,
    N_THINKING,
    N_WAITING,
    NEXT_SESSION,
    NEXT_TURN,
    THINKING,
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
    state.turn[slot] = 0
    state.turns[slot] = draws.turns[state.kind[slot], number]
    state.context[slot] = 0


@compiled
def arrive(settings: Settings, draws: Draws, state: State, slot: int) -> None:
    """Draw the slot's next turn and queue it."""
    kind = state.kind[slot]
    number = state.tally[NEXT_TURN] % draws.new_tokens.shape[1]
    state.tally[NEXT_TURN] += 1
    state.turn[slot] += 1
    entry = state.entry[slot]
    before = state.context[slot]
    output = draws.output_tokens[kind, number]
    new = draws.new_tokens[kind, number]
    kept = before
    if settings.frozen:
        kept = max(before - new - output, 0)
    elif state.turn[slot] == 1:
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
def leave(settings: Settings, draws: Draws, state: State, slot: int, now_s: float) -> None:
    """End a slot's turn: think, and if it was the session's last turn start another one."""
    number = state.tally[DONE] % draws.think_s.shape[1]
    context = state.prompt[slot] + state.output[slot]
    state.tally[LIVE_TOKENS] += state.output[slot]
    if state.turn[slot] >= state.turns[slot]:
        state.owner[state.entry[slot]] = -1
        recycle_if_gone(state, state.entry[slot])
        begin_session(draws, state, slot)
        state.tally[LIVE_TOKENS] -= context
        context = 0
    state.context[slot] = context
    think(state, slot, now_s + draws.think_s[state.kind[slot], number])
