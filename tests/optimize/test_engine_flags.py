"""Settings: every engine's spelling, the two limits, and what a build refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

import capmodel as cm
from capmodel.report.engine_flags import (
    UNVERIFIED,
    checked_against,
    conflicts,
    engine_flags,
    feature_matrix,
    flag_list,
    upgrades,
)
from capmodel.spec.deployment import Deployment, Offload, Speculation

FULL = Deployment(
    tp=8, pp=2, ep=8, dcp=8, kv_dtype="fp8", max_model_len=100_000,
    offload=Offload(tier="dram", bytes=8 * 2**30),
    speculation=Speculation(name="mtp", draft_tokens=2),
)  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", {"--tensor-parallel-size": "8", "--kv-offloading-size": "8",
                  "--decode-context-parallel-size": "8", "--max-num-seqs": "16"}),
        ("sglang", {"--tp-size": "8", "--kv-cache-dtype": "fp8_e4m3", "--hicache-size": "1",
                    "--max-running-requests": "16"}),
        ("trtllm", {"--tp_size": "8", "--pp_size": "2", "--max_seq_len": "100000",
                    "--max_batch_size": "16"}),
    ],
)  # fmt: skip
def test_flags_of_every_engine(engine: str, expected: dict[str, str]) -> None:
    flags = flag_list(replace(FULL, engine=engine), 16)
    assert expected.items() <= flags.items()


def test_the_session_cap_is_not_the_running_limit() -> None:
    given = cm.Scenario(model="kimi-k3", node="8xB300")
    answer = cm.estimate(given, 8, level="closed")
    flags = engine_flags(answer, session_cap=8)
    assert flags["gateway_session_cap"] == 8
    assert flags["engine_running_limit"] == answer.running_limit != 8
    assert f"--max-num-seqs {answer.running_limit}" in flags["command"]
    assert flags["checked_against"] == UNVERIFIED
    assert "vllm day-0" in flags["flags"].values()
    assert any(row["features"] == ["offload"] for row in flags["upgrades"])


def test_a_flag_is_checked_only_for_the_build_a_source_shows() -> None:
    day0 = Deployment(engine="vllm", engine_version="day-0", tp=8)
    assert checked_against(day0, "--tensor-parallel-size") == "vllm day-0"
    assert checked_against(day0, "--enable-prefix-caching") == UNVERIFIED
    later = replace(day0, engine_version="0.30")
    assert checked_against(later, "--tensor-parallel-size") == UNVERIFIED


@pytest.mark.parametrize(
    ("version", "refused"), [("day-0", True), ("0.27.1", True), ("0.28", False)]
)
def test_pipelines_with_drafts_by_version(version: str, refused: bool) -> None:
    deployment = Deployment(
        tp=8, pp=2, engine_version=version, speculation=Speculation(name="dspark", draft_tokens=2)
    )
    assert bool(conflicts(deployment)) is refused
    assert all(set(row["features"]) - {"pp", "speculation"} for row in upgrades(deployment))


def test_every_row_of_the_matrix_has_a_source() -> None:
    for row in feature_matrix()["combinations"]:
        assert row["source"] and row["status"] in ("runs", "refused")
        assert set(row["features"]) <= {"pp", "dcp", "offload", "speculation"}
