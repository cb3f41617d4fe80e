"""Inverse questions agree with the questions they invert."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.errors import InfeasibleError, SpecError
from capmodel.memory.budget import kv_budget
from capmodel.memory.inverse import (
    fitting_utilization,
    longest_context,
    pool_for_tokens,
    relaxations,
    smallest_node,
)
from capmodel.spec.deployment import Deployment

LLAMA = catalog.model("llama-3.1-70b")
K3 = catalog.model("kimi-k3")


def test_the_smallest_utilization_is_the_edge() -> None:
    node, deployment = catalog.node("4xH100-80GB"), Deployment(tp=4, max_model_len=131_072)
    share = fitting_utilization(LLAMA, node, deployment)
    for offset, fits in ((0.0, True), (-0.01, False)):
        changed = replace(deployment, gpu_memory_utilization=share + offset)
        assert kv_budget(LLAMA, node, changed).fits is fits


def test_k3_fits_one_b200_node_at_no_utilization() -> None:
    with pytest.raises(InfeasibleError, match="any utilization") as caught:
        fitting_utilization(K3, catalog.node("8xB200"), Deployment(tp=8))
    assert caught.value.details["shortfall_bytes_per_gpu"] > 0


@settings(max_examples=25, deadline=None)
@given(tokens=st.integers(1, 10**7), name=st.sampled_from(["kimi-k3", "qwen3-8b", "gpt-oss-20b"]))
def test_a_pool_for_tokens_holds_them_and_one_block_less_does_not(tokens: int, name: str) -> None:
    model, node, deployment = catalog.model(name), catalog.node("8xB300"), Deployment(tp=8)
    pool = pool_for_tokens(model, node, deployment, tokens)
    block_gib = pool.available_kv_gib / pool.blocks
    length = kv_budget(model, node, deployment).max_model_len
    for blocks, enough in ((pool.blocks, True), (pool.blocks - 1, False)):
        if blocks < 1:
            continue
        given_gib = replace(
            deployment, available_kv_gib=(blocks + 0.5) * block_gib, max_model_len=length
        )
        assert (kv_budget(model, node, given_gib).kv_tokens >= tokens) is enough


def test_the_logged_k3_tokens_need_the_logged_gib() -> None:
    node, deployment = catalog.node("8xB300"), Deployment(tp=8, kv_dtype="fp8")
    pool = pool_for_tokens(K3, node, deployment, 3_249_215)
    assert pool.blocks == 2135
    assert pool.available_kv_gib == pytest.approx(42.23, abs=0.02)
    assert pool.gpu_memory_utilization == pytest.approx(0.90, abs=0.005)


def test_no_tokens_are_no_question() -> None:
    with pytest.raises(SpecError):
        pool_for_tokens(LLAMA, catalog.node("8xH200"), Deployment(tp=8), 0)


def test_the_longest_context_starts_and_a_longer_one_does_not() -> None:
    model, node, deployment = catalog.model("qwen3-32b"), catalog.node("1xH100-80GB"), Deployment()
    longest = longest_context(model, node, deployment)
    assert kv_budget(model, node, replace(deployment, max_model_len=longest)).fits
    assert not kv_budget(model, node, replace(deployment, max_model_len=longest + 16)).fits
    large = catalog.node("8xB300")
    assert longest_context(LLAMA, large, Deployment(tp=8)) == LLAMA.max_position_tokens


@pytest.mark.parametrize(
    ("name", "part", "gpus"),
    [("kimi-k3", "8xB300", 8), ("kimi-k3", "8xB200", 16), ("llama-3.1-8b", "8xH100-80GB", 1)],
)
def test_smallest_nodes(name: str, part: str, gpus: int) -> None:
    # By weights alone: 8 B300 or 16 B200 for K3, as its recipes have it.
    node, deployment = smallest_node(catalog.model(name), catalog.node(part), Deployment())
    assert node.total_gpus == deployment.gpus == gpus


def test_relaxations_make_it_fit() -> None:
    node, deployment = catalog.node("4xH100-80GB"), Deployment(tp=4, max_model_len=10**6)
    found = relaxations(LLAMA, node, deployment)
    assert {r.field for r in found} >= {"max_model_len"}
    for change in found:
        if change.field in ("nodes", "tp"):
            continue
        changed = replace(deployment, **{change.field: change.value})
        budget = kv_budget(LLAMA, node, changed)
        assert budget.fits
        assert budget.kv_tokens == change.kv_tokens
