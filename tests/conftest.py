"""Fixtures shared by all tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capmodel.cli import main

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT.parent / "shared" / "reference"


@pytest.fixture
def reference() -> Path:
    """The folder of reference facts beside the checkout; tests that need it skip without it."""
    if not REFERENCE.is_dir():
        pytest.skip(f"no reference folder at {REFERENCE}")
    return REFERENCE


@pytest.fixture
def run_json(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run a command with --json; return its exit code and the one object on stdout."""

    def call(*args: str) -> tuple[int, dict[str, Any]]:
        code = 0
        try:
            main([*args, "--json"])
        except SystemExit as stop:
            code = int(stop.code or 0)
        output = capsys.readouterr().out
        return code, json.loads(output)

    return call
