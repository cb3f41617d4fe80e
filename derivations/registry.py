"""Finds the derivations: one per file in the folders that mirror `capmodel`."""

from __future__ import annotations

import ast
import importlib
from graphlib import TopologicalSorter
from pathlib import Path

from capmodel.errors import SpecError, nearest_names

from .proof import Derivation

ROOT = Path(__file__).parent
# Folders in the order of the pipeline; the book keeps it where dependencies allow.
STAGES = ("spec", "memory", "reuse", "service", "network", "cost", "optimize")


def files() -> dict[str, Path]:
    """Return the proof files by derivation name, in the order of the stages."""
    return {
        path.stem: path
        for stage in STAGES
        for path in sorted((ROOT / stage).glob("*.py"))
        if path.stem != "__init__"
    }


def title(name: str) -> str:
    """Return the first line of a proof file without running it."""
    text = ast.get_docstring(ast.parse(files()[name].read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0]


def load(name: str) -> Derivation:
    """Return a derivation by name.

    Raises
    ------
    SpecError
        If there is none of that name.
    """
    known = files()
    if name not in known:
        raise SpecError(
            f"no derivation called {name!r}.", field="name", nearest=nearest_names(name, known)
        )
    module = importlib.import_module(f"{__package__}.{known[name].parent.name}.{name}")
    found: Derivation = module.proof
    return found


def in_order() -> list[Derivation]:
    """Return every derivation, each after those it depends on."""
    every = {name: load(name) for name in files()}
    position = {name: index for index, name in enumerate(every)}
    sorter = TopologicalSorter({name: item.depends_on for name, item in every.items()})
    sorter.prepare()
    ordered: list[Derivation] = []
    ready: list[str] = []
    while sorter.is_active():
        ready.extend(sorter.get_ready())
        ready.sort(key=position.__getitem__)
        name = ready.pop(0)
        ordered.append(every[name])
        sorter.done(name)
    return ordered
