"""Closed forms against exact replays and traces: hit rates, by regime, with the worst points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import catalog
from ..reuse.characteristic_time import (
    finite_population_hit_rate,
    fluid_hit_rate,
    mean_field_hit_rate,
)
from ..reuse.feedback import feedback_point
from ..reuse.lane_law import LaneLaw
from ..reuse.moments import lane_law_of_moments, moments_of_workload
from ..reuse.open_loop import open_loop_hit_rate
from ..reuse.service_model import parse_service
from .reuse_cases import ReuseCase, recorded_law, replay_cases, trace_cases

FloatArray = npt.NDArray[np.float64]

REGIMES = ("before", "transition", "past")
# A replay whose own seeds differ by more than this says little about a model.
LARGEST_SCATTER = 0.03
LARGEST_MISS = 0.06
WORKLOAD = "agentic-coding-2026-04"
# Mean recorded service of the same sessions, which a workload does not carry [s].
RECORDED_SERVICE_S = 9.58


def moments_law(think_time_cap_s: float) -> LaneLaw:
    """Return the law of the catalog workload alone, under a cap on gaps [s]."""
    workload = catalog.workload(WORKLOAD).with_overrides(think_time_cap_s=think_time_cap_s)
    return lane_law_of_moments(moments_of_workload(workload, RECORDED_SERVICE_S))


def predicted_hit_rates(law: LaneLaw, cases: Sequence[ReuseCase], method: str) -> FloatArray:
    """Return the predicted hit rate of cases of one service and cap [1]."""
    service = parse_service(cases[0].service)
    lanes = np.array([case.concurrency for case in cases])
    room = np.array([case.capacity_tokens for case in cases])
    if service.has_feedback:
        pairs = zip(lanes, room, strict=True)
        points = [feedback_point(law, int(c), float(b), service) for c, b in pairs]
        return np.array([point.hit_rate for point in points])
    if method == "fluid":
        return fluid_hit_rate(law, lanes, room)
    form = mean_field_hit_rate if method == "mean-field" else finite_population_hit_rate
    return form(law, lanes, room, service.kind)


def _groups() -> dict[tuple[str, float], list[ReuseCase]]:
    groups: dict[tuple[str, float], list[ReuseCase]] = {}
    for case in replay_cases():
        groups.setdefault((case.service, case.think_time_cap_s), []).append(case)
    return groups


def _setting(name: str, cases: Sequence[ReuseCase], predicted: FloatArray) -> dict[str, Any]:
    """Return the errors of one setting; points that scatter are listed apart."""
    steady = np.array([case.scatter <= LARGEST_SCATTER for case in cases])
    error = predicted - np.array([case.hit_rate for case in cases])
    regime = np.array([case.regime for case in cases])
    size = np.abs(np.where(steady, error, 0.0))
    worst = int(size.argmax())
    regimes = {}
    for part in REGIMES:
        inside = steady & (regime == part)
        if np.any(inside):
            regimes[part] = {
                "n": int(inside.sum()),
                "mean_abs_error": float(np.abs(error[inside]).mean()),
                "max_abs_error": float(np.abs(error[inside]).max()),
                "bias": float(error[inside].mean()),
            }
    return {
        "name": name,
        "n": int(steady.sum()),
        "mean_abs_error": float(np.abs(error[steady]).mean()),
        "bias": float(error[steady].mean()),
        "regimes": regimes,
        "worst": {
            "case": cases[worst].label,
            "measured": cases[worst].hit_rate,
            "predicted": float(predicted[worst]),
        },
        "scattering": [
            {
                "case": case.label,
                "measured": case.hit_rate,
                "scatter": case.scatter,
                "predicted": float(value),
            }
            for case, value, kept in zip(cases, predicted, steady, strict=True)
            if not kept
        ],
    }


def _summary(name: str, settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the errors over several settings, in points of hit rate."""
    regimes = {}
    for part in REGIMES:
        rows = [s["regimes"][part] for s in settings if part in s["regimes"]]
        if rows:
            regimes[part] = {
                "n": sum(row["n"] for row in rows),
                "mean_abs_error": float(np.mean([row["mean_abs_error"] for row in rows])),
                "worst_setting": max(row["mean_abs_error"] for row in rows),
                "max_abs_error": max(row["max_abs_error"] for row in rows),
            }
    worst = max((s["worst"] for s in settings), key=lambda w: abs(w["measured"] - w["predicted"]))
    return {
        "name": name,
        "n": sum(s["n"] for s in settings),
        "mean_abs_error": float(np.mean([s["mean_abs_error"] for s in settings])),
        "worst_setting": max(s["mean_abs_error"] for s in settings),
        "regimes": regimes,
        "worst": worst,
        "settings": list(settings),
    }


@cache
def _predictions(method: str, feedback: bool) -> dict[tuple[str, float], FloatArray]:
    return {
        (service, cap): predicted_hit_rates(
            moments_law(cap) if method == "moments" else recorded_law(cap), cases, method
        )
        for (service, cap), cases in _groups().items()
        if parse_service(service).has_feedback == feedback
    }


def replay_set(method: str, *, feedback: bool) -> dict[str, Any]:
    """Return one closed form against the replays, with or without queue feedback."""
    groups = _groups()
    settings = []
    for (service, cap), predicted in _predictions(method, feedback).items():
        cases = groups[service, cap]
        settings.append(_setting(f"{service}, gaps <= {cap:g} s", cases, predicted))
    return _summary(f"{method}{' with feedback' if feedback else ''}", settings)


def trace_set() -> dict[str, Any]:
    """Return the open-loop form against the exact LRU curves of public traces."""
    settings = []
    for trace in trace_cases():
        cases = [
            ReuseCase(
                service="none", think_time_cap_s=float("inf"), concurrency=1,
                capacity_tokens=room, hit_rate=rate, scatter=0.0,
                theoretical_hit_rate=max(trace.hit_rate),
            )
            for room, rate in zip(trace.capacity_tokens, trace.hit_rate, strict=True)
        ]  # fmt: skip
        predicted = open_loop_hit_rate(trace.reuse, trace.capacity_tokens)
        settings.append(_setting(trace.name, cases, predicted))
    return _summary("open loop", settings)


def run(methods: Sequence[str] = ("finite-population", "moments")) -> dict[str, Any]:
    """Return the errors of the reuse stage on its shipped cases.

    Returns
    -------
    dict
        ``name, n, mean_abs_error, median_abs_pct_error, p90_abs_pct_error, misses, sets,
        worst, unusable``; errors are absolute, in points of hit rate, and the percentages are
        points times 100. A miss is a steady point that is off by more than `LARGEST_MISS`.
    """
    sets = [replay_set(method, feedback=False) for method in methods]
    sets += [replay_set(method, feedback=True) for method in methods]
    sets += [replay_set("mean-field", feedback=False), replay_set("fluid", feedback=False)]
    sets.append(trace_set())
    main = [s for s in sets if s["name"].startswith("finite-population")]
    steady = [
        (case, float(value))
        for feedback in (False, True)
        for key, values in _predictions("finite-population", feedback).items()
        for case, value in zip(_groups()[key], values, strict=True)
        if case.scatter <= LARGEST_SCATTER
    ]
    sizes = np.array([abs(value - case.hit_rate) for case, value in steady])
    return {
        "name": "reuse",
        "n": sum(s["n"] for s in main),
        "mean_abs_error": float(sizes.mean()),
        "median_abs_pct_error": float(100.0 * np.median(sizes)),
        "p90_abs_pct_error": float(100.0 * np.quantile(sizes, 0.9)),
        "misses": [
            {"case": case.label, "measured": case.hit_rate, "predicted": value}
            for case, value in steady
            if abs(value - case.hit_rate) > LARGEST_MISS
        ],
        "sets": sets,
        "worst": [s["worst"] for s in sets],
        "unusable": [
            {"case": row["case"], "reason": f"own seeds scatter by {row['scatter']:.3f}"}
            for s in main
            for setting in s["settings"]
            for row in setting["scattering"]
        ],
    }
