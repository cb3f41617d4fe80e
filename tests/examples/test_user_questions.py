"""Questions people ask, as an executable table: the command, its answer, the source's figure."""

from __future__ import annotations

import io
import json
import shlex
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from capmodel.cli import main

TABLE = Path(__file__).with_name("user_questions.yaml")
QUESTIONS = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["questions"]
ANSWERED = [q for q in QUESTIONS if "checks" in q]
TOLERANCE = 0.05


@cache
def answer(command: str) -> Any:
    """Return the JSON object that a command prints, whatever its exit code."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        try:
            main([*shlex.split(command), "--json"])
        except SystemExit as stop:
            assert stop.code in (0, 3), command
    return json.loads(out.getvalue())


def value(command: str, key: str) -> Any:
    """Return the entry at a dotted key; a list of texts counts as its length."""
    found = answer(command)
    for part in key.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return len(found) if isinstance(found, list) else found


def figure(check: dict[str, Any]) -> Any:
    """Return our figure of a check in the source's unit."""
    ours = value(check["command"], check["key"])
    if isinstance(ours, bool):
        return ours
    ours *= check.get("scale", 1.0)
    return ours / value(**check["over"]) if "over" in check else ours


def verdict(check: dict[str, Any]) -> str:
    """Return whether our figure agrees with the source's, or that there is none to compare."""
    ours = figure(check)
    if "source" not in check:
        low, high = check["within"]
        assert low <= ours <= high, (check["command"], check["key"], ours)
        return "no figure"
    theirs = check["source"]
    if isinstance(theirs, bool):
        return "agrees" if ours is theirs else "differs"
    close = abs(ours - theirs) <= check.get("tolerance", TOLERANCE) * abs(theirs) + 1e-9
    return "agrees" if close else "differs"


@pytest.mark.parametrize("question", ANSWERED, ids=lambda q: str(q["number"]))
def test_answer_against_source(question: dict[str, Any]) -> None:
    for check in question["checks"]:
        found = (verdict(check), figure(check))
        assert found[0] == check["verdict"], (check["command"], check["key"], found)
    if any(check["verdict"] == "differs" for check in question["checks"]):
        assert question["reason"]


def test_every_question_has_a_place() -> None:
    numbers = [q["number"] for q in QUESTIONS]
    assert len(numbers) == len(set(numbers)) == 61
    assert all(q["source"].startswith("https://") for q in QUESTIONS)
    assert all(q["not_answered"] for q in QUESTIONS if "checks" not in q)


def test_most_questions_are_answered_and_most_figures_agree() -> None:
    verdicts = Counter(overall(question) for question in QUESTIONS)
    assert verdicts["not answered"] <= 12
    figures = Counter(check["verdict"] for question in ANSWERED for check in question["checks"])
    assert figures["agrees"] > figures["differs"]


def overall(question: dict[str, Any]) -> str:
    """Return a question's verdict: its worst compared figure."""
    if "checks" not in question:
        return "not answered"
    found = {check["verdict"] for check in question["checks"]}
    return "differs" if "differs" in found else "agrees" if "agrees" in found else "no figure"


def title(question: dict[str, Any]) -> str:
    """Return a question's topic as a heading."""
    return question["topic"][0].upper() + question["topic"][1:]


def test_page_has_every_question_and_its_verdict() -> None:
    page = (TABLE.parent.parent.parent / "docs" / "questions.md").read_text(encoding="utf-8")
    for question in QUESTIONS:
        heading = f"## {question['number']}. {title(question)}\n"
        assert heading in page
        assert f"[source]({question['source']}): **{overall(question)}**" in page
