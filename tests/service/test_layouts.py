"""What a parallel layout divides, repeats and sends."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.errors import SpecError
from capmodel.service.engine_law import engine_law
from capmodel.spec.deployment import Deployment


def _seconds(name: str, node: str, nodes: int = 1, **layout: object) -> dict[str, float]:
    law = engine_law(
        catalog.model(name),
        catalog.node(node, nodes),
        Deployment(**layout),  # type: ignore[arg-type]
    )
    rows = law.breakdown(0.0, 0.0, 32.0, 100_000.0)
    return {key: float(row["seconds"]) for key, row in rows.items()}


def test_a_latent_cache_is_read_whole_by_every_tensor_parallel_rank() -> None:
    # Heads divide the absorbed FLOPs, not the latent's bytes; only context parallelism does.
    two = _seconds("deepseek-v3", "8xH200", tp=2)["decode_attention"]
    eight = _seconds("deepseek-v3", "8xH200", tp=8)["decode_attention"]
    split = _seconds("deepseek-v3", "8xH200", tp=8, dcp=8)["decode_attention"]
    assert two / eight < 4
    assert split == pytest.approx(eight / 8, rel=1e-9)


def test_grouped_heads_are_divided_until_there_is_one_per_rank() -> None:
    four = _seconds("qwen3-235b-a22b", "8xH200", tp=4)["decode_attention"]
    eight = _seconds("qwen3-235b-a22b", "8xH200", tp=8)["decode_attention"]
    # Four key-value heads: eight ranks hold two copies and read as much each as four ranks do.
    assert eight == pytest.approx(four, rel=1e-9)


def test_recurrent_state_does_not_shrink_with_context_parallelism() -> None:
    whole = _seconds("kimi-k3", "8xB300", tp=8)["recurrent_state"]
    split = _seconds("kimi-k3", "8xB300", tp=8, dcp=8)["recurrent_state"]
    assert split == pytest.approx(whole)


def test_data_parallel_attention_sends_tokens_to_their_experts() -> None:
    exchange = _seconds("deepseek-v3", "8xH200", tp=1, dp=8, ep=8)
    assert exchange["expert_exchange"] > 0
    assert "all_reduce" not in exchange


def test_a_pipeline_halves_the_work_and_keeps_the_weights() -> None:
    # Two microbatches in flight: per cycle half the cache reads per rank, all weights once.
    one = _seconds("llama-3.1-405b", "8xH200", tp=8)
    two = _seconds("llama-3.1-405b", "8xH200", 2, tp=8, pp=2)
    assert two["decode_attention"] == pytest.approx(one["decode_attention"] / 2)
    assert two["attention_projections"] == pytest.approx(one["attention_projections"])
    assert two["pipeline_send"] > 0


def test_a_link_across_nodes_is_slower_than_one_inside() -> None:
    inside = _seconds("llama-3.1-405b", "8xH200", tp=8)["all_reduce"]
    across = _seconds("llama-3.1-405b", "8xH200", 2, tp=16)["all_reduce"]
    rack = _seconds("llama-3.1-405b", "4xGB300", 4, tp=16)["all_reduce"]
    assert across > 2 * inside
    assert rack < across


def test_weight_only_formats_compute_in_sixteen_bit() -> None:
    law = engine_law(catalog.model("kimi-k3"), catalog.node("8xB300"), Deployment(tp=8))
    sixteen = law.breakdown(8192.0)["experts"]
    narrow = engine_law(
        catalog.model("kimi-k3"), catalog.node("8xB300"), Deployment(tp=8, engine="sglang")
    ).breakdown(8192.0)["experts"]
    # Marlin W4A16 against W4A8 kernels: a quarter against half of a twice faster unit.
    assert float(sixteen["seconds"]) > 2 * float(narrow["seconds"])


def test_a_layout_larger_than_the_node_is_refused() -> None:
    with pytest.raises(SpecError, match="exceeds the 8 accelerators"):
        engine_law(catalog.model("kimi-k3"), catalog.node("8xB300"), Deployment(tp=8, pp=2))


def test_every_catalog_model_runs_on_every_catalog_accelerator() -> None:
    for name in catalog.names("models"):
        for part in catalog.names("accelerators"):
            law = engine_law(catalog.model(name), catalog.node(f"8x{part}"), Deployment(tp=8))
            assert 1e-4 < float(law.step_s(0.0, 0.0, 8.0, 1000.0)) < 10.0
