"""The error tables: within their limits, and every miss named and explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capmodel.validate.memory_cases import read_cases, shipped_cases
from capmodel.validate.memory_set import run


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return run()


def test_tokens_given_the_available_memory(result: dict[str, Any]) -> None:
    assert result["n"] >= 55
    assert result["median_abs_pct_error"] < 0.2
    assert result["share_within_miss_limit"] >= 0.95


def test_available_memory_given_only_the_gpu(result: dict[str, Any]) -> None:
    table = result["tables"]["available_given_gpu"]
    assert table["n"] >= 55
    assert table["median_abs_pct_error"] < 2.5
    assert table["share_within_miss_limit"] >= 0.90


def test_every_miss_and_every_unusable_row_has_a_reason(result: dict[str, Any]) -> None:
    tables = [
        result,
        *(result["tables"][k] for k in ("compressed_attention", "available_given_gpu")),
    ]
    for table in tables:
        for row in [*table["misses"], *table["unusable"]]:
            assert row["reason"], row
    assert {row["id"] for row in result["misses"]} >= {
        row["id"] for row in result["tables"]["verdicts"]["wrong"]
    }
    assert all(row["reason"] for row in result["misses"])


def test_no_certain_verdict_is_wrong(result: dict[str, Any]) -> None:
    verdicts = result["tables"]["verdicts"]
    assert verdicts["n"] >= 40
    assert len(verdicts["wrong"]) <= 2
    assert not any(row["certain"] for row in verdicts["wrong"])


def test_all_logged_pools_of_k3_are_reproduced(result: dict[str, Any]) -> None:
    rows = result["tables"]["k3_logs"]
    assert len(rows) == 11
    assert all(row["reproduced"] for row in rows), rows


def test_the_result_is_plain_json(result: dict[str, Any]) -> None:
    assert json.loads(json.dumps(result, allow_nan=False))["name"] == "memory"


def test_shipped_cases_are_the_references(reference: Path) -> None:
    given = {case.id: case for case in read_cases(reference / "kv_budget_cases.csv")}
    shipped = {case.id: case for case in shipped_cases()}
    assert len(given) == 106
    assert {key: shipped[key] for key in given} == given
    assert {key for key in shipped if key not in given} == {f"k3-{n:02d}" for n in range(1, 11)}


def test_another_table_can_be_measured(reference: Path) -> None:
    assert run(reference / "kv_budget_cases.csv")["n"] >= 50
