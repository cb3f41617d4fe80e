"""The closed loop keeps its identities, and prefill helpers agree with the steps they sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.errors import SpecError
from capmodel.service.closed_loop import fixed_length_point
from capmodel.service.engine_law import engine_law
from capmodel.service.prefill import (
    chunk_budget_tokens,
    decode_step_s,
    output_token_s,
    packed_prefill_s,
    prefill_s,
    steps_per_prompt,
)
from capmodel.service.step_law import raw_step_law
from capmodel.spec.deployment import Deployment

LAWS = {
    (engine, name): engine_law(
        catalog.model(name), catalog.node("8xB300"), Deployment(tp=8, engine=engine)
    )
    for engine in ("vllm", "sglang")
    for name in ("kimi-k3", "llama-3.1-70b", "gpt-oss-120b")
}
keys = st.sampled_from(sorted(LAWS))


@settings(max_examples=80, deadline=None)
@given(
    keys,
    st.floats(16, 60_000),
    st.floats(2, 4000),
    st.integers(1, 200),
    st.floats(0, 1),
)
def test_littles_law_holds_over_a_cycle(
    key: tuple[str, str], input_tokens: float, output_tokens: float, clients: int, burst: float
) -> None:
    point = fixed_length_point(
        LAWS[key], input_tokens, output_tokens, clients, burst_share=burst, running_limit=64
    )
    latency = point.ttft_s + (output_tokens - 1) * point.tpot_s
    requests_per_s = point.output_tokens_per_s / output_tokens
    assert requests_per_s * latency == pytest.approx(clients, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(keys, st.floats(64, 30_000), st.floats(16, 2000), st.integers(1, 100))
def test_throughput_never_falls_with_clients_nor_tpot_below_the_bare_step(
    key: tuple[str, str], input_tokens: float, output_tokens: float, clients: int
) -> None:
    law = LAWS[key]
    few = fixed_length_point(law, input_tokens, output_tokens, clients)
    many = fixed_length_point(law, input_tokens, output_tokens, clients + 1)
    assert many.output_tokens_per_s >= few.output_tokens_per_s * 0.98
    context = input_tokens + output_tokens / 2
    assert few.tpot_s >= 0.98 * float(decode_step_s(law, 1.0, context))


def test_one_client_pays_its_prefill_and_its_own_steps() -> None:
    law = LAWS["sglang", "llama-3.1-70b"]
    point = fixed_length_point(law, 4000.0, 1001.0, 1)
    step = float(decode_step_s(law, 1.0, 4000 + 1001 / 2))
    assert point.tpot_s == pytest.approx(step, rel=0.01)
    assert point.ttft_s == pytest.approx(float(prefill_s(law, 4000.0)) + law.request_s, rel=0.02)


def test_lockstep_moves_time_from_tpot_to_ttft_and_keeps_throughput() -> None:
    law = LAWS["sglang", "kimi-k3"]
    spread = fixed_length_point(law, 8192.0, 1024.0, 32)
    lockstep = fixed_length_point(law, 8192.0, 1024.0, 32, burst_share=1.0)
    assert lockstep.output_tokens_per_s == pytest.approx(spread.output_tokens_per_s, rel=1e-9)
    assert lockstep.ttft_s > 5 * spread.ttft_s
    assert lockstep.tpot_s < spread.tpot_s


def test_prefill_is_the_sum_of_its_chunks() -> None:
    law = LAWS["vllm", "kimi-k3"]
    budget = law.max_batched_tokens
    chunks = [float(law.step_s(float(budget), 1000.0 + i * budget, 0.0, 0.0)) for i in range(3)] + [
        float(law.step_s(5.0, 1000.0 + 3 * budget, 0.0, 0.0))
    ]
    assert float(prefill_s(law, 3.0 * budget + 5, 1000.0)) == pytest.approx(sum(chunks))


def test_prefill_vector_equals_scalar() -> None:
    law = LAWS["vllm", "llama-3.1-70b"]
    new = np.array([1.0, 100.0, 8192.0, 8193.0, 100_000.0])
    start = np.array([0.0, 5e4, 1e5, 0.0, 2e5])
    vector = prefill_s(law, new, start, 12.0, 30_000.0)
    scalar = [float(prefill_s(law, a, b, 12.0, 30_000.0)) for a, b in zip(new, start, strict=True)]
    np.testing.assert_allclose(vector, scalar, rtol=1e-12)


def test_decodes_beside_a_prefill_slow_it_only_where_steps_are_mixed() -> None:
    mixed, separate = LAWS["vllm", "kimi-k3"], LAWS["sglang", "kimi-k3"]
    assert float(prefill_s(mixed, 20_000.0, 0.0, 16.0, 1e5)) > float(prefill_s(mixed, 20_000.0))
    assert float(prefill_s(separate, 20_000.0, 0.0, 16.0, 1e5)) == float(
        prefill_s(separate, 20_000.0)
    )


def test_short_prompts_share_a_step() -> None:
    law = LAWS["sglang", "llama-3.1-70b"]
    alone = packed_prefill_s(law, 100.0, 1.0)
    shared = packed_prefill_s(law, 100.0, 50.0)
    # The weights are read once for all fifty, so each pays little beyond its own FLOPs.
    assert shared < alone / 2
    assert steps_per_prompt(law, 100.0, 50.0) == pytest.approx(1 / 50)
    assert steps_per_prompt(law, 3.0 * law.max_batched_tokens) == 3.0


def test_decodes_that_fill_the_budget_are_refused() -> None:
    law = LAWS["vllm", "kimi-k3"]
    with pytest.raises(SpecError, match="leave no room for prefill"):
        chunk_budget_tokens(law, law.max_batched_tokens)


def test_raw_law_closed_loop_matches_hand_arithmetic() -> None:
    # One roof, memory-bound decode: weights 1 GB at 1 TB/s is 1 ms a step; prefill 1 ms a token.
    law = raw_step_law(
        active_params=5e8,
        fixed_weight_bytes=1e9,
        expert_weight_bytes=0.0,
        experts=0,
        experts_per_token=0,
        flop_per_s=1e12,
        bytes_per_s=1e12,
        prefill_pair_flop=0.0,
        decode_pair_flop=0.0,
        kv_read_bytes_per_token=0.0,
        step_overhead_s=0.0,
        max_batched_tokens=1000,
    )
    assert float(prefill_s(law, 2500.0)) == pytest.approx(2.5)
    assert float(output_token_s(law, 1.0, 0.0)) == pytest.approx(1e-3)
    point = fixed_length_point(law, 500.0, 101.0, 1)
    assert point.output_tokens_per_s == pytest.approx(101 / (0.5 + 100e-3), rel=1e-6)


def test_a_pipeline_needs_as_many_requests_as_stages() -> None:
    law = engine_law(
        catalog.model("llama-3.1-405b"),
        catalog.node("8xH200", 2),
        Deployment(tp=8, pp=2, engine="sglang"),
    )
    one = fixed_length_point(law, 8192.0, 1.0, 1).output_tokens_per_s
    two = fixed_length_point(law, 8192.0, 1.0, 2).output_tokens_per_s
    eight = fixed_length_point(law, 8192.0, 1.0, 8).output_tokens_per_s
    assert two == pytest.approx(2 * one, rel=0.1)
    assert eight < 1.15 * two
