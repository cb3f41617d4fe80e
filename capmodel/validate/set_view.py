"""One view of every set's tables: facts, groups, worst cases and unusable rows, alike for all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

Table = dict[str, Any]

# What a set is measured against; the others are measured servers.
AGAINST = {"reuse": "exact replay", "network": "simulator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One case of a list: its figures as text, empty where it has none."""

    id: str
    quantity: str
    measured: str
    predicted: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Errors of one group, in percent."""

    name: str
    n: int
    median: str
    p90: str
    bias: str


def percent(value: float | None) -> str:
    """Return a percentage with one decimal, a dash for none."""
    return "-" if value is None else f"{value:.1f}"


def against(table: Table) -> str:
    """What the set's figures come from."""
    return AGAINST.get(str(table["name"]), "servers")


def bias_percent(table: Table) -> float | None:
    """Median signed error of a set or group [%]."""
    if table.get("bias_pct") is not None:
        return float(table["bias_pct"])
    return None if table.get("bias") is None else 100.0 * float(table["bias"])


def facts(table: Table) -> list[str]:
    """Return the lines below a set's error: interval, bias, hits, regimes, floor, its own notes."""
    lines = []
    ends = table.get("median_interval_pct")
    if ends:
        lines.append(f"median's 90% interval {percent(ends[0])}-{percent(ends[1])}%, by source")
    bias = bias_percent(table)
    if bias is not None:
        lines.append(f"bias {bias:+.1f}% (median of predicted over measured)")
    hits = table.get("hit_rate_mean_abs_error", table.get("mean_abs_error"))
    if hits is not None:
        count = table.get("hit_rate_n", table["n"])
        lines.append(f"hit rate: mean absolute error {hits:.4f}, n = {count}")
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
    floor = table.get("scatter", table.get("identical_configurations"))
    if floor and floor["n"]:
        lines.append(
            f"floor: {floor['n']} configurations measured more than once differ by "
            f"{floor['median_ratio']:.2f}x (median), {floor['rows'][0]['ratio']:.1f}x (largest)"
        )
    lines += [_method_line(row) for row in table.get("sets", [])]
    return lines + [str(note) for note in table.get("notes", [])]


def groups(table: Table) -> dict[str, list[GroupView]]:
    """Return the errors by each kind of group that the set tells apart."""
    found: dict[str, list[GroupView]] = {}
    stated = table.get("groups", {})
    if isinstance(stated, dict):
        for key, rows in stated.items():
            found[key] = [_group(str(row["group"]), row) for row in rows]
    else:
        found["accelerator, engine, family, regime"] = [_labelled(row) for row in stated]
    return found


def _group(name: str, row: Table) -> GroupView:
    return GroupView(
        name=name,
        n=int(row["n"]),
        median=percent(row.get("median_abs_pct_error")),
        p90=percent(row.get("p90_abs_pct_error")),
        bias=percent(bias_percent(row)),
    )


def _labelled(row: Table) -> GroupView:
    """A group of several quantities, shown by the one with the most cases."""
    label = ", ".join(value for value in row.values() if isinstance(value, str))
    held = {key: value for key, value in row.items() if isinstance(value, dict)}
    quantity = max(held, key=lambda key: int(held[key]["n"]))
    return _group(f"{label}: {quantity}", held[quantity])


def _method_line(row: Table) -> str:
    """A method's mean errors in points of hit rate, by regime."""
    parts = ", ".join(
        f"{name} {part['mean_abs_error']:.4f}" for name, part in row.get("regimes", {}).items()
    )
    return f"{row['name']}: mean {row['mean_abs_error']:.4f} ({parts}), n = {row['n']}"


def worst(table: Table, count: int = 10) -> list[CaseView]:
    """Return the largest errors, or the first misses where the set does not rank them."""
    ranked = [row for row in table.get("worst", []) if isinstance(row, dict) and "measured" in row]
    return [case(row) for row in (ranked or table["misses"])[:count]]


def case(row: Table) -> CaseView:
    """Return a case as text."""
    return CaseView(
        id=str(row.get("id", row.get("case", ""))),
        quantity=str(row.get("quantity", row.get("table", ""))),
        measured=_figure(row.get("measured")),
        predicted=_figure(row.get("predicted")),
        reason=str(row.get("reason") or "no single cause"),
    )


def _figure(value: Any) -> str:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:.4g}" if numeric else "" if value is None else str(value)


def unusable_reasons(table: Table) -> list[tuple[str, int]]:
    """Return why rows make no scenario, most frequent first."""
    return Counter(str(row["reason"]) for row in table.get("unusable", [])).most_common()
