"""A lone session of constant turns: its duration straight from the step law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from capmodel.simulate import SessionLaws, SimulationCase
from capmodel.spec.distributions import LognormalMixture


def _constant_laws(**changes: float) -> SessionLaws:
    values = {"first_tokens": 5000, "new_tokens": 700, "output_tokens": 101, "turns": 6}
    values |= {"think_time": 4.0, **changes}
    return SessionLaws(**{name: LognormalMixture.constant(value) for name, value in values.items()})


def _lone_cycle_s(case: SimulationCase, first: int, new: int, output: int, turns: int) -> float:
    """Seconds of a lone session of constant turns, straight from the step law."""
    law, block, total, kept, prompt = case.step_law, case.block_tokens, 0.0, 0, 0
    for turn in range(turns):
        shared = case.shared_prefix_tokens
        prompt = first if turn == 0 else prompt + output + new
        done = kept
        while done < prompt:
            chunk = min(law.max_batched_tokens, prompt - done)
            total += float(law.step_s(chunk, shared + done))
            done += chunk
        steps = np.arange(int(np.ceil((output - 1) / law.accepted_tokens)))
        context = shared + prompt + 1 + steps * law.accepted_tokens
        total += float(law.step_s(0, 0, 1, context).sum())
        kept = (prompt + output - 1) // block * block
    return total


@pytest.fixture
def constant_laws() -> Callable[..., SessionLaws]:
    """Laws of constants, by keyword."""
    return _constant_laws


@pytest.fixture
def lone_cycle_s() -> Callable[..., float]:
    """Engine seconds of a lone session: case, first, new, output tokens and turns."""
    return _lone_cycle_s
