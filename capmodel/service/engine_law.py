"""The engine law: the step law of one model on one node under one deployment.

Every kernel class becomes one term with its FLOPs on one side and its bytes on the other; what a
parallel layout divides, repeats or sends is decided here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..catalog import efficiencies
from ..errors import SpecError
from ..memory.engine_defaults import max_num_batched_tokens, max_num_seqs
from ..memory.params import feed_forward_params, mixer_params
from ..memory.weights import served_precision
from ..spec.attention import GroupedQueryAttention, LatentAttention
from ..spec.deployment import Deployment
from ..spec.model import LayerGroup, MixtureOfExperts, Model
from ..spec.node import Node
from ..spec.precision import number_format
from .bytes_moved import ACTIVATION_BYTES, activation_traffic, cache_traffic
from .collectives import collective, point_to_point
from .flops import attention_flop
from .kernels import kernel_count
from .roofline import EngineConstants, Roofline, engine_constants, replicated_latent
from .speculation import accepted_length, check_supported, draft, draft_passes
from .step_law import StepLaw, StepTerm, term

Rates = dict[str, float]
_STEP_FEATURES = ("step", "coverage")


@dataclass(slots=True)
class _Ledger:
    """Seconds by term, side and feature, summed over layers before they become terms."""

    compute: dict[str, Rates] = field(default_factory=dict)
    memory: dict[str, Rates] = field(default_factory=dict)

    def add(self, side: str, name: str, feature: str, seconds: float) -> None:
        table = self.compute if side == "compute" else self.memory
        rates = table.setdefault(name, {})
        rates[feature] = rates.get(feature, 0.0) + seconds

    def terms(self) -> tuple[StepTerm, ...]:
        known = dict.fromkeys((*self.compute, *self.memory))
        return tuple(
            term(name, compute=self.compute.get(name), memory=self.memory.get(name))
            for name in known
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Ranks of each kind, and the expert tokens that meet on a rank."""

    tp: int
    pp: int
    dp: int
    dcp: int
    expert_ranks: int
    whole_experts: bool

    @classmethod
    def of(cls, deployment: Deployment) -> _Layout:
        group = deployment.tp * deployment.dp
        return cls(
            tp=deployment.tp,
            pp=deployment.pp,
            dp=deployment.dp,
            dcp=deployment.dcp,
            expert_ranks=group,
            whole_experts=deployment.ep > 1,
        )


def engine_law(
    model: Model,
    node: Node,
    deployment: Deployment,
    *,
    constants: EngineConstants | None = None,
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
    accepted_tokens : float, optional
        Measured accepted length in place of the draft's curve [tokens].

    Raises
    ------
    SpecError
        If the layout does not fit the node.

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
    return _Builder(model, node, deployment, constants).law(accepted_tokens)


class _Builder:
    """Walks the layers once and adds each block's seconds to the ledger."""

    def __init__(
        self,
        model: Model,
        node: Node,
        deployment: Deployment,
        constants: EngineConstants | None = None,
    ) -> None:
        self.model = model
        self.node = node
        self.deployment = deployment
        self.layout = _Layout.of(deployment)
        self.roof = Roofline(node.accelerator, deployment.engine)
        self.engine = constants or engine_constants(
            deployment.engine, node.accelerator.vendor, deployment.engine_version
        )
        self.precision = served_precision(model, deployment)
        self.verify = 1 + (deployment.speculation.draft_tokens if deployment.speculation else 0)
        self.traffic = efficiencies("engines")["traffic"]
        self.ledger = _Ledger()
        self.experts = self.experts_per_token = 0

    def law(self, accepted_tokens: float | None = None) -> StepLaw:
        for group in self.model.layers:
            if group.mixer is not None:
                self._projections(group)
                self._attention(group)
            self._feed_forward(group)
            self._activations(group)
        self._head()
        self._collectives()
        if self.deployment.speculation:
            self._draft()
        self._overhead()
        speculation, part = self.deployment.speculation, self.node.accelerator
        accepted = accepted_length(speculation).value if speculation else 1.0
        tokens_share = self.layout.dp / self.layout.pp
        return StepLaw(
            terms=self.ledger.terms(),
            experts=self.experts,
            experts_per_token=_shared_choices(self.experts, self.experts_per_token, tokens_share),
            expert_dispersion=self.engine.expert_dispersion,
            verify_tokens=self.verify,
            accepted_tokens=accepted_tokens or accepted,
            mixed_steps=self.engine.mixed_steps,
            pipeline_stages=self.layout.pp,
            request_s=self.engine.request_s,
            max_batched_tokens=max_num_batched_tokens(self.deployment, part),
            max_sequences=max_num_seqs(self.deployment, part),
        )

    def _linear(
        self, name: str, params_per_rank: float, format_name: str, kernel: str = "gemm"
    ) -> None:
        """A GEMM over every token: FLOPs by token, weights once per step."""
        path = self.roof.path(format_name)
        flop_rate = self.roof.flop_per_s(f"{kernel}_compute", path)
        byte_rate = self.roof.bytes_per_s(f"{kernel}_memory", path)
        flop = 2.0 * params_per_rank / self.layout.pp
        held = params_per_rank * number_format(format_name).bytes_per_element
        self._compute(name, "tokens", flop / flop_rate)
        self._memory(name, "step", held / byte_rate)

    def _compute(self, name: str, feature: str, seconds: float) -> None:
        self.ledger.add("compute", name, feature, seconds / self.engine.prefill_efficiency)

    def _memory(self, name: str, feature: str, seconds: float) -> None:
        prefill = feature in ("tokens", "prefill_context", "prefill_pairs", "prefill_chunks")
        share = self.engine.prefill_efficiency if prefill else self.engine.decode_efficiency
        self.ledger.add("memory", name, feature, seconds / share)

    def _projections(self, group: LayerGroup) -> None:
        assert group.mixer is not None
        params = mixer_params(group.mixer, self.model.hidden_size)
        per_rank = params.sharded / self.layout.tp + params.replicated
        if isinstance(group.mixer, GroupedQueryAttention):
            copies = max(1.0, self.layout.tp / group.mixer.kv_heads)
            per_rank += params.key_value * (copies - 1) / self.layout.tp
        self._linear("attention_projections", group.count * per_rank, self.precision.attention)

    def _attention(self, group: LayerGroup) -> None:
        mixer, count, layout = group.mixer, group.count, self.layout
        assert mixer is not None
        kv = "fp8" if self.deployment.kv_dtype == "fp8" else "bf16"
        element = 1.0 if kv == "fp8" else 2.0
        work = attention_flop(mixer)
        cache = cache_traffic(mixer, tp=layout.tp, dcp=layout.dcp, element_bytes=element)
        latent = isinstance(mixer, LatentAttention)
        recurrent = cache.per_context == 0 and cache.written_per_token == 0
        scale = count / layout.pp
        if recurrent:
            hbm = self.roof.bytes_per_s("recurrent_decode_memory", "fp32")
            self._memory("recurrent_state", "sequences", scale * cache.per_sequence / hbm)
            heads = work.scan_per_token / _REFERENCE_HEAD_FLOP / layout.tp
            rate = self.roof.scan_tokens_per_s(heads)
            self._memory("recurrent_scan", "tokens", scale / rate)
            return
        heads_share = layout.tp
        decode_flops = self.roof.flop_per_s("mla_decode_compute", "bf16")
        kernel = "mla_decode_memory" if latent else "gqa_decode_memory"
        hbm = self.roof.bytes_per_s(kernel, kv)
        index_share = 1 if work.index_per_context else heads_share
        self._compute(
            "decode_attention", "decode_context",
            scale * self.verify * work.decode_per_context / index_share / layout.dcp / decode_flops,
        )  # fmt: skip
        self._memory("decode_attention", "decode_context", scale * cache.per_context / hbm)
        self._memory("bounded_attention", "sequences", scale * cache.per_sequence / hbm)
        prefill_flops = self.roof.flop_per_s("attention_prefill", "bf16")
        self._compute(
            "prefill_attention", "prefill_pairs",
            scale * work.prefill_per_context / index_share / prefill_flops,
        )  # fmt: skip
        self._compute(
            "bounded_attention", "tokens", scale * work.per_token / heads_share / prefill_flops
        )
        self._memory(
            "prefill_attention", "prefill_context", scale * cache.per_context * layout.dcp / hbm
        )
        if work.expansion_per_context:
            path = self.roof.path(self.precision.attention)
            gemm = self.roof.flop_per_s("gemm_compute", path)
            self._compute(
                "context_expansion", "prefill_context",
                scale * work.expansion_per_context / heads_share / gemm,
            )  # fmt: skip
            self._memory(
                "context_expansion", "prefill_context",
                scale * cache.expanded_per_context / self._stream_bytes_per_s(),
            )  # fmt: skip
        self._memory(
            "cache_write", "tokens", scale * cache.written_per_token / self._stream_bytes_per_s()
        )

    def _feed_forward(self, group: LayerGroup) -> None:
        block, count, tp = group.feed_forward, group.count, self.layout.tp
        if block is None:
            return
        params = feed_forward_params(block, self.model.hidden_size)
        formats = self.precision
        if params.dense:
            self._linear("dense_feed_forward", count * params.dense / tp,
                         formats.dense_feed_forward)  # fmt: skip
        if params.shared:
            self._linear("shared_experts", count * params.shared / tp, formats.shared_experts)
        if params.latent:
            whole = replicated_latent(self.deployment)
            self._linear(
                "latent_projections", count * params.latent / (1 if whole else tp), formats.latent
            )
        if params.router:
            self._linear("router", count * params.router, "bf16")
        if isinstance(block, MixtureOfExperts):
            self._experts(block, count, float(params.routed), float(params.routed_active))

    def _experts(
        self, block: MixtureOfExperts, count: int, routed: float, routed_active: float
    ) -> None:
        layout = self.layout
        path = self.roof.path(self.precision.routed_experts)
        flop_rate = self.roof.flop_per_s("experts_compute", path)
        byte_rate = self.roof.bytes_per_s("experts_memory", path)
        # Tokens of all data-parallel ranks meet at the experts, which all ranks together hold.
        flop = 2.0 * routed_active * layout.dp / layout.expert_ranks / layout.pp
        held = routed * number_format(self.precision.routed_experts).bytes_per_element
        reached = flop_rate * self.engine.experts_efficiency
        self._compute("experts", "tokens", count * flop / reached)
        self._memory("experts", "coverage", count * held / layout.expert_ranks / byte_rate)
        self.experts, self.experts_per_token = block.experts, block.experts_per_token

    def _stream_bytes_per_s(self) -> float:
        share: float = self.traffic["elementwise_share"][0]
        return self.node.accelerator.hbm_bytes_per_s * share

    def _activations(self, group: LayerGroup) -> None:
        layout = self.layout
        traffic = activation_traffic(
            group,
            self.model.hidden_size,
            expert_ranks=layout.tp if layout.whole_experts else 1,
            norm_passes=self.traffic["norm_passes"][0],
            permute_passes=self.traffic["permute_passes"][0],
        )
        scale = group.count / layout.pp
        self._memory("elementwise", "tokens", scale * traffic / self._stream_bytes_per_s())

    def _head(self) -> None:
        params = self.model.vocab_size * self.model.hidden_size / self.layout.tp
        path = self.roof.path(self.precision.head)
        flop_rate = self.roof.flop_per_s("gemm_compute", path)
        byte_rate = self.roof.bytes_per_s("gemm_memory", path)
        held = params * number_format(self.precision.head).bytes_per_element
        flop = 2.0 * params / self.layout.pp / flop_rate
        self._compute("head", "sequences", flop)
        self._compute("head", "prefill_chunks", flop)
        self._memory("head", "step", held / byte_rate)

    def _collectives(self) -> None:
        layout, model, node = self.layout, self.model, self.node
        mixers = sum(g.count for g in model.layers if g.mixer is not None)
        blocks = sum(g.count for g in model.layers if g.feed_forward is not None)
        row = model.hidden_size * ACTIVATION_BYTES
        if layout.tp > 1:
            reduce = collective("all_reduce", layout.tp, node)
            dense = sum(
                g.count for g in model.layers
                if g.feed_forward is not None and not isinstance(g.feed_forward, MixtureOfExperts)
            )  # fmt: skip
            calls = mixers + (blocks if layout.dp == 1 else dense)
            self._collective("all_reduce", calls, reduce.latency_s, row / reduce.bytes_per_s)
            gather = collective("all_gather", layout.tp, node)
            self.ledger.add("memory", "logit_gather", "step", gather.latency_s)
        if layout.dp > 1 and self.experts:
            self._expert_exchange(blocks, row)
        if layout.dcp > 1:
            self._context_exchange()
        if layout.pp > 1:
            hop = point_to_point(node, layout.tp * layout.pp > node.gpus)
            self._collective("pipeline_send", layout.pp - 1, hop.latency_s, row / hop.bytes_per_s)

    def _expert_exchange(self, blocks: int, row: float) -> None:
        """Tokens meet their experts: all-to-all to whole experts, else gather and scatter."""
        layout, node = self.layout, self.node
        ranks = layout.tp * layout.dp
        if layout.whole_experts:
            exchange = collective("all_to_all", ranks, node)
            copies = min(self.experts_per_token, ranks)
            # Dispatch in one byte, combine in two, for the routed copies of a rank's own tokens.
            sent = 1.5 * copies * row / layout.tp
            self._collective(
                "expert_exchange", 2 * blocks, exchange.latency_s, 0.5 * sent / exchange.bytes_per_s
            )
            return
        gather = collective("all_gather", ranks, node)
        scatter = collective("reduce_scatter", ranks, node)
        for call in (gather, scatter):
            self._collective(
                "expert_exchange", blocks, call.latency_s, layout.dp * row / call.bytes_per_s
            )

    def _context_exchange(self) -> None:
        """Decode context parallelism: gather the queries, merge the partial outputs."""
        layout, node = self.layout, self.node
        gather = collective("all_gather", layout.dcp, node)
        merge = collective("all_to_all", layout.dcp, node)
        for group in self.model.layers:
            mixer = group.mixer
            if not isinstance(mixer, LatentAttention | GroupedQueryAttention):
                continue
            if isinstance(mixer, LatentAttention):
                width = mixer.query_heads * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
            else:
                width = mixer.query_heads * mixer.head_dim
            moved = width / layout.tp * layout.dcp * ACTIVATION_BYTES
            for call in (gather, merge):
                self.ledger.add(
                    "memory", "context_exchange", "step", group.count * call.latency_s
                )
                self.ledger.add(
                    "memory", "context_exchange", "sequences",
                    group.count / layout.pp * moved / call.bytes_per_s,
                )  # fmt: skip

    def _collective(self, name: str, calls: int, latency_s: float, row_s: float) -> None:
        # Measured end to end by themselves: no engine efficiency on top.
        self.ledger.add("memory", name, "step", calls * latency_s)
        self.ledger.add("memory", name, "tokens", calls * row_s / self.layout.pp)

    def _draft(self) -> None:
        """The draft's own passes, as its share of the target's layers without the experts."""
        speculation = self.deployment.speculation
        assert speculation is not None
        data = draft(speculation.name)
        layers = data["layers"] / self.model.layer_count
        passes = draft_passes(speculation)
        skipped = set() if data["routed_experts"] else {"experts"}
        for side, table in (("compute", self.ledger.compute), ("memory", self.ledger.memory)):
            shares: Rates = {}
            for name, rates in table.items():
                if name in skipped:
                    continue
                for feature, seconds in rates.items():
                    copies = layers if name != "head" else 1.0
                    repeated = passes if feature in _STEP_FEATURES else 1
                    shares[feature] = shares.get(feature, 0.0) + copies * repeated * seconds
            for feature, seconds in shares.items():
                self.ledger.add(side, "draft", feature, seconds)

    def _overhead(self) -> None:
        quantized = self.precision.attention != "bf16"
        count = sum(g.count * kernel_count(g, quantized) for g in self.model.layers)
        count += kernel_count(None, quantized)
        speculation = self.deployment.speculation
        if speculation is not None:
            share = draft(speculation.name)["layers"] / self.model.layer_count
            count += draft_passes(speculation) * (share * count + kernel_count(None, quantized))
        self.ledger.add("memory", "kernel_launch", "step", count * self.engine.kernel_floor_s)
        self.ledger.add("memory", "host", "step", self.engine.host_step_s)
        self.ledger.add("memory", "host", "sequences", self.engine.host_sequence_s)


# Chunked-scan FLOPs of one 128-wide delta-rule head and token, the unit of the measured rate.
_REFERENCE_HEAD_FLOP = 2.0 * 64 * (2 * 128 + 2 * 128) + 6.0 * 128 * 128


def _shared_choices(experts: int, experts_per_token: int, tokens_share: float) -> float:
    """Choices per own token, when `tokens_share` tokens reach the experts for each of them [1]."""
    if not experts:
        return 0.0
    return float(experts * (1.0 - (1.0 - experts_per_token / experts) ** tokens_share))
