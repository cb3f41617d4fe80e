"""Elasticities, shadow prices, robustness and frontiers of a plan."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import capmodel as cm
from capmodel.optimize.plan import Plan
from capmodel.pipeline import run
from capmodel.units import GIB


@pytest.fixture(scope="module")
def plan() -> Plan:
    given = cm.Scenario(model="kimi-k3", node="8xB300", offload="none", price="in=3,out=15")
    return cm.optimize(given, level="closed")


def test_signs(plan: Plan) -> None:
    found = plan.sensitivity.elasticities
    for resource in ("hbm_bytes", "hbm_bytes_per_s", "flop_per_s"):
        assert found[resource]["throughput"] > 0
        assert found[resource]["cost"] == pytest.approx(-found[resource]["throughput"])
    assert found["context_tokens"]["throughput"] < 0
    assert found["hit_ceiling"]["throughput"] > 0
    # No tier, so neither its size nor its link is an input.
    assert "dram_bytes" not in found and "tier_bytes_per_s" not in found


def test_cost_is_proportional_to_the_rent(plan: Plan) -> None:
    price = plan.sensitivity.elasticities["gpu_hour_usd"]
    assert price["cost"] == pytest.approx(1.0, abs=1e-9)
    assert price["throughput"] == pytest.approx(0.0, abs=1e-9)


def test_a_shadow_price_is_the_rent_that_leaves_the_cost_as_it_was(plan: Plan) -> None:
    item = plan.sensitivity.shadow_prices["hbm_bytes"]
    base = plan.configuration.scenario
    part = base.node.accelerator
    more = replace(part, hbm_bytes=part.hbm_bytes + 0.5 * GIB)
    other = replace(base, node=replace(base.node, accelerator=more))
    rate = run(other, concurrency=plan.concurrency, level="closed").requests_per_s
    rent = plan.replica_usd_per_hour
    paid = rent * (rate / plan.run.requests_per_s - 1.0) / 0.5
    assert item["usd_per_node_hour"] == pytest.approx(paid, rel=0.25)
    assert item["revenue_usd_per_node_hour"] > item["usd_per_node_hour"]
    assert plan.sensitivity.bottleneck == "hbm_bytes"


def test_free_resources_of_a_plan_with_dram_have_a_price() -> None:
    dram = cm.optimize(
        cm.Scenario(model="kimi-k3", node="8xB300", offload="dram:1600GB"), level="closed"
    )
    found = dram.sensitivity
    assert found.elasticities["dram_bytes"]["throughput"] >= -1e-6
    assert found.shadow_prices["dram_bytes"]["unit"] == "GiB of DRAM per node"
    assert found.elasticities["tier_bytes_per_s"]["throughput"] > -1e-4  # to the solver's error


def test_robustness_counts_what_breaks(plan: Plan) -> None:
    found = plan.robustness
    assert 0.0 <= found.holds <= 1.0
    assert found.holds < 1.0  # the plan sits at the edge of its cliff
    assert found.breaks["hits"] == pytest.approx(1.0 - found.holds)
    assert found.value is not None and found.value[0] <= plan.found.value <= found.value[2]
    exact = replace(
        plan.configuration.scenario,
        workload=replace(plan.configuration.scenario.workload, intervals={}),
    )
    assert cm.optimize(exact, level="closed").robustness.holds == 1.0


def test_the_frontier_trades_cost_for_interactivity(plan: Plan) -> None:
    efficient = [p for p in plan.frontier if p.cost_efficient]
    assert plan.concurrency in {p.concurrency for p in efficient}
    speeds = [p.interactivity_tokens_per_s_p50 for p in efficient]
    costs = [p.usd_per_mtok for p in efficient]
    assert speeds == sorted(speeds, reverse=True)
    assert costs == sorted(costs, reverse=True)
    for point in plan.frontier:
        assert math.isfinite(point.ttft_s_p90) and point.tokens_per_s_per_gpu > 0


def test_the_runner_up_is_no_better(plan: Plan) -> None:
    assert plan.runner_up is not None
    _, point, value = plan.runner_up
    assert value >= plan.found.value
    assert point.concurrency != plan.concurrency
