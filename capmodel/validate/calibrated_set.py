"""The calibrated set: each curve fitted on its two lightest points, the rest predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..calibrate.adjustment import PARAMETERS, Adjustment
from ..calibrate.observation import Observation
from ..calibrate.posterior import fit
from .agentic_prediction import prediction
from .agentic_set import Comparison, comparisons, groups_of, shipped_comparisons
from .error_table import Scored, statistics, worst
from .measured_point import MeasuredPoint

FITTED_CONCURRENCIES = 2
SHORTEST_CURVE = 4
ERROR_MISS = 0.12


def curves(rows: Sequence[Comparison]) -> list[list[Comparison]]:
    """Return the solved points of each curve with enough concurrencies, lightest first."""
    found: dict[tuple[object, ...], list[Comparison]] = defaultdict(list)
    for row in rows:
        if row.predicted is not None and row.rates is not None:
            found[row.point.curve].append(row)
    return [
        sorted(members, key=lambda r: r.point.concurrency)
        for members in found.values()
        if len({r.point.concurrency for r in members}) >= SHORTEST_CURVE
    ]


def fitted_adjustment(rows: Sequence[Comparison]) -> Adjustment:
    """Return the factors that points of one curve imply, by their rates and stated hits."""
    by_concurrency = {row.point.concurrency: row.point for row in rows}

    @cache
    def forward(adjustment: Adjustment, concurrency: int) -> Mapping[str, float]:
        found = prediction(by_concurrency[concurrency], adjustment)
        return {
            "output_tokens_per_s": found.output_tokens_per_s,
            "total_tokens_per_s": found.total_tokens_per_s,
            "hit_rate": found.hit_rate,
        }

    points = []
    for row in rows:
        assert row.rates is not None
        measured = {row.rates[0]: row.rates[1]}
        if row.point.hit_rate is not None:
            measured["hit_rate"] = row.point.hit_rate
        points.append(Observation(concurrency=row.point.concurrency, measured=measured))
    return fit(forward, points, names=PARAMETERS).adjustment


def held_out(curve: Sequence[Comparison]) -> list[Scored]:
    """Return the rates of the heavier points of a curve, predicted from the lightest ones."""
    levels = sorted({row.point.concurrency for row in curve})[:FITTED_CONCURRENCIES]
    factors = fitted_adjustment([r for r in curve if r.point.concurrency in levels])
    scored = []
    for row in curve:
        if row.point.concurrency in levels or row.rates is None:
            continue
        found = prediction(row.point, factors)
        quantity, measured, _ = row.rates
        predicted = (
            found.output_tokens_per_s
            if quantity == "output_tokens_per_s"
            else found.total_tokens_per_s
        )
        scored.append(
            Scored(
                id=row.point.id,
                source=row.point.source,
                quantity=quantity,
                measured=measured,
                predicted=predicted,
                groups=groups_of(row),
                reason=f"fitted at C = {levels[0]} and {levels[1]}, "
                f"predicted at {row.point.concurrency} ({found.regime} the cliff)",
            )
        )
    return scored


def run(points: Sequence[MeasuredPoint] | None = None) -> dict[str, Any]:
    """Return the errors on curves of which two concurrencies were used to calibrate.

    Parameters
    ----------
    points : sequence of MeasuredPoint, optional
        Other points; None for those that come with the package.
    """
    rows = shipped_comparisons() if points is None else comparisons(points)
    found = curves(rows)
    scored = [item for curve in found for item in held_out(curve)]
    used = {row.point.id for curve in found for row in curve}
    plain = {
        row.point.id: abs(row.rates[2] / row.rates[1] - 1.0)
        for row in rows
        if row.rates is not None
    }
    before = sorted(100.0 * plain[s.id] for s in scored)
    return {
        "name": "calibrated",
        **statistics(scored),
        "curves": len(found),
        "uncalibrated_median_abs_pct_error": before[len(before) // 2] if before else None,
        "notes": [
            f"{len(found)} curves; the same rows uncalibrated: median "
            f"{before[len(before) // 2]:.1f}%"
        ]
        if before
        else [],
        "worst": worst(scored),
        "misses": [s.to_dict() for s in scored if abs(s.error) > ERROR_MISS],
        "errors": [s.to_dict() for s in scored],
        "unusable": [
            {"id": row.point.id, "reason": row.unusable or "no curve of four concurrencies"}
            for row in rows
            if row.point.id not in used
        ],
    }
