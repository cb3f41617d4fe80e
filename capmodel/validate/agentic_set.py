"""The agentic set: replay points of coding-agent sessions, uncalibrated, per regime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..calibrate.posterior import NORMAL_95, noise_sigma
from ..errors import CapmodelError
from .agentic_cases import shipped_points
from .agentic_prediction import Prediction, prediction
from .cliff_table import cliff_table
from .error_table import Scored, grouped, scatter, statistics, worst
from .likely_reason import hit_reason, rate_reason
from .measured_point import MeasuredPoint, regime
from .service_set import family

RATE_MISS = 0.30
HIT_MISS = 0.10
TIER_MATTERS = 0.02
# 90% half-width of a one-hour hit rate: calibrate/data/priors.yaml, noise of shares.
HIT_NOISE = NORMAL_95 * noise_sigma("hit_rate")
OVERTAKEN = 1.5
KEYS = ("accelerator", "family", "engine", "regime", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A measured point beside its prediction, or why there is none.

    Parameters
    ----------
    point : MeasuredPoint
        What was measured.
    predicted : Prediction, optional
        What the model says; None where it says nothing.
    unusable : str
        Why, empty for none.
    """

    point: MeasuredPoint
    predicted: Prediction | None = None
    unusable: str = ""

    @property
    def measured_regime(self) -> str | None:
        """Side of the cliff by measured hits; None where they are not stated."""
        if self.point.hit_rate is None or self.predicted is None:
            return None
        ceiling = self.point.theoretical_hit_rate or self.predicted.theoretical_hit_rate
        return regime(self.point.hit_rate, ceiling)

    @property
    def rates(self) -> tuple[str, float, float] | None:
        """Name, measured and predicted rate: output where stated, else all tokens."""
        if self.predicted is None:
            return None
        if self.point.output_tokens_per_s:
            return "output_tokens_per_s", self.point.output_tokens_per_s, (
                self.predicted.output_tokens_per_s
            )  # fmt: skip
        if self.point.total_tokens_per_s:
            return "total_tokens_per_s", self.point.total_tokens_per_s, (
                self.predicted.total_tokens_per_s
            )  # fmt: skip
        return None


def comparisons(points: Sequence[MeasuredPoint]) -> list[Comparison]:
    """Return every point beside its prediction, in order; none is dropped."""
    return [_comparison(point) for point in points]


@cache
def shipped_comparisons() -> tuple[Comparison, ...]:
    """Return the shipped points beside their predictions, solved once."""
    return tuple(comparisons(shipped_points()))


def _comparison(point: MeasuredPoint) -> Comparison:
    if point.unusable:
        return Comparison(point=point, unusable=point.unusable)
    try:
        predicted = prediction(point)
        if not point.tier_is_stated and predicted.regime != "before":
            lost = predicted.theoretical_hit_rate - predicted.hit_rate
            if lost > TIER_MATTERS:
                reason = "a tier is not stated, and the answer depends on it"
                return Comparison(point=point, unusable=reason)
    except CapmodelError as error:
        return Comparison(point=point, unusable=f"cannot be solved: {error}")
    return Comparison(point=point, predicted=predicted)


def groups_of(row: Comparison) -> dict[str, str]:
    """Return the names of the groups that a solved point belongs to."""
    assert row.predicted is not None
    return {
        "accelerator": row.point.accelerator,
        "family": family(row.point.model),
        "engine": row.point.engine,
        "regime": row.measured_regime or row.predicted.regime,
        "model": row.point.model,
        "concurrency": str(row.point.concurrency),
    }


def measured_apart(rows: Sequence[Comparison]) -> dict[str, Any]:
    """Return the scatter of identical configurations among solved points."""
    return scatter(
        ((*row.point.configuration, rate[0]), row.point.id, rate[1])
        for row in rows
        if (rate := row.rates) is not None
    )


def scored_rates(rows: Sequence[Comparison]) -> list[Scored]:
    """Return the rates of the solved points, with likely reasons."""
    apart = {
        name: entry["ratio"] for entry in measured_apart(rows)["rows"] for name in entry["ids"]
    }
    scored = []
    for row in rows:
        rate = row.rates
        if rate is None or row.predicted is None:
            continue
        quantity, measured, predicted = rate
        scored.append(
            Scored(
                id=row.point.id,
                source=row.point.source,
                quantity=quantity,
                measured=measured,
                predicted=predicted,
                groups=groups_of(row),
                reason=rate_reason(row.point, row.predicted, predicted / measured, apart),
            )
        )
    return scored


def scored_hits(rows: Sequence[Comparison]) -> list[Scored]:
    """Return the hit rates of the solved points: overall where stated, else those of HBM."""
    scored = []
    for row in rows:
        if row.predicted is None:
            continue
        pairs = (
            ("hit_rate", row.point.hit_rate, row.predicted.hit_rate),
            ("hit_rate_hbm", row.point.hit_rate_hbm, row.predicted.hit_rate_hbm),
        )
        stated = next((pair for pair in pairs if pair[1] is not None), None)
        if stated is None or stated[1] is None:
            continue
        scored.append(
            Scored(
                id=row.point.id,
                source=row.point.source,
                quantity=stated[0],
                measured=stated[1],
                predicted=stated[2],
                groups=groups_of(row),
                relative=False,
                reason=hit_reason(row.point, row.predicted),
            )
        )
    return scored


def current_builds(rows: Sequence[Comparison]) -> list[Comparison]:
    """Return the rows that no later build overtakes by half on the same system.

    A row is overtaken where a later one of the same model, node, engine, concurrency and kind of
    tier, with or without a draft, was measured more than 1.5 times as fast.
    """
    systems: dict[tuple[object, ...], list[Comparison]] = {}
    for row in rows:
        if row.rates is not None:
            systems.setdefault(_system(row), []).append(row)
    kept = []
    for members in systems.values():
        for row in members:
            later = [r for r in members if r.point.date > row.point.date]
            if all(_rate(r) <= OVERTAKEN * _rate(row) for r in later):
                kept.append(row)
    return kept


def _system(row: Comparison) -> tuple[object, ...]:
    point = row.point
    assert point.scenario is not None and row.rates is not None
    deployment = point.scenario.deployment
    return (
        point.model, point.node_name, point.engine, deployment.dcp, point.concurrency,
        deployment.offload is None, deployment.speculation is None, row.rates[0],
    )  # fmt: skip


def _rate(row: Comparison) -> float:
    assert row.rates is not None
    return row.rates[1]


def regimes(rows: Sequence[Comparison]) -> dict[str, Any]:
    """Return how often the side of the cliff is called right, and the wrong calls."""
    known = [(row, row.measured_regime) for row in rows if row.measured_regime is not None]
    wrong: list[dict[str, Any]] = [
        {
            "id": row.point.id,
            "measured": measured,
            "predicted": row.predicted.regime,
            "measured_hit_rate": row.point.hit_rate,
            "predicted_hit_rate": row.predicted.hit_rate,
            "reason": hit_reason(row.point, row.predicted),
        }
        for row, measured in known
        if row.predicted is not None and row.predicted.regime != measured
    ]
    count = len(known)
    near = sum(abs(w["predicted_hit_rate"] - w["measured_hit_rate"]) <= HIT_NOISE for w in wrong)
    return {
        "n": count,
        "share_right": 1.0 - len(wrong) / count if count else None,
        "share_right_or_within_noise": 1.0 - (len(wrong) - near) / count if count else None,
        "measured": {name: sum(m == name for _, m in known) for name in ("before", "at", "past")},
        "wrong": wrong,
    }


def run(points: Sequence[MeasuredPoint] | None = None) -> dict[str, Any]:
    """Return the error tables of the agentic set.

    Parameters
    ----------
    points : sequence of MeasuredPoint, optional
        Other points; None for those that come with the package.
    """
    rows = shipped_comparisons() if points is None else comparisons(points)
    rates, hits = scored_rates(rows), scored_hits(rows)
    current = scored_rates(current_builds(rows))
    return {
        "name": "agentic",
        **statistics(rates),
        "hit_rate_mean_abs_error": mean_difference(hits),
        "hit_rate_n": len(hits),
        "regimes": regimes(rows),
        "cliffs": cliff_table((r.point, r.predicted) for r in rows if r.predicted),
        "current_builds": {**statistics(current), "groups": grouped(current, KEYS)},
        "groups": grouped(rates, KEYS),
        "scatter": measured_apart(rows),
        "worst": worst(rates),
        "misses": [s.to_dict() for s in rates if abs(s.error) > RATE_MISS]
        + [s.to_dict() for s in hits if abs(s.error) > HIT_MISS],
        "errors": [s.to_dict() for s in (*rates, *hits)],
        "assumptions": {r.point.id: list(r.point.assumptions) for r in rows if r.predicted},
        "unusable": [{"id": r.point.id, "reason": r.unusable} for r in rows if r.unusable],
    }


def mean_difference(hits: Sequence[Scored]) -> float | None:
    """Mean absolute difference of hit rates, None for no rows [1]."""
    return float(np.mean([abs(s.error) for s in hits])) if hits else None
