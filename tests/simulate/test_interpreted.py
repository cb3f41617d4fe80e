"""The same source without a compiler: identical numbers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
if sys.argv[1] == "interpreted":
    sys.modules["numba"] = None  # an import of it now fails, as where it is not installed
from dataclasses import replace
from capmodel.simulate import Tier, published_case, simulate
case = replace(
    published_case("deepseek-v3-8xH200", concurrency=11),
    tier=Tier(tokens=6e5, bytes_per_token=70272, bytes_per_s=2e10),
)
result = simulate(case, turns=250, seeds=1, window_s=60.0).to_dict()
del result["wall_s"]
print(json.dumps(result))
from capmodel.simulate import engine
print(json.dumps(hasattr(engine.advance, "py_func")))
"""


def outcome(mode: str) -> tuple[dict[str, object], bool]:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True
    )
    result, compiled = (json.loads(line) for line in run.stdout.splitlines())
    return result, compiled


def test_importing_the_simulator_loads_no_compiler() -> None:
    script = (
        "import sys, capmodel.simulate, capmodel.simulate.scenario_case, capmodel.cli.simulate;"
        "print([name for name in ('numba', 'scipy', 'pandas') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_compiled_and_interpreted_give_identical_results() -> None:
    pytest.importorskip("numba")
    compiled, is_compiled = outcome("compiled")
    interpreted, is_interpreted_compiled = outcome("interpreted")
    assert is_compiled
    assert not is_interpreted_compiled
    assert compiled == interpreted
