"""Pictures: what is drawn is what was answered, and the same answer draws the same bytes."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import capmodel as cm
from capmodel.cli import main
from capmodel.report.canvas import inline_svg, save
from capmodel.report.estimate_figure import neighbours
from capmodel.report.frontier_figure import frontier_figure, revenue_usd_per_mtok
from capmodel.report.plan_figure import plan_figure
from capmodel.report.sweep_csv import COLUMNS, sweep_csv
from capmodel.report.tornado import swings, tornado_figure

SCENARIO = cm.Scenario(model="kimi-k3", node="8xB300")
ANSWER = cm.estimate(SCENARIO, 8, level="closed")
SWEEP = cm.sweep(SCENARIO, [2, 4, 8], level="closed")


def test_estimate_picture_marks_the_point() -> None:
    axes = ANSWER.plot()
    x, y = axes.lines[-1].get_data()
    assert (list(x), list(y)) == ([8], [ANSWER.output_tokens_per_s])
    assert axes.get_xlim()[1] > ANSWER.cliff.high


def test_neighbours_hold_the_point_and_reach_past_a_near_cliff() -> None:
    around = neighbours(ANSWER)
    assert around == sorted(set(around))
    assert ANSWER.concurrency in around
    assert around[-1] > ANSWER.cliff.high


def test_step_bars_add_up_to_one() -> None:
    axes = ANSWER.explain().plot()
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert max(ends) == pytest.approx(1.0)


def test_frontier_draws_the_price_floor() -> None:
    axes = frontier_figure(SWEEP)
    floor = axes.lines[-1].get_ydata()[0]
    row = SWEEP.rows[-1]
    # Where own cost meets the floor, the margin is zero.
    margin = 1.0 - row.run.cost.usd_per_mtok_total / floor
    assert floor == revenue_usd_per_mtok(SWEEP.rows[0])
    assert row.to_dict()["cost"]["margin"] == pytest.approx(margin)


def test_tornado_is_sorted_and_its_ends_enclose_the_point() -> None:
    found = swings(ANSWER)
    widths = [swing.width for swing in found]
    assert widths == sorted(widths, reverse=True)
    for swing in found:
        low, high = sorted(swing.output_tokens_per_s)
        assert low <= ANSWER.output_tokens_per_s * 1.001
        assert high >= ANSWER.output_tokens_per_s * 0.999
    assert len(tornado_figure(ANSWER, found).get_yticks()) == len(found)


def test_plan_picture_marks_the_plan_and_the_rules() -> None:
    plan = cm.optimize(SCENARIO, level="closed")
    axes = plan_figure(plan)
    star = next(line for line in axes.lines if line.get_marker() == "*")
    assert star.get_ydata()[0] == pytest.approx(plan.best.run.cost.usd_per_mtok_total)
    # The filled points over both curves are the allowed ones.
    filled = [line for line in axes.lines if line.get_linestyle() == "None" and line is not star]
    allowed = [point for point in plan.frontier if point.allowed]
    assert sum(len(line.get_xdata()) for line in filled) == len(allowed)


def test_same_answer_same_bytes() -> None:
    assert inline_svg(SWEEP.plot()) == inline_svg(SWEEP.plot())


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(sweep_csv(SWEEP))))
    assert list(rows[0]) == list(COLUMNS)
    assert [int(row["concurrency_sessions"]) for row in rows] == [2, 4, 8]
    output = [float(row["output_tokens_per_s"]) for row in rows]
    assert output == [row.output_tokens_per_s for row in SWEEP.rows]


def test_frame_of_one_estimate_has_one_row() -> None:
    frame = ANSWER.to_frame()
    assert len(frame) == 1
    assert frame["hit_rate.overall"][0] == ANSWER.hit_rate.overall


K3 = ["kimi-k3", "--on", "8xB300", "--level", "closed", "-c"]


@pytest.mark.parametrize(
    ("command", "flag", "name", "start"),
    [
        (["estimate", *K3, "8"], "--plot", "a.svg", b"<?xml"),
        (["estimate", *K3, "8"], "--html", "a.html", b"<!doctype html>"),
        (["sweep", *K3, "4,8"], "--html", "a.html", b"<!doctype html>"),
        (["sweep", *K3, "4,8"], "--csv", "a.csv", b"model,node"),
        (["explain", *K3, "8"], "--plot", "a.png", b"\x89PNG"),
        (["optimize", *K3[:-1]], "--plot", "a.svg", b"<?xml"),
        (["memory", "kimi-k3", "--on", "8xB300"], "--plot", "a.pdf", b"%PDF"),
    ],
)
def test_commands_write_files(
    tmp_path: Path, command: list[str], flag: str, name: str, start: bytes
) -> None:
    path = tmp_path / name
    main([*command, flag, str(path)])
    assert path.read_bytes().startswith(start)


def test_unknown_picture_format_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["estimate", *K3, "8", "--plot", str(tmp_path / "a.xyz")])
    assert stop.value.code == 2
    assert ".svg" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--plot", "--html"])
def test_folder_that_is_not_there_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    suffix = {"--plot": "svg", "--html": "html"}[flag]
    with pytest.raises(SystemExit) as stop:
        main(["estimate", *K3, "8", flag, str(tmp_path / "none" / f"a.{suffix}")])
    assert stop.value.code == 2
    assert "cannot be written" in capsys.readouterr().err


def test_csv_to_stdout_is_all_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["sweep", *K3, "4,8", "--csv", "-"])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_saved_svg_has_no_date(tmp_path: Path) -> None:
    save(SWEEP.plot(), tmp_path / "a.svg")
    assert "dc:date" not in (tmp_path / "a.svg").read_text(encoding="utf-8")
