"""Scenario files and callers: every field is of its kind, or refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import capmodel as cm
from capmodel.errors import SpecError, nearest_names

PLAIN: dict[str, Any] = {"model": "llama-3.1-8b", "node": "1xH100-80GB"}


def written(folder: Path, **values: Any) -> cm.Scenario:
    path = folder / "scenario.json"
    path.write_text(json.dumps({**PLAIN, **values}), encoding="utf-8")
    return cm.load_scenario(path)


@pytest.mark.parametrize(("word", "meant"), [("off", False), ("On", True), (False, False)])
def test_a_switch_is_what_it_says(tmp_path: Path, word: object, meant: bool) -> None:
    assert written(tmp_path, prefix_caching=word).prefix_caching is meant


def test_numbers_written_as_text_are_numbers(tmp_path: Path) -> None:
    scenario = written(tmp_path, context_tokens_mean="1e4", tp="1", engine_version=1.5)
    assert scenario.context_tokens_mean == 1e4
    assert scenario.tp == 1
    assert scenario.engine_version == "1.5"


def test_a_number_of_yaml_without_a_point_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("model: llama-3.1-8b\nnode: 1xH100-80GB\noutput_tokens_mean: 1e3\n")
    assert cm.load_scenario(path).output_tokens_mean == 1e3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prefix_caching", "perhaps"), ("prefix_caching", 1), ("prefix_caching", None),
        ("model", 3), ("model", None), ("node", ["1xH200"]), ("workload", 7), ("price", 3),
        ("engine", 1), ("kv_dtype", 8), ("weights", []), ("bill_cached", 0),
        ("offload", 5), ("speculate", 2), ("offload_bandwidth", "abc"),
        ("nodes", True), ("nodes", "two"), ("nodes", 10**30), ("tp", 0), ("pp", 0), ("dp", 0),
        ("ep", 1.5), ("ep", math.nan), ("ep", math.inf), ("max_num_seqs", 1.5),
        ("max_model_len", math.inf), ("max_num_batched_tokens", math.nan),
        ("gpu_hour_usd", True), ("gpu_hour_usd", "cheap"), ("gpu_hour_usd", 1e308),
        ("context_tokens_mean", 1e300), ("gpu_memory_utilization", 2),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(SpecError, match=field):
        cm.Scenario(**{**PLAIN, field: value}).resolve()


def test_names_that_begin_alike_come_first() -> None:
    known = ("H200", "H100-80GB", "H100-NVL", "A100-80GB")
    assert nearest_names("h100", known)[:2] == ["H100-80GB", "H100-NVL"]


@pytest.mark.parametrize("sessions", [8, [], None])
def test_a_sweep_needs_a_list(sessions: Any) -> None:
    with pytest.raises(SpecError, match="list"):
        cm.sweep(cm.Scenario(**PLAIN), sessions)


def test_contexts_of_one_token_have_an_answer() -> None:
    scenario = cm.Scenario(**PLAIN, context_tokens_mean=1)
    assert cm.estimate(scenario, 8, level="closed").requests_per_s > 0


def test_a_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(PLAIN), encoding="utf-8-sig")
    assert cm.load_scenario(path).model == PLAIN["model"]


def test_a_node_of_absurd_size_is_refused() -> None:
    with pytest.raises(SpecError, match="node"):
        cm.Scenario(model="llama-3.1-8b", node="99999999999999xB300").resolve()
