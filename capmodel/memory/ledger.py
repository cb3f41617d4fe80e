"""The KV budget for people: a one-screen ledger, and a bar picture of one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..units import GIB, format_count

if TYPE_CHECKING:
    from .kv_budget import KvBudget

BAR_WIDTH = 40


def rows(budget: KvBudget) -> list[tuple[str, float]]:
    """Return (name, bytes) of what fills one GPU: weights, overhead, pool, outside the budget."""
    entries = [(f"weights: {n}", b) for n, b in budget.weights_parts_bytes.items()]
    entries += [(f"overhead: {n}", b) for n, b in budget.overhead_parts_bytes.items() if b]
    entries.append(("KV pool", budget.available_kv_bytes_per_gpu))
    rest = budget.hbm_bytes_per_gpu - sum(size for _, size in entries)
    entries.append(("outside the budget", max(0.0, rest)))
    return entries


def text(budget: KvBudget) -> str:
    """Return the ledger as a screen of text."""
    head = f"{budget.model} on {budget.node}"
    verdict = "fits" if budget.fits else "DOES NOT FIT"
    if not budget.fits:
        verdict += f": {budget.shortfall_bytes_per_gpu / GIB:.2f} GiB per GPU missing"
    lines = [f"{head} | {verdict}", f"{'per GPU':34} {'GiB':>8}"]
    for name, size in rows(budget):
        share = size / budget.hbm_bytes_per_gpu
        bar = "#" * round(BAR_WIDTH * min(1.0, max(0.0, share)))
        lines.append(f"  {name.replace('_', ' '):32} {size / GIB:8.2f} {bar}")
    lines.append(f"  {'HBM':32} {budget.hbm_bytes_per_gpu / GIB:8.2f}")
    low, high = budget.intervals.get("kv_tokens", (budget.kv_tokens, budget.kv_tokens))
    lines += [
        f"tokens     {budget.kv_tokens:,} nominal ({format_count(low)}-{format_count(high)}), "
        f"{budget.usable_kv_tokens:,} usable at {budget.concurrency} live",
        f"requests   {budget.max_concurrency:.2f} of {budget.max_model_len:,} tokens",
        f"per token  {budget.kv_bytes_per_token:,.0f} B per GPU, "
        f"{budget.kv_replication:.3g} copies; {budget.offload_bytes_per_token:,.0f} B in DRAM",
        f"blocks     {budget.kv_blocks:,} of {budget.block_tokens:,} tokens "
        f"({budget.block_bytes / 1e6:.2f} MB); {budget.blocks_per_request} per longest request",
        f"state      {budget.state_bytes_per_sequence / 1e6:.1f} MB per sequence; "
        f"{budget.resident_blocks_per_live_request} blocks per live request, "
        f"{budget.blocks_per_resume_point} per retained prefix",
        f"sessions   each live one costs {budget.tokens_per_live_request:,.0f} tokens beside its "
        f"context, each further prefix {budget.tokens_per_resume_point:,.0f}",
        f"params     {budget.total_params / 1e9:.2f}B, {budget.active_params / 1e9:.2f}B active",
        "trust      " + ", ".join(f"{k} {v}" for k, v in budget.evidence_by_part.items()),
    ]
    lines += [f"warning    {note}" for note in budget.warnings]
    return "\n".join(lines)


def bar(budget: KvBudget, ax: Any = None) -> Any:
    """Draw one GPU's memory as a stacked bar [GiB] and return the axes."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(9, 2.6))
    left = 0.0
    groups: dict[str, float] = {}
    for name, size in rows(budget):
        key = name if not name.startswith("overhead") else "overhead"
        groups[key] = groups.get(key, 0.0) + max(0.0, size)
    for name, size in groups.items():
        ax.barh([0], [size / GIB], left=left, label=f"{name} {size / GIB:.1f}")
        left += size / GIB
    ax.axvline(budget.hbm_bytes_per_gpu / GIB, color="black", linewidth=1)
    ax.set_yticks([])
    ax.set_xlabel("GiB per GPU")
    ax.set_title(f"{budget.model} on {budget.node}: {budget.kv_tokens:,} KV tokens")
    ax.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.35))
    return ax
