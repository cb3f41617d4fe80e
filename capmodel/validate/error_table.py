"""Error tables: medians, tails, bias and their confidence, over sets and groups of points."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 400
CONFIDENCE = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One measured figure beside its prediction.

    Parameters
    ----------
    id, source : str
        Row, and where it was published.
    quantity : str
        Name with unit.
    measured, predicted : float
        In the quantity's unit.
    groups : dict of str to str
        Accelerator, family, engine, regime.
    relative : bool
        True where the error is relative (rates); False for shares, whose difference counts.
    reason : str
        Likely cause of the error.
    """

    id: str
    source: str
    quantity: str
    measured: float
    predicted: float
    groups: dict[str, str]
    relative: bool = True
    reason: str = ""

    @property
    def error(self) -> float:
        """Signed error: predicted over measured less one, or the difference of shares [1]."""
        if not self.relative:
            return self.predicted - self.measured
        return self.predicted / self.measured - 1.0

    @property
    def size(self) -> float:
        """Order of badness, alike for over- and underprediction [1]."""
        if not self.relative:
            return abs(self.error)
        return abs(math.log(max(self.predicted, 1e-12) / self.measured))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "id": self.id,
            "source": self.source,
            "quantity": self.quantity,
            "measured": self.measured,
            "predicted": self.predicted,
            "error_pct": 100.0 * self.error,
            **self.groups,
            "reason": self.reason,
        }


def statistics(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return n, median and p90 of the absolute error, bias, and the median's interval [%].

    Notes
    -----
    The interval resamples sources, then takes all rows of each: rows of one source share its
    build and its mistakes.
    """
    if not scored:
        return {
            "n": 0, "sources": 0, "median_abs_pct_error": None, "p90_abs_pct_error": None,
            "mean_abs_pct_error": None, "bias_pct": None, "median_interval_pct": None,
        }  # fmt: skip
    errors = np.array([100.0 * item.error for item in scored])
    sizes = np.abs(errors)
    return {
        "n": len(scored),
        "sources": len({item.source for item in scored}),
        "median_abs_pct_error": float(np.median(sizes)),
        "p90_abs_pct_error": float(np.quantile(sizes, 0.9)),
        "mean_abs_pct_error": float(sizes.mean()),
        "bias_pct": float(np.median(errors)),
        "median_interval_pct": _interval(scored, sizes),
    }


def _interval(scored: Sequence[Scored], sizes: np.ndarray[Any, Any]) -> list[float] | None:
    by_source: dict[str, list[float]] = defaultdict(list)
    for item, size in zip(scored, sizes, strict=True):
        by_source[item.source].append(float(size))
    if len(by_source) < 2:
        return None
    blocks = [np.array(block) for block in by_source.values()]
    rng = np.random.default_rng(len(blocks))
    draws = rng.integers(len(blocks), size=(RESAMPLES, len(blocks)))
    medians = [float(np.median(np.concatenate([blocks[i] for i in draw]))) for draw in draws]
    edge = 0.5 * (1.0 - CONFIDENCE)
    return [float(x) for x in np.quantile(medians, [edge, 1.0 - edge])]


def grouped(scored: Sequence[Scored], keys: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the statistics of each group, by each key, largest groups first."""
    tables = {}
    for key in keys:
        members: dict[str, list[Scored]] = defaultdict(list)
        for item in scored:
            members[item.groups.get(key, "not known")].append(item)
        rows = [{"group": name, **statistics(items)} for name, items in members.items()]
        tables[key] = sorted(rows, key=lambda row: (-row["n"], row["group"]))
    return tables


def table(name: str, scored: Sequence[Scored]) -> dict[str, Any]:
    """Return what every set says: its name, statistics, errors and the worst of them."""
    return {
        "name": name,
        **statistics(scored),
        "worst": worst(scored),
        "errors": [item.to_dict() for item in scored],
    }


def worst(scored: Sequence[Scored], count: int = 10) -> list[dict[str, Any]]:
    """Return the largest errors, worst first, with their likely reasons."""
    return [item.to_dict() for item in sorted(scored, key=lambda s: -s.size)[:count]]


def scatter(
    values: Iterable[tuple[tuple[object, ...], str, float]],
    same: Callable[[float, float], float] = lambda high, low: high / low,
) -> dict[str, Any]:
    """Return how far apart identical configurations were measured: the floor of any model.

    Parameters
    ----------
    values : iterable of (configuration, id, measured)
        Rates of usable points.
    same : callable
        Distance of the largest and the smallest; their ratio unless given.
    """
    groups: dict[tuple[object, ...], list[tuple[str, float]]] = defaultdict(list)
    for configuration, row, value in values:
        groups[configuration].append((row, value))
    rows = []
    deviations: list[float] = []
    for members in groups.values():
        if len(members) < 2:
            continue
        found = [value for _, value in members]
        middle = float(np.median(found))
        deviations += [abs(value / middle - 1.0) for value in found]
        rows.append({"ids": [row for row, _ in members], "ratio": same(max(found), min(found))})
    return {
        "n": len(rows),
        "rows": sorted(rows, key=lambda row: -row["ratio"]),
        "median_ratio": float(np.median([row["ratio"] for row in rows])) if rows else None,
        "median_abs_pct_deviation": 100.0 * float(np.median(deviations)) if deviations else None,
    }
