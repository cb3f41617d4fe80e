"""The step-time ledger: seconds by kernel class while a law is built, and by group to read it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .step_law import StepLaw, StepTerm, term

Rates = dict[str, float]

# From best to worst evidence; a term keeps the worst of what went into it.
KINDS = ("given", "datasheet", "measured", "derived", "fitted", "assumed")

# Terms by what a person asks about; attention counts as cache reading where memory binds it.
GROUPS = {
    "attention_projections": "weights",
    "dense_feed_forward": "weights",
    "shared_experts": "weights",
    "latent_projections": "weights",
    "router": "weights",
    "head": "weights",
    "experts": "experts",
    "decode_attention": "attention",
    "bounded_attention": "attention",
    "prefill_attention": "attention",
    "context_expansion": "attention",
    "recurrent_scan": "attention",
    "recurrent_state": "kv",
    "cache_write": "kv",
    "elementwise": "activations",
    "all_reduce": "collectives",
    "logit_gather": "collectives",
    "expert_exchange": "collectives",
    "context_exchange": "collectives",
    "pipeline_send": "collectives",
    "draft": "draft",
    "kernel_launch": "overhead",
    "host": "overhead",
    "roof": "roof",
    "overhead": "overhead",
}


@dataclass(slots=True)
class Ledger:
    """Seconds by term, side and feature, summed over layers before they become terms."""

    compute: dict[str, Rates] = field(default_factory=dict)
    memory: dict[str, Rates] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def add(self, side: str, name: str, feature: str, seconds: float, kind: str) -> None:
        """Add seconds per unit of a feature to one side of a term."""
        table = self.compute if side == "compute" else self.memory
        rates = table.setdefault(name, {})
        rates[feature] = rates.get(feature, 0.0) + seconds
        self.kinds[name] = worst_kind(kind, self.kinds.get(name, KINDS[0]))

    def terms(self) -> tuple[StepTerm, ...]:
        """Return the terms in the order they were first added."""
        known = dict.fromkeys((*self.compute, *self.memory))
        return tuple(
            term(name, compute=self.compute.get(name), memory=self.memory.get(name))
            for name in known
        )


def worst_kind(*kinds: str) -> str:
    """Return the weakest evidence among kinds."""
    return max(kinds, key=KINDS.index)


def step_groups(
    law: StepLaw,
    prefill_tokens: float = 0.0,
    prefill_start_tokens: float = 0.0,
    decode_sequences: float = 0.0,
    decode_context_tokens: float = 0.0,
) -> dict[str, float]:
    """Seconds of one step by group: weights, experts, attention, kv, collectives, overhead [s]."""
    rows = law.breakdown(
        prefill_tokens, prefill_start_tokens, decode_sequences, decode_context_tokens
    )
    groups: dict[str, float] = {}
    for name, row in rows.items():
        group = GROUPS.get(name, name)
        if name.endswith("_attention") and row["bound"] == "memory":
            group = "kv"
        groups[group] = groups.get(group, 0.0) + float(row["seconds"])
    return {group: seconds for group, seconds in groups.items() if seconds > 0}
