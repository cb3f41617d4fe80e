"""The ledger and the command: one screen, one object, the right exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capmodel import catalog
from capmodel.cli import main
from capmodel.memory.budget import kv_budget
from capmodel.memory.ledger import rows
from capmodel.spec.deployment import Deployment

RunJson = Callable[..., tuple[int, dict[str, Any]]]


def test_the_ledger_is_one_screen_and_accounts_for_all_memory() -> None:
    budget = kv_budget(
        catalog.model("kimi-k3"), catalog.node("8xB300"), Deployment(tp=8, kv_dtype="fp8")
    )
    lines = str(budget).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert sum(size for _, size in rows(budget)) == pytest.approx(budget.hbm_bytes_per_gpu)


def test_the_picture_has_a_bar_for_every_part() -> None:
    import matplotlib

    matplotlib.use("Agg")
    budget = kv_budget(catalog.model("qwen3-8b"), catalog.node("1xL4"), Deployment())
    ax = budget.plot()
    width = sum(patch.get_width() for patch in ax.patches)
    assert width * 2**30 == pytest.approx(budget.hbm_bytes_per_gpu)
    assert budget.plot(ax) is ax
    matplotlib.pyplot.close("all")


def test_the_frame_and_the_notebook_form_say_the_same() -> None:
    budget = kv_budget(catalog.model("qwen3-8b"), catalog.node("1xL4"), Deployment())
    frame = budget.to_frame()
    assert frame["share"].sum() == pytest.approx(1.0)
    assert "KV pool" in set(frame["part"])
    assert "qwen3-8b on 1xL4" in budget._repr_html_()


def test_the_logged_pool_of_k3(run_json: RunJson) -> None:
    code, answer = run_json(
        "memory", "kimi-k3", "--on", "8xB300", "--tp", "8", "--kv-dtype", "fp8",
        "--available-kv-gib", "42.23", "--max-model-len", "1048576",
    )  # fmt: skip
    assert code == 0
    assert answer["kv_tokens"] == 3_249_215
    assert (answer["kv_blocks"], answer["blocks_per_request"]) == (2135, 689)


def test_what_does_not_fit_is_shown_whole_and_exits_3(run_json: RunJson) -> None:
    code, answer = run_json("memory", "kimi-k3", "--on", "8xB200")
    assert code == 3
    assert answer["fits"] is False
    assert answer["shortfall_bytes_per_gpu"] > 0
    assert answer["error"]["type"] == "InfeasibleError"
    assert {"field": "nodes", "value": 2}.items() <= answer["error"]["remedies"][-1].items()


def test_tokens_wanted_become_gib(run_json: RunJson) -> None:
    code, answer = run_json("memory", "kimi-k3", "--on", "8xB300", "--tokens", "3249215")
    assert code == 0
    assert answer["pool_for_tokens"]["blocks"] == 2135


def test_a_truncated_config_is_bad_input(run_json: RunJson, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", ', encoding="utf-8")
    code, answer = run_json("memory", str(tmp_path), "--on", "8xB300")
    assert code == 2
    assert answer["error"]["type"] == "IngestError"


def test_text_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["memory", "qwen3-8b", "--on", "1xL4", "--plot", str(tmp_path / "bar.svg")])
    assert (tmp_path / "bar.svg").stat().st_size > 1000
    assert "KV pool" in capsys.readouterr().out


def test_inverse_questions(run_json: RunJson, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = run_json("memory", "kimi-k3", "--on", "8xB300", "--inverse")
    assert code == 0
    assert answer["inverse"]["smallest_node"] == "8xB300"
    assert 0.74 <= answer["inverse"]["lowest_utilization"] < 0.90
    assert answer["inverse"]["longest_context_tokens"] == 1_048_576
    main(["memory", "qwen3-8b", "--on", "8xL4", "--inverse", "--tokens", "50000"])
    text = capsys.readouterr().out
    assert "smallest   1xL4" in text
    assert "50,000 tokens need" in text
