"""The public collection's columns give the same points as the shipped table."""

from __future__ import annotations

from pathlib import Path

import pytest

from capmodel.errors import IngestError
from capmodel.validate.agentic_cases import measured_points, shipped_points
from capmodel.validate.replay_columns import converted, read_rows

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "agentx_points.csv"

ROW = {
    "source_url": "https://example.org/1", "date": "2026-07-28", "model": "Kimi-K3",
    "precision": "MXFP4 weights, fp8 KV", "hardware": "GB300 NVL72", "num_gpus": "8",
    "engine": "vLLM", "parallelism": "TP8 DCP8 agg", "spec_decode": "DSpark K2 synthetic AL 2.51",
    "offload": "Mooncake DRAM", "offload_gb": "1200", "kv_budget_tokens": "", "concurrency": "16",
    "total_tput_tok_s": "", "output_tput_tok_s": "245.0", "tput_per_gpu": "", "ttft_p50_s": "",
    "ttft_p90_s": "", "tpot_ms": "", "interactivity_tok_s_user": "", "hbm_hit_rate": "",
    "cpu_hit_rate": "", "overall_hit_rate": "", "theoretical_hit_rate": "",
    "notes": "gpu-memory-utilization 0.90; max-num-seqs 2xconc",
}  # fmt: skip


def test_a_layout_a_draft_and_limits_are_read() -> None:
    row = converted(ROW, "x1")
    assert (row["model"], row["accelerator"]) == ("kimi-k3", "GB300")
    assert (row["tp"], row["dcp"], row["dp"]) == ("8", "8", "")
    assert (row["weights"], row["kv_dtype"], row["tier"]) == ("MXFP4", "fp8", "dram")
    assert (row["accepted_tokens"], row["max_num_seqs"]) == ("2.51", "32")
    (point,) = measured_points([row])
    assert not point.unusable and point.concurrency == 16


def test_pools_of_prefill_and_decode_are_told_from_one_replica() -> None:
    (point,) = measured_points([converted({**ROW, "parallelism": "1P1D TP8+TP8"}, "x2")])
    assert "prefill and decode" in point.unusable


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("model,rate\nx,1\n", encoding="utf-8")
    with pytest.raises(IngestError, match="lacks the columns"):
        read_rows(file)


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the reference folder is not here")
def test_the_collection_gives_the_points_that_ship() -> None:
    fresh, shipped = measured_points(read_rows(REFERENCE)), shipped_points()
    assert len(fresh) == len(shipped)
    for new, old in zip(fresh, shipped, strict=True):
        assert bool(new.unusable) == bool(old.unusable), (old.id, new.unusable, old.unusable)
        assert new.concurrency == old.concurrency
        assert new.output_tokens_per_s == old.output_tokens_per_s, old.id
        assert new.hit_rate == old.hit_rate, old.id
        if old.scenario is not None and new.scenario is not None:
            assert new.scenario.deployment == old.scenario.deployment, old.id
            assert new.accepted_tokens == old.accepted_tokens, old.id
