"""What binds a plan: the rule that keeps one more session out, or the queue itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Names of what binds, for programs, and a sentence for people."""

    names: tuple[str, ...]
    text: str


def binding(plan: Plan) -> Binding:
    """Return what keeps a plan from one more session, at its DRAM and in its configuration."""
    made = plan.search.evaluators[plan.found.configuration]
    more = plan.concurrency + 1
    if more > made.largest_concurrency:
        limit = made.largest_concurrency
        return Binding(names=("max_num_seqs",), text=f"the engine runs at most {limit} sequences")
    point = made.point(more, plan.dram_bytes)
    if point.broken:
        names = tuple(_name(text) for text in point.broken)
        return Binding(names=names, text=f"C = {more} breaks {', '.join(point.broken)}")
    demand = plan.question.objective.demand_requests_per_s
    if demand is not None:
        return Binding(
            names=("demand",),
            text=f"{plan.replicas} replicas carry the demand of {demand:.3g} turns/s; "
            f"C = {more} would need as many",
        )
    gain = point.requests_per_s / plan.run.requests_per_s - 1.0
    what = plan.best.bottleneck
    return Binding(
        names=(what,), text=f"C = {more} changes the rate by {gain:+.1%}: {what} is the bottleneck"
    )


def _name(broken: str) -> str:
    """Name of a broken rule, such as ``hits`` or ``ttft_p90``."""
    first = broken.split(" ", 1)[0]
    return "hit_share" if first == "hits" else "hbm_bytes" if first in ("HBM", "") else first
