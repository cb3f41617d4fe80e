"""The hit-rate set: measured hit rates of load points, those of session replays as scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .agentic_cases import shipped_hit_rates
from .agentic_set import (
    HIT_MISS,
    KEYS,
    comparisons,
    mean_difference,
    regimes,
    scored_hits,
    scored_rates,
)
from .error_table import grouped, statistics, worst
from .measured_point import MeasuredPoint


def run(points: Sequence[MeasuredPoint] | None = None) -> dict[str, Any]:
    """Return the error tables of measured hit rates; errors are in points of a hundred.

    Parameters
    ----------
    points : sequence of MeasuredPoint, optional
        Other points; None for those that come with the package.
    """
    rows = comparisons(shipped_hit_rates() if points is None else points)
    hits = scored_hits(rows)
    return {
        "name": "hit_rate",
        **statistics(hits),
        "hit_rate_mean_abs_error": mean_difference(hits),
        "throughput": statistics(scored_rates(rows)),
        "regimes": regimes(rows),
        "groups": grouped(hits, KEYS),
        "worst": worst(hits),
        "misses": [s.to_dict() for s in hits if abs(s.error) > HIT_MISS],
        "errors": [s.to_dict() for s in hits],
        "assumptions": {r.point.id: list(r.point.assumptions) for r in rows if r.predicted},
        "unusable": [{"id": r.point.id, "reason": r.unusable} for r in rows if r.unusable],
    }
