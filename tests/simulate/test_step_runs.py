"""The compiled step time against the step law, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capmodel.service.step_law import StepLaw, raw_step_law, term
from capmodel.simulate.steps import run_s, steps_until

LAWS = {
    "one roof": raw_step_law(
        active_params=60e9, fixed_weight_bytes=90e9, expert_weight_bytes=1.4e12, experts=896,
        experts_per_token=16, flop_per_s=3e15, bytes_per_s=38.4e12, prefill_pair_flop=1.5e6,
        decode_pair_flop=5e6, kv_read_bytes_per_token=111640, step_overhead_s=0.004,
        max_batched_tokens=2048,
    ),
    "three classes": StepLaw(
        terms=(
            term("gemm", compute={"tokens": 2e-5}, memory={"step": 2e-3}),
            # The two sides cross as the context grows, in both directions over the examples.
            term("attention", compute={"decode_context": 3e-9, "prefill_pairs": 2e-9},
                 memory={"step": 1e-3, "decode_context": 1e-9, "prefill_context": 4e-9}),
            term("overhead", memory={"step": 1e-3, "sequences": 1e-5}),
        ),
        verify_tokens=2, accepted_tokens=1.7,
    ),
}  # fmt: skip


def levels_and_slopes(
    law: StepLaw, sequences: int, context: float, chunk: int, start: int
) -> tuple[np.ndarray, np.ndarray]:
    first = law.features(chunk, start, sequences, context)
    second = law.features(chunk, start + chunk, sequences, context + law.accepted_tokens)
    return first, second - first


@pytest.mark.parametrize("name", LAWS)
@given(
    sequences=st.integers(0, 60),
    context=st.floats(100.0, 3e5),
    chunk=st.integers(0, 2000),
    start=st.integers(0, 400_000),
    steps=st.integers(1, 400),
)
@settings(max_examples=60, deadline=None)
def test_a_run_is_the_sum_of_its_steps(
    name: str, sequences: int, context: float, chunk: int, start: int, steps: int
) -> None:
    law = LAWS[name]
    if chunk + sequences == 0:
        sequences = 1
    level, slope = levels_and_slopes(law, sequences, context, chunk, start)
    number = np.arange(steps)
    one_by_one = law.step_s(
        chunk, start + number * chunk, sequences, context + number * law.accepted_tokens
    )
    assert run_s(*law.sides(), level, slope, steps) == pytest.approx(one_by_one.sum(), rel=1e-9)


@given(seconds=st.floats(1e-4, 20.0), limit=st.integers(1, 900))
@settings(max_examples=100, deadline=None)
def test_a_run_stops_at_the_first_step_past_the_event(seconds: float, limit: int) -> None:
    law = LAWS["three classes"]
    level, slope = levels_and_slopes(law, 8, 20_000.0, 0, 0)
    sides = law.sides()
    steps = steps_until(*sides, level, slope, limit, seconds)
    assert 1 <= steps <= limit
    if steps < limit:
        assert run_s(*sides, level, slope, steps) >= seconds
    if steps > 1:
        assert run_s(*sides, level, slope, steps - 1) < seconds
