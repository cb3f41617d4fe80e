"""Recorded builds, known limits, engine defaults: facts with sources, used where they match."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.memory import engine_defaults
from capmodel.memory.budget import kv_budget
from capmodel.memory.overhead import overhead
from capmodel.spec.deployment import Deployment, Speculation
from capmodel.units import GIB

K3_TOKENS = 3_249_215


def k3(**fields: object) -> Deployment:
    return Deployment(tp=8, kv_dtype="fp8", **fields)  # type: ignore[arg-type]


def test_recorded_weights_bring_k3_within_three_percent() -> None:
    budget = kv_budget(catalog.model("kimi-k3"), catalog.node("8xB300"), k3())
    assert budget.weights_bytes_per_gpu == pytest.approx(194.9 * GIB)
    assert budget.kv_tokens == pytest.approx(K3_TOKENS, rel=0.03)
    low, high = budget.intervals["kv_tokens"]
    assert low <= K3_TOKENS <= high


def test_the_architecture_alone_is_off_by_the_tensors_that_the_build_copies() -> None:
    budget = kv_budget(
        catalog.model("kimi-k3"), catalog.node("8xB300"), k3(engine_version="architecture")
    )
    assert "beyond_architecture" not in budget.weights_parts_bytes
    assert budget.weights_bytes_per_gpu == pytest.approx(194.9 * GIB, rel=0.02)
    # Fewer copies than the build makes (+3.1 GiB), graphs for every batch size (-3.7 GiB).
    assert abs(budget.kv_tokens / K3_TOKENS - 1) < 0.10
    replicated = budget.weights_parts_bytes["latent"] + budget.weights_parts_bytes["vision"]
    assert replicated / GIB == pytest.approx(9.54, abs=0.1)


@pytest.mark.parametrize(
    ("fields", "recorded"),
    [
        ({}, True),
        ({"engine_version": "day-0"}, True),
        ({"engine_version": "architecture"}, False),
        ({"engine_version": "0.28.0"}, False),
        ({"engine": "sglang"}, False),
        ({"weights": "fp8"}, False),
        ({"pp": 2}, False),
    ],
)
def test_a_recorded_build_is_used_only_where_it_matches(
    fields: dict[str, object], recorded: bool
) -> None:
    budget = kv_budget(catalog.model("kimi-k3"), catalog.node("8xB300", 2), k3(**fields))
    assert ("beyond_architecture" in budget.weights_parts_bytes) is recorded


@pytest.mark.parametrize(("share", "warned"), [(0.90, False), (0.92, True), (0.95, True)])
def test_known_out_of_memory_points_are_warned_of(share: float, warned: bool) -> None:
    budget = kv_budget(
        catalog.model("kimi-k3"), catalog.node("8xB300"), k3(gpu_memory_utilization=share)
    )
    assert any("out of memory" in note for note in budget.warnings) is warned


def test_an_unknown_drafter_is_said_to_be_one() -> None:
    draft = Speculation(name="dspark", draft_tokens=5)
    budget = kv_budget(
        catalog.model("deepseek-v4-flash"),
        catalog.node("8xB300"),
        Deployment(tp=8, speculation=draft),
    )
    assert any("not on record" in note for note in budget.warnings)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.21.0", (0, 21, 0)),
        ("v0.11.x", (0, 11, 0)),
        ("0.20.1.dev0+g101584af0", (0, 20, 0)),
        ("0.19.2rc1.dev134+gfe9c3d6c5", (0, 19, 1)),
        ("0.1.dev15917+g0a6396b45", (0, 20, 0)),
        ("0.1.dev20073+g8e685d198", None),
        ("0.1.dev1+g6804e1b81", None),
        ("day-0", None),
        ("", None),
    ],
)
def test_versions(text: str, version: tuple[int, int, int] | None) -> None:
    assert engine_defaults.version_number(text) == version


def test_defaults_follow_engine_and_memory() -> None:
    plain = Deployment()
    h100, l4 = catalog.accelerator("H100-80GB"), catalog.accelerator("L4")
    a100 = catalog.accelerator("A100-80GB")
    assert engine_defaults.max_num_batched_tokens(plain, h100) == 8192
    assert engine_defaults.max_num_batched_tokens(plain, l4) == 2048
    assert engine_defaults.max_num_batched_tokens(plain, a100) == 2048
    assert engine_defaults.max_num_seqs(plain, h100) == 1024
    chosen = Deployment(max_num_batched_tokens=100, max_num_seqs=3)
    assert engine_defaults.max_num_batched_tokens(chosen, h100) == 100
    assert engine_defaults.max_num_seqs(chosen, h100) == 3


def test_early_builds_profile_a_whole_prompt() -> None:
    # Llama-3.1-8B on a 24 GB card: 2.07 GiB at 20,000 tokens, 2.99 at 29,000 (V0).
    model, part = catalog.model("llama-3.1-8b"), catalog.accelerator("RTX-3090")
    for tokens, gib in ((20_000, 2.07), (29_000, 2.99)):
        early = Deployment(engine_version="0.6.3", max_model_len=tokens)
        peak = overhead(model, early, part).parts["activations"]
        assert peak / GIB == pytest.approx(gib, abs=0.02)


def test_bigger_batches_take_memory_from_the_pool() -> None:
    # K3 on MI355X: 16,384 batched tokens against 8,192 cost 3.2 GiB of peak activations.
    model, part = catalog.model("kimi-k3"), catalog.accelerator("MI355X")
    small, large = (
        overhead(model, k3(max_num_batched_tokens=n, max_num_seqs=20), part).total
        for n in (8192, 16_384)
    )
    assert (large - small) / GIB == pytest.approx(3.24, rel=0.3)


def test_states_limit_the_running_requests() -> None:
    # Logs of 120B hybrids on two 80 GB cards: 1,024 asked, some 500 available.
    model = catalog.model("nemotron-3-super-120b-a12b")
    node = catalog.node("2xH100-80GB")
    paged = kv_budget(model, node, Deployment(tp=2, weights="fp8", engine_version="0.19.0"))
    assert 400 < paged.kv_blocks < 1024
    assert any("--max-num-seqs" in note for note in paged.warnings)
    pooled = kv_budget(model, node, Deployment(tp=2, weights="fp8", engine="sglang"))
    assert any("slots" in note for note in pooled.warnings)
