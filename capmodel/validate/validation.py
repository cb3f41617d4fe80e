"""Validation: every measured set against the model, as text, as JSON and as a page."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SpecError, nearest_names
from .set_view import Table, against, facts, groups, percent, unusable_reasons, worst

# Sets in reading order; each module's `run` returns its error tables.
SETS = {
    "memory": "memory_set",
    "service": "service_set",
    "reuse": "reuse_set",
    "network": "network_set",
    "agentic": "agentic_set",
    "hit_rate": "hit_rate_set",
    "offload_gain": "offload_gain_set",
    "calibrated": "calibrated_set",
}

# Left out unless the set is asked for by name: the exact level takes minutes on its grid.
QUICK: dict[str, dict[str, Any]] = {"network": {"levels": ("closed", "fast")}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Error tables of the measured sets.

    Parameters
    ----------
    sets : tuple of dict
        One per set: name, n, errors in percent, misses, unusable rows, groups.
    """

    sets: tuple[Table, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {"sets": [{**table, "against": against(table)} for table in self.sets]}

    def __str__(self) -> str:
        heads = ("set", "against", "n", "median %", "p90 %", "misses", "unusable")
        lines = ["{:14s}{:14s}{:>6s}{:>10s}{:>8s}{:>8s}{:>10s}".format(*heads)]
        for table in self.sets:
            lines.append(
                f"{table['name']:14s}{against(table):14s}{table['n']:6d}"
                f"{percent(table['median_abs_pct_error']):>10s}"
                f"{percent(table['p90_abs_pct_error']):>8s}"
                f"{len(table['misses']):8d}{len(table.get('unusable', [])):10d}"
            )
        for table in self.sets:
            lines += ["", *_details(table)]
        return "\n".join(lines)


def validate(*names: str, points: Path | None = None) -> Validation:
    """Return the error tables of the named sets, all of them if none is named.

    Parameters
    ----------
    *names : str
        Sets.
    points : Path, optional
        Other replay points for the agentic, offload-gain and calibrated sets, in the columns of
        the public collection or of the shipped table; only these sets are then run.

    Raises
    ------
    SpecError
        If a set is not known.
    """
    for name in names:
        if name not in SETS:
            raise SpecError(
                f"no measured set called {name!r}; one of {', '.join(SETS)}.",
                field="set",
                nearest=nearest_names(name, SETS),
            )
    if points is not None:
        return _validation_of(points, names)
    wanted = [name for name in SETS if name in names or not names]
    found = []
    for name in wanted:
        module = importlib.import_module(f".{SETS[name]}", __package__)
        found.append(module.run(**({} if names else QUICK.get(name, {}))))
    return Validation(sets=tuple(found))


def _validation_of(points: Path, names: tuple[str, ...]) -> Validation:
    from . import agentic_set, calibrated_set, offload_gain_set
    from .agentic_cases import measured_points
    from .replay_columns import read_rows

    runs = {
        "agentic": agentic_set.run,
        "offload_gain": offload_gain_set.run,
        "calibrated": calibrated_set.run,
    }
    for name in names:
        if name not in runs:
            raise SpecError(f"set {name!r} does not take replay points.", field="points")
    found = measured_points(read_rows(points))
    return Validation(sets=tuple(runs[name](found) for name in runs if name in names or not names))


def _details(table: Table) -> list[str]:
    lines = [str(table["name"]), *(f"  {line}" for line in facts(table))]
    for key, rows in groups(table).items():
        lines.append(f"  by {key}")
        width = max(len(row.name) for row in rows) if rows else 0
        lines += [
            f"    {row.name:{width}s}  n = {row.n:4d}  median {row.median}%  p90 {row.p90}%  "
            f"bias {row.bias}%"
            for row in rows
        ]
    shown = worst(table)
    if shown:
        lines.append(f"  largest errors ({len(table['misses'])} misses)")
        lines += [
            f"    {row.id:14s} {row.quantity} measured {row.measured}, predicted {row.predicted}: "
            f"{row.reason}"
            for row in shown
        ]
    reasons = unusable_reasons(table)
    if reasons:
        lines.append("  rows that make no scenario")
        lines += [f"    {count:4d}  {reason}" for reason, count in reasons]
    return lines
