"""Numbers, lists and files that the command line refuses before any work starts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from capmodel.cli import main
from capmodel.cli.options import MOST_POINTS, emit, integer_list
from capmodel.errors import SpecError

K3 = ("kimi-k3", "--on", "8xB300")
CURVE = ("curve", "agentic-coding", "--capacity-tokens", "1M")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("estimate", *K3, "-c", "8", "--gpu-hour-usd", "1e308"), "not in the range"),
        (("estimate", *K3, "-c", "8", "--price", "in=1e308,cached=1,out=1"), "at most 1e+09 USD"),
        (("estimate", *K3, "-c", "8", "--output-tokens-mean", "1e300"), "not in the range"),
        (("sweep", *K3, "-c", "²"), "not a whole number"),
        (("sweep", *K3, "-c", "1-100000000"), "over 4096 points"),
        ((*CURVE, "-c", "1-²"), "not a whole number"),
        ((*CURVE, "-c", "1", "--tree-tokens-mean", "1e300"), "not in the range"),
        ((*CURVE, "-c", "1", "--service-mean-s", "nan"), "not a finite number"),
        ((*CURVE, "-c", "1", "--plot", "/nope/x.png"), "cannot be written"),
        ((*CURVE, "-c", "1", "--plot", "x.bogus"), "suffix names the format"),
        (("optimize", *K3, "--certificate", "/nope/x.json"), "cannot be written"),
        (("simulate", *K3, "-c", "2", "--warm-up", "nan"), "not a finite number"),
        (("simulate", *K3, "-c", "2", "--window-s", "nan"), "not a finite number"),
        (("simulate", *K3, "-c", "2", "--time-limit-s", "inf"), "not a finite number"),
        (("compare", "x.csv", "--model", "kimi-k3", "--window-s", "nan"), "not a finite number"),
        (("calibrate", "x.csv", "--model", "kimi-k3", "--seconds", "0"), "not in the range"),
        (("list",), "Choose from: models, accelerators"),
    ],
)
def test_one_line_and_exit_2(
    args: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("capmodel: ")
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_lists_up_to_the_cap_are_answered() -> None:
    assert integer_list(f"1-{MOST_POINTS}", "c") == list(range(1, MOST_POINTS + 1))
    with pytest.raises(SpecError, match="points"):
        integer_list(f"1-{MOST_POINTS},7", "c")


def test_a_result_that_is_not_finite_is_named() -> None:
    class Overflow:
        def to_dict(self) -> dict[str, Any]:
            return {"cost": {"margin": [1.0, math.inf]}}

    with pytest.raises(SpecError, match=r"cost\.margin\[1\] is not finite"):
        emit(Overflow(), as_json=True)


def test_an_output_file_may_not_be_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sweep", *K3, "-c", "1", "--csv", str(tmp_path)])
    assert stop.value.code == 2
    assert "it is a folder" in capsys.readouterr().err


def test_a_simulation_that_cannot_start_shows_no_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise SpecError("refused.")

    monkeypatch.setattr("capmodel.simulate.simulate", refused)
    with pytest.raises(SystemExit):
        main(["simulate", *K3, "-c", "2"])
    assert capsys.readouterr().err == "capmodel: refused.\n"


def test_a_plan_is_printed_even_if_its_certificate_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "plan.json"
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(SystemExit) as stop:
        main(["optimize", *K3, "--certificate", str(target)])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert "kimi-k3" in captured.out
    assert f"{target} cannot be written: No space left on device." in captured.err
