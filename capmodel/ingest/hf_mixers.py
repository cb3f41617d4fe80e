"""Configuration → sequence mixer of every layer; layer types without a reader are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import SpecError, nearest_names
from ..spec.attention import (
    CompressedAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    LightningAttention,
    Mamba2,
    Mixer,
    SparseIndexer,
)
from .hf_families import MIXER_KEYS, Family
from .hf_fields import Fields

Stack = list[Mixer | None]


def mixers(fields: Fields, family_name: str, family: Family) -> Stack:
    """Return one mixer per layer, None for a layer that is only a feed-forward block.

    Raises
    ------
    SpecError
        If the configuration names a mixer or layer type that the family's reader does not know.
    """
    for key, readers in MIXER_KEYS.items():
        if key in fields and family.mixer not in readers and fields.data[key] not in ([], {}):
            raise SpecError(
                f"{fields.name}: {key} announces a mixer that a {family_name} model is not known "
                "to have; its layers are not guessed.",
                field=key,
            )
    stack = {
        "softmax": _softmax_stack,
        "latent": _latent_stack,
        "kimi_delta": _kimi_delta_stack,
        "gated_delta": _gated_delta_stack,
        "compressed": _compressed_stack,
        "lightning": _lightning_stack,
        "mamba": _mamba_stack,
    }[family.mixer]
    return stack(fields, family_name, family)


def grouped_query(fields: Fields, family_name: str, family: Family) -> GroupedQueryAttention:
    """Return the full softmax attention that the head counts describe."""
    query_heads = fields.size("num_attention_heads", "n_head")
    bias = fields.data.get("attention_bias", fields.data.get("use_qkv_bias"))
    if not (bias is None or isinstance(bias, bool) or bias == "qkv"):
        raise fields.malformed("attention_bias", bias, "true, false or 'qkv'")
    qk_norm = family.qk_norm
    if not fields.flag("use_qk_norm", True):
        qk_norm = "none"
    return GroupedQueryAttention(
        query_heads=query_heads,
        kv_heads=fields.size("num_key_value_heads", default=query_heads),
        head_dim=fields.size(
            "head_dim",
            "attention_head_dim",
            default=max(1, fields.size("hidden_size", "n_embd") // query_heads),
        ),
        output_gate=family.mixer == "gated_delta" and fields.flag("attn_output_gate", True),
        qk_norm=qk_norm,
        bias=family.bias if bias is None else bool(bias),
        output_bias=family_name == "gpt_oss",
        sinks=family_name == "gpt_oss",
    )


def _layer_type_names(fields: Fields, layers: int, known: Sequence[str]) -> Sequence[str]:
    types = fields.per_layer("layer_types", layers)
    for kind in types:
        if kind not in known:
            raise SpecError(
                f"{fields.name}: layer type {kind!r} has no description here and is not guessed.",
                field="layer_types",
                nearest=nearest_names(str(kind), known),
            )
    return types


def _is_full(fields: Fields, family_name: str, layers: int) -> list[str]:
    """Return the attention span of each layer: full_attention, sliding_ or chunked_attention."""
    if "layer_types" in fields:
        known = ("full_attention", "sliding_attention", "chunked_attention")
        return list(_layer_type_names(fields, layers, known))
    full, sliding = "full_attention", "sliding_attention"
    if family_name == "llama4_text":
        period = fields.size("no_rope_layer_interval", default=4)
        return [full if (i + 1) % period == 0 else "chunked_attention" for i in range(layers)]
    if "sliding_window" not in fields or not fields.flag("use_sliding_window", True):
        return [full] * layers
    if family_name.startswith(("qwen2", "qwen3")):
        first = fields.size("max_window_layers", default=layers, low=0)
        on = fields.flag("use_sliding_window", False)
        return [sliding if on and i >= first else full for i in range(layers)]
    if family_name in ("gemma2", "gpt_oss"):
        return [sliding if i % 2 == 0 else full for i in range(layers)]
    if family_name in ("gemma3_text", "gemma4_text", "cohere2"):
        usual = 4 if family_name == "cohere2" else 6
        period = fields.size("sliding_window_pattern", "_sliding_window_pattern", default=usual)
        return [full if (i + 1) % period == 0 else sliding for i in range(layers)]
    return [sliding] * layers


def _softmax_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    layers = fields.layer_count()
    full = grouped_query(fields, family_name, family)
    spans = _is_full(fields, family_name, layers)
    windowed = {"full_attention": full}
    if "sliding_attention" in spans:
        windowed["sliding_attention"] = replace(full, window_tokens=fields.size("sliding_window"))
    if "global_head_dim" in fields:
        windowed["full_attention"] = replace(
            full,
            kv_heads=fields.size("num_global_key_value_heads", default=full.kv_heads),
            head_dim=fields.size("global_head_dim"),
            shared_kv=fields.flag("attention_k_eq_v", False),
        )
    if "chunked_attention" in spans:
        windowed["chunked_attention"] = replace(
            full, chunk_tokens=fields.size("attention_chunk_size", default=8192)
        )
    stack: Stack = [windowed[span] for span in spans]
    sparse = fields.part("sparse_attention_config")
    if sparse.data and sparse.flag("use_sparse_attention", True):
        block = sparse.size("sparse_block_size")
        local = sparse.size("sparse_local_block", default=0, low=0)
        chosen = sparse.size("sparse_topk_blocks") + local
        indexer = SparseIndexer(
            heads=sparse.size("sparse_num_index_heads"),
            head_dim=sparse.size("sparse_index_dim"),
            top_k=block * chosen,
        )
        on = sparse.per_layer("sparse_attention_freq", layers)
        stack = [
            replace(full, indexer=indexer) if chosen_here else mixer
            for mixer, chosen_here in zip(stack, on, strict=True)
        ]
    return stack


def _latent(fields: Fields) -> LatentAttention:
    indexer = None
    if "index_topk" in fields:
        indexer = SparseIndexer(
            heads=fields.size("index_n_heads"),
            head_dim=fields.size("index_head_dim"),
            top_k=fields.size("index_topk"),
        )
    return LatentAttention(
        query_heads=fields.size("num_attention_heads"),
        q_lora_rank=fields.optional_size("q_lora_rank"),
        kv_lora_rank=fields.size("kv_lora_rank"),
        qk_nope_head_dim=fields.size("qk_nope_head_dim"),
        qk_rope_head_dim=fields.size("qk_rope_head_dim"),
        v_head_dim=fields.size("v_head_dim"),
        output_gate=fields.flag("mla_use_output_gate", False),
        indexer=indexer,
    )


def _latent_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    layers = fields.layer_count()
    mixer = _latent(fields)
    if "layer_types" in fields:
        known = ("full_attention", "deepseek_sparse_attention")
        _layer_type_names(fields, layers, known)
    if mixer.indexer is None or "indexer_types" not in fields:
        return [mixer] * layers
    follower = replace(mixer, indexer=replace(mixer.indexer, shared=True))
    kinds = {"full": mixer, "shared": follower}
    return [_chosen(fields, "indexer_types", k, kinds) for k in _indexers(fields, layers)]


def _indexers(fields: Fields, layers: int) -> Sequence[Any]:
    return fields.per_layer("indexer_types", layers)


def _chosen(fields: Fields, key: str, kind: Any, kinds: dict[str, Any]) -> Any:
    if not isinstance(kind, str) or kind not in kinds:
        raise SpecError(
            f"{fields.name}: {key} has {kind!r}; one of {', '.join(kinds)} is known.", field=key
        )
    return kinds[kind]


def _kimi_delta_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    layers = fields.layer_count()
    linear = fields.part("linear_attn_config")
    if not linear.data:
        raise SpecError(f"{fields.name}: lacks linear_attn_config.", field="linear_attn_config")
    delta = KimiDeltaAttention(
        heads=linear.size("num_heads"),
        head_dim=linear.size("head_dim"),
        conv_kernel=linear.size("short_conv_kernel_size"),
        full_rank_gate=linear.flag("use_full_rank_gate", False),
    )
    full, recurrent = linear.layer_numbers("full_attn_layers"), linear.layer_numbers("kda_layers")
    if full & recurrent or (full | recurrent) != set(range(1, layers + 1)):
        raise SpecError(
            f"{fields.name}: full_attn_layers and kda_layers must name layers 1 to {layers} "
            "once each.",
            field="linear_attn_config",
        )
    latent = _latent(fields)
    return [delta if number in recurrent else latent for number in range(1, layers + 1)]


def _gated_delta_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    layers = fields.layer_count()
    delta = GatedDeltaNet(
        key_heads=fields.size("linear_num_key_heads"),
        key_head_dim=fields.size("linear_key_head_dim"),
        value_heads=fields.size("linear_num_value_heads"),
        value_head_dim=fields.size("linear_value_head_dim"),
        conv_kernel=fields.size("linear_conv_kernel_dim"),
    )
    full = grouped_query(fields, family_name, family)
    if "layer_types" in fields:
        types = _layer_type_names(fields, layers, ("linear_attention", "full_attention"))
        return [delta if kind == "linear_attention" else full for kind in types]
    period = fields.size("full_attention_interval", default=4)
    return [full if (i + 1) % period == 0 else delta for i in range(layers)]


def _compressed_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    layers = fields.layer_count()
    indexer = SparseIndexer(
        heads=fields.size("index_n_heads"),
        head_dim=fields.size("index_head_dim"),
        top_k=fields.size("index_topk"),
    )
    ratios = fields.per_layer("compress_ratios", layers)
    stack: Stack = []
    for value in ratios:
        ratio = fields.checked_size(value, "compress_ratios", low=0)
        if ratio not in (0, 4, 128):
            raise SpecError(
                f"{fields.name}: compression ratio {ratio} is not one of 0, 4, 128.",
                field="compress_ratios",
            )
        stack.append(
            CompressedAttention(
                query_heads=fields.size("num_attention_heads"),
                head_dim=fields.size("head_dim"),
                rope_head_dim=fields.size("qk_rope_head_dim"),
                q_lora_rank=fields.size("q_lora_rank"),
                output_groups=fields.size("o_groups"),
                output_lora_rank=fields.size("o_lora_rank"),
                window_tokens=fields.size("sliding_window"),
                ratio=ratio,
                indexer=indexer if ratio == 4 else None,
            )
        )
    return stack


def _lightning_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    layers = fields.layer_count()
    full = grouped_query(fields, family_name, family)
    linear = LightningAttention(heads=full.query_heads, head_dim=full.head_dim)
    kinds: Stack = [linear, full]
    stack: Stack = []
    for value in fields.per_layer("attn_type_list", layers):
        kind = fields.checked_size(value, "attn_type_list", low=0)
        if kind > 1:
            raise SpecError(
                f"{fields.name}: attn_type_list has {kind}; 0 (lightning) and 1 (softmax) "
                "are known.",
                field="attn_type_list",
            )
        stack.append(kinds[kind])
    return stack


def _mamba_stack(fields: Fields, family_name: str, family: Family) -> Stack:
    mamba = Mamba2(
        heads=fields.size("mamba_num_heads"),
        head_dim=fields.size("mamba_head_dim"),
        groups=fields.size("n_groups", "mamba_n_groups"),
        state_size=fields.size("ssm_state_size"),
        conv_kernel=fields.size("conv_kernel"),
        conv_bias=fields.flag("use_conv_bias", True),
    )
    full = grouped_query(fields, family_name, family)
    kinds = {"mamba": mamba, "attention": full, "moe": None, "mlp": None}
    return [_chosen(fields, "layers_block_type", k, kinds) for k in block_types(fields)]


def block_types(fields: Fields, prefix: str = "") -> list[Any]:
    """Return the block type of each layer of a model whose layers are mixer or feed-forward."""
    letters = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
    stem = f"{prefix}layers_block_type"
    if stem in fields:
        return list(fields.sequence(stem))
    pattern = fields.text(f"{prefix}hybrid_override_pattern")
    for letter in pattern:
        if letter not in letters:
            raise SpecError(
                f"{fields.name}: layer letter {letter!r} is unknown; {' '.join(letters)} are.",
                field=f"{prefix}hybrid_override_pattern",
            )
    if not pattern and not prefix:
        raise SpecError(
            f"{fields.name}: lacks layers_block_type / hybrid_override_pattern.",
            field="hybrid_override_pattern",
        )
    return [letters[letter] for letter in pattern]
