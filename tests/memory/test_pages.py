"""Block geometry against logged block lengths, paddings and concurrency lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.memory.budget import kv_budget
from capmodel.memory.layouts import page_plans
from capmodel.memory.pages import PagePlan
from capmodel.spec.deployment import Deployment, Speculation

MTP3 = Speculation(name="mtp", draft_tokens=3)
DFLASH = Speculation(name="dflash", draft_tokens=15)
DSPARK2 = Speculation(name="dspark", draft_tokens=2)


def plan_of(name: str, **fields: object) -> PagePlan:
    part = catalog.accelerator("H200")
    return page_plans(catalog.model(name), Deployment(**fields), part)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "fields", "block_tokens"),
    [
        ("kimi-k3", {"tp": 8, "kv_dtype": "fp8"}, 1536),
        ("kimi-k3", {"tp": 8}, 768),
        ("kimi-k3", {"tp": 8, "kv_dtype": "fp8", "dcp": 8}, 8 * 1536),
        ("kimi-linear-48b-a3b", {"tp": 2, "engine_version": "0.11.0"}, 960),
        ("qwen3.6-35b-a3b", {"kv_dtype": "fp8"}, 2096),
        ("qwen3.6-35b-a3b", {}, 1056),
        ("qwen3.6-35b-a3b", {"speculation": DFLASH}, 1168),
        ("qwen3.6-27b", {"tp": 2, "kv_dtype": "fp8", "speculation": MTP3}, 1600),
        ("qwen3.6-27b", {"tp": 2, "kv_dtype": "fp8"}, 1568),
        ("qwen3-next-80b-a3b", {"tp": 4}, 272),
        ("qwen3-next-80b-a3b", {"tp": 2}, 544),
    ],
)
def test_logged_block_lengths(name: str, fields: dict[str, object], block_tokens: int) -> None:
    assert plan_of(name, **fields).block_tokens == block_tokens


def test_draft_layers_join_the_attention_group() -> None:
    # ATOM's log: 29 MLA and 69 KDA layers in 4 groups, 25,657,344 B, 43 + 3 x (2 + 2) = 55.
    plan = plan_of("kimi-k3", tp=8, kv_dtype="fp8", speculation=DSPARK2)
    assert plan.block_bytes == 25_657_344
    assert (plan.groups, plan.state_groups) == (4, 3)
    assert plan.blocks_per_request(65_536) == 55


def test_a_drafter_of_another_shape_has_groups_of_its_own() -> None:
    # Padding as logged: 2 of 30 recurrent layers and 6 of 10 attention layers, 8 to a group.
    plan = plan_of("qwen3.6-35b-a3b", speculation=DFLASH)
    assert plan.groups == 7
    assert plan.block_bytes == 8 * 1168 * 2048


def test_windows_have_groups_and_blocks_of_the_same_page() -> None:
    plan = plan_of("gemma-4-26b-a4b", max_num_batched_tokens=4096)
    assert plan.groups == 6
    assert [g.block_tokens for g in plan.growing] == [32]
    assert [g.block_tokens for g in plan.bounded] == [16]
    assert plan.blocks_per_request(8192) == 1861


def test_gpt_oss_counts_all_layers_while_a_request_is_short() -> None:
    plan = plan_of("gpt-oss-120b", max_num_batched_tokens=2048)
    assert plan.block_bytes == 16 * 2048 * 18
    assert plan.blocks_per_request(1024) == 2 * 64 + 1
    longest = plan.blocks_per_request(131_072)
    assert longest == 8192 + (127 + 2048 + 15) // 16 + 1


def test_builds_that_do_not_cache_hybrid_prefixes_keep_one_state_block() -> None:
    early = plan_of("qwen3.6-35b-a3b", engine_version="0.19.0")
    late = plan_of("qwen3.6-35b-a3b", engine_version="0.24.0")
    off = plan_of("qwen3.6-35b-a3b", prefix_caching=False)
    assert early.resident_blocks == off.resident_blocks == 3
    assert late.resident_blocks == 6


def test_v4_requests_reserve_by_step_and_by_length() -> None:
    # One machine, two cards: 10.48 GiB hold 3.4475 requests of 32,768 tokens, 7.04 hold 2.0605.
    for gib, requests, tokens in (
        (10.48, 112_966 / 32_768, 32_768),
        (7.04, 270_077 / 131_072, 131_072),
    ):
        plan = plan_of("deepseek-v4-flash", tp=2, kv_dtype="fp8", max_num_batched_tokens=8192)
        per_request = plan.blocks_per_request(tokens) * plan.block_bytes
        assert per_request == pytest.approx(gib * 2**30 / requests, rel=0.005)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["kimi-k3", "gpt-oss-20b", "gemma-3-27b", "qwen3-8b", "deepseek-v4-pro"]),
    tokens=st.integers(1, 10**6),
    more=st.integers(0, 10**5),
    spare=st.integers(0, 1000),
)
def test_blocks_rise_with_tokens_and_the_longest_request_inverts_them(
    name: str, tokens: int, more: int, spare: int
) -> None:
    plan = plan_of(name, tp=8)
    assert plan.blocks_per_request(tokens + more) >= plan.blocks_per_request(tokens)
    blocks = plan.blocks_per_request(tokens) + spare
    longest = plan.longest_request(blocks)
    assert longest >= tokens
    assert plan.blocks_per_request(longest) <= blocks < plan.blocks_per_request(longest + 10**5)


def test_a_27b_hybrid_on_two_small_cards() -> None:
    # A user's log: 302,921 tokens and 2.31 requests at 131,072; 168 blocks for the native length.
    plan = plan_of("qwen3.6-27b", tp=2, kv_dtype="fp8")
    assert plan.blocks_per_request(131_072) == 90
    assert int(208 / 90 * 131_072) == 302_921
    assert plan.blocks_per_request(262_144) - plan.resident_blocks == 168


@pytest.mark.parametrize(("fields", "requests"), [({"dp": 8}, 156.9), ({"tp": 8}, 20.43)])
def test_v4_requests_of_a_node_from_the_gpu_alone(fields: dict[str, int], requests: float) -> None:
    # 8 x B200 at 0.95, 1,048,576 tokens, vLLM 0.25: eight pools against one copied eight times.
    deployment = Deployment(
        **fields, ep=8, kv_dtype="fp8", gpu_memory_utilization=0.95, engine_version="0.25.0"
    )
    budget = kv_budget(catalog.model("deepseek-v4-flash"), catalog.node("8xB200"), deployment)
    assert budget.max_concurrency == pytest.approx(requests, rel=0.02)


def test_a_model_of_windows_only_keeps_tokens_for_its_requests() -> None:
    budget = kv_budget(catalog.model("mistral-7b"), catalog.node("1xH100-80GB"), Deployment())
    assert budget.kv_bytes_per_token == 131_072
    assert budget.usable_kv_tokens > 100_000
