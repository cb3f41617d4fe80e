"""A language model as a stack of layer groups: mixer, feed-forward block, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field

from .attention import Mixer
from .precision import WeightPrecision


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFeedForward:
    """A dense feed-forward block with `matrices` projections (3 gated, 2 plain) [1]."""

    intermediate_size: int
    matrices: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """A routed feed-forward block.

    Parameters
    ----------
    experts, experts_per_token : int
        Routed experts and how many a token visits [1].
    intermediate_size : int
        Width of one routed expert [1].
    matrices : int
        Projections per expert (3 gated, 2 plain) [1].
    shared_intermediate_size : int
        Summed width of the always-active shared experts, 0 for none [1].
    latent_size : int, optional
        Width the tokens are projected to before the routed experts (latent MoE) [1].
    router_bias, expert_bias, shared_gate, latent_norm : bool
        Small tensors that some models carry.
    """

    experts: int
    experts_per_token: int
    intermediate_size: int
    matrices: int = 3
    shared_intermediate_size: int = 0
    latent_size: int | None = None
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    latent_norm: bool = False


FeedForward = DenseFeedForward | MixtureOfExperts


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """`count` identical layers, each a mixer and/or a feed-forward block."""

    mixer: Mixer | None
    feed_forward: FeedForward | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder-only language model (text part), as far as bytes, FLOPs and state need it.

    Parameters
    ----------
    name : str
        Catalog name or the file it came from.
    family : str
        The configuration's `model_type`.
    hidden_size, vocab_size, max_position_tokens : int
        Width [1], vocabulary [1], longest context [tokens].
    tied_embeddings : bool
        True where the output head is the input embedding.
    layers : tuple of LayerGroup
        The stack, equal neighbours merged.
    precision : WeightPrecision
        Bytes per parameter by tensor class, as the checkpoint stores them.
    norms_per_layer : int
        Norm vectors of `hidden_size` per layer [1].
    extra_params : int
        Parameters outside the classes above, such as residual mixers [1].
    mtp_layers : int
        Multi-token-prediction modules stored in the checkpoint [1].
    mtp_stack : tuple of LayerGroup
        Layers of one such module.
    mtp_embeddings : bool
        True where each module carries its own embedding and head.
    state_format : str
        Format of recurrent states: ``"fp32"``, ``"bf16"``, or ``"auto"`` for the engine's choice.
    residual_copies : int
        Copies of the hidden state that residual mixers keep alive per token [1].
    vision_params : int
        Estimate of a vision tower's parameters, in no total of the text model [1].
    published : dict
        Published counts and their sources, for checks.
    source : str
        Where the configuration comes from.
    """

    name: str
    family: str
    hidden_size: int
    vocab_size: int
    max_position_tokens: int
    tied_embeddings: bool
    layers: tuple[LayerGroup, ...]
    precision: WeightPrecision
    norms_per_layer: int = 2
    extra_params: int = 0
    mtp_layers: int = 0
    mtp_stack: tuple[LayerGroup, ...] = ()
    mtp_embeddings: bool = False
    state_format: str = "auto"
    residual_copies: int = 0
    vision_params: int = 0
    published: dict[str, object] = field(default_factory=dict)
    source: str = ""

    @property
    def layer_count(self) -> int:
        """Layers in the stack [1]."""
        return sum(group.count for group in self.layers)
