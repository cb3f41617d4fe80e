"""Where the time of an engine step goes, as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .canvas import COLOURS, new_axes

if TYPE_CHECKING:
    from .explain import StepBar

SMALLEST_SHARE = 0.02
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")


def step_figure(bars: Sequence[StepBar], ax: Any = None) -> Any:
    """Draw each step as one bar of its kernel classes, as shares of its time; return the axes."""
    ax = new_axes(ax, size=(8.0, 1.6 + 0.9 * len(bars)))
    shares = [
        {name: seconds / bar.total_s for name, seconds in bar.seconds.items()} for bar in bars
    ]
    names = sorted({name for row in shares for name in row}, key=lambda n: -_largest(shares, n))
    shown = [name for name in names if _largest(shares, name) >= SMALLEST_SHARE]
    left = [0.0] * len(bars)
    for index, name in enumerate(shown):
        widths = [row.get(name, 0.0) for row in shares]
        ax.barh(
            range(len(bars)), widths, left=left, height=0.55, label=name, edgecolor="white",
            color=COLOURS[index % len(COLOURS)], hatch=HATCHES[index // len(COLOURS)],
        )  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    rest = [1.0 - start for start in left]
    if max(rest) > 1e-6:
        ax.barh(range(len(bars)), rest, left=left, height=0.55, label="smaller parts", color="0.8")
    for row, bar in enumerate(bars):
        ax.text(0.0, row - 0.36, f"{bar.title}: {bar.total_s * 1e3:.1f} ms", fontsize="small")
    ax.set_yticks([])
    ax.set_ylim(len(bars) - 0.4, -0.75)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the step [1]")
    ax.legend(frameon=False, ncols=3, fontsize="small", loc="upper center",
              bbox_to_anchor=(0.5, -0.28))  # fmt: skip
    return ax


def _largest(shares: Sequence[dict[str, float]], name: str) -> float:
    return max(row.get(name, 0.0) for row in shares)
