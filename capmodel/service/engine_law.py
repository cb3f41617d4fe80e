"""The engine law: the step law of one model on one node under one deployment.

Every kernel class becomes one term with its FLOPs on one side and its bytes on the other; what a
parallel layout divides and repeats is decided here, what it sends in `layout`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog import efficiencies
from ..errors import SpecError
from ..memory.engine_defaults import max_num_batched_tokens, max_num_seqs
from ..memory.params import feed_forward_params, mixer_params
from ..memory.weights import served_precision
from ..spec.attention import CompressedAttention, GroupedQueryAttention, LatentAttention
from ..spec.deployment import Deployment
from ..spec.model import LayerGroup, MixtureOfExperts, Model
from ..spec.node import Node
from ..spec.precision import number_format
from .bytes_moved import CacheTraffic, activation_traffic, cache_traffic
from .flops import REFERENCE_SCAN_FLOP, AttentionFlop, attention_flop
from .kernels import kernel_count
from .layout import Layout, add_exchanges
from .ledger import Ledger, Rates
from .roofline import EngineConstants, Roofline, engine_constants, replicated_latent
from .speculation import accepted_length, check_supported, draft, draft_passes
from .step_law import StepLaw

_STEP_FEATURES = ("step", "coverage")
_PREFILL_FEATURES = ("tokens", "prefill_context", "prefill_pairs", "prefill_chunks")


def engine_law(
    model: Model,
    node: Node,
    deployment: Deployment,
    *,
    constants: EngineConstants | None = None,
    shares: Mapping[str, float] | None = None,
    accepted_tokens: float | None = None,
) -> StepLaw:
    """Return the step law of one data-parallel rank.

    Parameters
    ----------
    model : Model
        Layers and storage formats.
    node : Node
        Accelerators and their links.
    deployment : Deployment
        Engine, layout, precision and limits.
    constants : EngineConstants, optional
        End-to-end losses in place of the fitted ones of the engine.
    shares : mapping of str to float, optional
        Kernel efficiencies of the user's own, by class or class and path [1].
    accepted_tokens : float, optional
        Measured accepted length in place of the draft's curve [tokens].

    Raises
    ------
    SpecError
        If the layout does not fit the node, or the build cannot run the draft in it.

    Notes
    -----
    Compute side: FLOPs over the share of the matrix unit the kernel class reaches. Memory side:
    bytes over the share of HBM bandwidth. Token-like features carry the engine's prefill
    efficiency, step-like memory features its decode efficiency. A pipeline of `pp` stages keeps
    `pp` microbatches in flight: per cycle, work divides by `pp` and weights are read as a whole.
    """
    if deployment.gpus > node.total_gpus:
        raise SpecError(
            f"tp x pp x dp = {deployment.gpus} exceeds the {node.total_gpus} accelerators of "
            f"{node.nodes} x {node.name}.",
            field="tp",
        )
    check_supported(deployment)
    return _Builder(model, node, deployment, constants, shares or {}).law(accepted_tokens)


class _Builder:
    """Walks the layers once and adds each block's seconds to the ledger."""

    def __init__(
        self,
        model: Model,
        node: Node,
        deployment: Deployment,
        constants: EngineConstants | None,
        shares: Mapping[str, float],
    ) -> None:
        self.model = model
        self.node = node
        self.deployment = deployment
        self.layout = Layout.of(deployment)
        self.roof = Roofline(node.accelerator, deployment.engine, shares)
        self.engine = constants or engine_constants(
            deployment.engine, node.accelerator.vendor, deployment.engine_version
        )
        self.precision = served_precision(model, deployment)
        self.verify = 1 + (deployment.speculation.draft_tokens if deployment.speculation else 0)
        self.ledger = Ledger()
        self.experts = self.experts_per_token = 0

    def law(self, accepted_tokens: float | None) -> StepLaw:
        for group in self.model.layers:
            self._mixer(group)
            self._feed_forward(group)
            self._activations(group)
        self._head()
        add_exchanges(self.ledger, self.model, self.node, self.layout)
        if self.deployment.speculation:
            self._draft()
        self._overhead()
        speculation, part = self.deployment.speculation, self.node.accelerator
        accepted = accepted_length(speculation).value if speculation else 1.0
        own_share = self.layout.dp / self.layout.pp
        return StepLaw(
            terms=self.ledger.terms(),
            experts=self.experts,
            experts_per_token=_shared_choices(self.experts, self.experts_per_token, own_share),
            expert_dispersion=self.engine.expert_dispersion,
            verify_tokens=self.verify,
            accepted_tokens=accepted_tokens or accepted,
            max_batched_tokens=max_num_batched_tokens(self.deployment, part),
            max_sequences=max_num_seqs(self.deployment, part),
            mixed_steps=self.engine.mixed_steps,
            pipeline_stages=self.layout.pp,
            request_s=self.engine.request_s,
            kinds=dict(self.ledger.kinds),
        )

    def _flop(self, name: str, feature: str, flop: float, kernel: str, path: str) -> None:
        """Add FLOPs of one rank to the compute side of a term."""
        rate = self.roof.flop_per_s(kernel, path) * self.engine.prefill_efficiency
        if kernel == "experts_compute":
            rate *= self.engine.experts_efficiency
        kind = self.roof.share(kernel, path).kind
        self.ledger.add("compute", name, feature, flop / rate, kind)

    def _bytes(
        self, name: str, feature: str, moved: float, kernel: str = "elementwise", path: str = "bf16"
    ) -> None:
        """Add bytes of one rank to the memory side of a term."""
        prefill = feature in _PREFILL_FEATURES
        loss = self.engine.prefill_efficiency if prefill else self.engine.decode_efficiency
        seconds = moved / (self.roof.bytes_per_s(kernel, path) * loss)
        self.ledger.add("memory", name, feature, seconds, self.roof.share(kernel, path).kind)

    def _linear(self, name: str, params_per_rank: float, format_name: str) -> None:
        """A GEMM over every token: FLOPs by token and half a tile, weights once per step."""
        path = self.roof.path(format_name)
        held = params_per_rank * number_format(format_name).bytes_per_element
        flop = 2.0 * params_per_rank
        self._flop(name, "tokens", flop / self.layout.pp, "gemm_compute", path)
        self._flop(name, "step", flop * self._wasted_rows("gemm_rows"), "gemm_compute", path)
        self._bytes(name, "step", held, "gemm_memory", path)

    def _wasted_rows(self, tile: str) -> float:
        rows: float = efficiencies("engines")["tiles"][tile][0]
        return 0.5 * rows

    def _mixer(self, group: LayerGroup) -> None:
        mixer, layout = group.mixer, self.layout
        if mixer is None:
            return
        params = mixer_params(mixer, self.model.hidden_size)
        per_rank = params.sharded / layout.tp + params.replicated
        if isinstance(mixer, GroupedQueryAttention):
            copies = max(1.0, layout.tp / mixer.kv_heads)
            per_rank += params.key_value * (copies - 1) / layout.tp
        self._linear("attention_projections", group.count * per_rank, self.precision.attention)
        element = 1.0 if self.deployment.kv_dtype == "fp8" else 2.0
        cache = cache_traffic(mixer, tp=layout.tp, dcp=layout.dcp, element_bytes=element)
        scale = group.count / layout.pp
        if cache.written_per_token == 0:
            self._recurrent(attention_flop(mixer), cache, scale)
        else:
            latent = isinstance(mixer, LatentAttention)
            self._attention(attention_flop(mixer), cache, scale, latent)

    def _recurrent(self, work: AttentionFlop, cache: CacheTraffic, scale: float) -> None:
        moved = scale * cache.per_sequence
        self._bytes("recurrent_state", "sequences", moved, "recurrent_decode_memory", "fp32")
        heads = work.scan_per_token / REFERENCE_SCAN_FLOP / self.layout.tp
        seconds = scale / self.roof.scan_tokens_per_s(heads) / self.engine.prefill_efficiency
        kind = self.roof.share("recurrent_prefill", "fp32").kind
        self.ledger.add("memory", "recurrent_scan", "tokens", seconds, kind)

    def _attention(
        self, work: AttentionFlop, cache: CacheTraffic, scale: float, latent: bool
    ) -> None:
        layout = self.layout
        kv = "fp8" if self.deployment.kv_dtype == "fp8" else "bf16"
        read = "mla_decode_memory" if latent else "gqa_decode_memory"
        # Every rank scores the whole index; heads divide the rest.
        heads = scale / layout.tp
        scored = scale if work.index_per_context else heads
        decode = scored * self.verify * work.decode_per_context / layout.dcp
        self._flop("decode_attention", "decode_context", decode, "mla_decode_compute", "bf16")
        self._bytes("decode_attention", "decode_context", scale * cache.per_context, read, kv)
        bounded = heads * work.per_token
        self._flop("bounded_attention", "tokens", bounded, "attention_prefill", "bf16")
        self._bytes("bounded_attention", "sequences", scale * cache.per_sequence, read, kv)
        pairs = scored * work.prefill_per_context
        self._flop("prefill_attention", "prefill_pairs", pairs, "attention_prefill", "bf16")
        # A prefill gathers what decode context parallelism divides.
        gathered = scale * cache.per_context * layout.dcp
        self._bytes("prefill_attention", "prefill_context", gathered, read, kv)
        if work.expansion_per_context:
            path = self.roof.path(self.precision.attention)
            flop = heads * work.expansion_per_context
            self._flop("context_expansion", "prefill_context", flop, "gemm_compute", path)
            expanded = scale * cache.expanded_per_context
            self._bytes("context_expansion", "prefill_context", expanded)
        self._bytes("cache_write", "tokens", scale * cache.written_per_token)

    def _feed_forward(self, group: LayerGroup) -> None:
        block, count, tp = group.feed_forward, group.count, self.layout.tp
        params = feed_forward_params(block, self.model.hidden_size)
        formats = self.precision
        latent_ranks = 1 if replicated_latent(self.deployment) else tp
        for name, held, ranks, stored in (
            ("dense_feed_forward", params.dense, tp, formats.dense_feed_forward),
            ("shared_experts", params.shared, tp, formats.shared_experts),
            ("latent_projections", params.latent, latent_ranks, formats.latent),
            ("router", params.router, 1, "bf16"),
        ):
            if held:
                self._linear(name, count * held / ranks, stored)
        if isinstance(block, MixtureOfExperts):
            self._experts(block, count * params.routed, count * params.routed_active)

    def _experts(self, block: MixtureOfExperts, routed: float, active: float) -> None:
        layout, stored = self.layout, self.precision.routed_experts
        path = self.roof.path(stored, latent=block.latent_size is not None)
        # Tokens of all data-parallel ranks meet at the experts, which all ranks together hold.
        flop = 2.0 * active * layout.dp / layout.expert_ranks / layout.pp
        held = routed * number_format(stored).bytes_per_element / layout.expert_ranks
        padding = 2.0 * routed / layout.expert_ranks * self._wasted_rows("expert_rows")
        self._flop("experts", "tokens", flop, "experts_compute", path)
        self._flop("experts", "coverage", padding, "experts_compute", path)
        self._bytes("experts", "coverage", held, "experts_memory", path)
        self.experts, self.experts_per_token = block.experts, block.experts_per_token

    def _activations(self, group: LayerGroup) -> None:
        layout, passes = self.layout, efficiencies("engines")["traffic"]
        wide = isinstance(group.mixer, CompressedAttention)
        streams = passes["hyper_connection_passes"][0] if wide else 0.0
        traffic = activation_traffic(
            group,
            self.model.hidden_size,
            expert_ranks=layout.tp if layout.whole_experts else 1,
            norm_passes=passes["norm_passes"][0] + streams,
            permute_passes=passes["permute_passes"][0],
        )
        self._bytes("elementwise", "tokens", group.count / layout.pp * traffic)

    def _head(self) -> None:
        params = self.model.vocab_size * self.model.hidden_size / self.layout.tp
        path = self.roof.path(self.precision.head)
        flop = 2.0 * params / self.layout.pp
        # Only positions that are sampled: the end of a prompt, and every one that is verified.
        self._flop("head", "sequences", self.verify * flop, "gemm_compute", path)
        self._flop("head", "prefill_chunks", flop, "gemm_compute", path)
        held = params * number_format(self.precision.head).bytes_per_element
        self._bytes("head", "step", held, "gemm_memory", path)

    def _draft(self) -> None:
        """The draft's own passes, as its share of the target's layers without the experts."""
        speculation = self.deployment.speculation
        assert speculation is not None
        data = draft(speculation.name)
        layers = data["layers"] / self.model.layer_count
        passes = draft_passes(speculation)
        skipped = () if data["routed_experts"] else ("experts",)
        for side, table in (("compute", self.ledger.compute), ("memory", self.ledger.memory)):
            shares: Rates = {}
            for name, rates in table.items():
                if name in skipped:
                    continue
                copies = layers if name != "head" else 1.0
                for feature, seconds in rates.items():
                    repeated = passes if feature in _STEP_FEATURES else 1
                    shares[feature] = shares.get(feature, 0.0) + copies * repeated * seconds
            for feature, seconds in shares.items():
                self.ledger.add(side, "draft", feature, seconds, "assumed")

    def _overhead(self) -> None:
        quantized = self.precision.attention != "bf16"
        last = kernel_count(None, quantized)
        count = float(last + sum(g.count * kernel_count(g, quantized) for g in self.model.layers))
        speculation = self.deployment.speculation
        if speculation is not None:
            share = draft(speculation.name)["layers"] / self.model.layer_count
            count += draft_passes(speculation) * (share * count + last)
        add = self.ledger.add
        add("memory", "kernel_launch", "step", count * self.engine.kernel_floor_s, "fitted")
        add("memory", "host", "step", self.engine.host_step_s, "fitted")
        add("memory", "host", "sequences", self.engine.host_sequence_s, "fitted")


def _shared_choices(experts: int, experts_per_token: int, own_share: float) -> float:
    """Choices per own token, when `1 / own_share` own tokens stand for each that arrives [1]."""
    if not experts:
        return 0.0
    return float(experts * (1.0 - (1.0 - experts_per_token / experts) ** own_share))
