"""Bytes moved: caches, recurrent states and activations that a step reads and writes.

Weights are counted in `capmodel.memory`; here is what depends on tokens and contexts.
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
from ..spec.model import LayerGroup, MixtureOfExperts

ACTIVATION_BYTES = 2
INDEX_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTraffic:
    """Cache and state bytes of one layer on one rank.

    Parameters
    ----------
    per_context : float
        Read per token of context of a decoding sequence, or per prefill chunk [bytes].
    per_sequence : float
        Read and written per decoding sequence whatever its context [bytes].
    written_per_token : float
        Written per new token [bytes].
    expanded_per_context : float
        Written and read again where a prefill expands cached latents [bytes].
    """

    per_context: float = 0.0
    per_sequence: float = 0.0
    written_per_token: float = 0.0
    expanded_per_context: float = 0.0


def cache_traffic(
    mixer: Mixer, *, tp: int, dcp: int, element_bytes: float, state_bytes: float = 4.0
) -> CacheTraffic:
    """Cache traffic of one layer of this mixer on one rank of a tensor-parallel group.

    Parameters
    ----------
    mixer : Mixer
        The layer's sequence mixer.
    tp, dcp : int
        Ranks that divide heads, and ranks that divide the context of a latent cache [1].
    element_bytes : float
        Bytes of a cached element [bytes].
    state_bytes : float
        Bytes of a recurrent-state element [bytes].
    """
    match mixer:
        case GroupedQueryAttention():
            return _grouped_query(mixer, tp, dcp, element_bytes)
        case LatentAttention():
            return _latent(mixer, tp, dcp, element_bytes)
        case KimiDeltaAttention():
            state = mixer.heads * mixer.head_dim**2 * state_bytes
            taps = 3 * mixer.heads * mixer.head_dim * (mixer.conv_kernel - 1) * ACTIVATION_BYTES
            return CacheTraffic(per_sequence=2 * (state + taps) / tp)
        case GatedDeltaNet():
            values = mixer.value_heads * mixer.value_head_dim
            channels = 2 * mixer.key_heads * mixer.key_head_dim + values
            state = values * mixer.key_head_dim * state_bytes
            taps = channels * (mixer.conv_kernel - 1) * ACTIVATION_BYTES
            return CacheTraffic(per_sequence=2 * (state + taps) / tp)
        case Mamba2():
            inner = mixer.heads * mixer.head_dim
            channels = inner + 2 * mixer.groups * mixer.state_size
            taps = channels * (mixer.conv_kernel - 1) * ACTIVATION_BYTES
            state = inner * mixer.state_size * state_bytes
            return CacheTraffic(per_sequence=2 * (state + taps) / tp)
        case LightningAttention():
            state = mixer.heads * mixer.head_dim**2 * state_bytes
            return CacheTraffic(per_sequence=2 * state / tp)
        case CompressedAttention():
            return _compressed(mixer, dcp, element_bytes)
    raise TypeError(f"no cache traffic for {type(mixer).__name__}")


def _grouped_query(
    mixer: GroupedQueryAttention, tp: int, dcp: int, element_bytes: float
) -> CacheTraffic:
    heads = max(1.0, mixer.kv_heads / tp)
    entry = 2 * heads * mixer.head_dim * element_bytes
    bounded = mixer.window_tokens or mixer.chunk_tokens
    if bounded:
        return CacheTraffic(per_sequence=entry * bounded, written_per_token=entry)
    if mixer.indexer:
        key = 0.0 if mixer.indexer.shared else mixer.indexer.head_dim * element_bytes
        return CacheTraffic(
            per_context=key / dcp,
            per_sequence=entry * mixer.indexer.top_k / dcp,
            written_per_token=entry + key,
        )
    return CacheTraffic(per_context=entry / dcp, written_per_token=entry)


def _latent(mixer: LatentAttention, tp: int, dcp: int, element_bytes: float) -> CacheTraffic:
    # The latent is one vector for all heads, so every rank reads it whole unless DCP divides it.
    entry = (mixer.kv_lora_rank + mixer.qk_rope_head_dim) * element_bytes
    if mixer.indexer:
        key = 0.0 if mixer.indexer.shared else mixer.indexer.head_dim + INDEX_SCALE_BYTES
        return CacheTraffic(
            per_context=key / dcp,
            per_sequence=entry * mixer.indexer.top_k / dcp,
            written_per_token=entry + key,
        )
    heads = mixer.query_heads / tp
    width = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
    return CacheTraffic(
        per_context=entry / dcp,
        written_per_token=entry,
        expanded_per_context=2 * heads * width * ACTIVATION_BYTES,
    )


def _compressed(mixer: CompressedAttention, dcp: int, element_bytes: float) -> CacheTraffic:
    entry = mixer.head_dim * element_bytes
    window = entry * mixer.window_tokens
    if mixer.indexer:
        key = (mixer.indexer.head_dim + INDEX_SCALE_BYTES) / mixer.ratio
        return CacheTraffic(
            per_context=key / dcp,
            per_sequence=window + entry * mixer.indexer.top_k / dcp,
            written_per_token=entry + entry / mixer.ratio + key,
        )
    compressed = entry / mixer.ratio if mixer.ratio else 0.0
    return CacheTraffic(
        per_context=compressed / dcp,
        per_sequence=window,
        written_per_token=entry + compressed,
    )


def activation_traffic(
    group: LayerGroup,
    hidden_size: int,
    *,
    expert_ranks: int,
    norm_passes: float,
    permute_passes: float,
) -> float:
    """Elementwise bytes per token of one layer on one rank, activations at two bytes [bytes].

    Parameters
    ----------
    group : LayerGroup
        Mixer and feed-forward block of the layer.
    hidden_size : int
        Width of the residual stream [1].
    expert_ranks : int
        Ranks that each hold whole experts; 1 where every rank sees every routed token [1].
    norm_passes : float
        Passes over the residual stream per block: norms, adds, quantisation [1].
    permute_passes : float
        Passes over the routed copies of a token: gather, expert output, combine [1].

    Notes
    -----
    The residual stream is replicated under tensor parallelism, so this part of a prefill does
    not shrink with TP; neither do the k routed copies of a token unless experts are placed whole.
    """
    blocks = (group.mixer is not None) + (group.feed_forward is not None)
    traffic = norm_passes * blocks * hidden_size * ACTIVATION_BYTES
    if isinstance(group.feed_forward, MixtureOfExperts):
        block = group.feed_forward
        width = block.latent_size or hidden_size
        copies = block.experts_per_token / expert_ranks
        traffic += permute_passes * copies * width * ACTIVATION_BYTES
    return traffic
