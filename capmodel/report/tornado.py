"""What moves the answer: output at both ends of each input's evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .canvas import COLOURS, new_axes

if TYPE_CHECKING:
    from ..results import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """Output at the ends of one input's evidence.

    Parameters
    ----------
    name : str
        Input, a field of the workload.
    inputs : (float, float)
        Ends of its evidence [tokens].
    output_tokens_per_s : (float, float)
        Output at those ends [tokens/s].
    """

    name: str
    inputs: tuple[float, float]
    output_tokens_per_s: tuple[float, float]

    @property
    def width(self) -> float:
        """Distance between the ends [tokens/s]."""
        return abs(self.output_tokens_per_s[1] - self.output_tokens_per_s[0])


def swings(answer: Estimate) -> tuple[Swing, ...]:
    """Return the swing of every uncertain input, the widest first."""
    from ..answer import UNCERTAIN
    from ..pipeline import run, with_workload

    scenario, found = answer.run.scenario, []
    for name in UNCERTAIN:
        ends = scenario.workload.intervals.get(name)
        if ends is None:
            continue
        output = [
            run(
                with_workload(scenario, **{name: end}),
                concurrency=answer.concurrency,
                level=answer.run.level,
                law=answer.run.law,
            ).output_tokens_per_s
            for end in ends
        ]
        found.append(Swing(name=name, inputs=ends, output_tokens_per_s=(output[0], output[1])))
    return tuple(sorted(found, key=lambda swing: -swing.width))


def tornado_figure(answer: Estimate, found: Sequence[Swing] | None = None, ax: Any = None) -> Any:
    """Draw the swings around an estimate as bars, the widest on top; return the axes."""
    rows = swings(answer) if found is None else found
    ax = new_axes(ax, size=(7.2, 1.4 + 0.6 * len(rows)))
    center = answer.output_tokens_per_s
    for index, swing in enumerate(rows):
        for end, value, colour in zip(
            swing.inputs, swing.output_tokens_per_s, COLOURS, strict=False
        ):
            ax.barh(index, value - center, left=center, color=colour, height=0.6)
            side = "left" if value >= center else "right"
            ax.annotate(f"{end:,.0f}", (value, index), ha=side, va="center", fontsize="small")
    ax.set_yticks(range(len(rows)), [swing.name for swing in rows])
    ax.invert_yaxis()
    ax.axvline(center, color="k", lw=0.8)
    ax.margins(x=0.15)
    ax.set_xlabel("output [tokens/s]; labels are the ends of each input's evidence")
    return ax
