"""Imports go left along the row of stages, heavy packages wait, and files stay readable."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "capmodel"

# Each stage may import those before it (and itself).
ROW = ("spec", "memory", "reuse", "service", "network", "cost")
# Beside the row: what each may import besides the row's left part.
BESIDE = {
    "catalog": {"spec", "ingest"},
    "ingest": {"spec", "catalog", "reuse"},
}
SHARED = {
    "errors", "units", "normal", "_version", "catalog", "ingest", "callable_package", "capmodel",
}  # fmt: skip
HEAVY = ("scipy", "sympy", "cvxpy", "pandas", "matplotlib", "numba", "dask")


def imported_stages(path: Path) -> set[str]:
    """Top-level capmodel packages that a module imports when it is loaded."""
    depth = len(path.relative_to(PACKAGE).parts)
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = (node.module or "").split(".")
            if node.level == depth:
                found.add(parts[0])
            elif node.level < depth:
                found.add(path.relative_to(PACKAGE).parts[0])
    return {name for name in found if name}


@pytest.mark.parametrize("stage", ROW)
def test_stages_import_only_to_their_left(stage: str) -> None:
    allowed = set(ROW[: ROW.index(stage) + 1]) | SHARED
    for path in (PACKAGE / stage).rglob("*.py"):
        extra = imported_stages(path) - allowed
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


@pytest.mark.parametrize("folder", list(BESIDE))
def test_catalog_and_ingest_know_only_specs(folder: str) -> None:
    for path in (PACKAGE / folder).rglob("*.py"):
        extra = imported_stages(path) - BESIDE[folder] - SHARED
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def test_the_simulator_shares_the_step_law_and_no_formula() -> None:
    """Its kernel may use the service stage's step law, but nothing of reuse or network."""
    for path in (PACKAGE / "simulate").rglob("*.py"):
        extra = imported_stages(path) & {"reuse", "network", "cost", "optimize"}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def test_files_stay_readable() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for folder in ("capmodel", "derivations")
        for path in (ROOT / folder).rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 420
    }
    assert not long


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["estimate", "llama-3.1-8b", "--on", "1xH100-80GB", "-c", "4", "--json"],
        ["memory", "llama-3.1-8b", "--on", "1xH100-80GB", "--json"],
        ["list", "models", "--json"],
    ],
)
def test_the_scalar_path_imports_no_heavy_package(command: list[str]) -> None:
    code = (
        "import sys; from capmodel.cli import main\n"
        f"main({command!r})\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_help_needs_no_numpy() -> None:
    code = (
        "import sys; from capmodel.cli import main\nmain(['--help'])\n"
        "print('numpy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr.strip().splitlines()[-1] == "False"


def test_no_machine_paths_and_no_promises() -> None:
    words = ("/work/", "/root/", "/tmp/bash", "TODO", "FIXME", "NotImplementedError")
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "derivations").rglob("*.py"), ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert not [word for word in words if word in text], path
