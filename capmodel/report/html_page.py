"""A report as one HTML file: answer, reasons, intervals, assumptions with sources, command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from .._version import __version__
from .canvas import inline_svg
from .cliff_figure import cliff_figure
from .estimate_figure import estimate_figure
from .explain import explain
from .first_screen import headline, screen_rows
from .html_parts import rows_table, table
from .step_figure import step_figure
from .sweep_table import sweep_table

if TYPE_CHECKING:
    from ..results import Estimate, Sweep

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 0 auto;
  max-width: 62rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.35rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.answer { font-size: 1.25rem; border-left: .35rem solid #0072b2; padding: .5rem 1rem;
  background: #f2f7fb; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid #ddd; }
tbody th { font-weight: 600; white-space: nowrap; } .long tbody th { white-space: normal; }
.numbers td { font-variant-numeric: tabular-nums; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .85rem; }
footer { margin-top: 3rem; color: #555; font-size: .85rem; }
@media print { body { max-width: none; } details > * { display: block; } }
"""
# The page loads nothing and runs nothing, whoever opens it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def estimate_page(answer: Estimate, *, command: str, scenario: Mapping[str, Any]) -> str:
    """Return the report of one operating point.

    Parameters
    ----------
    answer : Estimate
        The point.
    command : str
        What reproduces it.
    scenario : mapping
        What was given, for the reader to keep.
    """
    rows = screen_rows(answer)
    chain = explain(answer.run)
    body = [
        f"<p class=answer><b>{escape(rows[0][0])}</b> {escape(rows[0][1])}</p>",
        _figure(estimate_figure(answer)),
        "<h2>Reasons</h2>",
        table((), rows[1:], "screen"),
        "<h2>Intervals</h2>",
        _intervals(answer),
        "<h2>Where the time of a step goes</h2>",
        _figure(step_figure(chain.bars)),
        _assumptions(answer),
    ]
    return _page(headline(answer), body, command, scenario)


def sweep_page(sweep: Sweep, *, command: str, scenario: Mapping[str, Any]) -> str:
    """Return the report of a sweep over concurrency."""
    lines = sweep_table(sweep).splitlines()[1 + len(sweep.rows) :]
    title = headline(sweep.rows[0]).rpartition(" | ")[0]
    first = sweep.rows[0]
    lead = screen_rows(first)[0]
    body = [
        f"<p class=answer><b>{escape(lead[0])}</b> {escape(lead[1].rpartition(';')[0])}; "
        f"{escape(lines[0])}</p>",
        _figure(cliff_figure([sweep])),
        "<h2>Operating points</h2>",
        f"<div class=wide>{rows_table(sweep)}</div>",
        "<h2>Measured cases and notes</h2>",
        "".join(f"<p>{escape(line)}</p>" for line in lines[1:]) or "<p>None.</p>",
        "<h2>Intervals</h2>",
        _sweep_intervals(sweep),
        _assumptions(first),
    ]
    return _page(title, body, command, scenario)


def _page(title: str, body: list[str], command: str, scenario: Mapping[str, Any]) -> str:
    given = json.dumps(dict(scenario), indent=1, default=str, ensure_ascii=False)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *body,
            "<h2>To reproduce</h2>",
            f"<pre>{escape(command)}</pre>",
            f"<details open><summary>Scenario</summary><pre>{escape(given)}</pre></details>",
            f"<footer>capmodel {escape(__version__)}. {CAUTION}</footer></body></html>",
            "",
        ]
    )


CAUTION = (
    "Predicted, not measured, except where a source is named. Do not trust a point within two or "
    "three sessions of the cliff."
)


def _figure(axes: Any) -> str:
    return f"<div class=wide>{inline_svg(axes)}</div>"


def _intervals(answer: Estimate) -> str:
    rows = [(name, f"{low:,.4g}", f"{high:,.4g}") for name, (low, high) in answer.intervals.items()]
    if not rows:
        return "<p>The workload states no intervals.</p>"
    return f"<div class=wide>{table(('figure', 'low', 'high'), rows, 'numbers long')}</div>"


def _sweep_intervals(sweep: Sweep) -> str:
    names = list(sweep.rows[0].intervals)
    if not names:
        return "<p>The workload states no intervals.</p>"
    rows = [
        (
            str(row.concurrency),
            *[
                "{:,.4g} to {:,.4g}".format(*row.intervals[name]) if name in row.intervals else ""
                for name in names
            ],
        )
        for row in sweep.rows
    ]
    return f"<div class=wide>{table(('C', *names), rows, 'numbers')}</div>"


def _assumptions(answer: Estimate) -> str:
    rows = [
        (
            step.name,
            f"{step.value:,.6g}" if isinstance(step.value, int | float) else step.value,
            step.unit,
            step.formula,
            step.kind,
            step.source,
        )
        for step in explain(answer.run).steps
    ]
    head = ("number", "value", "unit", "formula", "kind", "source")
    return (
        f"<h2>Assumptions and sources</h2><div class=wide>{table(head, rows, 'numbers long')}</div>"
    )
