"""Validation: every measured set against the model, as text, as JSON and as a page."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SpecError, nearest_names

# Sets in reading order; each module's `run` returns its error tables.
SETS = {
    "memory": "memory_set",
    "service": "service_set",
    "reuse": "reuse_set",
    "agentic": "agentic_set",
    "hit_rate": "hit_rate_set",
    "offload_gain": "offload_gain_set",
    "calibrated": "calibrated_set",
}
SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Error tables of the measured sets.

    Parameters
    ----------
    sets : tuple of dict
        One per set: name, n, errors in percent, misses, unusable rows, groups.
    """

    sets: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {"sets": list(self.sets)}

    def __str__(self) -> str:
        lines = [
            f"{'set':14s}{'n':>5s}{'median %':>10s}{'p90 %':>10s}{'misses':>8s}{'unusable':>10s}"
        ]
        for table in self.sets:
            lines.append(
                f"{table['name']:14s}{table['n']:5d}"
                f"{percent(table['median_abs_pct_error']):>10s}"
                f"{percent(table['p90_abs_pct_error']):>10s}"
                f"{len(table['misses']):8d}{len(table.get('unusable', [])):10d}"
            )
        for table in self.sets:
            lines += ["", *_details(table)]
        return "\n".join(lines)


def percent(value: float | None) -> str:
    """Return a percentage with one decimal, a dash for none."""
    return "-" if value is None else f"{value:.1f}"


def validate(names: Sequence[str] = ()) -> Validation:
    """Return the error tables of the named sets, all of them if none is named.

    Parameters
    ----------
    names : sequence of str
        Sets.

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
    wanted = [name for name in SETS if name in names or not names]
    modules = [importlib.import_module(f".{SETS[name]}", __package__) for name in wanted]
    return Validation(sets=tuple(module.run() for module in modules))


def facts(table: dict[str, Any]) -> list[str]:
    """Return the lines below a set's error: interval, bias, hits, regimes, floor."""
    lines = []
    ends = table.get("median_interval_pct")
    if ends:
        lines.append(f"median's 90% interval {percent(ends[0])}-{percent(ends[1])}%, by source")
    if table.get("bias_pct") is not None:
        lines.append(f"bias {table['bias_pct']:+.1f}% (median of predicted over measured)")
    if table.get("hit_rate_mean_abs_error") is not None:
        count = table.get("hit_rate_n", table["n"])
        lines.append(
            f"hit rate: mean absolute error {table['hit_rate_mean_abs_error']:.3f}, n = {count}"
        )
    called = table.get("regimes")
    if called and called["n"]:
        lines.append(
            f"regime right in {100 * called['share_right']:.0f}% "
            f"({100 * called['share_right_or_within_noise']:.0f}% right or within a run's noise), "
            f"n = {called['n']}"
        )
    cliffs = table.get("cliffs")
    if cliffs:
        lines.append(
            f"cliff within one grid step on {cliffs['within_one_step']} of {cliffs['n']} curves "
            "that cross it"
        )
    current = table.get("current_builds")
    if current and current["n"]:
        lines.append(
            "rows that no later build overtakes by half: median "
            f"{percent(current['median_abs_pct_error'])}%, n = {current['n']}"
        )
    floor = table.get("scatter")
    if floor and floor["n"]:
        lines.append(
            f"floor: {floor['n']} configurations measured more than once differ by "
            f"{floor['median_ratio']:.2f}x (median), {floor['rows'][0]['ratio']:.1f}x (largest)"
        )
    lines += table.get("notes", [])
    return lines


def _details(table: dict[str, Any]) -> list[str]:
    lines = [table["name"]]
    lines += [f"  {line}" for line in facts(table)]
    for key, rows in _flat_groups(table).items():
        lines.append(f"  by {key}")
        for row in rows:
            lines.append(
                f"    {row['group']:24s} n = {row['n']:3d}  median "
                f"{percent(row['median_abs_pct_error'])}%  p90 {percent(row['p90_abs_pct_error'])}%"
                f"  bias {percent(row.get('bias_pct'))}%"
            )
    if table.get("worst"):
        lines.append("  worst")
        lines += [
            f"    {row['id']:14s} {row['quantity']} measured {row['measured']:.4g}, predicted "
            f"{row['predicted']:.4g}: {row['reason'] or 'no single cause'}"
            for row in table["worst"]
        ]
    elif table["misses"]:
        lines.append(f"  misses, {min(SHOWN, len(table['misses']))} of {len(table['misses'])}")
        lines += [
            f"    {row.get('id', '?'):14s} measured {_figure(row, 'measured')}, predicted "
            f"{_figure(row, 'predicted')}: {row.get('reason') or 'no single cause'}"
            for row in table["misses"][:SHOWN]
        ]
    reasons: dict[str, int] = {}
    for row in table.get("unusable", []):
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
    if reasons:
        lines.append("  rows that make no scenario")
        ordered = sorted(reasons.items(), key=lambda item: -item[1])
        lines += [f"    {count:4d}  {reason}" for reason, count in ordered]
    return lines


def _figure(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    return f"{value:.4g}" if isinstance(value, int | float) else "-"


def _flat_groups(table: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    groups = table.get("groups", {})
    return groups if isinstance(groups, dict) else {}
