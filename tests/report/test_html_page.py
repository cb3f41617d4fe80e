"""Reports of one file: complete, escaped, and without anything from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import capmodel as cm
from capmodel.report.command_line import command_line
from capmodel.report.html_page import estimate_page, sweep_page
from capmodel.scenario import given_values

SCENARIO = cm.Scenario(model="kimi-k3", node="8xB300", offload="dram:1889GB")
ANSWER = cm.estimate(SCENARIO, 8, level="closed")
SWEEP = cm.sweep(SCENARIO, [4, 8], level="closed")
COMMAND = "capmodel estimate kimi-k3 --on 8xB300"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Tree(HTMLParser):
    """Checks that tags close in order and collects the addresses that a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href") and not str(value).startswith("#"):
                self.loaded.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)


def read(page: str) -> Tree:
    tree = Tree()
    tree.feed(page)
    return tree


@pytest.mark.parametrize(
    "page",
    [
        estimate_page(ANSWER, command=COMMAND, scenario=given_values(SCENARIO)),
        sweep_page(SWEEP, command=COMMAND, scenario=given_values(SCENARIO)),
    ],
    ids=["estimate", "sweep"],
)
def test_page_is_complete_and_alone(page: str) -> None:
    tree = read(page)
    assert not tree.open
    assert not tree.loaded
    assert "script" not in tree.tags
    assert "svg" in tree.tags
    assert "url(" not in re.sub(r"url\(#\w+\)", "", page)
    for part in ("To reproduce", "Assumptions and sources", "Intervals", COMMAND, "dram:1889GB"):
        assert part in page
    assert page.index("class=answer") < page.index("Assumptions and sources")


def test_names_and_commands_are_escaped() -> None:
    bad = '<img src=x onerror="alert(1)">'
    page = estimate_page(ANSWER, command=bad, scenario={"model": bad})
    assert "<img" not in page
    assert page.count("&lt;img") == 2


def test_notebook_form_holds_the_first_screen() -> None:
    text = ANSWER._repr_html_()
    assert not read(text).open
    assert f"{ANSWER.output_tokens_per_s:.1f} tok/s" in text
    assert SWEEP._repr_html_().count("<tr>") == 1 + len(SWEEP.rows)


def test_command_line_quotes_what_a_shell_would_split() -> None:
    given = {"model": "a b", "node": "8xB300", "tp": None, "as_json": False, "kv_dtype": "fp8"}
    found = command_line("sweep", {**given, "concurrency": "1-4"})
    assert found == "capmodel sweep 'a b' --on 8xB300 --kv-dtype fp8 -c 1-4"
