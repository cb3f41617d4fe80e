"""Bytes an engine takes beside weights and pool: driver, context, activations, graphs, buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ..catalog import raw_item
from ..spec.accelerator import Accelerator
from ..spec.attention import (
    CompressedAttention,
    GatedDeltaNet,
    KimiDeltaAttention,
    LatentAttention,
    Mixer,
)
from ..spec.deployment import Deployment
from ..spec.model import DenseFeedForward, FeedForward, MixtureOfExperts, Model
from ..units import parse_bytes
from . import engine_defaults
from .drafts import kept_hidden_layers

EDGES = ("value", "low", "high")
BF16_BYTES = 2.0
FP32_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Non-KV bytes of one rank beside its weights, with the range that measured starts span.

    Parameters
    ----------
    parts : dict of str to float
        Bytes by cause [bytes].
    low, high : float
        Range of the total [bytes].
    """

    parts: dict[str, float]
    low: float
    high: float

    @property
    def total(self) -> float:
        """Sum of the parts [bytes]."""
        return sum(self.parts.values())


@cache
def _table() -> dict[str, Any]:
    return raw_item("builds", "overhead")


def _bytes(name: str, edge: str) -> float:
    return parse_bytes(_table()[name][edge], name)


def overhead(model: Model, deployment: Deployment, accelerator: Accelerator) -> Overhead:
    """Return the engine's bytes beside weights and pool on one rank [bytes].

    Notes
    -----
    Exact for: nothing; every constant is fitted on logged starts and has a range.
    vLLM profiles one step: the peak is the wider of the layers at the full batch and the sampler
    at the full set of requests. SGLang and TensorRT-LLM size the pool as a share of free memory
    and leave activations to the rest.
    """
    by_edge = {edge: _parts(model, deployment, accelerator, edge) for edge in EDGES}
    return Overhead(
        parts=by_edge["value"],
        low=sum(by_edge["low"].values()),
        high=sum(by_edge["high"].values()),
    )


def _parts(
    model: Model, deployment: Deployment, accelerator: Accelerator, edge: str
) -> dict[str, float]:
    vendor = accelerator.vendor if accelerator.vendor in _table()["driver_reserve"] else "other"
    reserve = parse_bytes(_table()["driver_reserve"][vendor][edge], "driver_reserve")
    parts = {"driver": reserve * deployment.gpu_memory_utilization}
    if deployment.engine == "sglang":
        kept = _bytes("static_pool_context", edge) * deployment.gpu_memory_utilization
        return {**parts, "context": kept}
    if deployment.engine == "trtllm":
        taken = {"driver": reserve, "context": _bytes("context", edge)}
        return {**taken, "buffers": _bytes("engine_buffers", edge)}
    parts["context"] = _bytes("context", edge)
    if deployment.gpus > 1:
        parts["communication"] = _communication_bytes(deployment, accelerator, edge)
    parts["activations"] = activation_peak_bytes(model, deployment, accelerator, edge)
    counted_since = _table()["graphs"]["counted_since"]
    if not engine_defaults.is_before(deployment.engine_version, counted_since):
        parts["graphs"] = _graph_bytes(model, deployment, accelerator, edge)
    if deployment.engine == "atom":
        parts["buffers"] = _bytes("atom_buffers", edge)
    if any(_has_indexer(group.mixer) for group in model.layers):
        parts["index_workspace"] = _bytes("sparse_index_workspace", edge)
    return parts


def _communication_bytes(deployment: Deployment, accelerator: Accelerator, edge: str) -> float:
    """Buffers of collectives, by build and by whether the ranks share a machine [bytes]."""
    rule = _table()["communication"]
    if engine_defaults.is_before(deployment.engine_version, rule["early"]["before"]):
        return parse_bytes(rule["early"][edge], "communication")
    several = deployment.gpus > accelerator.gpus_per_node
    return parse_bytes(rule["machines" if several else "one_machine"][edge], "communication")


def _graph_bytes(
    model: Model, deployment: Deployment, accelerator: Accelerator, edge: str
) -> float:
    """The start-up estimate for captured graphs: layers times batch sizes captured [bytes]."""
    rule = _table()["graphs"]
    largest = int(rule["largest_size"])
    limit = rule["sizes_per_request"] * engine_defaults.max_num_seqs(deployment, accelerator)
    captured = len(_graph_sizes(min(largest, limit))) / len(_graph_sizes(largest))
    return parse_bytes(rule["per_layer"][edge], "graphs") * model.layer_count * captured


def _graph_sizes(largest: int) -> list[int]:
    """Batch sizes that get a graph: 1, 2, 4, every eighth to 256, every sixteenth beyond."""
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, 1 + max(largest, 256), 16)]
    return [size for size in sizes if size <= largest]


def activation_peak_bytes(
    model: Model, deployment: Deployment, accelerator: Accelerator, edge: str = "value"
) -> float:
    """Return the activation peak of the profiled step on one rank [bytes]."""
    tokens = engine_defaults.profiled_tokens(deployment, accelerator, model)
    sequences = engine_defaults.max_num_seqs(deployment, accelerator)
    logit_bytes = _sampler_bytes_per_logit(deployment, edge)
    layers = activation_bytes_per_token(model, deployment, edge) * tokens
    return max(layers, logit_bytes * sequences * model.vocab_size)


def _sampler_bytes_per_logit(deployment: Deployment, edge: str) -> float:
    rule = _table()["sampler_bytes_per_logit"]
    version = deployment.engine_version
    for entry in rule["by_version"]:
        known = engine_defaults.version_number(version) is not None
        since = not engine_defaults.is_before(version, entry["since"])
        if known and since and engine_defaults.is_before(version, entry["before"]):
            return float(entry[edge])
    return float(rule[edge])


def activation_bytes_per_token(model: Model, deployment: Deployment, edge: str = "value") -> float:
    """Return the bytes alive per batched token at a layer's widest point on one rank [bytes].

    Notes
    -----
    Some copies of the hidden state (those that residual mixers and drafters keep included), and
    the widest inner tensors: gate and up and their product for a dense block, the same plus the
    unreduced outputs of k experts for a routed one, the chunk products of a delta rule.
    """
    copies = float(_table()["hidden_copies"][edge])
    h, tp = model.hidden_size, deployment.tp
    widest = 0.0
    for group in model.layers:
        inner = max(_block_bytes(group.feed_forward, h, tp), _delta_bytes(group.mixer, tp))
        widest = max(widest, inner)
    kept = model.residual_copies + 2 * kept_hidden_layers(deployment)
    return BF16_BYTES * (copies + kept) * h + widest


def _block_bytes(block: FeedForward | None, h: int, tp: int) -> float:
    if isinstance(block, DenseFeedForward):
        return BF16_BYTES * block.matrices * block.intermediate_size / tp
    if isinstance(block, MixtureOfExperts):
        inner = block.matrices * block.intermediate_size / tp + (block.latent_size or h)
        return BF16_BYTES * block.experts_per_token * inner
    return 0.0


def _delta_bytes(mixer: Mixer | None, tp: int) -> float:
    """Inputs, convolved inputs, chunk products and chunk states of a delta-rule layer [bytes]."""
    chunk = float(_table()["delta_chunk_tokens"]["value"])
    if isinstance(mixer, KimiDeltaAttention):
        keys = values = mixer.heads * mixer.head_dim
        state = keys * mixer.head_dim
    elif isinstance(mixer, GatedDeltaNet):
        keys = mixer.value_heads * mixer.key_head_dim
        values = mixer.value_heads * mixer.value_head_dim
        state = keys * mixer.value_head_dim
    else:
        return 0.0
    inputs, convolved, products = 2 * keys + 2 * values, 2 * keys + values, 3 * values
    tensors = BF16_BYTES * (inputs + convolved + products + values)
    return (tensors + FP32_BYTES * state / chunk) / tp


def _has_indexer(mixer: Mixer | None) -> bool:
    return isinstance(mixer, LatentAttention | CompressedAttention) and mixer.indexer is not None
