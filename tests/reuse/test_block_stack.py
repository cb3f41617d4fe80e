"""Block traces: the streamed stack against independent caches, shards and samples."""

import gzip
import itertools
import json
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from capmodel.errors import SpecError
from capmodel.reuse.block_curve import split_hit_rates, streamed_hit_rates, survival_hit_rates
from capmodel.reuse.block_stack import BlockHistogram, BlockStack
from capmodel.reuse.sampling import sampled_hit_rates
from capmodel.reuse.sharding import sharded_runs, split_by_session


def drawn_blocks(seed=0, requests=600, sessions=12, longest=60):
    """Block ids of growing prompts: equal ids mean equal prefixes, as Mooncake hashes them."""
    rng = np.random.default_rng(seed)
    held, ids, offsets, fresh = [[] for _ in range(sessions)], [], [0], 0
    for _ in range(requests):
        s = rng.integers(sessions)
        if len(held[s]) > longest or rng.random() < 0.05:
            held[s] = held[s][: rng.integers(0, len(held[s]) + 1)]
        new = int(rng.integers(1, longest // 4))
        held[s] = held[s] + list(range(fresh, fresh + new))
        fresh += new
        ids += held[s]
        offsets.append(len(ids))
    return np.array(ids, dtype=np.int64), np.array(offsets, dtype=np.int64)


def prefix_lru(ids, offsets, capacity):
    """Hit blocks of a cache that looks up the prefix, then touches it tail first."""
    cache, hits = OrderedDict(), 0
    for begin, end in itertools.pairwise(offsets):
        blocks = ids[begin:end].tolist()
        for block in blocks:
            if block not in cache:
                break
            hits += 1
        for block in reversed(blocks):
            cache.pop(block, None)
            cache[block] = True
        while len(cache) > capacity:
            cache.popitem(last=False)
    return hits / ids.size


def curve_of(runs, offsets, capacities, deepest):
    histogram = BlockHistogram(1, deepest)
    counts = np.diff(offsets)
    histogram.add(runs, counts.astype(float), counts, 0)
    return histogram.hit_rate(capacities)


CAPACITIES = [20, 60, 150, 300, 600]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("deepest", [600, 100_000])
def test_distances_agree_with_a_naive_cache_at_every_capacity(plain, deepest):
    ids, offsets = drawn_blocks()
    runs = BlockStack(deepest, plain=plain).feed(ids, offsets)
    rates = curve_of(runs, offsets, CAPACITIES, deepest)
    assert rates == pytest.approx([prefix_lru(ids, offsets, c) for c in CAPACITIES], abs=1e-12)


def test_distances_agree_with_libcachesim():
    cachesim = pytest.importorskip("libcachesim")
    ids, offsets = drawn_blocks(seed=4, requests=400)
    rates = curve_of(BlockStack(600).feed(ids, offsets), offsets, CAPACITIES, 600)
    for capacity, rate in zip(CAPACITIES, rates, strict=True):
        cache, request, hits = cachesim.LRU(capacity), cachesim.Request(), 0
        request.obj_size = 1
        for begin, end in itertools.pairwise(offsets):
            blocks = ids[begin:end].tolist()
            for block in blocks:
                request.obj_id = block
                if cache.find(request, False) is None:
                    break
                hits += 1
            for block in reversed(blocks):
                request.obj_id = block
                cache.get(request)
        assert rate == pytest.approx(hits / ids.size, abs=1e-12)


def test_chunks_change_nothing():
    ids, offsets = drawn_blocks(seed=1)
    whole = BlockStack(400).feed(ids, offsets)
    stack, parts = BlockStack(400), []
    for first in range(0, offsets.size - 1, 7):
        cut = offsets[first : first + 8]
        parts.append(stack.feed(ids[cut[0] : cut[-1]], cut - cut[0], first))
    assert np.array_equal(whole.rank, np.concatenate([p.rank for p in parts]))
    assert np.array_equal(whole.length, np.concatenate([p.length for p in parts]))


def test_memory_follows_the_working_set_and_not_the_trace():
    sizes = []
    for requests in (2_000, 16_000):
        ids, offsets = drawn_blocks(requests=requests, sessions=30)
        stack = BlockStack(500)
        stack.feed(ids, offsets)
        sizes.append(stack.nbytes)
    assert sizes[1] == sizes[0] < 1_000_000


@pytest.mark.parametrize("shards", [2, 5])
def test_shards_add_up_to_the_whole(shards):
    ids, offsets = drawn_blocks(seed=2, requests=300)
    assert len(split_by_session(ids, offsets, shards)) > 1
    expected = curve_of(BlockStack().feed(ids, offsets), offsets, CAPACITIES, 5000)
    with ThreadPoolExecutor(2) as pool:
        runs = sharded_runs(ids, offsets, shards, pool)
    assert curve_of(runs, offsets, CAPACITIES, 5000) == pytest.approx(expected, abs=1e-12)


def test_samples_cover_the_exact_curve_about_as_often_as_they_claim():
    ids, offsets = drawn_blocks(seed=9, requests=6000, sessions=2000, longest=24)
    tokens = np.diff(offsets).astype(float) * 16
    capacities = [16 * 2_000.0, 16 * 6_000.0]
    runs = BlockStack().feed(ids, offsets)
    histogram = BlockHistogram(16, 400_000)
    histogram.add(runs, tokens, np.diff(offsets), 0)
    exact = histogram.hit_rate(capacities)
    sample = sampled_hit_rates(ids, offsets, tokens, capacities, rate=0.5, block_tokens=16)
    assert sample.sampled_requests < 0.7 * (offsets.size - 1)
    assert np.all(np.abs(sample.hit_rate - exact) <= 1.5 * sample.half_width)
    assert np.all(sample.half_width < 0.1)
    full = sampled_hit_rates(ids, offsets, tokens, capacities, rate=1.0, block_tokens=16)
    assert full.sampled_requests == offsets.size - 1
    with pytest.raises(SpecError, match="rate"):
        sampled_hit_rates(ids, offsets, tokens, capacities, rate=0.0, block_tokens=16)


def mooncake_file(path, seed=0, requests=300):
    ids, offsets = drawn_blocks(seed=seed, requests=requests)
    rng = np.random.default_rng(seed)
    clock = np.cumsum(rng.exponential(500.0, requests)).astype(int)
    with gzip.open(path, "wt") as stream:
        for row in range(requests):
            blocks = ids[offsets[row] : offsets[row + 1]].tolist()
            record = {
                "timestamp": int(clock[row]), "input_length": 512 * len(blocks),
                "output_length": 10, "hash_ids": blocks,
            }  # fmt: skip
            stream.write(json.dumps(record) + "\n")
    return ids, offsets


def test_a_mooncake_file_streams_to_the_same_curve(tmp_path):
    path = tmp_path / "trace.jsonl.gz"
    ids, offsets = mooncake_file(path)
    rooms = [512.0 * c for c in CAPACITIES]
    rates, ceiling = streamed_hit_rates(str(path), rooms, [])
    assert rates == pytest.approx([prefix_lru(ids, offsets, c) for c in CAPACITIES], abs=1e-12)
    assert ceiling == pytest.approx(1 - np.unique(ids).size / ids.size, abs=1e-3)
    split, _ = split_hit_rates(str(path), rooms, [], shards=3, executor=None)
    assert split == pytest.approx(rates, abs=1e-12)


def test_the_open_loop_form_follows_the_exact_curve(tmp_path):
    path = tmp_path / "trace.jsonl.gz"
    ids, offsets = mooncake_file(path, seed=3, requests=1500)
    rooms = [512.0 * c for c in CAPACITIES]
    closed, ceiling = survival_hit_rates(str(path), rooms, [])
    exact = np.array([prefix_lru(ids, offsets, c) for c in CAPACITIES])
    assert np.abs(closed - exact).mean() < 0.03
    assert np.all(np.diff(closed) >= 0) and closed[-1] <= ceiling


def test_the_last_block_may_be_partly_filled():
    ids, offsets = np.array([1, 2, 1, 2], dtype=np.int64), np.array([0, 2, 4], dtype=np.int64)
    histogram = BlockHistogram(10, 50)
    histogram.add(BlockStack().feed(ids, offsets), np.array([13.0, 13.0]), np.array([2, 2]), 0)
    # The second request finds both blocks: 13 of 26 tokens.
    assert histogram.hit_rate(500) == pytest.approx(0.5)
    assert histogram.hit_rate(10) == pytest.approx(10 / 26)


def test_the_split_runs_on_a_real_dask_cluster():
    distributed = pytest.importorskip("distributed")
    ids, offsets = drawn_blocks(seed=5, requests=120)
    expected = curve_of(BlockStack().feed(ids, offsets), offsets, CAPACITIES, 5000)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as pool,
    ):
        runs = sharded_runs(ids, offsets, 2, pool)
    assert curve_of(runs, offsets, CAPACITIES, 5000) == pytest.approx(expected, abs=1e-12)
