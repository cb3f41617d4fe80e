"""The event loop: arrivals and loads, one step or a run of equal steps, finished turns."""

from __future__ import annotations

import math
from collections.abc import Callable

from .compiled import compiled, compiled_and_kept, fingerprint
from .memory import available_blocks, held_blocks, resize, unpin, write_tier
from .scheduler import schedule
from .sessions import admit_session, arrive, leave, wake
from .state import (
    ARRIVAL,
    BUSY,
    COMPOSITION_BIN,
    COMPOSITION_BINS,
    DECODING,
    DELEGATING,
    DONE,
    EVICTABLE,
    FREE,
    LIVE_TOKENS,
    LOAD_HEAD,
    N_DELEGATING,
    N_LOADING,
    N_RUNNING,
    N_THINKING,
    N_WAITING,
    NOW,
    PREFILL_BUSY,
    PREFILLING,
    STEPS,
    Draws,
    FloatArray,
    Records,
    Settings,
    State,
)
from .steps import (
    COVERAGE,
    DECODE_CONTEXT,
    PREFILL_CHUNKS,
    PREFILL_CONTEXT,
    PREFILL_PAIRS,
    SEQUENCES,
    STEP,
    TOKENS,
    run_s,
    steps_until,
)


@compiled
def next_event_s(state: State) -> float:
    """Time of the next arrival or finished load; infinity for none [s]."""
    event_s = float(state.clock[ARRIVAL])
    if state.tally[N_THINKING] > 0:
        event_s = min(event_s, float(state.ready_s[state.thinking[0]]))
    if state.tally[N_LOADING] > 0:
        first = state.loading[state.tally[LOAD_HEAD]]
        event_s = min(event_s, float(state.ready_s[first]))
    return event_s


@compiled
def take_events(settings: Settings, draws: Draws, state: State) -> None:
    """Queue everyone who has stopped thinking and run everyone whose load is done."""
    now_s = state.clock[NOW]
    while state.clock[ARRIVAL] <= now_s:
        admit_session(settings, draws, state)
    while state.tally[N_THINKING] > 0 and state.ready_s[state.thinking[0]] <= now_s:
        arrive(settings, draws, state, wake(state))
    while state.tally[N_LOADING] > 0:
        slot = state.loading[state.tally[LOAD_HEAD]]
        if state.ready_s[slot] > now_s:
            break
        state.tally[LOAD_HEAD] = (state.tally[LOAD_HEAD] + 1) % state.loading.shape[0]
        state.tally[N_LOADING] -= 1
        state.phase[slot] = PREFILLING
        state.running[state.tally[N_RUNNING]] = slot
        state.tally[N_RUNNING] += 1


@compiled
def set_features(settings: Settings, state: State, level: FloatArray, slope: FloatArray) -> None:
    """Fill in the step law's features for the scheduled step, and how they move step by step."""
    level[:] = 0.0
    slope[:] = 0.0
    level[STEP] = 1.0
    for place in range(state.tally[N_RUNNING]):
        slot = state.running[place]
        if state.phase[slot] == DECODING:
            level[TOKENS] += settings.verify_tokens
            level[SEQUENCES] += 1.0
            context = settings.shared_tokens + state.prompt[slot] + state.generated[slot]
            level[DECODE_CONTEXT] += context
            slope[DECODE_CONTEXT] += settings.accepted_tokens
        elif state.chunk[slot] > 0:
            chunk = float(state.chunk[slot])
            at = settings.shared_tokens + state.computed[slot]
            level[TOKENS] += chunk
            level[PREFILL_PAIRS] += chunk * (at + 0.5 * chunk)
            level[PREFILL_CONTEXT] += at + chunk
            level[PREFILL_CHUNKS] += 1.0
            slope[PREFILL_PAIRS] += chunk * chunk
            slope[PREFILL_CONTEXT] += chunk
    level[COVERAGE] = settings.coverage[int(level[TOKENS])]


@compiled
def tokens_after(settings: Settings, state: State, slot: int, steps: int) -> int:
    """Private tokens that a running slot holds after `steps` like steps [tokens]."""
    if state.phase[slot] == DECODING:
        gained = steps * settings.accepted_tokens
        return int(state.prompt[slot] + state.generated[slot] + gained)
    return int(state.computed[slot] + steps * state.chunk[slot])


@compiled
def run_length(
    settings: Settings, state: State, level: FloatArray, slope: FloatArray, event_s: float
) -> int:
    """Like steps until something changes: a response or a prompt ends, memory runs short, an event.

    While one prefill takes the whole budget, or none runs, nobody else can start.
    """
    chunks = level[PREFILL_CHUNKS]
    if chunks > 1.0:
        return 1
    decode_tokens = settings.verify_tokens * level[SEQUENCES]
    if chunks == 1.0 and level[TOKENS] < settings.max_batched_tokens:
        return 1
    if chunks == 0.0 and decode_tokens >= settings.max_batched_tokens:
        return 1
    steps = 1 << 40
    for place in range(state.tally[N_RUNNING]):
        slot = state.running[place]
        if state.phase[slot] == DECODING:
            steps = min(steps, state.steps_left[slot])
        elif state.chunk[slot] > 0:
            rest = state.target[slot] - state.computed[slot]
            steps = min(steps, rest // state.chunk[slot])
    needed = 0
    for place in range(state.tally[N_RUNNING]):
        slot = state.running[place]
        wanted = held_blocks(settings, tokens_after(settings, state, slot, steps))
        needed += max(wanted - state.blocks[state.entry[slot]], 0)
    if needed > available_blocks(state):
        return 1
    seconds = event_s - state.clock[NOW]
    return steps_until(settings.compute_s, settings.memory_s, level, slope, steps, seconds)


@compiled
def pass_time(settings: Settings, state: State, seconds: float) -> None:
    """Advance the clock and the time-weighted sums."""
    state.clock[NOW] += seconds
    phase_s = state.phase_s
    phase_s[0] += seconds * state.tally[N_THINKING]
    phase_s[1] += seconds * state.tally[N_WAITING]
    phase_s[2] += seconds * state.tally[N_LOADING]
    phase_s[DELEGATING] += seconds * state.tally[N_DELEGATING]
    for place in range(state.tally[N_RUNNING]):
        phase_s[state.phase[state.running[place]]] += seconds
    pinned = settings.capacity_blocks - state.tally[FREE] - state.tally[EVICTABLE]
    state.pinned_block_s[0] += seconds * pinned
    budget = settings.capacity_blocks * settings.block_tokens
    level = int(state.tally[LIVE_TOKENS] / (COMPOSITION_BIN * budget))
    state.composition_s[min(level, COMPOSITION_BINS - 1)] += seconds


@compiled
def record(state: State, records: Records, slot: int, now_s: float) -> None:
    """Write down a finished turn."""
    row = state.tally[DONE]
    records.arrival_s[row] = state.arrival_s[slot]
    records.first_token_s[row] = state.first_token_s[slot]
    records.finish_s[row] = now_s
    records.prompt[row] = state.prompt[slot]
    records.output[row] = state.output[slot]
    records.hbm_hit[row] = state.hbm_hit[slot]
    records.tier_hit[row] = state.tier_hit[slot]
    records.ceiling[row] = state.ceiling[slot]
    records.kind[row] = state.kind[slot]
    state.tally[DONE] += 1


@compiled
def end_step(settings: Settings, draws: Draws, state: State, records: Records, steps: int) -> None:
    """Move every running slot on by `steps`, and let finished turns go."""
    now_s = state.clock[NOW]
    running = state.tally[N_RUNNING]
    stay = 0
    for place in range(running):
        slot = state.running[place]
        done = False
        if state.phase[slot] == DECODING:
            state.generated[slot] += steps * settings.accepted_tokens
            state.steps_left[slot] -= steps
            done = state.steps_left[slot] <= 0
        elif state.chunk[slot] > 0:
            state.computed[slot] += steps * state.chunk[slot]
            if state.computed[slot] >= state.target[slot]:
                if state.generated[slot] == 0.0:
                    state.first_token_s[slot] = now_s
                state.generated[slot] += 1.0
                rest = (state.output[slot] - state.generated[slot]) / settings.accepted_tokens
                state.steps_left[slot] = math.ceil(rest - 1e-9)
                state.phase[slot] = DECODING
                done = state.steps_left[slot] <= 0
        if done:
            record(state, records, slot, now_s)
            entry = state.entry[slot]
            # The last token's own KV is never written: nothing was computed after it.
            unpin(settings, state, entry, state.prompt[slot] + state.output[slot] - 1)
            write_tier(settings, state, entry)
            leave(settings, draws, state, slot)
        else:
            state.running[stay] = slot
            stay += 1
    state.tally[N_RUNNING] = stay


@compiled
def hold_for_run(settings: Settings, state: State, steps: int) -> None:
    """Allocate what a run of like steps will fill."""
    for place in range(state.tally[N_RUNNING]):
        slot = state.running[place]
        wanted = held_blocks(settings, tokens_after(settings, state, slot, steps))
        if wanted > state.blocks[state.entry[slot]]:
            resize(state, state.entry[slot], wanted)


def _engine(
    version: int,
) -> Callable[[Settings, Draws, State, Records, FloatArray, FloatArray, int], None]:
    @compiled_and_kept
    def advance(
        settings: Settings,
        draws: Draws,
        state: State,
        records: Records,
        level: FloatArray,
        slope: FloatArray,
        turns: int,
    ) -> None:
        # `version` is a closure value, so kept machine code belongs to these sources alone.
        while version and state.tally[DONE] < turns:
            take_events(settings, draws, state)
            prefill = schedule(settings, state)
            if state.tally[N_RUNNING] == 0:
                pass_time(settings, state, next_event_s(state) - state.clock[NOW])
                # Rounding must not leave the clock a hair before the event it waits for.
                state.clock[NOW] = max(state.clock[NOW], next_event_s(state))
                continue
            set_features(settings, state, level, slope)
            steps = run_length(settings, state, level, slope, next_event_s(state))
            hold_for_run(settings, state, steps)
            seconds = run_s(settings.compute_s, settings.memory_s, level, slope, steps)
            if prefill > 0:
                state.clock[PREFILL_BUSY] += seconds
            state.clock[BUSY] += seconds
            state.tally[STEPS] += steps
            pass_time(settings, state, seconds)
            end_step(settings, draws, state, records, steps)

    return advance


advance = _engine(fingerprint())
