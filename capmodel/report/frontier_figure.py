"""Cost against interactivity, with the market's price of the same tokens drawn in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cost.tokens import usd_per_mtok
from .canvas import COLOURS, new_axes

if TYPE_CHECKING:
    from ..results import Estimate, Sweep


def frontier_figure(sweep: Sweep, ax: Any = None) -> Any:
    """Draw $ per million tokens against tokens/s per user over a sweep; return the axes.

    The horizontal line is what the tariff pays for the same mix of tokens when every eligible hit
    is sold as cached: below it the node earns money.

    Parameters
    ----------
    sweep : Sweep
        Rows with a price per hour.
    ax : matplotlib axes, optional
        Where to draw.
    """
    ax = new_axes(ax)
    rows = [row for row in sweep.rows if row.run.cost.usd_per_mtok_total is not None]
    speed = [1.0 / row.latency.tpot_s.p50 for row in rows]
    cost = [row.run.cost.usd_per_mtok_total for row in rows]
    ax.plot(speed, cost, "-o", color=COLOURS[0], ms=4, label="own cost")
    for row, x, y in zip(rows, speed, cost, strict=True):
        ax.annotate(str(row.concurrency), (x, y), xytext=(4, 4), textcoords="offset points",
                    fontsize="x-small")  # fmt: skip
    floor = revenue_usd_per_mtok(sweep.rows[0])
    if floor is not None:
        basis = sweep.rows[0].run.cost.tariff_basis
        ax.axhline(floor, color=COLOURS[1], ls="--", label=f"tariff ({basis})")
    ax.set_yscale("log")
    ax.set_xlabel("output per user, median [tokens/s]; labels are live sessions C")
    ax.set_ylabel("cost [USD per 1e6 tokens]")
    scenario = sweep.rows[0].run.scenario
    ax.set_title(f"{scenario.model.name} on {scenario.node.name}", fontsize="medium")
    ax.legend(frameon=False)
    return ax


def revenue_usd_per_mtok(row: Estimate) -> float | None:
    """Return what the tariff pays for the workload's mix of tokens [USD per 1e6 tokens]."""
    revenue = row.run.cost.revenue_usd_per_hour
    if not revenue:
        return None
    return usd_per_mtok(revenue["eligible"], row.total_tokens_per_s)
