"""Laws of the budget: monotone in memory and weights, and how each kind of rank divides it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.errors import SpecError
from capmodel.memory.budget import KvBudget, kv_budget
from capmodel.spec.deployment import Deployment, Speculation

MODELS = ["llama-3.1-8b", "gpt-oss-120b", "kimi-k3", "glm-5.2", "qwen3.6-27b", "deepseek-v4-pro"]
ENGINES = ["vllm", "sglang", "trtllm", "atom"]


def budget_of(name: str, node: str = "8xB300", nodes: int = 1, **fields: Any) -> KvBudget:
    concurrency = fields.pop("concurrency", None)
    deployment = Deployment(**{"tp": 8, **fields})
    return kv_budget(
        catalog.model(name), catalog.node(node, nodes), deployment, concurrency=concurrency
    )


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINES),
    share=st.floats(0.1, 0.98),
    more=st.floats(0.0, 0.5),
)
def test_tokens_never_fall_with_memory(name: str, engine: str, share: float, more: float) -> None:
    length = 32_768
    less = budget_of(name, engine=engine, gpu_memory_utilization=share, max_model_len=length)
    wider = min(1.0, share + more)
    much = budget_of(name, engine=engine, gpu_memory_utilization=wider, max_model_len=length)
    assert much.kv_tokens >= less.kv_tokens
    assert much.usable_kv_tokens >= less.usable_kv_tokens
    assert much.fits or not less.fits
    assert much.shortfall_bytes_per_gpu <= less.shortfall_bytes_per_gpu


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(MODELS), engine=st.sampled_from(ENGINES))
def test_tokens_never_rise_with_weights(name: str, engine: str) -> None:
    pools = []
    for weights in ("nvfp4", "int4", "fp8", "bf16"):
        budget = budget_of(name, engine=engine, weights=weights, max_model_len=32_768)
        pools.append((budget.weights_bytes_per_gpu, budget.kv_tokens))
    pools.sort()
    assert [tokens for _, tokens in pools] == sorted((t for _, t in pools), reverse=True)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(MODELS), live=st.integers(1, 400), more=st.integers(0, 400))
def test_usable_tokens_fall_with_live_requests(name: str, live: int, more: int) -> None:
    few = budget_of(name, concurrency=live).usable_kv_tokens
    assert 0 <= budget_of(name, concurrency=live + more).usable_kv_tokens <= few


def test_what_a_session_of_k3_costs_beside_its_context() -> None:
    # Six state blocks and half an attention block live, three blocks per retained prefix.
    budget = budget_of("kimi-k3", kv_dtype="fp8", available_kv_gib=42.23)
    assert budget.tokens_per_live_request == 6.5 * 1536
    assert budget.tokens_per_resume_point == 4608
    many = budget_of("kimi-k3", kv_dtype="fp8", available_kv_gib=42.23, concurrency=100)
    assert many.usable_kv_tokens == (2135 - 650) * 1536
    assert many.kv_tokens == budget.kv_tokens


@pytest.mark.parametrize("name", ["kimi-k2.5", "deepseek-v3", "glm-5.1"])
@pytest.mark.parametrize("dcp", [2, 4, 8])
def test_context_parallelism_multiplies_the_tokens_of_a_latent(name: str, dcp: int) -> None:
    alone = budget_of(name, available_kv_gib=20.0, max_model_len=65_536)
    shared = budget_of(name, available_kv_gib=20.0, max_model_len=65_536, dcp=dcp)
    assert shared.kv_tokens == dcp * alone.kv_tokens
    assert shared.kv_replication == alone.kv_replication / dcp


def test_context_parallelism_does_not_divide_states() -> None:
    # K3 at DCP8: 689 / 92 = 7.49 times the tokens, not 8.
    alone = budget_of("kimi-k3", available_kv_gib=34.28, kv_dtype="fp8")
    shared = budget_of("kimi-k3", available_kv_gib=34.28, kv_dtype="fp8", dcp=8)
    assert shared.kv_tokens / alone.kv_tokens == pytest.approx(689 / 92, rel=1e-3)
    assert shared.resident_blocks_per_live_request == alone.resident_blocks_per_live_request == 6


@pytest.mark.parametrize("dp", [2, 4])
def test_attention_data_parallelism_adds_pools(dp: int) -> None:
    one = budget_of("deepseek-v3", tp=2, available_kv_gib=30.0, concurrency=4)
    many = budget_of("deepseek-v3", tp=2, dp=dp, available_kv_gib=30.0, concurrency=4 * dp)
    assert many.kv_tokens == dp * one.kv_tokens
    assert many.usable_kv_tokens == dp * one.usable_kv_tokens
    assert many.max_concurrency == dp * one.max_concurrency


def test_data_parallel_ranks_share_the_experts_and_copy_the_rest() -> None:
    one = budget_of("deepseek-v3", tp=1).weights_parts_bytes
    eight = budget_of("deepseek-v3", tp=1, dp=8).weights_parts_bytes
    assert eight["routed_experts"] == one["routed_experts"] / 8
    assert eight["attention"] == one["attention"]


@pytest.mark.parametrize("name", ["llama-3.1-70b", "qwen3-32b"])
@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallelism_divides_weights_but_for_the_norms(name: str, tp: int) -> None:
    alone = budget_of(name, tp=1)
    shared = budget_of(name, tp=tp)
    small = alone.weights_parts_bytes["small"]
    divided = (alone.weights_bytes_per_gpu - small) / tp + small
    assert shared.weights_bytes_per_gpu == pytest.approx(divided)
    assert shared.kv_bytes_per_token == alone.kv_bytes_per_token / tp


def test_the_tightest_pipeline_stage_decides() -> None:
    stages = budget_of("llama-3.1-405b", node="8xH200", nodes=2, pp=2)
    assert stages.weights_bytes_per_gpu > 0.5 * budget_of("llama-3.1-405b").weights_bytes_per_gpu
    assert stages.kv_bytes_per_token == 63 * budget_of("llama-3.1-405b").kv_bytes_per_token / 126
    assert stages.offload_bytes_per_token == pytest.approx(126 * 2 * 8 * 128 * 2 / 2)


def test_offload_bytes_count_the_copies_of_a_latent() -> None:
    budget = budget_of("kimi-k3", kv_dtype="fp8")
    assert budget.unique_kv_bytes_per_token == 13_824
    assert budget.offload_bytes_per_token == 8 * 13_824
    # States are divided over the ranks: 449 MB per retained prefix, over the node.
    assert budget.offload_bytes_per_resume_point == 434_110_464 + 15_261_696


@pytest.mark.parametrize("name", MODELS)
def test_the_json_form_is_plain_and_finite(name: str) -> None:
    values = json.loads(json.dumps(budget_of(name).to_dict(), allow_nan=False))
    contract = {
        "model", "node", "fits", "shortfall_bytes_per_gpu", "weights_bytes_per_gpu",
        "overhead_bytes_per_gpu", "available_kv_bytes_per_gpu", "kv_bytes_per_token",
        "state_bytes_per_sequence", "block_tokens", "kv_tokens", "max_concurrency",
        "total_params", "active_params", "evidence", "kv_blocks", "block_bytes",
        "blocks_per_request", "usable_kv_tokens",
    }  # fmt: skip
    assert contract <= set(values)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "atom"])
def test_the_parts_add_up_to_the_share_of_memory(engine: str) -> None:
    budget = budget_of("qwen3-235b-a22b", engine=engine)
    parts = (
        budget.weights_bytes_per_gpu
        + budget.overhead_bytes_per_gpu
        + budget.available_kv_bytes_per_gpu
    )
    assert parts == pytest.approx(budget.budget_bytes_per_gpu)
    assert math.fsum(budget.weights_parts_bytes.values()) == pytest.approx(
        budget.weights_bytes_per_gpu
    )


def test_intervals_hold_the_estimate_and_the_rounding_of_a_given_figure() -> None:
    free = budget_of("llama-3.1-70b")
    low, high = free.intervals["kv_tokens"]
    assert low < free.kv_tokens < high
    given_gib = budget_of("kimi-k3", available_kv_gib=58.08)
    assert given_gib.intervals["kv_blocks"] == (2936, 2937)


def test_engines_refuse_a_length_that_was_asked_for_and_cut_one_that_was_not() -> None:
    one = {"node": "1xH100-80GB", "tp": 1}
    asked = budget_of("qwen3-32b", **one, max_model_len=40_960)
    assert not asked.fits
    assert "refuses" in asked.warnings[0]
    free = budget_of("qwen3-32b", **one)
    assert free.fits
    assert 0 < free.max_model_len < 40_960
    assert f"--max-model-len {free.max_model_len}" in free.warnings[0]
    assert budget_of("qwen3-32b", **one, max_model_len=free.max_model_len).fits


def test_more_ranks_than_the_node_has_are_an_error() -> None:
    with pytest.raises(SpecError, match="needs 16 GPUs"):
        budget_of("kimi-k3", pp=2)


def test_a_prediction_module_is_loaded_and_cached_when_it_drafts() -> None:
    plain = budget_of("deepseek-v3", max_model_len=65_536)
    drafting = budget_of(
        "deepseek-v3", max_model_len=65_536, speculation=Speculation(name="mtp", draft_tokens=1)
    )
    assert drafting.kv_bytes_per_token == plain.kv_bytes_per_token * 62 / 61
    assert drafting.weights_bytes_per_gpu > plain.weights_bytes_per_gpu


def test_a_window_models_logged_tokens_changed_with_the_release() -> None:
    # Gemma-4 31B, about 50 GiB on an A100: some 55k tokens in 0.20.0 and 525k in 0.21.0.
    fields = {
        "node": "1xA100-80GB", "tp": 1, "available_kv_gib": 50.0, "max_model_len": 131_072,
        "max_num_batched_tokens": 2048,
    }  # fmt: skip
    old = budget_of("gemma-4-31b", **fields, engine_version="0.20.0").kv_tokens
    new = budget_of("gemma-4-31b", **fields, engine_version="0.21.0").kv_tokens
    assert old == pytest.approx(55_000, rel=0.02)
    assert new == pytest.approx(525_000, rel=0.02)


@pytest.mark.parametrize(("drafts", "gib"), [(2, 16.61), (7, 16.97)])
def test_what_one_million_token_request_of_k3_with_its_drafter_needs(
    drafts: int, gib: float
) -> None:
    # Engines' own messages: 16.61 GiB wanted with two draft tokens, 16.9 with more.
    budget = budget_of(
        "kimi-k3", kv_dtype="fp8", speculation=Speculation(name="dspark", draft_tokens=drafts)
    )
    needed = budget.blocks_per_request * budget.block_bytes / 2**30
    assert needed == pytest.approx(gib, abs=0.005)


def test_context_parallelism_needs_ranks_with_the_same_heads() -> None:
    with pytest.raises(SpecError, match="has 1 such rank"):
        budget_of("llama-3.1-70b", dcp=8)
    assert budget_of("qwen3-235b-a22b", dcp=2).kv_replication == 1
