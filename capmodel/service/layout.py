"""The parallel layout of one data-parallel rank, and the traffic between ranks it causes."""

from __future__ import annotations

from dataclasses import dataclass

from ..spec.attention import GroupedQueryAttention, LatentAttention
from ..spec.deployment import Deployment
from ..spec.model import MixtureOfExperts, Model
from ..spec.node import Node
from .bytes_moved import ACTIVATION_BYTES
from .collectives import Collective, collective, point_to_point
from .ledger import Ledger

# Dispatched activations are sent in one byte, combined ones in two.
_EXCHANGE_BYTES_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Layout:
    """Ranks of each kind [1].

    Parameters
    ----------
    tp, pp, dp, dcp : int
        As in `Deployment`.
    expert_ranks : int
        Ranks that together hold one copy of a stage's routed experts.
    whole_experts : bool
        True where a rank holds whole experts, so that tokens travel to them.
    """

    tp: int
    pp: int
    dp: int
    dcp: int
    expert_ranks: int
    whole_experts: bool

    @classmethod
    def of(cls, deployment: Deployment) -> Layout:
        """Return the layout of a deployment."""
        return cls(
            tp=deployment.tp,
            pp=deployment.pp,
            dp=deployment.dp,
            dcp=deployment.dcp,
            expert_ranks=deployment.tp * deployment.dp,
            whole_experts=deployment.ep > 1,
        )


def add_exchanges(ledger: Ledger, model: Model, node: Node, layout: Layout) -> None:
    """Add every collective of a step to the ledger.

    Notes
    -----
    Per layer: one all-reduce after the mixer and one after the feed-forward block. With
    data-parallel attention the latter becomes an exchange of tokens with their experts. Measured
    end to end by themselves, so they carry no engine efficiency on top.
    """
    row = model.hidden_size * ACTIVATION_BYTES
    routed = sum(g.count for g in model.layers if isinstance(g.feed_forward, MixtureOfExperts))
    if layout.tp > 1:
        mixers = sum(g.count for g in model.layers if g.mixer is not None)
        blocks = sum(g.count for g in model.layers if g.feed_forward is not None)
        calls = mixers + (blocks if layout.dp == 1 else blocks - routed)
        _add(ledger, "all_reduce", calls, collective("all_reduce", layout.tp, node), row, layout)
        gather = collective("all_gather", layout.tp, node)
        ledger.add("memory", "logit_gather", "step", gather.latency_s, gather.kind)
    if layout.dp > 1 and routed:
        _add_expert_exchange(ledger, model, node, layout, routed)
    if layout.dcp > 1:
        _add_context_exchange(ledger, model, node, layout)
    if layout.pp > 1:
        hop = point_to_point(node, layout.tp * layout.pp > node.gpus)
        _add(ledger, "pipeline_send", layout.pp - 1, hop, row, layout)


def _add(
    ledger: Ledger, name: str, calls: int, call: Collective, row_bytes: float, layout: Layout
) -> None:
    ledger.add("memory", name, "step", calls * call.latency_s, call.kind)
    seconds = calls * row_bytes / call.bytes_per_s / layout.pp
    ledger.add("memory", name, "tokens", seconds, call.kind)


def _add_expert_exchange(
    ledger: Ledger, model: Model, node: Node, layout: Layout, routed: int
) -> None:
    """Tokens meet their experts: all-to-all to whole experts, else gather and scatter."""
    row = model.hidden_size * ACTIVATION_BYTES
    ranks = layout.expert_ranks
    if layout.whole_experts:
        choices = max(
            g.feed_forward.experts_per_token
            for g in model.layers
            if isinstance(g.feed_forward, MixtureOfExperts)
        )
        sent = _EXCHANGE_BYTES_SHARE * min(choices, ranks) * row / layout.tp
        exchange = collective("all_to_all", ranks, node)
        _add(ledger, "expert_exchange", 2 * routed, exchange, sent, layout)
        return
    for operation in ("all_gather", "reduce_scatter"):
        call = collective(operation, ranks, node)
        _add(ledger, "expert_exchange", routed, call, layout.dp * row, layout)


def _add_context_exchange(ledger: Ledger, model: Model, node: Node, layout: Layout) -> None:
    """Decode context parallelism: gather the queries, merge the partial outputs."""
    calls = [collective(name, layout.dcp, node) for name in ("all_gather", "all_to_all")]
    for group in model.layers:
        mixer = group.mixer
        if isinstance(mixer, LatentAttention):
            width = mixer.query_heads * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
        elif isinstance(mixer, GroupedQueryAttention):
            width = mixer.query_heads * mixer.head_dim
        else:
            continue
        moved = width / layout.tp * layout.dcp * ACTIVATION_BYTES
        for call in calls:
            seconds = group.count / layout.pp * moved / call.bytes_per_s
            ledger.add(
                "memory", "context_exchange", "step", group.count * call.latency_s, call.kind
            )
            ledger.add("memory", "context_exchange", "sequences", seconds, call.kind)
