"""Fleets: brute force on small ones, duality, availability, spares and hours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import capmodel as cm
from capmodel.errors import InfeasibleError, SpecError
from capmodel.optimize.fleet import Demand, ReplicaOffer, fleet, replica_offers


def _offer(name: str, usd: float, available: int, **rates: float) -> ReplicaOffer:
    return ReplicaOffer(
        name=name, usd_per_hour=usd, available=available, requests_per_s=dict(rates)
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_fleet_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    offers = [
        _offer(
            f"node{i}", float(rng.uniform(5, 30)), 4,
            short=float(rng.uniform(0.2, 1)), long=float(rng.uniform(0.2, 1)),
        )
        for i in range(2)
    ]  # fmt: skip
    demands = [
        Demand(name="short", requests_per_s=(float(rng.uniform(0.2, 1)),)),
        Demand(name="long", requests_per_s=(float(rng.uniform(0.2, 1)),)),
    ]
    best = np.inf
    for counts in itertools.product(range(5), repeat=4):
        n = np.asarray(counts).reshape(2, 2)
        if (n.sum(axis=1) > 4).any():
            continue
        carried = [
            0.9 * sum(n[o, k] * offers[o].requests_per_s[d.name] for o in range(2))
            for k, d in enumerate(demands)
        ]
        if all(c >= d.requests_per_s[0] for c, d in zip(carried, demands, strict=True)):
            best = min(best, sum(n[o].sum() * offers[o].usd_per_hour for o in range(2)))
    if not np.isfinite(best):
        with pytest.raises(InfeasibleError):
            fleet(offers, demands)
        return
    plan = fleet(offers, demands)
    assert plan.usd_per_day == pytest.approx(best, rel=1e-9)
    assert plan.relative_gap == pytest.approx(0.0, abs=1e-9)
    assert plan.integrality_gap >= -1e-9


def _day() -> tuple[list[ReplicaOffer], list[Demand]]:
    rng = np.random.default_rng(3)
    offers = [
        _offer(
            f"node{i}", float(rng.uniform(10, 40)), int(rng.integers(10, 60)),
            **{k: float(rng.uniform(0.1, 1)) for k in "abc"},
        )
        for i in range(6)
    ]  # fmt: skip
    curve = 1 + 0.6 * np.sin(np.arange(24) / 12 * np.pi)
    demands = [
        Demand(name=k, requests_per_s=tuple((mean * curve).tolist()))
        for k, mean in zip("abc", (3.0, 6.0, 9.0), strict=True)
    ]
    return offers, demands


def test_hours_spares_and_billing() -> None:
    offers, demands = _day()
    hourly, daily = fleet(offers, demands), fleet(offers, demands, billing="daily")
    assert hourly.usd_per_day < daily.usd_per_day
    assert hourly.relative_gap < 1e-6 and daily.relative_gap < 1e-6
    by_hour = hourly.running.sum(axis=(0, 1))
    assert by_hour.argmax() in range(4, 9) and by_hour.argmin() in range(16, 21)
    spare = fleet(offers, demands, spare_replicas=1)
    assert spare.usd_per_day > hourly.usd_per_day
    # With any one replica of a class gone, the class is still carried.
    rates = np.asarray([[o.requests_per_s[d.name] for d in demands] for o in offers])
    for k, demand in enumerate(demands):
        carried = rates[:, k] @ spare.running[:, k]
        used = np.where(spare.running[:, k] > 0, rates[:, [k]], 0.0).max(axis=0)
        assert (0.9 * (carried - used) >= np.asarray(demand.requests_per_s) - 1e-9).all()


def test_availability_that_is_too_small_says_how_many_more() -> None:
    offers = [_offer("node", 10.0, 2, a=1.0)]
    with pytest.raises(InfeasibleError, match="2 more of node"):
        fleet(offers, [Demand(name="a", requests_per_s=(3.0,))])
    with pytest.raises(InfeasibleError, match="no offer serves"):
        fleet(offers, [Demand(name="b", requests_per_s=(1.0,))])
    with pytest.raises(SpecError):
        fleet([], [])


def test_offers_come_from_plans() -> None:
    given = cm.Scenario(model="kimi-k3", node="8xB300", offload="none")
    offers = replica_offers({"coding": given}, {"8xB300": 9, "8xB200": 9}, level="closed")
    assert [o.name for o in offers] == ["8xB300"]  # the model does not fit 8xB200
    plan = cm.optimize(given, level="closed")
    assert offers[0].requests_per_s["coding"] == plan.run.requests_per_s
    assert offers[0].usd_per_hour == plan.replica_usd_per_hour


def test_the_relaxation_is_strongly_dual() -> None:
    """The relaxed cost equals the value of its duals, solved elsewhere, with the right signs."""
    from scipy.optimize import linprog

    offers, demands = _day()
    plan = fleet(offers, demands)
    rates = np.asarray([[o.requests_per_s[d.name] for d in demands] for o in offers])
    prices = np.asarray([o.usd_per_hour for o in offers])
    available = np.asarray([o.available for o in offers], dtype=float)
    total = 0.0
    for hour in range(24):
        load = np.asarray([d.requests_per_s[hour] for d in demands]) / 0.9
        # Variables n[o, k], flattened; rows: carry every class, then availability.
        carry = np.zeros((3, 18))
        for k in range(3):
            carry[k, k::3] = -rates[:, k]
        hold = np.kron(np.eye(6), np.ones(3))
        solved = linprog(
            np.repeat(prices, 3), A_ub=np.vstack([carry, hold]), b_ub=np.r_[-load, available]
        )
        duals = -solved.ineqlin.marginals
        assert (duals >= -1e-9).all()
        assert duals[:3] @ load - duals[3:] @ available == pytest.approx(solved.fun, rel=1e-9)
        total += solved.fun
    assert plan.relaxed_usd_per_day == pytest.approx(total, rel=1e-6)
    assert plan.usd_per_day >= total
