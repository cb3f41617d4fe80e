"""Plans: Kimi K3 on eight B300, demands, SLOs, budgets, and what is said when nothing works."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import capmodel as cm
from capmodel.errors import InfeasibleError, SpecError
from capmodel.optimize.plan import Plan

PRICE = "in=3,cached=0.3,out=15"


def k3(**changes: object) -> cm.Scenario:
    base = cm.Scenario(model="kimi-k3", node="8xB300", workload="agentic-coding", price=PRICE)
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def with_dram() -> Plan:
    return cm.optimize(k3())


def test_k3_without_offload_sits_below_its_cliff() -> None:
    plan = cm.optimize(k3(offload="none"))
    assert 6 <= plan.concurrency <= 12
    assert plan.certificate.relative_gap == 0.0
    assert plan.certificate.assumptions_hold
    assert plan.found.evaluated.hit_share >= 0.9
    assert 0 < plan.run.cost.margin["eligible"] < 1
    assert plan.binding.names in (("hit_share",), ("hbm_kv_tokens",))


def test_k3_takes_the_dram_and_says_what_it_is_worth(with_dram: Plan) -> None:
    worth = with_dram.dram_worth
    assert worth is not None and worth.usd_per_node_hour is not None
    assert with_dram.dram_bytes > 5e11
    assert with_dram.concurrency > 12
    bare = cm.optimize(k3(offload="none"))
    assert with_dram.objective_usd_per_mtok < 0.6 * bare.objective_usd_per_mtok
    # At the indifference rent both plans cost the same per token.
    rent = with_dram.replica_usd_per_hour + worth.usd_per_node_hour
    same = rent / with_dram.run.requests_per_s
    assert same == pytest.approx(bare.replica_usd_per_hour / bare.run.requests_per_s, rel=1e-9)


def test_free_dram_is_the_smallest_that_loses_under_a_percent(with_dram: Plan) -> None:
    certificate = with_dram.certificate
    assert 0 <= certificate.accepted_loss <= 0.01 / 0.99 + 1e-12
    made = with_dram.search.evaluators[0]
    sizes = made.configuration.dram_sizes_bytes
    smaller = sizes[sizes.index(with_dram.dram_bytes) - 1]
    limit = certificate.optimum / 0.99
    values = [
        with_dram.question.objective.value(
            made.scenario, with_dram.replica_usd_per_hour, point.requests_per_s, point.hit_rate
        )
        for sessions in range(with_dram.concurrency - 6, with_dram.concurrency + 7)
        if not (point := made.point(sessions, smaller)).broken
    ]
    assert min(values) >= limit
    assert certificate.smaller_dram


def test_a_price_on_dram_takes_less_of_it() -> None:
    sizes = []
    for price in (0.0, 0.5):
        plan = cm.optimize(k3(offload="dram:700GB", dram_gb_hour_usd=price), level="closed")
        assert plan.certificate.relative_gap == 0.0
        sizes.append(plan.dram_bytes)
    assert sizes[1] < sizes[0]


def test_the_object_of_the_contract(with_dram: Plan) -> None:
    answer = json.loads(json.dumps(with_dram.to_dict(), allow_nan=False))
    best = answer["best"]
    assert best["concurrency"] == with_dram.concurrency
    assert best["estimate"]["concurrency"] == best["concurrency"]
    tier, hbm = best["offload_tokens"], best["estimate"]["usable_kv_tokens"]
    assert best["offload_fraction"] == pytest.approx(tier / (tier + hbm))
    # What the search optimised is what the report reports.
    cost = best["estimate"]["cost"]["usd_per_mtok_total"]
    assert answer["objective_usd_per_mtok"] == pytest.approx(cost, rel=1e-9)
    assert answer["certificate"]["lower_bound_usd_per_mtok"] <= cost
    assert answer["runner_up"]["regret"] >= -0.011
    assert answer["engine_flags"]["gateway_session_cap"] == best["session_cap"]
    assert answer["shadow_prices"]["hbm_bytes"]["usd_per_node_hour"] is not None
    assert any(point["cost_efficient"] for point in answer["frontier"])
    assert "C =" in str(with_dram) and "worth" in str(with_dram)


def test_an_slo_holds_and_costs_something(with_dram: Plan) -> None:
    free = cm.optimize(k3())
    bound = cm.optimize(k3(), slo=["ttft_p90=2"])
    assert bound.best.latency.ttft_s.p90 <= 2.0
    assert bound.certificate.optimum >= free.certificate.optimum
    assert bound.concurrency < free.concurrency


def test_a_demand_is_carried_with_spares_and_no_more_sessions_than_needed() -> None:
    plan = cm.optimize(k3(offload="none"), demand_turns_per_s=1.0, spare_replicas=1, level="closed")
    rate = plan.run.requests_per_s
    working = plan.replicas - 1
    assert working * 0.9 * rate >= 1.0
    assert (working - 1) * 0.9 * rate < 1.0
    fewer = plan.search.evaluators[0].point(plan.concurrency - 1, 0.0)
    assert working * 0.9 * fewer.requests_per_s < 1.0
    sessions = cm.optimize(
        k3(offload="none"), demand_sessions_per_hour=3600 / 65, spare_replicas=1, level="closed"
    )
    assert sessions.replicas == plan.replicas


def test_a_margin_to_the_cliff_keeps_sessions_back() -> None:
    plain = cm.optimize(k3(offload="none"), level="closed")
    careful = cm.optimize(k3(offload="none"), cliff_margin=0.2, level="closed")
    assert careful.concurrency < plain.concurrency
    held = plain.search.evaluators[0].point(-(-careful.concurrency * 10 // 8), 0.0)
    assert not held.broken


def test_the_margin_is_best_where_cost_is_under_a_fixed_revenue() -> None:
    cost = cm.optimize(k3(offload="none"), level="closed")
    margin = cm.optimize(k3(offload="none"), objective="margin", level="closed")
    assert margin.concurrency == cost.concurrency
    assert 1.0 - margin.found.value == pytest.approx(margin.run.cost.margin["eligible"], abs=1e-9)


def test_several_nodes_are_compared() -> None:
    plan = cm.optimize(k3(offload="none"), on=["8xGB300"], level="closed")
    alone = [
        cm.optimize(k3(offload="none", node=node), level="closed").certificate.optimum
        for node in ("8xB300", "8xGB300")
    ]
    assert plan.certificate.optimum == pytest.approx(min(alone), rel=1e-12)


def test_what_is_infeasible_names_what_binds_and_the_cheapest_way_out() -> None:
    with pytest.raises(InfeasibleError) as tight:
        cm.optimize(k3(), slo=["ttft_p50=0.001", "interactivity_p50=5000"], level="closed")
    details = tight.value.details
    assert any("ttft_p50" in text for text in details["binding"])
    factors = [item["factor"] for item in details["relaxations"]]
    assert factors == sorted(factors) and factors[0] > 1
    relaxed = {item["key"]: item["needed"] for item in details["relaxations"]}
    slo = [
        f"{key}={value * (1.01 if key == 'ttft_p50' else 0.99)}" for key, value in relaxed.items()
    ]
    assert cm.optimize(k3(), slo=slo, level="closed").concurrency >= 1


def test_a_budget_that_is_too_small_says_how_much_is_needed() -> None:
    with pytest.raises(InfeasibleError) as poor:
        cm.optimize(
            k3(offload="none"), demand_turns_per_s=1.0, budget_usd_per_hour=60, level="closed"
        )
    relaxations = {item["key"]: item["needed"] for item in poor.value.details["relaxations"]}
    enough = cm.optimize(
        k3(offload="none"),
        demand_turns_per_s=1.0,
        budget_usd_per_hour=relaxations["budget_usd_per_hour"],
        level="closed",
    )
    assert enough.usd_per_hour == pytest.approx(relaxations["budget_usd_per_hour"])
    less = cm.optimize(
        k3(offload="none"),
        demand_turns_per_s=relaxations["demand_turns_per_s"] * 0.999,
        budget_usd_per_hour=60,
        level="closed",
    )
    assert less.usd_per_hour <= 60


def test_a_model_that_does_not_fit() -> None:
    with pytest.raises(InfeasibleError) as small:
        cm.optimize(k3(node="8xB200", offload="none"), level="closed")
    assert small.value.details["binding"] == ["hbm_bytes"]
    assert small.value.exit_code == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"slo": ["ttft_p95=1"]},
        {"objective": "speed"},
        {"search_axes": ["colour"]},
        {"search_axes": ["speculation"]},
        {"demand_turns_per_s": 1.0, "demand_sessions_per_hour": 1.0},
        {"demand_turns_per_s": -1.0},
        {"cliff_margin": 1.0},
        {"headroom": 0.0},
    ],
)
def test_wrong_questions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        cm.optimize(k3(offload="none"), **wrong)  # type: ignore[arg-type]


def test_a_workload_without_reuse_is_planned_by_its_queue() -> None:
    given = cm.Scenario(model="llama-3.1-70b", node="4xH100-80GB", workload="1k1k")
    plan = cm.optimize(given, level="closed")
    assert plan.certificate.relative_gap == 0.0
    assert plan.dram_bytes == 0.0  # nothing is found again, so no DRAM is as good
    answer = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert "hit_ceiling" not in answer["elasticities"]
    assert answer["dram_worth"] is None
