"""Efficiency tables: well formed, inside their intervals, and equal to the reference they cite."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from capmodel import catalog
from capmodel.errors import SpecError
from capmodel.service.collectives import collective, within_domain
from capmodel.service.engine_law import engine_law
from capmodel.service.roofline import Roofline, engine_constants
from capmodel.spec.deployment import ENGINES, Deployment

REFERENCE = Path(__file__).resolve().parents[2].parent / "shared" / "reference" / "efficiency.csv"
TABLES = (
    "A100-80GB", "B200", "B300", "GB200", "GB300", "H100-80GB", "H200", "L40S", "RTX-PRO-6000",
)  # fmt: skip
KERNELS = (
    "gemm_compute", "gemm_memory", "experts_compute", "experts_memory", "attention_prefill",
    "gqa_decode_memory", "mla_decode_memory", "mla_decode_compute", "elementwise",
)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_ordered_shares_with_a_count(name: str) -> None:
    table = catalog.efficiencies(name)
    assert table["kind"] == "measured"
    assert "aiconfigurator" in table["source"]
    for kernel, precisions in table["kernels"].items():
        for rows in precisions.values():
            for value, low, high, count in rows.values():
                assert 0 < low <= value <= high
                assert count > 0
                if kernel != "recurrent_prefill":
                    assert high <= 1.0


def test_every_accelerator_and_engine_has_a_share_for_every_kernel() -> None:
    for part in catalog.names("accelerators"):
        for engine in ENGINES:
            roof = Roofline(catalog.accelerator(part), engine)
            for stored in ("bf16", "fp8", "int4", "mxfp4", "nvfp4", "fp8_ue8m0", "mxfp8", "int8"):
                path = roof.path(stored)
                assert roof.unit(path) in roof.accelerator.flop_per_s
                for kernel in KERNELS:
                    share = roof.share(kernel, path)
                    assert 0 < share.low <= share.value <= share.high <= 1.0
                    assert share.kind in ("measured", "assumed")


def test_parts_without_a_table_are_marked_assumed() -> None:
    assert Roofline(catalog.accelerator("B300"), "vllm").share("gemm_compute", "bf16").kind == (
        "measured"
    )
    for part in ("MI355X", "RTX-5090", "H20"):
        roof = Roofline(catalog.accelerator(part), "vllm")
        assert roof.share("gemm_compute", "bf16").kind == "assumed"


def test_engine_constants_lie_in_their_intervals_and_older_builds_launch_slower() -> None:
    table = catalog.efficiencies("engines")["engines"]
    for engine in ENGINES:
        for name in ("prefill_efficiency", "decode_efficiency", "kernel_floor_s"):
            value, low, high, count = table[engine][name]
            assert low <= value <= high
            assert count >= 30 or name == "kernel_floor_s"
        assert engine_constants(engine, "NVIDIA").prefill_efficiency <= 1.0
    old = engine_constants("sglang", "NVIDIA", "0.5.6").kernel_floor_s
    assert old > engine_constants("sglang", "NVIDIA", "0.5.18").kernel_floor_s
    assert engine_constants("sglang", "NVIDIA", "main") == engine_constants("sglang", "NVIDIA")
    assert engine_constants("vllm", "AMD").kernel_floor_s > (
        engine_constants("vllm", "NVIDIA").kernel_floor_s
    )


def test_a_users_own_share_wins_and_unknown_classes_are_named() -> None:
    model, node = catalog.model("llama-3.1-70b"), catalog.node("8xB300")
    usual = engine_law(model, node, Deployment(tp=8))
    own = engine_law(model, node, Deployment(tp=8), shares={"gemm_compute.bf16": 0.1})
    assert float(own.step_s(8192.0)) > 2 * float(usual.step_s(8192.0))
    assert own.kinds["attention_projections"] == "measured"
    given = {"gemm_compute": 0.5, "gemm_memory": 0.5}
    whole = engine_law(model, node, Deployment(tp=8), shares=given)
    assert whole.kinds["attention_projections"] == "given"
    with pytest.raises(SpecError, match="gemm_compute"):
        engine_law(model, node, Deployment(tp=8), shares={"gem_compute": 0.5})


def test_collectives_use_measured_rates_inside_a_node_and_the_network_outside() -> None:
    node = catalog.node("8xB300")
    reduce = collective("all_reduce", 8, node)
    assert reduce.kind == "measured"
    assert reduce.bytes_per_s == pytest.approx(368.2e9)
    assert reduce.seconds(512e6) > reduce.seconds(0.0) == reduce.latency_s
    two = catalog.node("8xB300", 2)
    assert not within_domain(16, two)
    assert collective("all_reduce", 16, two).bytes_per_s < reduce.bytes_per_s
    rack = catalog.node("4xGB300", 4)
    assert within_domain(16, rack)


@pytest.mark.skipif(not REFERENCE.exists(), reason="reference tables are not in this checkout")
def test_tables_repeat_the_reference_rows() -> None:
    kernels = {
        "GEMM MBU (decode-like)": "gemm_memory",
        "prefill attention MFU (causal, head_dim 128)": "attention_prefill",
    }
    parts = {"h100_sxm": "H100-80GB", "h200_sxm": "H200"}
    checked = 0
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["gpu"] not in parts or row["metric"] not in kernels:
                continue
            if row["precision"] != "bfloat16" or "EXCLUDE" in row["note"]:
                continue
            table = catalog.efficiencies(parts[row["gpu"]])["kernels"][kernels[row["metric"]]]
            value, _, high, count = table["bf16"][row["engine"]]
            assert value == pytest.approx(float(row["value"]), abs=6e-4)
            assert high == pytest.approx(float(row["p90_or_max"]), abs=6e-4)
            assert count == int(float(row["n"]))
            checked += 1
    assert checked >= 10
