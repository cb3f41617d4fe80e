"""docs/questions.md from the table: run this file to renew the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_user_questions import ANSWERED, QUESTIONS, figure, overall, title

PAGE = Path(__file__).parent.parent.parent / "docs" / "questions.md"
HEAD = """# Questions people ask, with the command that answers each

Each row is run by `tests/examples/test_user_questions.py`; where the source gives a figure, ours
stands beside it with the verdict, misses included. `python tests/examples/questions_page.py` renews
the page.

"""


def number(value: Any) -> str:
    """Return a figure as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def section(question: dict[str, Any]) -> str:
    """Return one question as markdown."""
    lines = [f"## {question['number']}. {title(question)}", ""]
    lines += [f"[source]({question['source']}): **{overall(question)}**", ""]
    if "checks" in question:
        lines += ["| command | key | ours | source | |", "|---|---|---|---|---|"]
    for check in question.get("checks", []):
        unit = f" x {check['scale']:.3g}" if "scale" in check else ""
        ratio = f" / same of `capmodel {check['over']['command']}`" if "over" in check else ""
        theirs = number(check["source"]) if "source" in check else ""
        lines.append(
            f"| `capmodel {check['command']}` | {check['key']}{unit}{ratio} | "
            f"{number(figure(check))} | {theirs} | {check['verdict']} |"
        )
    remark = question.get("reason", question.get("not_answered"))
    if remark:
        lines += ["", f"{remark[0].upper()}{remark[1:]}"]
    return "\n".join(lines)


def page() -> str:
    """Return the whole page."""
    checks = [check for question in ANSWERED for check in question["checks"]]
    figures = [check["verdict"] for check in checks]
    summary = (
        f"{len(ANSWERED)} of {len(QUESTIONS)} questions are answered; of "
        f"{len(figures) - figures.count('no figure')} figures that can be compared "
        f"{figures.count('agrees')} agree and {figures.count('differs')} differ.\n\n"
    )
    return HEAD + summary + "\n\n".join(map(section, QUESTIONS)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
