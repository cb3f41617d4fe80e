"""Likely reasons: what the figures of a missed point themselves say about its cause."""

from __future__ import annotations

from collections.abc import Mapping

from .agentic_prediction import Prediction
from .measured_point import MeasuredPoint, regime

APART = 1.5
MOSTLY_GAPS = 0.6


def rate_reason(
    point: MeasuredPoint, predicted: Prediction, ratio: float, apart: Mapping[str, float]
) -> str:
    """Return the likely cause of a missed rate.

    Parameters
    ----------
    point : MeasuredPoint
        What was measured.
    predicted : Prediction
        What the model said.
    ratio : float
        Predicted over measured rate [1].
    apart : mapping of str to float
        For rows whose configuration was measured more than once, the ratio of the extremes [1].
    """
    if apart.get(point.id, 1.0) > APART:
        return f"builds: the same configuration was measured {apart[point.id]:.1f}x apart"
    hits = hit_reason(point, predicted)
    if hits:
        return hits
    if predicted.regime == "at":
        return "inside the transition, where a tenth of the working set moves the rate severalfold"
    if ratio < 1 and predicted.gap_share > MOSTLY_GAPS:
        return "mostly gaps: sub-agents run side by side in a session, here one after another"
    if ratio > 1 and point.accelerator.startswith("MI"):
        return "steps of this engine on this accelerator are slower than its kernels"
    if ratio > 1 and point.scenario is not None and point.scenario.deployment.offload is not None:
        return "a tier's loads and mixed steps cost more than the link alone"
    return "step time of this engine and build"


def hit_reason(point: MeasuredPoint, predicted: Prediction) -> str:
    """Return the likely cause of missed hits, empty where the hits are near or unknown."""
    if point.hit_rate is None:
        return ""
    ceiling = point.theoretical_hit_rate or predicted.theoretical_hit_rate
    measured = regime(point.hit_rate, ceiling)
    difference = predicted.hit_rate - point.hit_rate
    if measured == predicted.regime and abs(difference) <= 0.10:
        return ""
    scenario = point.scenario
    tiered = scenario is not None and scenario.deployment.offload is not None
    if tiered and difference > 0:
        return "the tier found less than its size allows: the connector's defect, not its capacity"
    if tiered:
        return "the tier kept more than an inclusive one of its size: HBM and tier add up"
    if scenario is not None and scenario.deployment.available_kv_gib is None:
        return "the pool is not logged, and the point lies near the cliff of the assumed one"
    if difference > 0:
        return "the collapse is deeper than the average over compositions"
    return "the working set of these sessions is smaller than the corpus mean"
