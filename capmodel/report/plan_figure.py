"""A plan's frontier: cost against speed for both sizes of the tier, with the chosen point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import COLOURS, new_axes
from .frontier_figure import revenue_usd_per_mtok

if TYPE_CHECKING:
    from ..optimize.plan import Plan


def plan_figure(plan: Plan, ax: Any = None) -> Any:
    """Draw $ per million tokens against tokens/s per user along a plan's frontier; return the axes.

    Filled points keep every rule of the plan, hollow ones break one; the dashed line is what the
    tariff pays for the same mix of tokens.

    Parameters
    ----------
    plan : Plan
        What `optimize` returned.
    ax : matplotlib axes, optional
        Where to draw.
    """
    ax = new_axes(ax)
    sizes = sorted({point.offload_bytes for point in plan.frontier})
    for size, colour in zip(sizes, COLOURS, strict=False):
        points = [point for point in plan.frontier if point.offload_bytes == size]
        x = [point.interactivity_tokens_per_s_p50 for point in points]
        y = [point.usd_per_mtok for point in points]
        label = f"DRAM {size / 1e9:.0f} GB per node" if size else "no tier"
        ax.plot(x, y, "-o", color=colour, mfc="white", ms=5, label=label)
        kept = [pair for pair, point in zip(zip(x, y, strict=True), points, strict=True)
                if point.allowed]  # fmt: skip
        if kept:
            ax.plot(*zip(*kept, strict=True), "o", color=colour, ms=5)
        for point in points:
            where = (point.interactivity_tokens_per_s_p50, point.usd_per_mtok)
            ax.annotate(str(point.concurrency), where, xytext=(4, 4), textcoords="offset points",
                        fontsize="x-small")  # fmt: skip
    best = plan.best
    ax.plot([1.0 / best.latency.tpot_s.p50], [best.run.cost.usd_per_mtok_total], "k*", ms=13,
            label=f"plan, C = {plan.concurrency}", zorder=5)  # fmt: skip
    pays = revenue_usd_per_mtok(best)
    if pays is not None:
        ax.axhline(pays, color="0.4", ls="--", label=f"tariff ({best.run.cost.tariff_basis})")
    ax.set_yscale("log")
    ax.set_xlabel("output per user, median [tokens/s]; labels are live sessions C")
    ax.set_ylabel("cost [USD per 1e6 tokens]")
    scenario = best.run.scenario
    ax.set_title(f"{scenario.model.name} on {scenario.node.name}", fontsize="medium")
    ax.legend(frameon=False)
    return ax
