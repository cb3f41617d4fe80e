"""README.md: its console blocks are what the tool prints, its Python runs, its links exist."""

from __future__ import annotations

import doctest
import importlib.util
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def test_console_blocks_are_what_the_tool_prints() -> None:
    spec = importlib.util.spec_from_file_location("readme", ROOT / ".ci" / "readme_console.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = README.read_text(encoding="utf-8")
    assert len(module.BLOCK.findall(text)) >= 5
    for command, printed in module.BLOCK.findall(text):
        assert module.output_of(command) == printed, command


def test_python_blocks_run() -> None:
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


def test_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert target.startswith("http") or (ROOT / target).exists(), target


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path))
    assert capsys.readouterr().out.strip()
