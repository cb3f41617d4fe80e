"""Property and limit tests of the engine law: monotone, above both roofs, right limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capmodel import catalog
from capmodel.memory.params import parameters
from capmodel.service.engine_law import engine_law
from capmodel.service.step_law import FEATURES, StepLaw
from capmodel.spec.deployment import Deployment
from capmodel.spec.node import Node

NAMES = (
    "deepseek-v3",
    "deepseek-v3.2",
    "deepseek-v4-flash",
    "gemma-3-27b",
    "gpt-oss-120b",
    "kimi-k3",
    "llama-3.1-70b",
    "minimax-m1-80k",
    "nemotron-3-super-120b-a12b",
    "qwen3-next-80b-a3b",
)
LAWS = {
    name: engine_law(catalog.model(name), catalog.node("8xB300"), Deployment(tp=8))
    for name in NAMES
}
names = st.sampled_from(NAMES)
chunks = st.floats(0, 8192)
starts = st.floats(0, 500_000)
batches = st.floats(0, 512)
contexts = st.floats(0, 500_000)
factors = st.floats(1.0, 4.0)


@settings(max_examples=150, deadline=None)
@given(names, chunks, starts, batches, contexts, factors)
def test_time_never_falls_with_tokens_context_or_batch(
    name: str, chunk: float, start: float, batch: float, context: float, factor: float
) -> None:
    law = LAWS[name]
    base = float(law.step_s(chunk, start, batch, context))
    slack = 1e-12 + 1e-9 * base
    assert float(law.step_s(chunk * factor, start, batch, context)) >= base - slack
    assert float(law.step_s(chunk, start * factor, batch, context)) >= base - slack
    assert float(law.step_s(chunk, start, batch * factor, context)) >= base - slack
    assert float(law.step_s(chunk, start, batch, context * factor)) >= base - slack


@settings(max_examples=100, deadline=None)
@given(names, st.floats(1, 8192), starts, batches, contexts)
def test_never_below_either_nominal_roof(
    name: str, chunk: float, start: float, batch: float, context: float
) -> None:
    model, node = catalog.model(name), catalog.node("8xB300")
    part, counts = node.accelerator, parameters(model)
    seconds = float(LAWS[name].step_s(chunk, start, batch, context))
    # The fastest unit for every matmul but the head, which only sampled positions need.
    matmul = 2.0 * (counts.matmul - (counts.head or counts.embedding)) * (chunk + batch)
    assert seconds >= matmul / (8 * max(part.flop_per_s.values()))
    dense = counts.matmul - counts.routed_experts_active
    # Half a byte per parameter is the narrowest format stored.
    assert seconds >= 0.5 * dense / (8 * part.hbm_bytes_per_s)


@pytest.mark.parametrize("name", NAMES)
def test_vector_equals_scalar(name: str) -> None:
    rng = np.random.default_rng(7)
    grid = rng.uniform(0, [8192, 2e5, 300, 2e5], size=(50, 4))
    law = LAWS[name]
    vector = law.step_s(grid[:, 0], grid[:, 1], grid[:, 2], grid[:, 3])
    scalar = [float(law.step_s(*(float(value) for value in row))) for row in grid]
    np.testing.assert_allclose(vector, scalar, rtol=1e-12)


def test_breakdown_adds_up_to_the_step() -> None:
    for law in LAWS.values():
        parts = law.breakdown(4096.0, 10_000.0, 20.0, 50_000.0)
        total = sum(float(row["seconds"]) for row in parts.values())
        assert total == pytest.approx(float(law.step_s(4096.0, 10_000.0, 20.0, 50_000.0)))


def test_an_idle_step_takes_no_time() -> None:
    for law in LAWS.values():
        assert float(law.step_s(0.0, 0.0, 0.0, 0.0)) == 0.0


def _wider(node: Node, bandwidth: float, compute: float) -> Node:
    part = node.accelerator
    faster = replace(
        part,
        hbm_bytes_per_s=part.hbm_bytes_per_s * bandwidth,
        flop_per_s={path: rate * compute for path, rate in part.flop_per_s.items()},
    )
    return replace(node, accelerator=faster)


def test_infinite_bandwidth_leaves_compute_links_and_overhead() -> None:
    model, node = catalog.model("llama-3.1-70b"), catalog.node("8xB300")
    law = engine_law(model, _wider(node, 1e9, 1.0), Deployment(tp=8))
    parts = law.breakdown(0.0, 0.0, 4.0, 8000.0)
    kept = {"all_reduce", "logit_gather", "kernel_launch", "host"}
    for name, row in parts.items():
        if name not in kept and float(row["seconds"]) > 1e-9:
            assert row["bound"] == "compute"


def test_infinite_compute_leaves_bytes_links_and_overhead() -> None:
    model, node = catalog.model("llama-3.1-70b"), catalog.node("8xB300")
    law = engine_law(model, _wider(node, 1.0, 1e9), Deployment(tp=8))
    assert all(
        row["bound"] == "memory"
        for row in law.breakdown(8192.0, 0.0, 8.0, 8000.0).values()
        if float(row["seconds"]) > 1e-9
    )


def test_tensor_parallelism_tends_to_what_it_cannot_divide() -> None:
    # In the limit only replicated parts, link latencies and launches remain, so the step stops
    # falling: doubling from 64 to 128 ranks gains far less than doubling from 1 to 2.
    model = catalog.model("deepseek-v3")
    rack = replace(catalog.node("8xGB300"), gpus=128)
    rack = replace(rack, accelerator=replace(rack.accelerator, scale_up_domain=128))
    seconds = [
        float(engine_law(model, rack, Deployment(tp=tp)).step_s(0.0, 0.0, 8.0, 8000.0))
        for tp in (1, 2, 64, 128)
    ]
    assert seconds[0] / seconds[1] > 1.3
    assert seconds[2] / seconds[3] < 1.1
    floor = engine_law(model, rack, Deployment(tp=128)).breakdown(0.0, 0.0, 8.0, 8000.0)
    launches = float(floor["kernel_launch"]["seconds"]) + float(floor["all_reduce"]["seconds"])
    assert seconds[3] > launches


def test_expert_coverage_limits() -> None:
    law: StepLaw = LAWS["kimi-k3"]
    assert float(law.coverage(0.0)) == 0.0
    one = float(law.coverage(1.0))
    # One token hits at most its own 16 of 896 experts, and repeats of a batch only lower that.
    assert 0 < one <= 16 / 896
    assert float(law.coverage(1e9)) == pytest.approx(1.0, abs=1e-3)
    tokens = np.linspace(0, 4096, 200)
    steps = np.diff(law.coverage(tokens))
    assert np.all(steps >= 0)
    assert np.all(np.diff(steps) <= 1e-15)


def test_uniform_coverage_is_the_limit_of_equal_popularity() -> None:
    law: StepLaw = LAWS["kimi-k3"]
    tokens = np.array([1.0, 16.0, 256.0, 4096.0])
    uniform = 1 - (1 - 16 / 896) ** tokens
    np.testing.assert_allclose(replace(law, expert_dispersion=0.0).coverage(tokens), uniform)
    nearly = replace(law, expert_dispersion=1e-6).coverage(tokens)
    np.testing.assert_allclose(nearly, uniform, rtol=1e-4)
    # Uneven popularity hits fewer distinct experts at every batch size.
    assert np.all(law.coverage(tokens) < uniform)


def test_dense_models_read_no_experts() -> None:
    law = LAWS["llama-3.1-70b"]
    index = FEATURES.index("coverage")
    assert law.experts == 0
    assert all(term.memory_s[index] == 0 for term in law.terms)
