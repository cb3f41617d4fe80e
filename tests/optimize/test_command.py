"""The command: one JSON object, the exit codes, and the check of a certificate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from capmodel.cli import main


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, capsys.readouterr().out


def test_json_and_certificate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    code, out = _run(
        capsys, "optimize", "kimi-k3", "--on", "8xB300", "--offload", "none", "--level", "closed",
        "--certificate", str(path), "--json",
    )  # fmt: skip
    answer = json.loads(out)
    assert code == 0 and answer["feasible"]
    assert 6 <= answer["best"]["concurrency"] <= 12
    assert answer["certificate"]["relative_gap"] == 0
    code, out = _run(capsys, "optimize", "--check", str(path), "--json")
    assert code == 0 and json.loads(out)["ok"]
    body = json.loads(path.read_text())
    body["lower_bound"] *= 1.2
    path.write_text(json.dumps(body))
    code, out = _run(capsys, "optimize", "--check", str(path), "--json")
    assert code == 2 and not json.loads(out)["ok"]


def test_the_infeasible_exits_with_three(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = _run(
        capsys, "optimize", "kimi-k3", "--on", "8xB300", "--slo", "ttft_p50=0.001", "--level",
        "closed", "--json",
    )  # fmt: skip
    error = json.loads(out)["error"]
    assert code == 3 and error["type"] == "InfeasibleError"
    assert error["relaxations"][0]["key"] == "ttft_p50"


def test_estimates_import_no_solver() -> None:
    script = (
        "import sys, capmodel as cm; "
        "cm.estimate(cm.Scenario(model='qwen3-0.6b', node='1xH100-80GB'), 2, level='closed'); "
        "cm.optimize(cm.Scenario(model='qwen3-0.6b', node='1xH100-80GB', max_num_seqs=4, "
        "context_tokens_mean=4000.0), level='closed'); "
        "heavy = ('cvxpy', 'sympy', 'scipy', 'pandas', 'matplotlib'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
