"""Speed of an operating point by level, of a sweep, and of the command line from process start.

``pytest tests/benchmarks --benchmark-enable --benchmark-only`` prints the figures; the ordinary run
executes each once.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import capmodel as cm
from capmodel.pipeline import run, sweep_runs

SCENARIO = cm.Scenario(model="kimi-k3", node="8xB300", workload="agentic-coding").resolve()


@pytest.mark.parametrize("level", ["closed", "fast", "exact"])
@pytest.mark.parametrize("concurrency", [8, 32])
def test_operating_point(benchmark, level: str, concurrency: int) -> None:  # type: ignore[no-untyped-def]
    solved = benchmark(run, SCENARIO, concurrency=concurrency, level=level)
    assert solved.requests_per_s > 0


def test_sweep_of_64_points(benchmark) -> None:  # type: ignore[no-untyped-def]
    runs = benchmark.pedantic(sweep_runs, (SCENARIO, range(1, 65)), rounds=2)
    assert len(runs) == 64


def test_whole_estimate(benchmark) -> None:  # type: ignore[no-untyped-def]
    answer = benchmark.pedantic(cm.estimate, (SCENARIO, 8), rounds=3)
    assert answer.stable


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["estimate", "kimi-k3", "--on", "8xB300", "-c", "8", "--json"]],
    ids=["help", "estimate"],
)
def test_command_from_process_start(benchmark, arguments: list[str]) -> None:  # type: ignore[no-untyped-def]
    command = [sys.executable, "-m", "capmodel", *arguments]
    done = benchmark.pedantic(
        subprocess.run, (command,), {"capture_output": True, "check": True}, rounds=3
    )
    assert done.stdout
