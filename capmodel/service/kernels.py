"""Kernels: how many launches a layer makes, which is its least time at any batch size."""

from __future__ import annotations

from ..catalog import efficiencies
from ..spec.attention import (
    CompressedAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    LightningAttention,
    Mamba2,
)
from ..spec.model import DenseFeedForward, LayerGroup, MixtureOfExperts

_MIXERS = {
    GroupedQueryAttention: "grouped_query",
    LatentAttention: "latent",
    KimiDeltaAttention: "kimi_delta",
    GatedDeltaNet: "gated_delta",
    Mamba2: "mamba2",
    LightningAttention: "lightning",
    CompressedAttention: "compressed",
}


def kernel_count(group: LayerGroup | None, quantized: bool) -> int:
    """Kernels that one layer of a group launches; None for the head and the sampler [1].

    Parameters
    ----------
    group : LayerGroup or None
        The layer's mixer and feed-forward block.
    quantized : bool
        True where activations are quantised before the linear layers.
    """
    counts = efficiencies("engines")["kernels"]
    if group is None:
        return int(counts["head"])
    total = 0
    if group.mixer is not None:
        total += counts[_MIXERS[type(group.mixer)]] + counts["norm"]
        indexer = getattr(group.mixer, "indexer", None)
        if indexer is not None and not indexer.shared:
            total += counts["indexer"]
        total += counts["activation_quantization"] if quantized else 0
    block = group.feed_forward
    if isinstance(block, DenseFeedForward):
        total += counts["dense"]
    elif isinstance(block, MixtureOfExperts):
        total += counts["experts"]
        total += counts["shared_experts"] if block.shared_intermediate_size else 0
        total += counts["latent_projection"] if block.latent_size else 0
    if block is not None:
        total += counts["norm"] + (counts["activation_quantization"] if quantized else 0)
    return int(total)
