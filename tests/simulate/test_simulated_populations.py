"""Sub-agents, open streams, classes of sessions and the order of the queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from capmodel.errors import SpecError
from capmodel.simulate import SessionLaws, SubAgents, published_case, simulate
from capmodel.spec.distributions import LognormalMixture

LLAMA, DEEPSEEK = "llama-3.1-70b-8xH100", "deepseek-v3-8xH200"
Laws = Callable[..., SessionLaws]
constant = LognormalMixture.constant


def test_a_session_waits_for_its_sub_agent(
    constant_laws: Laws, lone_cycle_s: Callable[..., float]
) -> None:
    # One session, one sub-agent after every turn but the last: the two take turns on the engine.
    helper = constant_laws(first_tokens=3000, turns=3, think_time=1.0)
    root = replace(
        constant_laws(),
        agents=SubAgents(probability=1.0, count=constant(1.0), laws=helper, most=2),
    )
    case = replace(published_case(LLAMA, concurrency=1), sessions=root)
    result = simulate(case, turns=420, seeds=1, start="fresh")
    agent_s = lone_cycle_s(case, 3000, 700, 101, 3) + 2 * 1.0
    session_s = lone_cycle_s(case, 5000, 700, 101, 6) + 4.0 + 5 * agent_s
    assert result.requests_per_s == pytest.approx((6 + 5 * 3) / session_s, rel=1e-6)
    own, helpers = result.by_class
    assert helpers.requests_per_s == pytest.approx(2.5 * own.requests_per_s, rel=0.05)
    assert result.composition.delegating == pytest.approx(5 * agent_s / session_s, rel=0.02)


def test_parallel_sub_agents_take_memory_from_their_session() -> None:
    laws = published_case(DEEPSEEK, concurrency=1).classes()[0][1]
    short = replace(laws, turns=constant(6.0))
    helpers = SubAgents(probability=0.2, count=constant(4.0), laws=short, most=4)
    case = published_case(DEEPSEEK, concurrency=7)
    alone = simulate(case, turns=8000, seeds=2)
    with_helpers = simulate(
        replace(case, sessions=replace(laws, agents=helpers)), turns=8000, seeds=2
    )
    assert with_helpers.composition.live_tokens_over_budget > (
        1.1 * alone.composition.live_tokens_over_budget
    )
    assert with_helpers.by_class[0].reusable < alone.by_class[0].reusable


def test_branches_are_live_but_not_pinned() -> None:
    laws = published_case(DEEPSEEK, concurrency=1).classes()[0][1]
    case = replace(published_case(DEEPSEEK, concurrency=6), kv_tokens=2e6)
    one = simulate(case, turns=6000, seeds=2)
    two = simulate(
        replace(case, branches=2, sessions=replace(laws, turns=laws.turns.scaled(2.0))),
        turns=6000,
        seeds=2,
    )
    live = (one.composition.live_tokens_over_budget, two.composition.live_tokens_over_budget)
    assert live[1] == pytest.approx(2 * live[0], rel=0.2)
    assert two.composition.pinned_share == pytest.approx(one.composition.pinned_share, rel=0.2)


def test_an_open_stream_keeps_littles_law() -> None:
    case = replace(
        published_case(LLAMA, concurrency=64), session_arrivals_per_s=0.02, max_context_tokens=1e6
    )
    result = simulate(case, turns=15_000, seeds=3)
    turns = 30.0  # mean turns of a session; each ends without a think time
    assert result.sessions_turned_away == 0
    noise = 2 * result.half_widths["requests_per_s"]
    assert result.requests_per_s == pytest.approx(0.02 * turns, abs=noise)
    phases = result.composition
    live = phases.thinking + phases.waiting + phases.prefilling + phases.decoding
    per_turn_s = result.e2e_s.mean + (turns - 1) / turns * 8.0
    assert live == pytest.approx(result.requests_per_s * per_turn_s, rel=0.02)


def test_a_full_house_turns_sessions_away() -> None:
    case = replace(published_case(LLAMA, concurrency=4), session_arrivals_per_s=0.1)
    result = simulate(case, turns=4000, seeds=1)
    assert result.sessions_turned_away > 100
    closed = simulate(published_case(LLAMA, concurrency=4), turns=4000, seeds=1)
    assert result.requests_per_s == pytest.approx(closed.requests_per_s, rel=0.06)


def test_slow_thinkers_lose_their_prefix_to_fast_ones() -> None:
    laws: SessionLaws = published_case(LLAMA, concurrency=1).classes()[0][1]
    slow = replace(laws, think_time=LognormalMixture.from_mean_cv(60.0, 1.0))
    case = replace(published_case(LLAMA, concurrency=36), sessions=((0.5, laws), (0.5, slow)))
    result = simulate(case, turns=8_000, seeds=2)
    fast_class, slow_class = result.by_class
    assert slow_class.reusable < fast_class.reusable - 0.1
    assert slow_class.requests_per_s < 0.5 * fast_class.requests_per_s


def test_serving_the_longest_prefix_first_softens_the_cliff() -> None:
    case = published_case(DEEPSEEK, concurrency=16)
    first = simulate(case, turns=8_000, seeds=2)
    longest = simulate(replace(case, policy="longest_prefix"), turns=8_000, seeds=2)
    assert longest.hit_rate.overall > first.hit_rate.overall + 0.05
    assert longest.requests_per_s > 1.05 * first.requests_per_s


def test_what_is_not_simulated_is_refused() -> None:
    laws = published_case(DEEPSEEK, concurrency=2).classes()[0][1]
    helpers = SubAgents(probability=0.2, count=constant(2.0), laws=laws)
    with pytest.raises(SpecError, match="of their own"):
        replace(laws, agents=replace(helpers, laws=replace(laws, agents=helpers)))
    case = published_case(DEEPSEEK, concurrency=2)
    with pytest.raises(SpecError, match="first_come or longest_prefix"):
        replace(case, policy="priority")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="branches"):
        replace(case, branches=0)
    with pytest.raises(SpecError, match="finite"):
        replace(case, session_arrivals_per_s=-1.0)
    with pytest.raises(SpecError, match="closed population"):
        replace(case, session_arrivals_per_s=1.0, frozen_context_tokens=(1e4, 1e4))
