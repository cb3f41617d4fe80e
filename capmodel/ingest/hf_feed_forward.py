"""Configuration → feed-forward block of every layer, under all the names in use."""

from __future__ import annotations

from ..errors import SpecError
from ..spec.model import DenseFeedForward, FeedForward, MixtureOfExperts
from .hf_families import Family
from .hf_fields import Fields
from .hf_mixers import block_types

EXPERT_COUNTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
EXPERTS_PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "moe_topk",
    "moe_k",
    "top_k_experts",
)
SHARED_COUNTS = ("n_shared_experts", "num_shared_experts", "num_shared_expert")
SHARED_WIDTHS = (
    "moe_shared_expert_intermediate_size",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
)


def feed_forwards(fields: Fields, family_name: str, family: Family) -> list[FeedForward | None]:
    """Return one feed-forward block per layer, None for a layer that is only a mixer."""
    if family.mixer == "mamba":
        return [feed_forward_of_block(fields, family_name, family, k) for k in block_types(fields)]
    layers = fields.layer_count()
    if not fields.has(*EXPERT_COUNTS) or not fields.flag("enable_moe_block", True):
        return [DenseFeedForward(intermediate_size=_dense_width(fields, family_name))] * layers
    routed = mixture(fields, family_name, family)
    sparse = _is_sparse(fields, family_name, layers)
    if all(sparse):
        return [routed] * layers
    dense = DenseFeedForward(intermediate_size=_dense_width(fields, family_name))
    return [routed if here else dense for here in sparse]


def feed_forward_of_block(
    fields: Fields, family_name: str, family: Family, kind: str
) -> FeedForward | None:
    """Return the feed-forward block of one block type of a mixer-or-feed-forward stack."""
    if kind == "moe":
        return mixture(fields, family_name, family)
    if kind == "mlp":
        return DenseFeedForward(intermediate_size=fields.size("intermediate_size"), matrices=2)
    return None


def mixture(fields: Fields, family_name: str, family: Family) -> MixtureOfExperts:
    """Return the routed block that the configuration describes."""
    experts = fields.size(*EXPERT_COUNTS)
    per_token = fields.size(*EXPERTS_PER_TOKEN)
    if per_token > experts:
        raise SpecError(
            f"{fields.name}: {per_token} experts per token of {experts}.",
            field="num_experts_per_tok",
        )
    width = fields.size("moe_intermediate_size", "intermediate_size")
    return MixtureOfExperts(
        experts=experts,
        experts_per_token=per_token,
        intermediate_size=width,
        matrices=2 if family.mixer == "mamba" else 3,
        shared_intermediate_size=_shared_width(fields, family_name, width),
        latent_size=fields.optional_size("moe_latent_size", "routed_expert_hidden_size"),
        router_bias=family.correction_bias or family_name == "gpt_oss",
        expert_bias=family_name == "gpt_oss",
        shared_gate=family.shared_gate,
        latent_norm=fields.flag("latent_moe_use_norm", False),
    )


def _shared_width(fields: Fields, family_name: str, width: int) -> int:
    if family_name == "llama4_text":
        return width
    if family_name == "gemma4_text":
        # A dense block runs beside the routed one in every layer.
        return fields.size("intermediate_size")
    count = fields.size(*SHARED_COUNTS, default=0, low=0)
    if fields.has(*SHARED_WIDTHS):
        return fields.size(*SHARED_WIDTHS, low=0) * max(1, count)
    return count * width


def _dense_width(fields: Fields, family_name: str) -> int:
    if family_name == "llama4_text":
        return fields.size("intermediate_size_mlp", "intermediate_size")
    return fields.size("dense_intermediate_size", "intermediate_size", "ffn_hidden_size")


def _is_sparse(fields: Fields, family_name: str, layers: int) -> list[bool]:
    if "mlp_layer_types" in fields:
        types = fields.per_layer("mlp_layer_types", layers)
        if not set(map(str, types)) <= {"dense", "sparse"}:
            raise SpecError(
                f"{fields.name}: mlp_layer_types may hold 'dense' and 'sparse'.",
                field="mlp_layer_types",
            )
        return [kind == "sparse" for kind in types]
    if isinstance(fields.data.get("moe_layer_freq"), list):
        return [bool(value) for value in fields.per_layer("moe_layer_freq", layers)]
    if family_name == "llama4_text":
        step = fields.size("interleave_moe_layer_step", default=1)
        return [(i + 1) % step == 0 for i in range(layers)]
    first = fields.size("first_k_dense_replace", default=0, low=0)
    frequency = fields.size("moe_layer_freq", default=1)
    step = fields.size("decoder_sparse_step", default=1)
    dense_only = fields.layer_numbers("mlp_only_layers")
    return [
        i >= first and i % frequency == 0 and (i + 1) % step == 0 and i not in dense_only
        for i in range(layers)
    ]
