"""How long plans take, in processor time so that neighbours do not count; doubled for slow ones."""

from __future__ import annotations

import time

import numpy as np

import capmodel as cm
from capmodel.optimize.fleet import Demand, ReplicaOffer, fleet

SLOW = 2.0


def test_sessions_dram_and_replicas_with_proof_within_a_second() -> None:
    given = cm.Scenario(model="kimi-k3", node="8xB300")
    cm.optimize(given, level="closed")  # loads the catalog
    start = time.process_time()
    plan = cm.optimize(given, demand_turns_per_s=4.0, level="fast")
    elapsed = time.process_time() - start
    assert plan.certificate.relative_gap == 0.0
    assert plan.certificate.assumptions_hold
    assert elapsed < 1.0 * SLOW


def test_layouts_depths_and_four_accelerators_within_ten_seconds() -> None:
    given = cm.Scenario(model="kimi-k3", node="8xB300", speculate="dspark:2:real")
    start = time.process_time()
    plan = cm.optimize(
        given, on=["8xGB300", "8xMI355X", "8xB200"], search_axes=["layout", "speculation"]
    )
    elapsed = time.process_time() - start
    assert plan.certificate.relative_gap == 0.0
    assert len(plan.search.configurations) > 100
    assert elapsed < 10.0 * SLOW


def test_a_fleet_of_three_classes_six_kinds_and_a_day_within_five_seconds() -> None:
    rng = np.random.default_rng(3)
    offers = [
        ReplicaOffer(
            name=f"node{i}",
            usd_per_hour=float(rng.uniform(10, 40)),
            available=60,
            requests_per_s={k: float(rng.uniform(0.1, 1)) for k in "abc"},
        )
        for i in range(6)
    ]
    curve = 1 + 0.6 * np.sin(np.arange(24) / 12 * np.pi)
    demands = [
        Demand(name=k, requests_per_s=tuple((mean * curve).tolist()))
        for k, mean in zip("abc", (3.0, 6.0, 9.0), strict=True)
    ]
    start = time.process_time()
    plan = fleet(offers, demands, spare_replicas=1)
    assert time.process_time() - start < 5.0 * SLOW
    assert plan.relative_gap < 1e-6
