"""The offload-gain set: the same configuration with and without a tier, ratio against ratio."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .agentic_set import Comparison, comparisons, groups_of, shipped_comparisons
from .error_table import Scored, statistics, worst
from .measured_point import MeasuredPoint

# A public gain above this has not been measured; a larger prediction is printed as a miss.
LARGEST_CREDIBLE_GAIN = 6.5
GAIN_MISS = 0.30


def _key(row: Comparison) -> tuple[object, ...]:
    point = row.point
    assert point.scenario is not None
    bare = replace(point.scenario.deployment, offload=None, available_kv_gib=None)
    return (point.source, point.model, point.node_name, bare, point.concurrency)


def gains(rows: Sequence[Comparison]) -> list[Scored]:
    """Return the throughput ratio of each pair of one source, with over without the tier."""
    found: dict[tuple[object, ...], list[Comparison]] = defaultdict(list)
    for row in rows:
        if row.predicted is not None and row.rates is not None:
            found[_key(row)].append(row)
    scored = []
    for members in found.values():
        bare = [r for r in members if r.point.scenario and not r.point.scenario.deployment.offload]
        tiered = [r for r in members if r not in bare]
        for without in bare:
            for held in tiered:
                scored.append(_gain(without, held))
    return scored


def _gain(without: Comparison, held: Comparison) -> Scored:
    low, high = without.rates, held.rates
    assert low is not None and high is not None
    measured, predicted = high[1] / low[1], high[2] / low[2]
    reason = "a tier's loads and mixed steps cost more than the link alone"
    if predicted > LARGEST_CREDIBLE_GAIN:
        reason = f"exceeds {LARGEST_CREDIBLE_GAIN}, the largest gain measured in public: {reason}"
    elif measured < 1.0:
        reason = "the tier made the measured engine slower: the connector, not its capacity"
    elif predicted < measured:
        reason = "the measured engine loses more without the tier, or keeps more in it"
    return Scored(
        id=f"{without.point.id}+{held.point.id}",
        source=held.point.source,
        quantity="offload_gain",
        measured=measured,
        predicted=predicted,
        groups=groups_of(held),
        reason=reason,
    )


def run(points: Sequence[MeasuredPoint] | None = None) -> dict[str, Any]:
    """Return the error table of offload gains.

    Parameters
    ----------
    points : sequence of MeasuredPoint, optional
        Other points; None for those that come with the package.
    """
    rows = shipped_comparisons() if points is None else comparisons(points)
    scored = gains(rows)
    missed = [s for s in scored if abs(s.error) > GAIN_MISS or s.predicted > LARGEST_CREDIBLE_GAIN]
    paired = {name for s in scored for name in s.id.split("+")}
    return {
        "name": "offload_gain",
        **statistics(scored),
        "rows": [s.to_dict() for s in scored],
        "largest_predicted": max((s.predicted for s in scored), default=None),
        "worst": worst(scored),
        "misses": [s.to_dict() for s in missed],
        "errors": [s.to_dict() for s in scored],
        "unusable": [
            {"id": r.point.id, "reason": r.unusable or "no partner in the same source"}
            for r in rows
            if r.point.id not in paired
        ],
    }
