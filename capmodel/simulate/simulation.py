"""Run a case over seeds and reduce its turns to a `SimulationResult`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import SpecError
from ..service.step_law import FEATURES
from .case import SimulationCase, Start
from .draws import run_draws
from .reduction import reduced
from .result import SimulationResult
from .start import run_settings, start_state
from .state import (
    BUSY,
    DONE,
    NOW,
    PREEMPTIONS,
    PREFILL_BUSY,
    TURNED_AWAY,
    FloatArray,
    Records,
    Settings,
    empty_records,
    rows,
)

SLICE_TURNS = 2_000  # turns between two looks at the clock

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRun:
    """One seed's turns after the warm-up, and its sums over time."""

    records: Records
    began_s: float
    ended_s: float
    busy_s: float
    prefill_busy_s: float
    preemptions: int
    turned_away: int
    phase_s: FloatArray
    pinned_block_s: float
    composition_s: FloatArray


def seed_run(
    case: SimulationCase,
    settings: Settings,
    *,
    turns: int,
    warm_up_turns: int,
    seed: int,
    start: Start,
    deadline_s: float,
    progress: Progress | None,
) -> SeedRun:
    """Simulate one seed until `turns` turns are done or the wall clock passes `deadline_s`."""
    from .engine import advance

    rng = np.random.default_rng([seed, case.concurrency])
    total = warm_up_turns + turns
    draws = run_draws(case, total, rng)
    state = start_state(case, settings, draws, start, rng)
    records = empty_records(total + settings.slots)
    level, slope = np.zeros((2, len(FEATURES)), dtype=np.float64)

    def until(limit: int) -> None:
        while state.tally[DONE] < limit and time.monotonic() < deadline_s:
            target = min(int(state.tally[DONE]) + SLICE_TURNS, limit)
            advance(settings, draws, state, records, level, slope, target)
            if progress is not None:
                progress(min(1.0, float(state.tally[DONE]) / total))

    until(warm_up_turns)
    first = int(state.tally[DONE])
    before = (state.clock.copy(), state.phase_s.copy(), state.pinned_block_s.copy(),
              state.composition_s.copy(), state.tally.copy())  # fmt: skip
    until(total)
    last = int(state.tally[DONE])
    return SeedRun(
        records=rows(records, first, last),
        began_s=float(before[0][NOW]),
        ended_s=float(state.clock[NOW]),
        busy_s=float(state.clock[BUSY] - before[0][BUSY]),
        prefill_busy_s=float(state.clock[PREFILL_BUSY] - before[0][PREFILL_BUSY]),
        preemptions=int(state.tally[PREEMPTIONS] - before[4][PREEMPTIONS]),
        turned_away=int(state.tally[TURNED_AWAY] - before[4][TURNED_AWAY]),
        phase_s=state.phase_s - before[1],
        pinned_block_s=float(state.pinned_block_s[0] - before[2][0]),
        composition_s=state.composition_s - before[3],
    )


def simulate(
    case: SimulationCase,
    *,
    turns: int = 100_000,
    seeds: int = 4,
    first_seed: int = 0,
    start: Start = "warm",
    warm_up: float = 0.1,
    window_s: float = 3600.0,
    time_limit_s: float = np.inf,
    progress: Progress | None = None,
) -> SimulationResult:
    """Simulate a case session by session.

    Parameters
    ----------
    case : SimulationCase
        What runs.
    turns : int
        Turns counted per seed, after the warm-up [1].
    seeds, first_seed : int
        Independent runs, and the number of the first [1].
    start : {"warm", "cold", "fresh"}
        Sessions met midway with their contexts in cache; the same with an empty cache; or all
        sessions before their first turn.
    warm_up : float
        Turns run first and not counted, as a share of `turns`; 0 keeps the transient [1].
    window_s : float
        Length of a benchmark window [s].
    time_limit_s : float
        Real time after which the run stops with what it has [s].
    progress : callable, optional
        Called with the finished share of the whole [1].

    Returns
    -------
    SimulationResult
        Pooled over seeds: total turns over total time, so the turn clock weighs compositions.

    Raises
    ------
    SpecError
        If a number is out of range, or the time limit passed before a turn was counted.
    """
    if turns < 1 or seeds < 1 or warm_up < 0 or window_s <= 0:
        raise SpecError("turns, seeds and window_s are positive and warm_up is not negative.")
    if start not in ("warm", "cold", "fresh"):
        raise SpecError("start is warm, cold or fresh.", field="start")
    began = time.monotonic()
    settings = run_settings(case)
    runs = []
    for number in range(seeds):
        report = None if progress is None else _share(progress, number, seeds)
        # Each seed gets an equal part of what is left, so all of them are heard.
        left_s = began + time_limit_s - time.monotonic()
        run = seed_run(
            case,
            settings,
            turns=turns,
            warm_up_turns=round(warm_up * turns),
            seed=first_seed + number,
            start=start,
            deadline_s=time.monotonic() + left_s / (seeds - number),
            progress=report,
        )
        if run.records.finish_s.size:
            runs.append(run)
    if not runs:
        raise SpecError(
            f"no turn was finished within {time_limit_s:g} s after the warm-up; "
            "give a longer time limit or fewer turns.",
            field="time_limit_s",
        )
    wall_s = time.monotonic() - began
    complete = sum(run.records.finish_s.size for run in runs) >= turns * seeds
    return reduced(case, settings, runs, window_s=window_s, wall_s=wall_s, complete=complete)


def _share(progress: Progress, number: int, seeds: int) -> Progress:
    return lambda share: progress((number + share) / seeds)
