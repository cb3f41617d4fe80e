"""The command line's contract: JSON keys, exit codes, one message per error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capmodel.cli import main

RunJson = Callable[..., tuple[int, dict[str, Any]]]

ESTIMATE_KEYS = {
    "concurrency", "kv_tokens", "stable", "operating_points", "hit_rate", "throughput", "ttft_s",
    "tpot_s", "e2e_s", "interactivity_tokens_per_s", "utilization", "bottleneck", "cliff",
    "session_cap", "running_limit", "cost", "intervals", "nearest_case", "warnings", "evidence",
    "benchmark_hour", "p_collapsed",
}  # fmt: skip
COST_KEYS = {
    "usd_per_hour", "usd_per_mtok_total", "usd_per_mtok_output", "usd_per_turn", "usd_per_session",
    "revenue_usd_per_hour", "margin", "bill_cached", "breakeven_usd_per_mtok_input",
}  # fmt: skip
MEMORY_KEYS = {
    "model", "node", "fits", "shortfall_bytes_per_gpu", "weights_bytes_per_gpu",
    "overhead_bytes_per_gpu", "available_kv_bytes_per_gpu", "kv_bytes_per_token",
    "state_bytes_per_sequence", "block_tokens", "kv_tokens", "max_concurrency", "total_params",
    "active_params", "evidence", "kv_blocks", "block_bytes", "blocks_per_request",
    "usable_kv_tokens",
}  # fmt: skip
K3 = ("kimi-k3", "--on", "8xB300")


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [x for item in value.values() for x in numbers(item)]
    if isinstance(value, list):
        return [x for item in value for x in numbers(item)]
    return [value] if isinstance(value, float) else []


def test_estimate_keys(run_json: RunJson) -> None:
    code, answer = run_json("estimate", *K3, "-c", "8")
    assert code == 0
    assert set(answer) >= ESTIMATE_KEYS
    assert set(answer["cost"]) >= COST_KEYS
    hits = answer["hit_rate"]
    assert hits["hbm"] + hits["offload"] == pytest.approx(hits["overall"])
    rates = answer["throughput"]
    assert rates["total_tokens_per_s"] == pytest.approx(
        rates["input_tokens_per_s"] + rates["output_tokens_per_s"]
    )
    assert rates["total_tokens_per_s_per_gpu"] == pytest.approx(rates["total_tokens_per_s"] / 8)
    for name, (low, high) in answer["intervals"].items():
        section, key = name.split(".")
        assert low <= answer[section][key] <= high, name
    assert all(math.isfinite(x) for x in numbers(answer))


def test_memory_keys(run_json: RunJson) -> None:
    code, answer = run_json("memory", *K3)
    assert code == 0
    assert set(answer) >= MEMORY_KEYS


def test_sweep_keys(run_json: RunJson) -> None:
    code, answer = run_json("sweep", *K3, "-c", "4,8")
    assert code == 0
    assert set(answer) >= {"rows", "peak_concurrency", "cliff_concurrency"}
    assert [row["concurrency"] for row in answer["rows"]] == [4, 8]


def test_optimize_keys(run_json: RunJson) -> None:
    code, answer = run_json("optimize", *K3, "--offload", "none")
    assert code == 0
    assert set(answer) >= {
        "feasible", "best", "objective_usd_per_mtok", "runner_up", "model_error", "certificate",
        "frontier", "binding", "shadow_prices", "engine_flags",
    }  # fmt: skip
    assert 6 <= answer["best"]["concurrency"] <= 12
    certificate = answer["certificate"]
    assert certificate["lower_bound_usd_per_mtok"] <= answer["objective_usd_per_mtok"] * (1 + 1e-9)
    assert set(certificate) >= {"relative_gap", "method", "evaluated"}


@pytest.mark.parametrize("kind", ["models", "accelerators", "nodes", "workloads", "prices"])
def test_list(run_json: RunJson, kind: str) -> None:
    code, answer = run_json("list", kind)
    assert code == 0
    names = [item["name"] for item in answer["items"]]
    assert len(names) == len(set(names)) >= 3
    assert all(item["source"] for item in answer["items"])


@pytest.mark.parametrize(
    ("args", "nearest"),
    [
        (("estimate", "kimi-k4", "--on", "8xB300", "-c", "8"), "kimi-k3"),
        (("estimate", "kimi-k3", "--on", "8xB301", "-c", "8"), "B300"),
        (("estimate", *K3, "-c", "8", "--workload", "agentic-codin"), "agentic-coding"),
        (("estimate", *K3, "-c", "8", "--offload", "dran:1TB"), "dram"),
        (("optimize", *K3, "--slo", "ttft_p91=5"), "ttft_p90"),
    ],
)
def test_unknown_names_exit_2_with_the_nearest(
    run_json: RunJson, args: tuple[str, ...], nearest: str
) -> None:
    code, answer = run_json(*args)
    assert code == 2
    assert nearest in answer["error"]["nearest"]
    assert answer["error"]["type"] == "SpecError"


@pytest.mark.parametrize(
    "args",
    [
        ("-c", "0"),
        ("-c", "-3"),
        ("-c", "8", "--available-kv-gib", "-4"),
        ("-c", "8", "--available-kv-gib", "nan"),
        ("-c", "8", "--gpu-memory-utilization", "1.5"),
        ("-c", "8", "--context-tokens-mean", "nan"),
        ("-c", "8", "--think-time-cap-s", "-1"),
        ("-c", "8", "--tp", "3"),
        ("-c", "8", "--offload", "dram:lots"),
        ("-c", "8", "--price", "in=3"),
        ("-c", "8", "--gpu-hour-usd", "inf"),
        ("-c", "eight"),
    ],
)
def test_bad_values_exit_2_with_one_message(
    args: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["estimate", *K3, *args, "--json"])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert set(json.loads(captured.out)) == {"error"}
    assert len(captured.err.strip().splitlines()) == 1
    assert "Traceback" not in captured.err


def test_a_model_that_does_not_fit_exits_3_and_says_what_is_short(run_json: RunJson) -> None:
    code, answer = run_json("estimate", "kimi-k3", "--on", "8xB200", "-c", "8")
    assert code == 3
    assert answer["error"]["shortfall_bytes_per_gpu"] > 2**30
    assert "does not fit" in answer["error"]["message"]
    code, answer = run_json("memory", "kimi-k3", "--on", "8xB200")
    assert code == 3
    assert answer["fits"] is False
    assert answer["shortfall_bytes_per_gpu"] > 2**30


def test_a_truncated_config_exits_2(tmp_path: Path, run_json: RunJson) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "hidden_si')
    code, answer = run_json("memory", str(path), "--on", "8xB300")
    assert code == 2
    assert "config.json" in answer["error"]["message"]


def test_scenario_file_with_extends_and_flags(tmp_path: Path, run_json: RunJson) -> None:
    (tmp_path / "base.yaml").write_text("model: llama-3.1-8b\nnode: 1xH100-80GB\nkv-dtype: fp8\n")
    (tmp_path / "mine.toml").write_text('extends = "base.yaml"\nmax_num_seqs = 16\n')
    code, answer = run_json("memory", "--scenario", str(tmp_path / "mine.toml"))
    assert code == 0
    fp8 = answer["kv_tokens"]
    code, answer = run_json(
        "memory", "--scenario", str(tmp_path / "mine.toml"), "--kv-dtype", "bf16"
    )
    assert code == 0
    assert fp8 == pytest.approx(2 * answer["kv_tokens"], rel=0.01)
    (tmp_path / "bad.yaml").write_text("model: kimi-k3\nnode: 8xB300\nkv_dtyp: fp8\n")
    code, answer = run_json("memory", "--scenario", str(tmp_path / "bad.yaml"))
    assert code == 2
    assert "kv_dtype" in answer["error"]["nearest"]


def test_no_command_and_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["estimat"])
    assert stop.value.code == 2
    assert "estimate" in capsys.readouterr().err
