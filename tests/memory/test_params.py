"""Parameter counts against published ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capmodel import catalog
from capmodel.memory.params import layer_params, mixer_params, parameters
from capmodel.memory.weights import checkpoint_bytes
from capmodel.spec.attention import GroupedQueryAttention
from capmodel.validate.memory_set import k3_checkpoint_error, published_params


def test_every_exact_published_count_is_met_or_explained() -> None:
    rows = published_params()
    assert len(rows) == 20
    for row in rows:
        assert row["difference"] == 0 or row["reason"], row
    assert sum(row["difference"] == 0 for row in rows) == 15


def test_fp8_scales_explain_the_deepseek_difference() -> None:
    # One fp32 scale per 128 x 128 block of every quantised linear layer: 41.5M of them.
    row = next(r for r in published_params() if r["id"] == "deepseek-v3")
    quantised = -row["difference"] * 128**2
    assert quantised / row["derived"] == pytest.approx(0.994, abs=0.003)


def test_derived_totals_and_active_counts_match_the_reference(reference: Path) -> None:
    text = (reference / "models.md").read_text(encoding="utf-8")
    table = text.split("## 7.")[1].split("## 8.")[0]
    rows = re.findall(r"^\| ([a-z0-9.\-]+) \| ([\d.]+) \|.*?\| ([\d.]+) / ([\d.]+) /", table, re.M)
    assert len(rows) == 38
    for name, total, _, active in rows:
        counts = parameters(catalog.model(name))
        assert counts.total / 1e9 == pytest.approx(float(total), abs=6e-4), name
        assert counts.active / 1e9 == pytest.approx(float(active), abs=6e-4), name


def test_k3_checkpoint_bytes_within_a_tenth_of_a_percent() -> None:
    assert abs(k3_checkpoint_error()) < 1e-3


@pytest.mark.parametrize("name", ["llama-3.1-70b", "qwen2.5-7b", "qwen3-8b", "qwen3-235b-a22b"])
def test_bf16_checkpoints_are_met_to_the_byte(name: str) -> None:
    model = catalog.model(name)
    assert checkpoint_bytes(model) == model.published["checkpoint_bytes"]


@pytest.mark.parametrize("name", catalog.names("models"))
def test_layers_embeddings_and_norm_add_up_to_the_total(name: str) -> None:
    model = catalog.model(name)
    counts = parameters(model)
    layers = sum(g.count * layer_params(g, model) for g in model.layers)
    rest = counts.embedding + counts.head + model.hidden_size + model.extra_params
    assert layers + rest == counts.total
    assert counts.matmul <= counts.active <= counts.total


def test_more_kv_heads_cost_two_projections_each() -> None:
    few = GroupedQueryAttention(query_heads=32, kv_heads=4, head_dim=128)
    more = GroupedQueryAttention(query_heads=32, kv_heads=8, head_dim=128)
    gained = mixer_params(more, 4096).matmul - mixer_params(few, 4096).matmul
    assert gained == 2 * 4096 * 4 * 128
