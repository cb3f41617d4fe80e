"""The exact engine against a block-by-block cache, against limits, and against the reference."""

import heapq
import itertools
import math
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capmodel.errors import SpecError
from capmodel.reuse.service_model import ServiceModel, parse_service
from capmodel.reuse.stack_distance import Checkpoints, exact_hit_rates, replay

from .sessions_for_tests import REFERENCE, drawn_table, needs_reference, recorded_table


def token_by_token(table, order, lanes, capacity, count, service):
    """A deliberately naive replay: every token is an entry of an ordered dictionary."""
    cache: OrderedDict[int, bool] = OrderedDict()
    pinned: dict[int, int] = {}
    held = [[] for _ in range(lanes)]
    session, turn, taken, fresh = [0] * lanes, [0] * lanes, 0, 0
    events, waiting, done, hits, total = [], [], 0, [], []
    running, free, ticks = 0, 0.0, itertools.count(lanes)
    for lane in range(lanes):
        session[lane], taken = order[taken], taken + 1
        heapq.heappush(events, (0.0, lane, lane, 0))
    while done < count:
        now, _, lane, kind = heapq.heappop(events)
        if kind == 0:
            waiting.append(lane)
        else:
            for token in reversed(held[lane]):
                pinned.pop(token)
                cache[token] = True
                cache.move_to_end(token)
            while len(cache) + len(pinned) > capacity and cache:
                cache.popitem(last=False)
            running -= len(held[lane])
            turn[lane] += 1
            row = table.session_starts[session[lane]] + turn[lane]
            if row == table.session_starts[session[lane] + 1]:
                session[lane], taken, turn[lane], held[lane] = order[taken], taken + 1, 0, []
                heapq.heappush(events, (now, next(ticks), lane, 0))
            else:
                heapq.heappush(events, (now + table.think_s[row], next(ticks), lane, 0))
        while waiting and done < count:
            lane = waiting[0]
            row = table.session_starts[session[lane]] + turn[lane]
            size, prefix = int(table.input_tokens[row]), int(table.prefix_tokens[row])
            if service.has_feedback and running > 0 and running + size > capacity:
                break
            waiting.pop(0)
            reused = held[lane][:prefix]
            found = 0
            while found < prefix and reused[found] in cache:
                found += 1
            kept = reused + list(range(fresh, fresh + size - prefix))
            # What was evicted comes back as new content of the same prefix.
            fresh += size - prefix
            held[lane] = kept
            for token in kept:
                cache.pop(token, None)
                pinned[token] = lane
            running += size
            while len(cache) + len(pinned) > capacity and cache:
                cache.popitem(last=False)
            if service.has_feedback:
                free = max(free, now) + (size - found) / service.prefill_tokens_per_s
                finish = free + table.output_tokens[row] * service.output_token_s
            else:
                finish = now + (table.service_s[row] if service.kind == "recorded" else 0.0)
            hits.append(found)
            total.append(size)
            heapq.heappush(events, (finish, next(ticks), lane, 1))
            done += 1
    return np.array(hits), np.array(total)


@pytest.mark.parametrize("service", ["none", "recorded", "prefill:40"])
@pytest.mark.parametrize("capacity", [40, 120, 300])
def test_distances_agree_with_a_token_by_token_cache(service, capacity):
    table = drawn_table(seed=3, sessions=12, scale=12.0)
    model, lanes, count = parse_service(service), 4, 400
    if model.has_feedback or model.kind == "recorded":
        # A cache smaller than what runs has no LRU order to speak of.
        capacity = max(capacity, 4 * int(table.input_tokens.max()))
    run = replay(
        table, lanes, model, seed=5, requests=count, capacity_tokens=float(capacity), warm_up=0.0
    )
    generator = np.random.default_rng(5)
    order = np.concatenate([generator.permutation(table.sessions) for _ in range(400)])
    hits, total = token_by_token(table, order, lanes, capacity, count, model)
    assert np.array_equal(run.input_tokens, total)
    assert np.array_equal(run.hit_tokens, hits)
    assert run.replayed_hit_rate == pytest.approx(hits.sum() / total.sum(), abs=1e-12)
    if not model.has_feedback:
        assert run.hit_rate(float(capacity)) == pytest.approx(run.replayed_hit_rate, abs=1e-12)


@pytest.mark.parametrize("service", ["none", "recorded", "prefill:400"])
def test_plain_and_compiled_kernels_agree(service):
    given = {"requests": 1500, "capacity_tokens": 2e4, "deepest_tokens": 3e4}
    fast = replay(drawn_table(), 6, parse_service(service), **given)
    slow = replay(drawn_table(), 6, parse_service(service), plain=True, **given)
    for name in ("distance_tokens", "deep_distance_tokens", "hit_tokens", "start_s", "finish_s"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


def test_forgetting_what_lies_too_deep_changes_no_hit():
    table, service = drawn_table(sessions=80), parse_service("recorded")
    whole = replay(table, 8, service, requests=20_000)
    bounded = replay(table, 8, service, requests=20_000, deepest_tokens=15_000.0)
    for capacity in (2_000.0, 8_000.0, 15_000.0):
        assert bounded.hit_rate(capacity) == whole.hit_rate(capacity)


def test_more_cache_never_hurts_and_ends_at_the_ceiling():
    run = replay(drawn_table(), 6, parse_service("none"), requests=4000)
    rates = [run.hit_rate(b) for b in np.geomspace(100.0, 1e9, 30)]
    assert np.all(np.diff(rates) >= 0)
    assert rates[-1] == run.theoretical_hit_rate
    assert run.hit_rate(0.0) == 0.0


def test_one_lane_has_only_itself():
    # With C = 1 nothing comes between two requests: a prefix hits up to the capacity.
    run = replay(drawn_table(), 1, parse_service("recorded"), requests=2000)
    capacity = 700.0
    expected = np.minimum(run.prefix_tokens, capacity).sum() / run.input_tokens.sum()
    assert run.hit_rate(capacity) == pytest.approx(expected, abs=1e-12)


def test_a_shared_prefix_is_the_floor_of_a_thrash():
    table = drawn_table()
    shared = 200.0
    given = {"requests": 4000, "shared_prefix_tokens": shared}
    run = replay(table, 30, parse_service("none"), **given)
    floor = np.minimum(table.input_tokens, shared).sum() / table.input_tokens.sum()
    assert run.hit_rate(shared) == pytest.approx(floor, rel=0.05)
    assert run.theoretical_hit_rate > table.theoretical_hit_rate


def test_state_checkpoints_cost_room_and_whole_steps():
    table, service = drawn_table(), parse_service("none")
    given = {"requests": 6000}
    free = replay(table, 6, service, **given)
    ends = replay(table, 6, service, checkpoints=Checkpoints(every_tokens=math.inf), **given)
    dear = replay(
        table, 6, service,
        checkpoints=Checkpoints(every_tokens=math.inf, state_tokens=500.0), **given,
    )  # fmt: skip
    for capacity in (4_000.0, 8_000.0):
        assert dear.hit_rate(capacity) < ends.hit_rate(capacity) < free.hit_rate(capacity)
    assert ends.hit_rate(1e12) == free.hit_rate(1e12)


def test_jobs_on_an_executor_give_the_same_numbers():
    table, service = drawn_table(), parse_service("recorded")
    given = {"seeds": 2, "requests": 1000}
    inline, tops = exact_hit_rates(table, [2, 5], [3e3, 9e3], service, **given)
    with ThreadPoolExecutor(2) as pool:
        pooled, _ = exact_hit_rates(table, [2, 5], [3e3, 9e3], service, executor=pool, **given)
    assert inline.shape == (2, 2, 2)
    assert np.array_equal(inline, pooled)
    assert np.all(inline <= tops[:, :, None])


def test_bad_requests_are_refused():
    with pytest.raises(SpecError, match="concurrency"):
        replay(drawn_table(), 0, parse_service("none"))
    with pytest.raises(SpecError, match="prefill:15000"):
        parse_service("prefill")
    with pytest.raises(SpecError, match="no rate"):
        parse_service("none:3")
    with pytest.raises(SpecError, match="positive rate"):
        ServiceModel(kind="prefill")


def test_slower_servers_hit_less():
    table = drawn_table().capped(10.0)
    fast, slow = (
        replay(
            table, 8, parse_service(f"prefill:{rate}"), requests=5000, capacity_tokens=9_000.0
        ).replayed_hit_rate
        for rate in (50_000, 150)
    )
    assert slow < fast - 0.05


@needs_reference
def test_the_reference_replays_are_reproduced():
    """Mean absolute difference to the exact curves under 0.002."""
    reference = pd.read_csv(REFERENCE / "exact_lru_curves.csv.gz")
    table = recorded_table()
    differences = []
    for service, name in (
        ("none", "none"),
        ("recorded", "recorded"),
        ("prefill:15000", "prefill15k"),
    ):
        for cap, lanes in ((10, 8), (60, 16), (60, 48), (300, 4)):
            part = reference[
                (reference.service == name)
                & (reference.think_cap_s == cap)
                & (reference.concurrency == lanes)
            ]
            rates, _ = exact_hit_rates(
                table.capped(cap), [lanes], list(part.kv_tokens), parse_service(service),
                seeds=2, requests=60_000,
            )  # fmt: skip
            differences.append(np.abs(rates.mean(axis=(0, 1)) - part.hit_rate.to_numpy()))
    assert np.mean(differences) < 0.002


@needs_reference
def test_throughput_of_the_reference_server_is_reproduced():
    reference = pd.read_csv(REFERENCE / "exact_lru_curves.csv.gz")
    row = reference[
        (reference.service == "prefill15k") & (reference.think_cap_s == 60)
        & (reference.concurrency == 16) & (reference.kv_tokens == 4_000_000)
    ].iloc[0]  # fmt: skip
    run = replay(
        recorded_table().capped(60), 16, parse_service("prefill:15000"), capacity_tokens=4e6
    )
    assert run.requests_per_s == pytest.approx(row.requests_per_s, rel=0.03)


def test_lagged_prefixes_come_from_the_request_they_name():
    table = drawn_table(sessions=3)
    starts = table.session_starts[:-1]
    # Turn 2 of each session reuses turn 0 instead of turn 1.
    rows = starts + 2
    lag = table.prefix_lag.copy()
    prefix = table.prefix_tokens.copy()
    recent = table.recent_prefix_tokens.copy()
    prefix[rows] = np.minimum(table.input_tokens[starts] // 2, table.input_tokens[rows])
    prefix[starts + 1] = 0.0
    recent[rows], lag[rows], lag[starts + 1] = 0.0, 2, 0
    changed = replace(table, prefix_tokens=prefix, recent_prefix_tokens=recent, prefix_lag=lag)
    run = replay(changed, 1, parse_service("none"), requests=30, warm_up=0.0, seed=1)
    order = np.random.default_rng(1).permutation(3)
    first = changed.session_starts[order[0]]
    # Between turn 0 and turn 2 lies turn 1, whole.
    assert run.deep_distance_tokens[2] == changed.input_tokens[first + 1]


def test_equal_times_take_turns():
    # All gaps zero: the lanes go round and round, and LRU over more than fits finds nothing.
    table = drawn_table().capped(0.0)
    run = replay(table, 10, parse_service("none"), requests=3000)
    assert run.hit_rate(2.0 * table.input_tokens.max()) < 0.25 * table.theoretical_hit_rate
    assert run.hit_rate(1e9) == run.theoretical_hit_rate
