"""Conservation laws and limits of the network stage, on published systems and simple engines."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from published_systems import CASES

from capmodel.errors import InfeasibleError, SpecError
from capmodel.network import amva, closed_form, markov_chain
from capmodel.network.latency import latency
from capmodel.network.operating_point import LEVELS, Cache, solve
from capmodel.network.service_demand import service_demand
from capmodel.service.step_law import StepLaw, term
from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.workload import Workload

SOLVERS = {"closed": closed_form.solve, "fast": amva.solve, "exact": markov_chain.solve}
CASE = CASES["llama-3.1-70b-8xH100"]


def one_server(prefill_s: float) -> StepLaw:
    """An engine whose step takes `prefill_s` per 1,000 prefill tokens and nothing else."""
    return StepLaw(
        terms=(term("prefill", memory={"tokens": prefill_s / 1000}),), max_batched_tokens=10**6
    )


def plain_workload(think_s: float, prompt: float = 1000.0) -> Workload:
    return Workload(
        name="plain",
        request_tokens_mean=prompt,
        request_tokens_cv=0.0,
        tree_tokens_mean=prompt,
        tree_tokens_cv=0.0,
        output_tokens_mean=1.0,
        output_tokens_cv=0.0,
        turns_mean=1.0,
        theoretical_hit_rate=0.0,
        think_time=LognormalMixture.from_mean_cv(think_s, 1.0),
    )


@pytest.mark.parametrize("level", list(LEVELS))
@pytest.mark.parametrize("concurrency", [1, 8, 30, 48])
def test_cycle_is_the_sum_of_its_parts_and_little_holds(level: str, concurrency: int) -> None:
    point = solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens), concurrency,
                  level=level)  # fmt: skip
    flow = point.branch.flow
    parts = flow.wait_s + flow.prefill_s + flow.load_s + flow.decode_s + point.demand.think_mean_s
    assert flow.cycle_s == pytest.approx(parts, rel=0.03)
    # Little's law over a cycle: rate times residence is the population.
    rate = concurrency / flow.cycle_s
    assert rate * flow.decode_s == pytest.approx(flow.decoding, rel=0.03, abs=1e-6)
    assert (flow.prefill_utilization <= 1.0 + 1e-9).all()
    assert point.composition.weights.sum() == pytest.approx(1.0)
    assert point.residual < 5e-3


@pytest.mark.parametrize("level", list(LEVELS))
def test_one_session_sees_no_queue(level: str) -> None:
    point = solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens), 1, level=level)
    flow = point.branch.flow
    assert (flow.wait_s <= 0.01 * flow.cycle_s).all()  # interpolation between context scales
    assert point.headline.hit_rate == pytest.approx(CASE.workload.theoretical_hit_rate, abs=1e-3)


@pytest.mark.parametrize("concurrency", [1, 2, 5, 20])
def test_chain_of_one_exponential_server_is_engset(concurrency: int) -> None:
    """X s = 1 - ErlangB(C, Z/s): exact mean value analysis of think and one server (D2)."""
    think, service = 3.0, 1.0
    demand = service_demand(one_server(service), plain_workload(think), concurrency)
    # One exponential phase: a squared coefficient of variation of one.
    hit = dataclasses.replace(demand.hit, seconds_squared=2.0 * demand.hit.seconds**2)
    demand = dataclasses.replace(demand, hit=hit)
    flow = markov_chain.solve(demand, np.zeros(1), np.zeros(1), concurrency)
    load, blocking = think / service, 1.0
    for n in range(1, concurrency + 1):
        blocking = load * blocking / (n + load * blocking)
    assert concurrency / flow.cycle_s[0] * service == pytest.approx(1.0 - blocking, rel=1e-6)


@pytest.mark.parametrize("name", list(SOLVERS))
def test_rate_respects_the_asymptotic_bounds(name: str) -> None:
    """X <= min(C/(Z + s), 1/s), with equality far from their crossing (D1)."""
    for think, service in ((100.0, 0.1), (0.1, 2.0), (5.0, 1.0)):
        for concurrency in (1, 4, 32):
            demand = service_demand(one_server(service), plain_workload(think), concurrency)
            flow = SOLVERS[name](demand, np.zeros(1), np.zeros(1), concurrency)
            rate = concurrency / flow.cycle_s[0]
            bound = min(concurrency / (think + service), 1.0 / service)
            assert rate <= bound * (1 + 1e-6)
            if think > 50 * service * concurrency or service * concurrency > 50 * think:
                assert rate == pytest.approx(bound, rel=0.02)


@pytest.mark.parametrize("level", list(LEVELS))
def test_rate_and_hits_never_fall_with_memory(level: str) -> None:
    rates, hits = [], []
    for factor in (0.6, 0.8, 1.0, 1.3, 3.0):
        point = solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens * factor), 30,
                      level=level)  # fmt: skip
        rates.append(point.headline.requests_per_s)
        hits.append(point.headline.hit_rate)
    assert all(b >= a * (1 - 2e-3) for a, b in itertools.pairwise(rates))
    assert all(b >= a - 1e-3 for a, b in itertools.pairwise(hits))
    assert hits[-1] == pytest.approx(CASE.workload.theoretical_hit_rate, abs=1e-6)


def test_hits_never_rise_with_sessions() -> None:
    hits = [
        solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens), c).headline.hit_rate
        for c in range(1, 61, 3)
    ]
    assert all(b <= a + 2e-3 for a, b in itertools.pairwise(hits))


def test_thinking_sessions_dominate_when_think_time_grows() -> None:
    """Z -> infinity: X -> C/Z, since every session is nearly always thinking."""
    for think in (1e4, 1e6):
        load = dataclasses.replace(
            CASE.workload, think_time=LognormalMixture.from_mean_cv(think, 1.0)
        )
        point = solve(CASE.law, load, Cache(hbm_tokens=1e12), 20)
        assert point.headline.requests_per_s == pytest.approx(20 / think, rel=30 / think * 20)


def test_without_prefix_caching_only_the_shared_prefix_would_hit() -> None:
    point = solve(
        CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens), 8, prefix_caching=False
    )
    floor = CASE.workload.shared_prefix_tokens / CASE.workload.request_tokens_mean
    assert point.headline.hit_rate == pytest.approx(floor, rel=1e-6)


def test_an_inclusive_tier_is_the_larger_tier_not_the_sum() -> None:
    alone = solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens * 2), 40)
    tiered = solve(
        CASE.law,
        CASE.workload,
        Cache(hbm_tokens=CASE.kv_tokens, tier_tokens=CASE.kv_tokens * 2, link_s_per_token=1e-12),
        40,
    )
    assert tiered.headline.hit_rate == pytest.approx(alone.headline.hit_rate, abs=0.02)
    smaller = solve(
        CASE.law,
        CASE.workload,
        Cache(hbm_tokens=CASE.kv_tokens, tier_tokens=CASE.kv_tokens * 0.5, link_s_per_token=1e-9),
        40,
    )
    assert smaller.headline.hit_rate_offload == 0.0


def test_token_balance() -> None:
    point = solve(
        CASE.law,
        CASE.workload,
        Cache(hbm_tokens=CASE.kv_tokens, tier_tokens=CASE.kv_tokens * 1.2, link_s_per_token=1e-8),
        40,
    )
    state = point.headline
    assert 0 <= state.hit_rate_hbm <= state.hit_rate <= CASE.workload.theoretical_hit_rate + 1e-9
    assert state.hit_rate_offload > 0.01


def test_latency_means_are_those_of_the_network() -> None:
    for concurrency in (8, 28, 40):
        point = solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens), concurrency)
        spread = latency(point, CASE.law, CASE.workload)
        flow, weights = point.branch.flow, point.composition.weights
        ttft = float(weights @ (flow.wait_s + flow.prefill_s))
        assert spread.ttft_s.mean == pytest.approx(ttft, rel=0.12)
        assert spread.ttft_s.p50 <= spread.ttft_s.p90 <= spread.ttft_s.p99
        tpot = float(weights @ flow.decode_s) / (CASE.workload.output_tokens_mean - 1)
        assert spread.tpot_s.mean == pytest.approx(tpot, rel=0.05)


def test_unknown_level_and_small_memory_are_refused() -> None:
    with pytest.raises(SpecError, match="level"):
        solve(CASE.law, CASE.workload, Cache(hbm_tokens=1e9), 2, level="quick")
    with pytest.raises(InfeasibleError, match="less than one mean request"):
        solve(CASE.law, CASE.workload, Cache(hbm_tokens=1e4), 2)
    with pytest.raises(SpecError, match="goes up to"):
        solve(CASE.law, CASE.workload, Cache(hbm_tokens=1e9), 500, level="exact")


def test_composition_average_is_harmonic() -> None:
    """Averaging rates over compositions instead of cycle times would overstate the rate."""
    point = solve(CASE.law, CASE.workload, Cache(hbm_tokens=CASE.kv_tokens), 34)
    cycles, weights = point.branch.flow.cycle_s, point.composition.weights
    arithmetic = float(weights @ (34 / cycles))
    assert point.headline.requests_per_s == pytest.approx(34 / float(weights @ cycles))
    assert arithmetic > 1.1 * point.headline.requests_per_s
    assert math.isfinite(arithmetic)
