"""The first picture: output, hit rate and cost per session against live sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from .canvas import COLOURS

if TYPE_CHECKING:
    from ..results import Estimate, Sweep

DASHES = ("-", "--", "-.", ":")


def cliff_figure(
    sweeps: Sequence[Sweep],
    *,
    labels: Sequence[str] | None = None,
    ax: Any = None,
    measured: Sequence[tuple[float, float]] = (),
) -> Any:
    """Draw one or more sweeps over concurrency; return the axes of the upper panel.

    Parameters
    ----------
    sweeps : sequence of Sweep
        Curves to lay over each other, such as without and with a tier.
    labels : sequence of str, optional
        Names of the curves; the tier by default.
    ax : matplotlib axes, optional
        Draw only the output panel here.
    measured : sequence of (concurrency, output tokens/s)
        Points to lay over; the nearest cases of the rows are added.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    lower = None
    if ax is None:
        figure = Figure(figsize=(7.2, 7.6), layout="constrained")
        ax, *lower = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    points = list(measured)
    for index, sweep in enumerate(sweeps):
        style = {"color": COLOURS[index % 4], "linestyle": DASHES[index % 4]}
        label = _label(sweep) if labels is None else labels[index]
        _output_panel(ax, sweep, label, style)
        if lower is not None:
            _lower_panels(lower, sweep, style)
        points += _cases(sweep)
    if points:
        ax.plot(*zip(*points, strict=True), "k^", label="measured", zorder=5)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("output [tokens/s]")
    ax.set_title(_title(sweeps[0].rows[0]), fontsize="medium")
    ax.legend(frameon=False)
    last = ax if lower is None else lower[-1]
    last.set_xlabel("live sessions C")
    last.xaxis.get_major_locator().set_params(integer=True)
    return ax


def _output_panel(ax: Any, sweep: Sweep, label: str, style: dict[str, Any]) -> None:
    name = "throughput.output_tokens_per_s"
    sessions = [row.concurrency for row in sweep.rows]
    ax.plot(sessions, [row.output_tokens_per_s for row in sweep.rows], label=label, **style)
    spans = [row.intervals.get(name, (row.output_tokens_per_s,) * 2) for row in sweep.rows]
    ax.fill_between(sessions, *zip(*spans, strict=True), color=style["color"], alpha=0.15, lw=0)
    cliff = sweep.rows[0].cliff
    if cliff.low is not None and cliff.high is not None and cliff.low <= max(sessions):
        ax.axvspan(cliff.low - 0.5, cliff.high + 0.5, color=style["color"], alpha=0.07, lw=0)
        ax.annotate(
            f"cliff {cliff.low}-{cliff.high}",
            (0.5 * (cliff.low + cliff.high), 0.02),
            xycoords=("data", "axes fraction"),
            ha="center",
            fontsize="small",
            color=style["color"],
        )


def _lower_panels(panels: Sequence[Any], sweep: Sweep, style: dict[str, Any]) -> None:
    hits, money = panels
    sessions = [row.concurrency for row in sweep.rows]
    hits.plot(sessions, [row.hit_rate.overall for row in sweep.rows], **style)
    hits.axhline(sweep.rows[0].hit_rate.theoretical, color="0.6", lw=0.8)
    hits.set_ylim(0, 1)
    hits.set_ylabel("hit rate [1]")
    costs = [row.run.cost.usd_per_session for row in sweep.rows]
    if all(cost is not None for cost in costs):
        money.plot(sessions, costs, **style)
    money.set_ylim(bottom=0)
    money.set_ylabel("cost [USD/session]")


def _cases(sweep: Sweep) -> list[tuple[float, float]]:
    return [
        (row.concurrency, row.nearest.measured)
        for row in sweep.rows
        if row.nearest is not None and row.nearest.metric == "output_tokens_per_s"
    ]


def _label(sweep: Sweep) -> str:
    offload = sweep.rows[0].run.scenario.deployment.offload
    return "HBM only" if offload is None else f"{offload.tier} {offload.bytes / 1e12:.2f} TB"


def _title(row: Estimate) -> str:
    scenario = row.run.scenario
    return f"{scenario.model.name} on {scenario.node.name}, {scenario.workload.name}"
