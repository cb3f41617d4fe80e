"""FLOPs: what a token, a cached token of context, and a recurrent state cost to compute.

Counts are for the whole model, before any parallel layout divides them. A multiply-add is two.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec.attention import (
    CompressedAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    LightningAttention,
    Mamba2,
    Mixer,
)
from ..spec.model import Model

SCAN_CHUNK_TOKENS = 64

# One token of one 128-wide delta-rule head in a chunked scan, the unit of the measured rates.
REFERENCE_SCAN_FLOP = 2.0 * SCAN_CHUNK_TOKENS * (2 * 128 + 2 * 128) + 6.0 * 128 * 128


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFlop:
    """Attention work of one layer, beyond its projections.

    Parameters
    ----------
    decode_per_context : float
        Per query token and token of context, absorbed where the cache is latent [FLOP].
    prefill_per_context : float
        The same for a prefill chunk, expanded where the cache is latent [FLOP].
    per_token : float
        Per query token whatever the context: windows, chosen blocks, recurrent states [FLOP].
    expansion_per_context : float
        Per token of context and chunk: latents expanded to keys and values again [FLOP].
    scan_per_token : float
        Per prefilled token of a recurrent layer, chunked scan [FLOP].
    index_per_context : float
        Part of both per-context rates spent in a light-weight index [FLOP].
    """

    decode_per_context: float = 0.0
    prefill_per_context: float = 0.0
    per_token: float = 0.0
    expansion_per_context: float = 0.0
    scan_per_token: float = 0.0
    index_per_context: float = 0.0


def attention_flop(mixer: Mixer) -> AttentionFlop:
    """Attention work of one layer of this mixer, from the dimensions of its heads.

    Notes
    -----
    Grouped-query: ``4 n_q d`` per query and context token. Latent attention decodes absorbed,
    ``2 n_q (2 r_kv + d_r)``, and prefills expanded, ``2 n_q (d_n + d_r + d_v)``. A window or a
    top-k choice makes the work constant once the context is longer. Recurrent layers cost
    ``7 H d_k d_v`` per decoded token (decay, read, delta, write, output), Mamba-2 ``6 d_i N``,
    lightning ``5 n d^2``; a chunked scan of C tokens about ``2 C (2 d_k + 2 d_v) + 6 d_k d_v``
    per token and head.
    Approximate for: contexts shorter than a window or than top-k, where it overstates.
    """
    match mixer:
        case GroupedQueryAttention():
            return _grouped_query(mixer)
        case LatentAttention():
            return _latent(mixer)
        case KimiDeltaAttention():
            square = mixer.heads * mixer.head_dim**2
            return AttentionFlop(
                per_token=7.0 * square,
                scan_per_token=_scan(mixer.heads, mixer.head_dim, mixer.head_dim),
            )
        case GatedDeltaNet():
            state = mixer.value_heads * mixer.key_head_dim * mixer.value_head_dim
            return AttentionFlop(
                per_token=7.0 * state,
                scan_per_token=_scan(mixer.value_heads, mixer.key_head_dim, mixer.value_head_dim),
            )
        case Mamba2():
            inner = mixer.heads * mixer.head_dim
            return AttentionFlop(
                per_token=6.0 * inner * mixer.state_size,
                scan_per_token=_scan(mixer.heads, mixer.state_size, mixer.head_dim),
            )
        case LightningAttention():
            return AttentionFlop(
                per_token=5.0 * mixer.heads * mixer.head_dim**2,
                scan_per_token=_scan(mixer.heads, mixer.head_dim, mixer.head_dim),
            )
        case CompressedAttention():
            return _compressed(mixer)
    raise TypeError(f"no FLOP count for {type(mixer).__name__}")


def _grouped_query(mixer: GroupedQueryAttention) -> AttentionFlop:
    full = 4.0 * mixer.query_heads * mixer.head_dim
    bounded = mixer.window_tokens or mixer.chunk_tokens
    if bounded:
        return AttentionFlop(per_token=full * bounded)
    if mixer.indexer:
        index = 0.0 if mixer.indexer.shared else 2.0 * mixer.indexer.heads * mixer.indexer.head_dim
        return AttentionFlop(
            decode_per_context=index,
            prefill_per_context=index,
            per_token=full * mixer.indexer.top_k,
            index_per_context=index,
        )
    return AttentionFlop(decode_per_context=full, prefill_per_context=full)


def _latent(mixer: LatentAttention) -> AttentionFlop:
    absorbed = 2.0 * mixer.query_heads * (2 * mixer.kv_lora_rank + mixer.qk_rope_head_dim)
    if mixer.indexer:
        index = 0.0 if mixer.indexer.shared else 2.0 * mixer.indexer.heads * mixer.indexer.head_dim
        return AttentionFlop(
            decode_per_context=index,
            prefill_per_context=index,
            per_token=absorbed * mixer.indexer.top_k,
            index_per_context=index,
        )
    head = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
    expanded = mixer.qk_nope_head_dim + mixer.v_head_dim
    return AttentionFlop(
        decode_per_context=absorbed,
        prefill_per_context=2.0 * mixer.query_heads * head,
        expansion_per_context=2.0 * mixer.kv_lora_rank * mixer.query_heads * expanded,
    )


def _compressed(mixer: CompressedAttention) -> AttentionFlop:
    full = 4.0 * mixer.query_heads * mixer.head_dim
    per_token = full * mixer.window_tokens
    if mixer.indexer:
        index = 2.0 * mixer.indexer.heads * mixer.indexer.head_dim / mixer.ratio
        return AttentionFlop(
            decode_per_context=index,
            prefill_per_context=index,
            per_token=per_token + full * mixer.indexer.top_k,
            index_per_context=index,
        )
    dense = full / mixer.ratio if mixer.ratio else 0.0
    return AttentionFlop(decode_per_context=dense, prefill_per_context=dense, per_token=per_token)


def _scan(heads: int, key_dim: int, value_dim: int) -> float:
    return heads * (
        2.0 * SCAN_CHUNK_TOKENS * (2 * key_dim + 2 * value_dim) + 6.0 * key_dim * value_dim
    )


def decode_attention_flop(model: Model, context_tokens: float) -> float:
    """Attention work of one decoded token at a context, all layers [FLOP]."""
    total = 0.0
    for group in model.layers:
        if group.mixer is not None:
            work = attention_flop(group.mixer)
            total += group.count * (work.decode_per_context * context_tokens + work.per_token)
    return total


def prefill_attention_flop(model: Model, new_tokens: float, start_tokens: float) -> float:
    """Attention work of a prefill of `new_tokens` after `start_tokens` of context [FLOP].

    The causal sum ``a (S T0 + S^2/2) + b S``; expansion of latents is not in it.
    """
    pairs = new_tokens * (start_tokens + 0.5 * new_tokens)
    total = 0.0
    for group in model.layers:
        if group.mixer is not None:
            work = attention_flop(group.mixer)
            total += group.count * (work.prefill_per_context * pairs + work.per_token * new_tokens)
    return total
