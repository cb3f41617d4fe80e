"""The picture of one operating point: the cliff around it, with the point marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import new_axes
from .cliff_figure import cliff_figure

if TYPE_CHECKING:
    from ..results import Estimate

POINTS = 16


def estimate_figure(answer: Estimate, ax: Any = None) -> Any:
    """Draw output over concurrency around an estimate and mark its point; return the axes.

    Parameters
    ----------
    answer : Estimate
        The point.
    ax : matplotlib axes, optional
        Where to draw the output panel only; a figure with hit rate and cost otherwise.
    """
    from ..answer import sweep

    new_axes(ax)  # without matplotlib, say so before the work
    around = sweep(answer.run.scenario, neighbours(answer), level=answer.run.level)
    drawn = cliff_figure([around], ax=ax)
    drawn.plot(
        [answer.concurrency], [answer.output_tokens_per_s], "o", ms=9, mfc="none", mec="k", mew=1.6,
        label=f"C = {answer.concurrency}",
    )  # fmt: skip
    drawn.legend(frameon=False)
    return drawn


def neighbours(answer: Estimate) -> list[int]:
    """Return concurrencies from 1 past the cliff and the point, the point among them."""
    edge = answer.cliff.high or answer.cliff.concurrency
    last = 2 * answer.concurrency
    # A cliff far beyond the point would squeeze the point into a corner.
    if edge is not None and edge <= 8 * answer.concurrency:
        last = max(last, round(1.4 * edge))
    last = max(last, 8)
    steps = {max(round(1 + (last - 1) * index / (POINTS - 1)), 1) for index in range(POINTS)}
    return sorted(steps | {answer.concurrency})
