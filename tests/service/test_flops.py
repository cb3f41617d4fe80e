"""Value tests: FLOPs of published models, against counts derived independently of this package."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.memory.params import parameters
from capmodel.service.flops import (
    attention_flop,
    decode_attention_flop,
    prefill_attention_flop,
)

# Decode attention FLOPs a T + b and the prefill coefficient, whole model (models.md section 8).
PUBLISHED = {
    "deepseek-v3": (16_990_208, 0, 4_997_120),
    "deepseek-v3.2": (999_424, 34_795_945_984, 999_424),
    "deepseek-v4-pro": (186_368, 10_099_884_032, 186_368),
    "gemma-3-27b": (163_840, 872_415_232, 163_840),
    "glm-5.2": (172_032, 22_246_588_416, 172_032),
    "gpt-oss-120b": (294_912, 37_748_736, 294_912),
    "kimi-k2.5": (8_495_104, 0, 2_498_560),
    "kimi-k3": (5_013_504, 759_693_312, 1_474_560),
    "kimi-linear-48b-a3b": (487_424, 73_400_320, 143_360),
    "llama-3.1-70b": (2_621_440, 0, 2_621_440),
    "llama-4-maverick": (245_760, 6_039_797_760, 245_760),
    "minimax-m1-80k": (327_680, 367_001_600, 327_680),
    "minimax-m3": (156_672, 4_064_280_576, 156_672),
    "nemotron-3-super-120b-a12b": (131_072, 251_658_240, 131_072),
    "qwen3-235b-a22b": (3_080_192, 0, 3_080_192),
    "qwen3-next-80b-a3b": (196_608, 132_120_576, 196_608),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_decode_attention_is_linear_in_context_with_published_coefficients(name: str) -> None:
    model = catalog.model(name)
    slope, constant, _ = PUBLISHED[name]
    assert decode_attention_flop(model, 0.0) == pytest.approx(constant, rel=1e-12)
    rise = decode_attention_flop(model, 100_000.0) - decode_attention_flop(model, 0.0)
    assert rise == pytest.approx(slope * 100_000.0, rel=1e-12)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_prefill_attention_has_the_published_coefficient(name: str) -> None:
    model = catalog.model(name)
    _, constant, slope = PUBLISHED[name]
    tokens, start = 8192.0, 100_000.0
    expected = slope * tokens * (start + tokens / 2) + constant * tokens
    assert prefill_attention_flop(model, tokens, start) == pytest.approx(expected, rel=1e-12)


def test_kimi_k3_matmuls_are_208_gflop_per_token() -> None:
    matmuls = 2.0 * parameters(catalog.model("kimi-k3")).matmul
    assert matmuls == pytest.approx(208e9, rel=0.005)


def test_kimi_k3_attention_equals_the_matmuls_near_41_7k_tokens() -> None:
    model = catalog.model("kimi-k3")
    matmuls = 2.0 * parameters(model).matmul
    below, above = (decode_attention_flop(model, context) for context in (41_000.0, 42_000.0))
    assert below < matmuls < above


def test_every_catalog_mixer_has_a_count() -> None:
    for name in catalog.names("models"):
        for group in catalog.model(name).layers:
            if group.mixer is not None:
                work = attention_flop(group.mixer)
                assert work.decode_per_context + work.per_token > 0


def test_absorbed_latent_decode_costs_more_than_expanded_prefill() -> None:
    # Absorbing the up-projections trades FLOPs for bytes: 576 + 512 against 192 + 128 per head.
    for name in ("deepseek-v3", "kimi-k2.5", "kimi-k3"):
        model = catalog.model(name)
        latent = next(g.mixer for g in model.layers if hasattr(g.mixer, "kv_lora_rank"))
        work = attention_flop(latent)
        assert work.decode_per_context > 3 * work.prefill_per_context
        assert work.expansion_per_context > 0
