"""What a model family implies beyond the fields of its configuration: norms, biases, defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SpecError, nearest_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Traits that the configuration leaves to the modelling code.

    Parameters
    ----------
    mixer : str
        Which reader describes its sequence mixers.
    qk_norm : {"none", "head", "full"}
        Norms on queries and keys.
    bias : bool
        Bias on the query, key and value projections.
    norms_per_layer : int
        Norm vectors of the hidden size per layer [1].
    tied : bool
        Default of `tie_word_embeddings`.
    correction_bias : bool
        One routing bias per expert.
    shared_gate : bool
        A scalar gate on the shared expert.
    mtp_embeddings : bool
        Prediction modules in the checkpoint carry their own embedding and head.
    """

    mixer: str = "softmax"
    qk_norm: str = "none"
    bias: bool = False
    norms_per_layer: int = 2
    tied: bool = False
    correction_bias: bool = False
    shared_gate: bool = False
    mtp_embeddings: bool = False


_LATENT = Family(mixer="latent", correction_bias=True)
_QWEN_HYBRID = Family(mixer="gated_delta", qk_norm="head", shared_gate=True)

FAMILIES: dict[str, Family] = {
    "llama": Family(),
    "mistral": Family(),
    "ministral": Family(),
    "mixtral": Family(),
    "phi3": Family(),
    "granite": Family(),
    "granitemoe": Family(),
    "seed_oss": Family(bias=True),
    "internlm3": Family(),
    "smollm3": Family(tied=True),
    "olmo2": Family(qk_norm="full"),
    "olmo3": Family(qk_norm="full"),
    "exaone4": Family(qk_norm="head"),
    "cohere2": Family(tied=True, norms_per_layer=1),
    "dots1": Family(qk_norm="head", correction_bias=True),
    "qwen2": Family(bias=True),
    "qwen2_moe": Family(bias=True, shared_gate=True),
    "qwen2_vl_text": Family(bias=True),
    "qwen2_5_vl_text": Family(bias=True),
    "qwen3": Family(qk_norm="head"),
    "qwen3_moe": Family(qk_norm="head"),
    "qwen3_vl_text": Family(qk_norm="head"),
    "qwen3_vl_moe_text": Family(qk_norm="head"),
    "gemma": Family(tied=True),
    "gemma2": Family(tied=True, norms_per_layer=4),
    "gemma3_text": Family(qk_norm="head", tied=True, norms_per_layer=4),
    "gemma4_text": Family(qk_norm="head", tied=True, norms_per_layer=4),
    "glm4": Family(bias=True, norms_per_layer=4),
    "glm4_moe": Family(qk_norm="head", bias=True, correction_bias=True, mtp_embeddings=True),
    "gpt_oss": Family(bias=True),
    "llama4_text": Family(),
    "minimax_m1": Family(mixer="lightning"),
    "minimax_text_01": Family(mixer="lightning"),
    "minimax_m2": Family(qk_norm="full", correction_bias=True),
    "minimax_m3": Family(qk_norm="head", correction_bias=True),
    "deepseek_v2": Family(mixer="latent"),
    "deepseek_v3": Family(mixer="latent", correction_bias=True, mtp_embeddings=True),
    "deepseek_v32": Family(mixer="latent", correction_bias=True, mtp_embeddings=True),
    "kimi_k2": _LATENT,
    "glm_moe_dsa": _LATENT,
    "deepseek_v4": Family(mixer="compressed", correction_bias=True),
    "kimi_linear": Family(mixer="kimi_delta", correction_bias=True),
    "nemotron_h": Family(mixer="mamba", norms_per_layer=1),
    "qwen3_next": _QWEN_HYBRID,
    "qwen3_5_text": _QWEN_HYBRID,
    "qwen3_5_moe_text": _QWEN_HYBRID,
}

# Wrappers around a text model, and names under which the same architecture ships.
_SAME = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "mistral3": "mistral",
    "ministral3": "mistral",
    "pixtral": "mistral",
    "llava": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "minimax": "minimax_text_01",
    "minimax_m3_text": "minimax_m3",
}

# Keys that announce a mixer; a family whose reader does not know one of them must refuse it.
MIXER_KEYS: dict[str, frozenset[str]] = {
    "kv_lora_rank": frozenset({"latent", "kimi_delta"}),
    "index_topk": frozenset({"latent", "compressed"}),
    "linear_attn_config": frozenset({"kimi_delta"}),
    "compress_ratios": frozenset({"compressed"}),
    "attn_type_list": frozenset({"lightning"}),
    "hybrid_override_pattern": frozenset({"mamba"}),
    "layers_block_type": frozenset({"mamba"}),
    "ssm_state_size": frozenset({"mamba"}),
    "mamba_num_heads": frozenset({"mamba"}),
    "mamba_d_state": frozenset(),
    "state_size": frozenset(),
    "attn_layer_period": frozenset(),
    "lru_width": frozenset(),
    "linear_num_value_heads": frozenset({"gated_delta"}),
    "full_attention_interval": frozenset({"gated_delta"}),
    "sparse_attention_config": frozenset({"softmax"}),
    "sparse_attention": frozenset(),
    "cross_attention_layers": frozenset(),
}


def family_name(model_type: str) -> str:
    """Return the family's own name for a configuration's `model_type`.

    Raises
    ------
    SpecError
        If no reader knows the family: its mixers are never guessed.
    """
    name = _SAME.get(model_type, model_type)
    if name not in FAMILIES:
        raise SpecError(
            f"model_type {model_type!r} is not known, and its sequence mixers are not guessed.",
            field="model_type",
            nearest=nearest_names(model_type, [*FAMILIES, *_SAME]),
        )
    return name
