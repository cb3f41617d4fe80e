"""Sequence mixers: one frozen description per kind, with the dimensions that bytes and FLOPs need.

A mixer is data only. Parameters and bytes are derived in `capmodel.memory`, FLOPs and traffic
in `capmodel.service`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndexer:
    """A light-weight index that picks `top_k` tokens (or blocks) for the main attention to read.

    Parameters
    ----------
    heads : int
        Index query heads [1].
    head_dim : int
        Width of an index key [1].
    top_k : int
        Tokens attended to per query, once the context is longer [tokens].
    shared : bool
        True where a layer reuses the choice of an earlier layer and has no index of its own.
    """

    heads: int
    head_dim: int
    top_k: int
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQueryAttention:
    """Softmax attention with `kv_heads` key-value heads (MHA and MQA are its two ends).

    Parameters
    ----------
    query_heads, kv_heads, head_dim : int
        Head counts and width [1].
    window_tokens : int, optional
        Sliding window: only the last `window_tokens` are kept and read [tokens].
    chunk_tokens : int, optional
        Chunked attention: only the current chunk is kept and read [tokens].
    output_gate : bool
        True where the query projection is doubled by an output gate.
    indexer : SparseIndexer, optional
        Block-sparse index branch; `top_k` then counts tokens read per query.
    qk_norm : {"none", "head", "full"}
        Norms on queries and keys: per head width, or over all heads.
    bias, output_bias, sinks : bool
        Biases on QKV, on the output, and a learned sink per query head.
    shared_kv : bool
        One projection gives keys and values (both are cached).
    """

    query_heads: int
    kv_heads: int
    head_dim: int
    window_tokens: int | None = None
    chunk_tokens: int | None = None
    output_gate: bool = False
    indexer: SparseIndexer | None = None
    qk_norm: str = "none"
    bias: bool = False
    output_bias: bool = False
    sinks: bool = False
    shared_kv: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA): one compressed latent per token, shared by all heads.

    Parameters
    ----------
    query_heads : int
        Attention heads [1].
    q_lora_rank : int, optional
        Rank of the query compression; None means a full query projection [1].
    kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim : int
        Latent width and head widths [1]; a cached entry has ``kv_lora_rank + qk_rope_head_dim``.
    output_gate : bool
        True for gated MLA (Kimi K3).
    indexer : SparseIndexer, optional
        DeepSeek-style sparse attention over the latent.
    """

    query_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    output_gate: bool = False
    indexer: SparseIndexer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiDeltaAttention:
    """Kimi delta attention (KDA): a fixed recurrent state of head_dim x head_dim per head."""

    heads: int
    head_dim: int
    conv_kernel: int
    full_rank_gate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaNet:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5): a fixed state of key_dim x value_dim per value head."""

    key_heads: int
    key_head_dim: int
    value_heads: int
    value_head_dim: int
    conv_kernel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """Mamba-2 state-space mixer: a fixed state of head_dim x state_size per head."""

    heads: int
    head_dim: int
    groups: int
    state_size: int
    conv_kernel: int
    conv_bias: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LightningAttention:
    """Lightning (linear) attention: a fixed state of head_dim x head_dim per head."""

    heads: int
    head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """DeepSeek-V4 attention: a sliding window plus keys compressed by `ratio`.

    Parameters
    ----------
    query_heads, head_dim, rope_head_dim, q_lora_rank : int
        Head count and widths [1]; keys and values share one vector of `head_dim` per token.
    output_groups, output_lora_rank : int
        Grouped low-rank output projection [1].
    window_tokens : int
        Uncompressed recent tokens that every layer keeps [tokens].
    ratio : int
        Tokens per compressed entry; 0 means window only (no compressed branch) [tokens].
    indexer : SparseIndexer, optional
        Index over compressed entries (ratio-4 layers).
    """

    query_heads: int
    head_dim: int
    rope_head_dim: int
    q_lora_rank: int
    output_groups: int
    output_lora_rank: int
    window_tokens: int
    ratio: int
    indexer: SparseIndexer | None = None


Mixer = (
    GroupedQueryAttention
    | LatentAttention
    | KimiDeltaAttention
    | GatedDeltaNet
    | Mamba2
    | LightningAttention
    | CompressedAttention
)
