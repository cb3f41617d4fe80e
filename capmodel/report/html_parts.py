"""Pieces of HTML that reports and notebooks share; every text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..units import format_seconds
from .first_screen import headline, screen_rows

if TYPE_CHECKING:
    from ..results import Estimate, Sweep

SWEEP_HEAD = (
    "C", "regime", "output [tokens/s]", "hits [1]", "collapsed hours [1]", "TTFT p50", "TTFT p90",
    "[tokens/s] per user", "[USD/session]", "[USD per 1e6 tokens]",
)  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return an HTML table of texts; `kind` is its class."""
    lines = [f'<table class="{escape(kind)}">']
    if head:
        cells = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(f"<td>{escape(text)}</td>" for text in rest)
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    return "\n".join([*lines, "</tbody></table>"])


def estimate_table(answer: Estimate) -> str:
    """Return the first screen of an estimate as a captioned table."""
    return f"<p><b>{escape(headline(answer))}</b></p>\n{table((), screen_rows(answer), 'screen')}"


def rows_table(sweep: Sweep) -> str:
    """Return a sweep as a table, one row per concurrency."""
    return table(SWEEP_HEAD, [_row(row) for row in sweep.rows], "numbers")


def _row(row: Estimate) -> tuple[str, ...]:
    cost = row.run.cost
    ttft = row.latency.ttft_s
    return (
        str(row.concurrency),
        row.regime,
        f"{row.output_tokens_per_s:.1f}",
        f"{row.hit_rate.overall:.1%}",
        f"{row.hour.collapsed(row.hit_rate.theoretical):.0%}",
        format_seconds(ttft.p50),
        format_seconds(ttft.p90),
        f"{1.0 / row.latency.tpot_s.p50:.1f}",
        "" if cost.usd_per_session is None else f"{cost.usd_per_session:.2f}",
        "" if cost.usd_per_mtok_total is None else f"{cost.usd_per_mtok_total:.3f}",
    )
