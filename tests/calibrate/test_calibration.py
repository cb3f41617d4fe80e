"""Calibration, comparison and live check on the pipeline itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capmodel.calibrate.adjustment import Adjustment, adjusted_law, adjusted_run
from capmodel.calibrate.calibration import calibrate
from capmodel.calibrate.comparison import compare
from capmodel.calibrate.forward import scenario_forward
from capmodel.calibrate.live_check import live_check, sessions_by_little
from capmodel.calibrate.metrics_scrape import Window
from capmodel.calibrate.observation import Observation
from capmodel.cli import main
from capmodel.errors import SpecError
from capmodel.pipeline import run
from capmodel.scenario import Scenario

K3 = Scenario(model="kimi-k3", node="8xB300").resolve()


def observed(concurrency: int, **factors: float) -> Observation:
    forward = scenario_forward(K3, ())
    found = forward(Adjustment(**factors), concurrency)
    kept = ("output_tokens_per_s", "hit_rate")
    return Observation(concurrency=concurrency, measured={name: found[name] for name in kept})


def test_without_factors_the_adjusted_run_is_the_pipelines() -> None:
    plain, again = run(K3, concurrency=12), adjusted_run(K3, concurrency=12)
    assert again.output_tokens_per_s == pytest.approx(plain.output_tokens_per_s, rel=1e-12)
    assert again.point.headline == plain.point.headline


def test_twice_the_efficiency_everywhere_halves_every_step() -> None:
    law = run(K3, concurrency=1).law
    twice = adjusted_law(
        law, Adjustment(compute_efficiency=2.0, bandwidth_efficiency=2.0, step_overhead=0.5)
    )
    steps = (np.array([0.0, 4096.0]), np.array([0.0, 1e5]), np.array([4.0, 2.0]), 1e5)
    np.testing.assert_allclose(twice.step_s(*steps), 0.5 * law.step_s(*steps), rtol=1e-12)


@pytest.mark.parametrize("name", ["compute_efficiency", "usable_kv"])
def test_more_of_a_resource_never_lowers_the_output(name: str) -> None:
    outputs = [
        adjusted_run(K3, concurrency=14, adjustment=Adjustment(**{name: factor}))
        .output_tokens_per_s
        for factor in (0.8, 1.0, 1.25)
    ]  # fmt: skip
    assert outputs == sorted(outputs)


def test_a_factor_of_zero_is_refused() -> None:
    with pytest.raises(SpecError, match="usable_kv"):
        Adjustment(usable_kv=0.0)


def test_calibration_finds_a_planted_working_set_near_the_cliff() -> None:
    points = [observed(c, working_set=1.2) for c in (8, 10, 12)]
    found = calibrate(K3, points, names=("working_set",))
    value, low, high = found.posterior.interval("working_set")
    assert low <= 1.2 <= high
    assert value == pytest.approx(1.2, rel=0.03)
    answer = found.to_dict()
    assert answer["parameters"]["working_set"]["absolute"]["unit"] == "tokens"
    assert answer["cliff"]["low"] <= answer["cliff"]["concurrency"] <= answer["cliff"]["high"]
    assert answer["leave_one_out_median_abs_error"] < 0.03
    json.dumps(answer, allow_nan=False)


def test_a_run_of_the_model_itself_needs_no_cause() -> None:
    answer = compare(K3, observed(8)).to_dict()
    assert answer["likely_cause"].startswith("none needed")
    for row in answer["rows"]:
        assert row["noise_low"] <= row["predicted"] <= row["noise_high"]


def test_a_run_of_larger_sessions_is_told_by_its_hits() -> None:
    large = compare(K3, observed(10, working_set=1.6)).to_dict()
    assert "working_set" in large["likely_cause"] or "usable_kv" in large["likely_cause"]
    assert not next(row for row in large["rows"] if row["name"] == "hit_rate")["inside"]


def window(**changes: float) -> Window:
    given = Window(
        engine="vllm", seconds=900.0, requests_per_s=0.2, prompt_tokens_per_s=2.7e4,
        output_tokens_per_s=181.0, hit_rate_hbm=0.93, hit_rate_tier=None, ttft_mean_s=1.5,
        tpot_mean_s=0.02, running=4.0, waiting=0.0, pool_tokens=3.25e6, pool_used=0.2,
        idle_before_evict_s=None, source="two scrapes",
    )  # fmt: skip
    return replace(given, **changes)


def test_littles_law_gives_the_sessions_of_a_window() -> None:
    cycle = K3.workload.think_time.mean() + 1.5 + 0.02 * (181.0 / 0.2 - 1.0)
    assert sessions_by_little(K3, window()) == pytest.approx(0.2 * cycle)
    assert sessions_by_little(K3, window(running=30.0, waiting=5.0)) == 35.0


def test_fewer_hits_mean_larger_sessions_and_a_nearer_cliff() -> None:
    good, _, _ = live_check(K3, window(hit_rate_hbm=0.93), concurrency=10)
    bad, _, _ = live_check(K3, window(hit_rate_hbm=0.60), concurrency=10)
    assert bad.working_set_tokens[0] > good.working_set_tokens[0]
    assert bad.cliff is not None and good.cliff is not None and bad.cliff < good.cliff
    assert bad.cap is not None and bad.cap < 10
    assert "cap live sessions" in bad.verdict
    assert good.pool_tokens == pytest.approx(3.25e6, rel=0.02)


def test_blocks_that_stay_for_ever_lose_no_hit_and_hold_the_pool() -> None:
    short, _, _ = live_check(K3, window(idle_before_evict_s=5.0), concurrency=10)
    ever, _, _ = live_check(K3, window(idle_before_evict_s=1e6), concurrency=10)
    assert ever.residency_hit_rate == pytest.approx(K3.workload.theoretical_hit_rate)
    assert short.residency_hit_rate is not None and ever.residency_hit_rate is not None
    assert short.residency_hit_rate < ever.residency_hit_rate
    # With every gap inside the residency, all sessions' tokens are in the pool: B = C w.
    assert ever.residency_working_set_tokens == pytest.approx(3.25e6 / 10, rel=1e-6)


def test_commands_print_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.csv"
    file.write_text("concurrency,output_tokens_per_s,hit_rate\n16,49.6,0.027\n", encoding="utf-8")
    main(["compare", str(file), "--model", "kimi-k3", "--on", "8xB300", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= {"rows", "likely_cause", "next_measurement"}
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", str(file), "--model", "kimi-k3", "--on", "8xB300", "--json"])
    assert stop.value.code == 2
    assert "two concurrencies" in json.loads(capsys.readouterr().out)["error"]["message"]
