"""Parameter counts by tensor class, exact for the text model."""

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
from ..spec.model import FeedForward, LayerGroup, MixtureOfExperts, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerParams:
    """Parameters of one sequence mixer, split the way tensor parallelism treats them.

    Parameters
    ----------
    sharded : int
        Matmul parameters that the ranks share, by head [1].
    replicated : int
        Matmul parameters that every rank holds whole: low-rank inputs, indexers [1].
    key_value : int
        The part of `sharded` that follows the KV heads, copied when ranks outnumber them [1].
    small : int
        Norms, biases, convolutions, per-head vectors [1].
    """

    sharded: int
    replicated: int = 0
    key_value: int = 0
    small: int = 0

    @property
    def matmul(self) -> int:
        """Parameters that every token multiplies [1]."""
        return self.sharded + self.replicated


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForwardParams:
    """Parameters of one feed-forward block by tensor class [1]."""

    dense: int = 0
    routed: int = 0
    routed_active: int = 0
    shared: int = 0
    router: int = 0
    latent: int = 0
    small: int = 0

    @property
    def matmul_active(self) -> int:
        """Parameters that one token multiplies [1]."""
        return self.dense + self.routed_active + self.shared + self.router + self.latent

    @property
    def total(self) -> int:
        """All parameters of the block [1]."""
        return self.dense + self.routed + self.shared + self.router + self.latent + self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParams:
    """Parameters of a text model by tensor class [1]; prediction modules stand apart in `mtp`."""

    embedding: int
    head: int
    attention: int
    dense_feed_forward: int
    routed_experts: int
    routed_experts_active: int
    shared_experts: int
    router: int
    latent: int
    small: int
    mtp: int

    @property
    def total(self) -> int:
        """Every parameter of the text model, prediction modules excluded [1]."""
        return (
            self.embedding + self.head + self.attention + self.dense_feed_forward
            + self.routed_experts + self.shared_experts + self.router + self.latent + self.small
        )  # fmt: skip

    @property
    def active(self) -> int:
        """Parameters one token uses, the input embedding (a lookup) excluded [1]."""
        lookup = self.embedding if self.head else 0
        return self.total - lookup - self.routed_experts + self.routed_experts_active

    @property
    def matmul(self) -> int:
        """Parameters one token multiplies, the head included; 2 FLOP each [1]."""
        return (
            self.attention + self.dense_feed_forward + self.routed_experts_active
            + self.shared_experts + self.router + self.latent + (self.head or self.embedding)
        )  # fmt: skip


def mixer_params(mixer: Mixer | None, hidden_size: int) -> MixerParams:
    """Return the parameters of one mixer [1].

    Notes
    -----
    The formulas are those of the models' own code, one per kind; each sum agrees with the exact
    published count of every catalog model that has one.
    """
    h = hidden_size
    match mixer:
        case None:
            return MixerParams(sharded=0)
        case GroupedQueryAttention():
            return _grouped_query(mixer, h)
        case LatentAttention():
            return _latent(mixer, h)
        case KimiDeltaAttention(heads=heads, head_dim=d, conv_kernel=k):
            p = heads * d
            gate = h * p if mixer.full_rank_gate else d * p
            gate_input = 0 if mixer.full_rank_gate else h * d
            return MixerParams(
                sharded=4 * h * p + d * p + h * heads + gate,
                replicated=h * d + gate_input,
                small=3 * p * k + heads + p + d,
            )
        case GatedDeltaNet():
            keys = mixer.key_heads * mixer.key_head_dim
            values = mixer.value_heads * mixer.value_head_dim
            heads = mixer.value_heads
            return MixerParams(
                sharded=h * (2 * keys + 2 * values) + 2 * h * heads + values * h,
                small=(2 * keys + values) * mixer.conv_kernel + 2 * heads + mixer.value_head_dim,
            )
        case Mamba2():
            inner = mixer.heads * mixer.head_dim
            channels = inner + 2 * mixer.groups * mixer.state_size
            return MixerParams(
                sharded=h * (inner + channels + mixer.heads) + inner * h,
                small=channels * (mixer.conv_kernel + mixer.conv_bias) + 3 * mixer.heads + inner,
            )
        case LightningAttention(heads=heads, head_dim=d):
            return MixerParams(sharded=5 * h * heads * d, small=heads * d)
        case CompressedAttention():
            return _compressed(mixer, h)


def _grouped_query(mixer: GroupedQueryAttention, h: int) -> MixerParams:
    q, kv, d = mixer.query_heads, mixer.kv_heads, mixer.head_dim
    gate = 2 if mixer.output_gate else 1
    small = (q + 2 * kv) * d if mixer.bias else 0
    small += {"none": 0, "head": 2 * d, "full": (q + kv) * d}[mixer.qk_norm]
    small += (h if mixer.output_bias else 0) + (q if mixer.sinks else 0)
    index = mixer.indexer
    key_value = (1 if mixer.shared_kv else 2) * h * kv * d
    return MixerParams(
        sharded=h * q * d * gate + key_value + q * d * h,
        replicated=h * index.head_dim * (index.heads + 1) if index else 0,
        key_value=key_value,
        small=small + (2 * index.head_dim if index else 0),
    )


def _latent(mixer: LatentAttention, h: int) -> MixerParams:
    heads, rank, kv_rank = mixer.query_heads, mixer.q_lora_rank, mixer.kv_lora_rank
    key, value = mixer.qk_nope_head_dim, mixer.v_head_dim
    query_width = heads * (key + mixer.qk_rope_head_dim)
    sharded = query_width * (rank or h) + kv_rank * heads * (key + value) + heads * value * h
    sharded += h * heads * value if mixer.output_gate else 0
    replicated = h * (rank or 0) + h * (kv_rank + mixer.qk_rope_head_dim)
    small = (rank or 0) + kv_rank
    index = mixer.indexer
    if index and not index.shared:
        replicated += (rank or h) * index.heads * index.head_dim
        replicated += h * index.head_dim + h * index.heads
        small += 2 * index.head_dim
    return MixerParams(sharded=sharded, replicated=replicated, small=small)


def _compressed(mixer: CompressedAttention, h: int) -> MixerParams:
    q, d, rank = mixer.query_heads, mixer.head_dim, mixer.q_lora_rank
    groups, out_rank = mixer.output_groups, mixer.output_lora_rank
    sharded = rank * q * d + q * d * out_rank + groups * out_rank * h
    replicated = h * rank + h * d
    small = rank + d + q
    index = mixer.indexer
    if index is not None:
        replicated += 4 * h * d + 4 * h * index.head_dim
        replicated += rank * index.heads * index.head_dim + h * index.heads
        small += 2 * mixer.ratio * d + 2 * mixer.ratio * index.head_dim + d + index.head_dim
    elif mixer.ratio:
        replicated += 2 * h * d
        small += mixer.ratio * d + d
    return MixerParams(sharded=sharded, replicated=replicated, small=small)


def feed_forward_params(block: FeedForward | None, hidden_size: int) -> FeedForwardParams:
    """Return the parameters of one feed-forward block by tensor class [1]."""
    h = hidden_size
    if block is None:
        return FeedForwardParams()
    if not isinstance(block, MixtureOfExperts):
        return FeedForwardParams(dense=block.matrices * h * block.intermediate_size)
    width = block.latent_size or h
    expert = block.matrices * width * block.intermediate_size
    expert += 2 * block.intermediate_size + h if block.expert_bias else 0
    small = block.experts if block.router_bias else 0
    small += (h if block.shared_gate else 0) + (width if block.latent_norm else 0)
    return FeedForwardParams(
        routed=block.experts * expert,
        routed_active=block.experts_per_token * expert,
        shared=block.matrices * h * block.shared_intermediate_size,
        router=h * block.experts,
        latent=2 * h * block.latent_size if block.latent_size else 0,
        small=small,
    )


def layer_params(group: LayerGroup, model: Model) -> int:
    """Return all parameters of one layer of a group, norms included [1]."""
    mixer = mixer_params(group.mixer, model.hidden_size)
    block = feed_forward_params(group.feed_forward, model.hidden_size)
    return mixer.matmul + mixer.small + block.total + model.norms_per_layer * model.hidden_size


def mtp_params(model: Model) -> int:
    """Return the parameters of the checkpoint's prediction modules [1]."""
    h = model.hidden_size
    if not model.mtp_layers or not model.mtp_stack:
        return 0
    body = sum(g.count * layer_params(g, model) for g in model.mtp_stack)
    own = 2 * model.vocab_size * h if model.mtp_embeddings else 0
    return model.mtp_layers * (body + 2 * h * h + 3 * h + own)


def parameters(model: Model) -> ModelParams:
    """Return the parameter counts of a model by tensor class [1].

    Notes
    -----
    Exact for: the text model. Vision towers are not derived; `Model.vision_params` estimates them.
    """
    h = model.hidden_size
    table = model.vocab_size * h
    mixers = [(g.count, mixer_params(g.mixer, h)) for g in model.layers]
    blocks = [(g.count, feed_forward_params(g.feed_forward, h)) for g in model.layers]
    norms = h * (model.norms_per_layer * model.layer_count + 1)
    small = sum(n * m.small for n, m in mixers) + sum(n * b.small for n, b in blocks)
    return ModelParams(
        embedding=table,
        head=0 if model.tied_embeddings else table,
        attention=sum(n * m.matmul for n, m in mixers),
        dense_feed_forward=sum(n * b.dense for n, b in blocks),
        routed_experts=sum(n * b.routed for n, b in blocks),
        routed_experts_active=sum(n * b.routed_active for n, b in blocks),
        shared_experts=sum(n * b.shared for n, b in blocks),
        router=sum(n * b.router for n, b in blocks),
        latent=sum(n * b.latent for n, b in blocks),
        small=small + norms + model.extra_params,
        mtp=mtp_params(model),
    )
