"""The network levels against the discrete-event simulator, on the shipped grid, per regime.

The simulated points ship with the package, so that the set costs seconds; the simulator shares the
step law with the analysis and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..network.latency import latency
from ..network.operating_point import LEVELS, solve
from .error_table import Scored, grouped, statistics
from .network_grid import System, simulated_points, systems

# A throughput error beyond this is listed as a miss, by level.
LARGEST = {"closed": 0.20, "fast": 0.10, "exact": 0.07}


def run(levels: Sequence[str] = tuple(LEVELS)) -> dict[str, Any]:
    """Return throughput, hit-rate and TTFT errors of the network levels on the grid.

    Parameters
    ----------
    levels : sequence of str
        Queue models to compare.

    Returns
    -------
    dict
        As the other sets; groups by level, by regime and by system, headline of `fast`.
    """
    known = {system.name: system for system in systems()}
    rows = simulated_points()
    scored = {level: [_scored(known[r["system"]], r, level) for r in rows] for level in levels}
    points = [point for level in levels for point in scored[level]]
    headline = scored["fast" if "fast" in levels else levels[0]]
    return {
        "name": "network",
        **statistics(headline),
        "groups": grouped(points, ("level", "level and regime", "level and system")),
        "misses": [
            point.to_dict()
            for level in levels
            for point in scored[level]
            if abs(point.error) > LARGEST[level]
        ],
        "notes": [
            *(_level_note(known, rows, level) for level in levels),
            _noise_note(rows),
        ],
    }


def _noise_note(rows: Sequence[dict[str, str]]) -> str:
    """How sure the simulated rates are themselves."""
    widths = [float(r["requests_half_width"]) / float(r["requests_per_s"]) for r in rows]
    return (
        f"a simulated rate has a half-width of its own: {float(np.median(widths)):.1%} in the "
        f"median, {max(widths):.0%} at most, in the cliff of Kimi K3"
    )


def _scored(system: System, row: dict[str, str], level: str) -> Scored:
    concurrency = int(row["concurrency"])
    point = solve(system.case.step_law, system.workload, system.cache, concurrency, level=level)
    ceiling = system.workload.theoretical_hit_rate
    share = float(row["hit_rate"]) / ceiling
    regime = "before" if share >= 0.9 else "past" if share < 0.1 else "at"
    return Scored(
        id=f"{system.name} C={concurrency}",
        source="capmodel simulate",
        quantity="requests/s",
        measured=float(row["requests_per_s"]),
        predicted=point.headline.requests_per_s,
        groups={
            "level": level,
            "level and regime": f"{level}, {regime} the cliff",
            "level and system": f"{level}, {system.name}",
        },
        reason="inside the cliff" if regime == "at" else "",
    )


def _level_note(known: dict[str, System], rows: list[dict[str, str]], level: str) -> str:
    hits, p50, p90 = [], [], []
    for row in rows:
        system, concurrency = known[row["system"]], int(row["concurrency"])
        law = system.case.step_law
        point = solve(law, system.workload, system.cache, concurrency, level=level)
        spread = latency(point, law, system.workload).ttft_s
        hits.append(abs(point.headline.hit_rate - float(row["hit_rate"])))
        p50.append(abs(spread.p50 / float(row["ttft_p50_s"]) - 1.0))
        p90.append(abs(spread.p90 / float(row["ttft_p90_s"]) - 1.0))
    return (
        f"{level}: hit rate off by {np.mean(hits):.4f} on average and {np.max(hits):.3f} at most; "
        f"TTFT p50 off by {np.median(p50):.0%} and p90 by {np.median(p90):.0%} (medians)"
    )
