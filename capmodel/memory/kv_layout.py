"""What a layer caches: bytes per token and per sequence on one rank, and who holds copies."""

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
    SparseIndexer,
)
from ..spec.deployment import Deployment
from ..spec.model import Model
from . import engine_defaults

# Sparse-MLA fp8 record of vLLM and SGLang: 512 fp8 + 16 B scales + 64 bf16 rope values.
SPARSE_LATENT_RECORD = {"scale_groups": 4, "scale_bytes": 4, "rope_bytes": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePart:
    """One tensor that a layer keeps per sequence, on one rank.

    Parameters
    ----------
    kind : {"full", "window", "chunk", "recurrent", "index", "compressed"}
        How it grows: with every token, up to a bound, or not at all.
    bytes_per_token : float
        Bytes of one token, before context parallelism divides the tokens [bytes].
    bound_tokens : int, optional
        Most tokens kept, for windows and chunks [tokens].
    state_bytes : float
        Bytes per sequence of a recurrent state, convolutions included [bytes].
    copies : int
        Tensor-parallel ranks that hold the same values [1].
    """

    kind: str
    bytes_per_token: float = 0.0
    bound_tokens: int | None = None
    state_bytes: float = 0.0
    copies: int = 1

    @property
    def grows(self) -> bool:
        """Whether it takes bytes for every token of the context."""
        return self.kind in ("full", "index", "compressed")


def kv_element_bytes(deployment: Deployment) -> int:
    """Return the bytes of one cached key or value element [bytes]."""
    return 1 if deployment.kv_dtype == "fp8" else 2


def cache_parts(mixer: Mixer | None, model: Model, deployment: Deployment) -> tuple[CachePart, ...]:
    """Return what one layer with `mixer` caches on one rank.

    Notes
    -----
    Heads are divided over the tensor-parallel ranks; with more ranks than KV heads they are
    copied. A latent is shared by all heads, so every rank holds it whole.
    """
    tp = deployment.tp
    match mixer:
        case None:
            return ()
        case GroupedQueryAttention():
            return _grouped_query(mixer, deployment)
        case LatentAttention():
            return _latent(mixer, deployment)
        case CompressedAttention():
            return _compressed(mixer, deployment)
        case KimiDeltaAttention(heads=heads, head_dim=d, conv_kernel=k):
            return (_recurrent(heads * d * d, 3 * heads * d, k, model, deployment),)
        case GatedDeltaNet():
            keys = mixer.key_heads * mixer.key_head_dim
            values = mixer.value_heads * mixer.value_head_dim
            state = values * mixer.key_head_dim
            return (_recurrent(state, 2 * keys + values, mixer.conv_kernel, model, deployment),)
        case Mamba2():
            inner = mixer.heads * mixer.head_dim
            # Fewer groups than ranks are copied, so that each rank has one.
            groups = max(mixer.groups, tp)
            channels = inner + 2 * groups * mixer.state_size
            return (
                _recurrent(
                    inner * mixer.state_size, channels, mixer.conv_kernel, model, deployment
                ),
            )
        case LightningAttention(heads=heads, head_dim=d):
            return (_recurrent(heads * d * d, 0, 1, model, deployment),)


def _recurrent(
    elements: int, channels: int, kernel: int, model: Model, deployment: Deployment
) -> CachePart:
    """A state of `elements` and a convolution of `channels`, both divided over the ranks."""
    auto_bytes = 2 if deployment.engine == "vllm" else 4
    element_bytes = {"fp32": 4, "bf16": 2, "auto": auto_bytes}[model.state_format]
    drafts = deployment.speculation.draft_tokens if deployment.speculation else 0
    rows = kernel - 1 + drafts if channels else 0
    total = elements * element_bytes + channels * rows * 2
    return CachePart(kind="recurrent", state_bytes=total / deployment.tp)


def _grouped_query(mixer: GroupedQueryAttention, deployment: Deployment) -> tuple[CachePart, ...]:
    tp = deployment.tp
    heads = max(1, -(-mixer.kv_heads // tp))
    copies = max(1, tp // mixer.kv_heads)
    per_token = 2.0 * heads * mixer.head_dim * kv_element_bytes(deployment)
    bound = mixer.window_tokens or mixer.chunk_tokens
    kind = "window" if mixer.window_tokens else "chunk" if mixer.chunk_tokens else "full"
    main = CachePart(kind=kind, bytes_per_token=per_token, bound_tokens=bound, copies=copies)
    if mixer.indexer is None or mixer.indexer.shared:
        return (main,)
    keys = mixer.indexer.head_dim * kv_element_bytes(deployment)
    return (main, CachePart(kind="index", bytes_per_token=float(keys), copies=tp))


def index_key_bytes(indexer: SparseIndexer) -> float:
    """An fp8 index key with one fp32 scale [bytes]."""
    return indexer.head_dim + 4.0


def _latent(mixer: LatentAttention, deployment: Deployment) -> tuple[CachePart, ...]:
    latent = mixer.kv_lora_rank + mixer.qk_rope_head_dim
    width = engine_defaults.latent_entry_elements(latent, mixer.query_heads, deployment)
    per_token = float(width * kv_element_bytes(deployment))
    sparse = mixer.indexer is not None
    if sparse and deployment.kv_dtype == "fp8" and deployment.engine in ("vllm", "sglang"):
        record = SPARSE_LATENT_RECORD
        per_token = float(
            mixer.kv_lora_rank
            + record["scale_groups"] * record["scale_bytes"]
            + record["rope_bytes"] * mixer.qk_rope_head_dim
        )
    main = CachePart(kind="full", bytes_per_token=per_token, copies=deployment.tp)
    if mixer.indexer is None or mixer.indexer.shared:
        return (main,)
    index = CachePart(
        kind="index", bytes_per_token=index_key_bytes(mixer.indexer), copies=deployment.tp
    )
    return (main, index)


def compressed_entry_bytes(mixer: CompressedAttention, deployment: Deployment) -> float:
    """Return the bytes of one cached DeepSeek-V4 vector [bytes].

    Notes
    -----
    The fp8 entry keeps its rope part in bf16 and one scale byte per 64 values: 448 + 128 + 8.
    """
    if deployment.kv_dtype != "fp8":
        return 2.0 * mixer.head_dim
    plain = mixer.head_dim - mixer.rope_head_dim
    return plain + 2.0 * mixer.rope_head_dim + 8.0


def _compressed(mixer: CompressedAttention, deployment: Deployment) -> tuple[CachePart, ...]:
    entry = compressed_entry_bytes(mixer, deployment)
    tp = deployment.tp
    parts = [
        CachePart(kind="window", bytes_per_token=entry, bound_tokens=mixer.window_tokens, copies=tp)
    ]
    if mixer.ratio:
        parts.append(CachePart(kind="compressed", bytes_per_token=entry / mixer.ratio, copies=tp))
    if mixer.indexer is not None:
        key = index_key_bytes(mixer.indexer) / mixer.ratio
        parts.append(CachePart(kind="index", bytes_per_token=key, copies=tp))
    return tuple(parts)


def model_parts(model: Model, deployment: Deployment) -> list[tuple[int, tuple[CachePart, ...]]]:
    """Return (layers, parts) for every layer group of the model on one rank."""
    return [(g.count, cache_parts(g.mixer, model, deployment)) for g in model.layers]


def kv_bytes_per_token(model: Model, deployment: Deployment) -> float:
    """Return the bytes that each further token takes on one rank, all layers [bytes].

    Notes
    -----
    Windows, chunks and recurrent states do not grow and are not in it; decode context
    parallelism divides the tokens, so it divides the average.
    """
    grown = sum(
        n * p.bytes_per_token for n, ps in model_parts(model, deployment) for p in ps if p.grows
    )
    return grown / deployment.dcp


def unique_kv_bytes_per_token(model: Model, deployment: Deployment) -> float:
    """Return the bytes of one token's cache over all ranks, every value counted once [bytes]."""
    tp = deployment.tp
    return sum(
        n * p.bytes_per_token * tp / p.copies
        for n, ps in model_parts(model, deployment)
        for p in ps
        if p.grows
    )


def state_bytes_per_sequence(model: Model, deployment: Deployment) -> float:
    """Return the fixed bytes of one sequence on one rank: states, windows, chunks [bytes]."""
    return sum(
        n * (p.state_bytes + p.bytes_per_token * (p.bound_tokens or 0))
        for n, ps in model_parts(model, deployment)
        for p in ps
        if not p.grows
    )


def recurrent_bytes_per_sequence(model: Model, deployment: Deployment) -> float:
    """Return the bytes of one sequence's recurrent states on one rank [bytes]."""
    return sum(n * p.state_bytes for n, ps in model_parts(model, deployment) for p in ps)


def fewest_copies(model: Model, deployment: Deployment) -> int:
    """Return how many ranks hold the same values of every growing cache [1]."""
    parts = [p for _, ps in model_parts(model, deployment) for p in ps if p.grows]
    return min((p.copies for p in parts), default=deployment.tp)


def kv_replication(model: Model, deployment: Deployment) -> float:
    """Return how many copies of one token's cache the ranks of one replica hold [1]."""
    unique = unique_kv_bytes_per_token(model, deployment)
    stored = kv_bytes_per_token(model, deployment) * deployment.tp
    return stored / unique if unique else 1.0
