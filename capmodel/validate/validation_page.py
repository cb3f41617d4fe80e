"""The validation page: one self-contained HTML file with tables and a scatter per set."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from .set_view import Table, against, case, facts, groups, percent, worst
from .validation import Validation

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;
color:#1c2430}
h1{font-size:1.5rem}h2{margin-top:2.5rem;border-top:1px solid #ccd;padding-top:1rem}
table{border-collapse:collapse;margin:.6rem 0;font-size:.88rem}
th,td{padding:.2rem .7rem;border-bottom:1px solid #e3e6ee;text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
svg{background:#fafbfd;border:1px solid #e3e6ee}summary{cursor:pointer;margin:.5rem 0}
.small{color:#566}
"""
_SIDE, _MARGIN = 340, 34
_COLORS = {"before": "#2a7f62", "at": "#c98a11", "past": "#b23a48"}


def validation_page(validation: Validation) -> str:
    """Return the whole page as HTML text, with nothing loaded from elsewhere."""
    summary = _table(
        ["set", "against", "n", "median %", "p90 %", "misses", "unusable"],
        [
            [
                t["name"], against(t), str(t["n"]), percent(t["median_abs_pct_error"]),
                percent(t["p90_abs_pct_error"]), str(len(t["misses"])),
                str(len(t.get("unusable", []))),
            ]
            for t in validation.sets
        ],
    )  # fmt: skip
    body = "".join(_section(table) for table in validation.sets)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>capmodel validation</title><style>{_STYLE}</style></head><body>"
        "<h1>Measured cases against the model</h1>"
        "<p class='small'>Errors are predicted over measured less one, in percent; those of hit "
        "rates are differences in points of a hundred.</p>"
        f"{summary}{body}</body></html>"
    )


def _section(table: Table) -> str:
    parts = [f"<h2 id='{escape(table['name'])}'>{escape(table['name'])}</h2>"]
    lines = facts(table)
    if lines:
        parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>")
    rates = [row for row in table.get("errors", []) if not row["quantity"].startswith("hit")]
    if len(rates) > 2:
        parts.append(_scatter(rates))
    for key, found in groups(table).items():
        cells = [[g.name, str(g.n), g.median, g.p90, g.bias] for g in found]
        parts.append(_table([key, "n", "median %", "p90 %", "bias %"], cells))
    heads = ["row", "quantity", "measured", "predicted", "likely reason"]
    for title, rows, state in (
        ("Worst", worst(table), " open"),
        ("All misses", [case(row) for row in table["misses"]], ""),
    ):
        if rows:
            cells = [[r.id, r.quantity, r.measured, r.predicted, r.reason] for r in rows]
            parts.append(_folded(title, _table(heads, cells), state))
    if table.get("unusable"):
        held = [case(row) for row in table["unusable"]]
        inner = _table(["row", "reason"], [[row.id, row.reason] for row in held])
        parts.append(_folded("Rows that make no scenario", inner, ""))
    return "".join(parts)


def _folded(title: str, inner: str, state: str) -> str:
    return f"<details{state}><summary>{escape(title)}</summary>{inner}</details>"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    def cell(text: str, tag: str) -> str:
        numeric = bool(text) and text.replace(".", "").replace("-", "").replace("e+", "").isdigit()
        kind = " class='n'" if numeric else ""
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell(text, "th") for text in heads)
    body = "".join("<tr>" + "".join(cell(t, "td") for t in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _scatter(rows: list[dict[str, Any]]) -> str:
    """Measured against predicted on logarithmic axes, each in units of its largest figure."""
    values = [row[key] for row in rows for key in ("measured", "predicted") if row[key] > 0]
    low, high = math.log(min(values)), math.log(max(values))
    span = max(high - low, 1e-9)

    def place(value: float) -> float:
        return _MARGIN + (math.log(max(value, 1e-12)) - low) / span * (_SIDE - 2 * _MARGIN)

    dots = "".join(
        f"<circle cx='{place(row['measured']):.1f}' cy='{_SIDE - place(row['predicted']):.1f}' "
        f"r='4' fill='{_COLORS.get(row.get('regime', ''), '#44617b')}' fill-opacity='.65'>"
        f"<title>{escape(str(row['id']))}: measured {row['measured']:.4g}, predicted "
        f"{row['predicted']:.4g}</title></circle>"
        for row in rows
        if row["measured"] > 0 and row["predicted"] > 0
    )
    end = _SIDE - _MARGIN
    return (
        f"<svg width='{_SIDE}' height='{_SIDE}' role='img' aria-label='predicted over measured'>"
        f"<line x1='{_MARGIN}' y1='{end}' x2='{end}' y2='{_MARGIN}' stroke='#99a'/>{dots}"
        f"<text x='{_SIDE / 2}' y='{_SIDE - 8}' text-anchor='middle' font-size='12'>measured</text>"
        f"<text x='12' y='{_SIDE / 2}' font-size='12' transform='rotate(-90 12 {_SIDE / 2})' "
        "text-anchor='middle'>predicted</text></svg>"
        "<p class='small'>Logarithmic axes; green before, amber at, red past the cliff.</p>"
    )
