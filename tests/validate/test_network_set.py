"""The default level against the shipped simulated grid: the accuracy that README states."""

from __future__ import annotations

import numpy as np

from capmodel.network.operating_point import solve
from capmodel.validate.network_grid import simulated_points, systems


def test_default_level_on_the_grid() -> None:
    known = {system.name: system for system in systems()}
    rates, hits = [], []
    for row in simulated_points():
        system = known[row["system"]]
        point = solve(
            system.case.step_law, system.workload, system.cache, int(row["concurrency"])
        ).headline
        rates.append(abs(point.requests_per_s / float(row["requests_per_s"]) - 1.0))
        hits.append(abs(point.hit_rate - float(row["hit_rate"])))
    assert len(rates) >= 8 * 12
    assert np.mean(rates) <= 0.03
    assert np.mean(hits) <= 0.01


def test_the_grid_is_the_one_the_points_were_made_on() -> None:
    rows = {(row["system"], int(row["concurrency"])) for row in simulated_points()}
    planned = {(s.name, c) for s in systems() for c in s.concurrency}
    assert rows <= planned
    assert len(rows) >= 0.9 * len(planned)
