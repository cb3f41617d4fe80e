"""Weight bytes on one rank: what the ranks share, what each holds whole, in which format."""

from __future__ import annotations

from dataclasses import dataclass

from ..spec.attention import GroupedQueryAttention, Mixer
from ..spec.deployment import Deployment
from ..spec.model import LayerGroup, MixtureOfExperts, Model
from ..spec.precision import WeightPrecision, number_format
from . import engine_defaults
from .drafts import uses_module
from .params import feed_forward_params, mixer_params, parameters

BF16_BYTES = 2.0
FP32_BYTES = 4.0
# An engine without padding of its own, for the bytes of a checkpoint.
STORED_AS_SHIPPED = "sglang"
FOUR_BIT = ("int4", "mxfp4", "nvfp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Weight bytes of one rank by tensor class [bytes]."""

    routed_experts: float = 0.0
    shared_experts: float = 0.0
    dense_feed_forward: float = 0.0
    attention: float = 0.0
    latent: float = 0.0
    router: float = 0.0
    embedding: float = 0.0
    head: float = 0.0
    small: float = 0.0
    mtp: float = 0.0
    vision: float = 0.0

    @property
    def total(self) -> float:
        """All classes [bytes]."""
        return sum(self.by_class().values())

    def by_class(self) -> dict[str, float]:
        """Return the classes by name [bytes]."""
        return {name: float(getattr(self, name)) for name in self.__dataclass_fields__}


def format_bytes_per_param(name: str) -> float:
    """Return the stored bytes of one parameter in a format, scales included [bytes]."""
    return number_format(name).bytes_per_element


def served_precision(model: Model, deployment: Deployment) -> WeightPrecision:
    """Return the layout in which the engine holds the weights.

    Notes
    -----
    4-bit builds of routed models convert the routed experts and leave the rest as it is, as the
    logged weights of such builds show.
    """
    name = deployment.weights
    if name == "auto":
        return model.precision
    routed = any(isinstance(g.feed_forward, MixtureOfExperts) for g in model.layers)
    if name in FOUR_BIT and routed:
        return WeightPrecision(routed_experts=name)
    return WeightPrecision.uniform(name)


def checkpoint_bytes(model: Model) -> float:
    """Return the bytes of the text model as stored, prediction modules excluded [bytes].

    Notes
    -----
    Linear layers by their own format, embeddings, routers and norms in bf16, the small tensors
    of delta attention in fp32, as its checkpoints store them.
    """
    whole = Deployment(engine=STORED_AS_SHIPPED)
    return rank_weights(model, whole, model.layers, first=True, last=True, mtp=False).total - (
        model.vision_params * BF16_BYTES
    )


def rank_weights(
    model: Model,
    deployment: Deployment,
    layers: tuple[LayerGroup, ...],
    *,
    first: bool,
    last: bool,
    mtp: bool | None = None,
) -> WeightBytes:
    """Return the weight bytes of one rank that holds `layers` [bytes].

    Parameters
    ----------
    model, deployment : Model, Deployment
        What is served and how.
    layers : tuple of LayerGroup
        The layers of the rank's pipeline stage.
    first, last : bool
        Whether the stage has the input embedding and the output head.
    mtp : bool, optional
        Whether prediction modules are loaded; None follows the deployment's speculation.

    Notes
    -----
    Experts are divided over all tensor- and data-parallel ranks of a stage; everything else over
    the tensor-parallel ranks alone. Low-rank inputs, routers, latent projections and indexers are
    held whole by every rank.
    """
    tp, h = deployment.tp, model.hidden_size
    precision = served_precision(model, deployment)
    bytes_of = format_bytes_per_param
    blocks = [(g.count, feed_forward_params(g.feed_forward, h)) for g in layers]
    expert_ranks = tp * deployment.dp
    attention = sum(g.count * _attention_params(g.mixer, h, tp) for g in layers)
    small = sum(g.count * _small_bytes(g, model) for g in layers)
    table = model.vocab_size * h * BF16_BYTES / tp
    counts = parameters(model)
    share = sum(g.count for g in layers) / model.layer_count
    loads_mtp = uses_module(deployment) if mtp is None else mtp
    experts = sum(g.count * _routed_params(g, h, precision, deployment) for g in layers)
    return WeightBytes(
        routed_experts=experts * bytes_of(precision.routed_experts) / expert_ranks,
        shared_experts=sum(n * b.shared for n, b in blocks)
        * bytes_of(precision.shared_experts)
        / tp,
        dense_feed_forward=sum(n * b.dense for n, b in blocks)
        * bytes_of(precision.dense_feed_forward)
        / tp,
        attention=attention * bytes_of(precision.attention),
        latent=sum(n * b.latent for n, b in blocks) * bytes_of(precision.latent),
        router=sum(n * b.router for n, b in blocks) * BF16_BYTES,
        embedding=table if first or (last and model.tied_embeddings) else 0.0,
        head=table if last and counts.head else 0.0,
        small=small + model.extra_params * share * BF16_BYTES + h * BF16_BYTES * last,
        mtp=_mtp_bytes(model, deployment, precision) if loads_mtp and last else 0.0,
        vision=model.vision_params * BF16_BYTES if first else 0.0,
    )


def _routed_params(
    group: LayerGroup, h: int, precision: WeightPrecision, deployment: Deployment
) -> float:
    """Routed parameters of a layer as the engine stores them, kernel padding included [1]."""
    block = group.feed_forward
    if not isinstance(block, MixtureOfExperts):
        return 0.0
    width = block.latent_size or h
    stored = engine_defaults.expert_width(width, precision.routed_experts, deployment)
    return feed_forward_params(block, h).routed * stored / width


def _attention_params(mixer: Mixer | None, h: int, tp: int) -> float:
    counts = mixer_params(mixer, h)
    share = counts.sharded / tp
    if isinstance(mixer, GroupedQueryAttention) and tp > mixer.kv_heads:
        share += counts.key_value / mixer.kv_heads - counts.key_value / tp
    return share + counts.replicated


def _small_bytes(group: LayerGroup, model: Model) -> float:
    mixer = mixer_params(group.mixer, model.hidden_size)
    block = feed_forward_params(group.feed_forward, model.hidden_size)
    is_delta = type(group.mixer).__name__ == "KimiDeltaAttention"
    wide = FP32_BYTES if is_delta or model.family == "kimi_linear" else BF16_BYTES
    correction = getattr(group.feed_forward, "experts", 0) if block.small else 0
    norms = model.norms_per_layer * model.hidden_size * BF16_BYTES
    return (
        mixer.small * (FP32_BYTES if is_delta else BF16_BYTES)
        + min(correction, block.small) * wide
        + max(0, block.small - correction) * BF16_BYTES
        + norms
    )


def _mtp_bytes(model: Model, deployment: Deployment, precision: WeightPrecision) -> float:
    if not model.mtp_layers or not model.mtp_stack:
        return 0.0
    body = rank_weights(model, deployment, model.mtp_stack, first=False, last=False, mtp=False)
    projection = 2 * model.hidden_size**2 * format_bytes_per_param(precision.attention)
    norms = 3 * model.hidden_size * format_bytes_per_param("bf16")
    return model.mtp_layers * (body.total + projection + norms)
