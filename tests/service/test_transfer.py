"""Tiers and pools: what moves per rank, how it overlaps, and when it beats computing again."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.errors import SpecError
from capmodel.service.engine_law import engine_law
from capmodel.service.prefill import prefill_s
from capmodel.service.transfer import (
    break_even_tokens,
    pool_transfer,
    resumed_prefill_s,
    tier_transfer,
)
from capmodel.spec.deployment import Deployment, Offload

DRAM = Offload(tier="dram", bytes=1889e9)


def _deployment(tp: int = 8, **changes: object) -> Deployment:
    given = {"tp": tp, "kv_dtype": "fp8", "offload": DRAM, **changes}
    return Deployment(**given)  # type: ignore[arg-type]


def test_every_rank_loads_the_whole_latent_and_its_share_of_the_state() -> None:
    model, node = catalog.model("kimi-k3"), catalog.node("8xB300")
    transfer = tier_transfer(model, node, _deployment())
    assert transfer.bytes_per_token == 24 * 576
    assert transfer.state_bytes == pytest.approx(449.4e6 / 8, rel=0.01)
    divided = tier_transfer(model, node, _deployment(dcp=8))
    assert divided.bytes_per_token == pytest.approx(24 * 576 / 8)
    assert divided.state_bytes == transfer.state_bytes


def test_grouped_heads_are_loaded_once_over_the_ranks() -> None:
    model, node = catalog.model("llama-3.1-70b"), catalog.node("8xH100-80GB")
    one = tier_transfer(model, node, _deployment(tp=1))
    eight = tier_transfer(model, node, _deployment(tp=8))
    assert eight.bytes_per_token == pytest.approx(one.bytes_per_token / 8)


def test_measured_host_rates_lie_inside_the_interval() -> None:
    # vLLM connector on H100: about 50 of 64 GB/s per GPU.
    transfer = tier_transfer(
        catalog.model("llama-3.1-70b"), catalog.node("1xH100-80GB"), _deployment(tp=1)
    )
    low, high = transfer.load_interval_bytes_per_s
    assert low <= 50e9 <= high
    assert transfer.load_bytes_per_s == pytest.approx(50e9, rel=0.05)


def test_ranks_of_a_node_share_the_memory_of_its_host() -> None:
    model = catalog.model("kimi-k3")
    one = tier_transfer(model, catalog.node("1xB300"), _deployment(tp=1))
    eight = tier_transfer(model, catalog.node("8xB300"), _deployment(tp=8))
    assert eight.load_bytes_per_s < one.load_bytes_per_s


def test_a_given_bandwidth_wins() -> None:
    offload = Offload(tier="dram", bytes=1e12, bytes_per_s=10e9)
    transfer = tier_transfer(
        catalog.model("kimi-k3"), catalog.node("8xB300"), _deployment(offload=offload)
    )
    assert transfer.load_bytes_per_s == transfer.store_bytes_per_s == 10e9
    assert transfer.kind == "given"


def test_no_tier_is_an_error() -> None:
    with pytest.raises(SpecError, match="no offload tier"):
        tier_transfer(catalog.model("kimi-k3"), catalog.node("8xB300"), _deployment(offload=None))


def test_reload_hides_under_prefill_and_beats_recompute() -> None:
    model, node, deployment = catalog.model("kimi-k3"), catalog.node("8xB300"), _deployment()
    law = engine_law(model, node, deployment)
    transfer = tier_transfer(model, node, deployment)
    resumed = resumed_prefill_s(law, transfer, 2000.0, 140_000.0)
    alone = float(prefill_s(law, 2000.0, 140_000.0))
    assert alone < resumed <= alone + transfer.load_s(140_000.0)
    assert resumed < 0.1 * float(prefill_s(law, 142_000.0))


def test_break_even_is_where_loading_equals_computing() -> None:
    model, node = catalog.model("llama-3.1-8b"), catalog.node("1xB300")
    slow = Offload(tier="dram", bytes=1e12, bytes_per_s=3e9)
    deployment = _deployment(tp=1, kv_dtype="auto", offload=slow)
    law = engine_law(model, node, deployment)
    transfer = tier_transfer(model, node, deployment)
    tokens = break_even_tokens(law, transfer)
    assert tokens is None or tokens >= 1.0
    fast = tier_transfer(model, node, _deployment(tp=1, kv_dtype="auto"))
    better = break_even_tokens(law, fast)
    assert better is not None
    assert tokens is None or better <= tokens


def test_a_pool_moves_a_prompt_in_less_time_than_it_takes_to_compute() -> None:
    model, node, deployment = catalog.model("kimi-k3"), catalog.node("8xB300"), _deployment()
    law = engine_law(model, node, deployment)
    assert pool_transfer(model, node, deployment).load_s(8192.0) < 0.1 * float(
        prefill_s(law, 8192.0)
    )
