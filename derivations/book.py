"""The derivations as a small book: Markdown, or one HTML page that needs no network."""

from __future__ import annotations

import html
import importlib
import inspect
from typing import Any

import sympy as sp

from .claim import Claim, resolve
from .proof import Check
from .report import Report, Reports

INTRODUCTION = (
    "Each chapter states a result, proves it in steps that SymPy decides, and ends in claims: "
    "the formula, and the function that computes it. A claim was evaluated to 30 digits at drawn "
    "points and compared with the code just now. Chapters come after what they use."
)
STYLE = (
    "body{max-width:50rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 Georgia,serif;color:#222}"
    "code,pre{font:14px/1.4 monospace;background:#f5f5f2}pre{padding:.6rem;overflow-x:auto}"
    "math{font-size:1.05em}.no{color:#b00020;font-weight:bold}.ok{color:#2e6b34}"
    "nav li{margin:.1rem 0}h2{margin-top:3rem;border-top:1px solid #ccc;padding-top:1rem}"
    "li{margin:.4rem 0;overflow-x:auto}"
)


def code_link(name: str) -> tuple[str, str]:
    """Return (file with line, name) of an implementing function, the file relative to the root."""
    module = importlib.import_module(name.partition(":")[0])
    found = resolve(name)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    path = f"{module.__name__.replace('.', '/')}.py"
    return f"{path}#L{inspect.getsourcelines(found)[1]}", name.partition(":")[2]


def _functions(claims: tuple[Claim, ...]) -> list[str]:
    return list(dict.fromkeys(name for claim in claims for name in claim.implements))


def markdown(reports: Reports) -> str:
    """Return the book in Markdown, formulas in LaTeX."""
    lines = ["# Derivations", "", INTRODUCTION, "", "## Contents", ""]
    for number, report in enumerate(reports.reports, 1):
        item = report.derivation
        lines.append(f"{number}. [{item.title}](#{item.name})")
    for number, report in enumerate(reports.reports, 1):
        lines += ["", *_markdown_chapter(number, report)]
    return "\n".join([*lines, ""])


def _markdown_chapter(number: int, report: Report) -> list[str]:
    item = report.derivation
    lines = [
        f'<a id="{item.name}"></a>',
        f"## {number}. {item.title}",
        "",
        "$$",
        item.statement,
        "$$",
    ]
    if item.assumptions:
        lines += ["", "Assumes", "", *(f"- {text}" for text in item.assumptions)]
    if item.depends_on:
        links = ", ".join(f"[{name}](#{name})" for name in item.depends_on)
        lines += ["", f"Uses {links}."]
    lines += ["", "Proof", ""]
    for check in report.steps:
        lines.append(f"- {_failed(check)}{check.claim}: ${check.latex}$")
    if report.sources:
        lines += ["", "Claims", ""]
    for check, claim in zip(report.claims, report.sources, strict=True):
        formula = sp.latex(claim.formula) if _short(claim) else r"\text{as above, term by term}"
        lines.append(f"- {_failed(check)}{claim.text} [{claim.unit}]: ${formula}$")
    functions = [code_link(name) for name in _functions(report.sources)]
    if functions:
        lines += ["", "Code: " + ", ".join(f"[`{name}`]({path})" for path, name in functions) + "."]
    proof = item.module.replace(".", "/") + ".py"
    return [*lines, "", f"Proof file: [{proof}]({proof})."]


def _short(claim: Claim) -> bool:
    return int(sp.count_ops(claim.formula)) <= 60


def _failed(check: Check) -> str:
    return "" if check.ok else "**does not hold:** "


def page(reports: Reports) -> str:
    """Return the book as one HTML page; claims are typeset in MathML, statements stay LaTeX."""
    contents = "".join(
        f'<li><a href="#{r.derivation.name}">{html.escape(r.derivation.title)}</a></li>'
        for r in reports.reports
    )
    chapters = "".join(_html_chapter(i, report) for i, report in enumerate(reports.reports, 1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Derivations</title><style>{STYLE}</style></head><body>"
        f"<h1>Derivations</h1><p>{html.escape(INTRODUCTION)}</p>"
        f"<nav><ol>{contents}</ol></nav>{chapters}</body></html>\n"
    )


def _html_chapter(number: int, report: Report) -> str:
    item = report.derivation
    assumptions = "".join(f"<li>{html.escape(text)}</li>" for text in item.assumptions)
    uses = ", ".join(f'<a href="#{name}">{name}</a>' for name in item.depends_on)
    steps = "".join(
        f"<li>{_html_mark(check)} {html.escape(check.claim)}"
        f"<br><code>{html.escape(check.latex)}</code></li>"
        for check in report.steps
    )
    claims = "".join(
        f"<li>{_html_mark(check)} {html.escape(claim.text)} [{html.escape(claim.unit)}] "
        f"{_mathml(claim)}</li>"
        for check, claim in zip(report.claims, report.sources, strict=True)
    )
    code = ", ".join(
        f'<a href="{path}"><code>{html.escape(name)}</code></a>'
        for path, name in (code_link(name) for name in _functions(report.sources))
    )
    return (
        f'<h2 id="{item.name}">{number}. {html.escape(item.title)}</h2>'
        f"<pre>{html.escape(item.statement)}</pre>"
        f"<p>Assumes</p><ul>{assumptions}</ul>"
        + (f"<p>Uses {uses}.</p>" if uses else "")
        + f"<p>Proof</p><ul>{steps}</ul>"
        + (f"<p>Claims</p><ul>{claims}</ul><p>Code: {code}.</p>" if claims else "")
    )


def _html_mark(check: Check) -> str:
    return '<span class="ok">holds</span>' if check.ok else '<span class="no">does not hold</span>'


def _mathml(claim: Claim) -> str:
    if not _short(claim):
        return "as above, term by term"
    printed: Any = sp.printing.mathml(claim.formula, printer="presentation")
    return f'<math display="block">{printed}</math>'
