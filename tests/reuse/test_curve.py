"""The public entry: sources, methods, results, errors, and the command."""

import json
import math

import numpy as np
import pytest

from capmodel.errors import IngestError, SpecError
from capmodel.reuse.curve import METHODS, hit_rate_curve
from capmodel.reuse.fit import fit_gaps, fit_lognormal_mixture, fit_workload, with_mean_gap
from capmodel.reuse.stack_distance import Checkpoints
from capmodel.spec.distributions import LognormalMixture

from .sessions_for_tests import drawn_table

TABLE = drawn_table(seed=2, sessions=120)
LANES, ROOMS = [3, 8], [2e3, 6e3, 2e4]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("service", ["none", "recorded"])
def test_every_method_answers_in_the_same_shape(method, service):
    curve = hit_rate_curve(TABLE, LANES, ROOMS, method, service, seeds=1, requests=3000)
    assert [(r.concurrency, r.capacity_tokens) for r in curve.rows] == [
        (c, b) for c in LANES for b in ROOMS
    ]
    for row in curve.rows:
        assert 0 <= row.hit_rate <= row.theoretical_hit_rate + 1e-9 < 1


def test_feedback_needs_a_method_that_has_it():
    for method in ("exact", "finite-population", "moments"):
        curve = hit_rate_curve(TABLE, 8, 9e3, method, "prefill:300", seeds=1, requests=3000)
        assert curve.service == "prefill:300"
        assert len(curve.warm_hit_rates) == (method != "exact")
    with pytest.raises(SpecError, match="feedback"):
        hit_rate_curve(TABLE, 8, 9e3, "fluid", "prefill:300")


def test_the_gap_cap_is_part_of_the_answer():
    short, long = (
        hit_rate_curve(TABLE, 8, 6e3, think_time_cap_s=cap).to_dict() for cap in (2.0, math.inf)
    )
    assert short["think_time_cap_s"] == 2.0 and long["think_time_cap_s"] is None
    assert short["rows"][0]["hit_rate"] != long["rows"][0]["hit_rate"]
    production = hit_rate_curve(TABLE, 8, 6e3, gaps="production", idle_limit_s=20.0)
    assert production.think_time_cap_s == 20.0
    assert production.rows[0].theoretical_hit_rate < short["rows"][0]["theoretical_hit_rate"]


def test_a_catalog_workload_by_name_with_sensitivities():
    curve = hit_rate_curve("agentic-coding-2026-04", [8], [7e5], sensitivity=True)
    assert curve.think_time_cap_s == 60.0
    # One number, the context, decides most.
    assert max(curve.sensitivities, key=lambda k: abs(curve.sensitivities[k])) == "tree_tokens_mean"
    assert "decides" in str(curve)


def test_a_workload_has_neither_sessions_nor_recorded_service():
    with pytest.raises(SpecError, match="trace"):
        hit_rate_curve("agentic-coding", 8, 1e6, "exact")
    with pytest.raises(SpecError, match="service_mean_s"):
        hit_rate_curve("agentic-coding", 8, 1e6, service="recorded")


def test_shared_prefixes_and_checkpoints_pass_through():
    plain = hit_rate_curve(TABLE, 12, [2e3]).rows[0]
    shared = hit_rate_curve(TABLE, 12, [2e3], shared_prefix_tokens=150.0).rows[0]
    exact = hit_rate_curve(
        TABLE, 12, [2e3], "exact", shared_prefix_tokens=150.0, requests=20_000
    ).rows[0]
    assert shared.hit_rate > plain.hit_rate
    assert shared.hit_rate == pytest.approx(exact.hit_rate, abs=0.02)
    hybrid = Checkpoints(every_tokens=math.inf, state_tokens=100.0)
    closed = hit_rate_curve(TABLE, 8, [5e3, 1e4], checkpoints=hybrid).rows
    replayed = hit_rate_curve(TABLE, 8, [5e3, 1e4], "exact", checkpoints=hybrid).rows
    for one, other in zip(closed, replayed, strict=True):
        assert one.hit_rate == pytest.approx(other.hit_rate, abs=0.04)


def test_unknown_names_and_numbers_are_refused_with_the_nearest():
    with pytest.raises(SpecError, match="agentic-coding"):
        hit_rate_curve("agentic-codin", 8, 1e6)
    with pytest.raises(IngestError, match="no such file"):
        hit_rate_curve("sessions.csv", 8, 1e6)
    with pytest.raises(SpecError, match="finite-population"):
        hit_rate_curve(TABLE, 8, 1e6, "finite")
    for lanes, rooms in ((0, 1e6), (1.5, 1e6), (8, -1.0), (8, math.nan), ([], 1e6)):
        with pytest.raises(SpecError):
            hit_rate_curve(TABLE, lanes, rooms)


def test_results_are_tables_pictures_and_json():
    curve = hit_rate_curve(TABLE, LANES, ROOMS)
    assert list(curve.to_frame().columns) == [
        "concurrency", "capacity_tokens", "hit_rate", "theoretical_hit_rate",
    ]  # fmt: skip
    body = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert body["method"] == "finite-population" and len(body["rows"]) == 6
    import matplotlib

    matplotlib.use("Agg")
    axes = curve.plot(over=hit_rate_curve(TABLE, LANES, ROOMS, "mean-field"))
    assert len(axes.lines) == 2 * len(LANES) + 1
    import matplotlib.pyplot as plt

    plt.close(axes.figure)
    assert "<table>" in curve._repr_html_()


def test_the_command_prints_one_object(run_json, tmp_path):
    code, body = run_json(
        "curve", "agentic-coding-2026-04", "-c", "8,16", "--capacity-tokens", "1e6,3.25M"
    )
    assert code == 0 and body["think_time_cap_s"] == 60.0
    assert [row["capacity_tokens"] for row in body["rows"]] == [1e6, 3.25e6, 1e6, 3.25e6]
    code, body = run_json("curve", "agentic-coding", "-c", "8", "--capacity-tokens", "many")
    assert code == 2 and body["error"]["field"] == "capacity_tokens"
    path = tmp_path / "t.csv"
    path.write_text("session,input_tokens\na,10\na,12\nb,20\nb,oops\n")
    code, body = run_json("curve", str(path), "-c", "1", "--capacity-tokens", "10")
    assert code == 2 and body["error"]["line"] == 5


def test_mixture_fits_find_the_law_they_were_drawn_from():
    rng = np.random.default_rng(0)
    pick = rng.random(40_000) < 0.7
    values = np.where(pick, rng.lognormal(2.0, 0.4, 40_000), rng.lognormal(5.0, 1.0, 40_000))
    law = fit_lognormal_mixture(values, 2)
    assert law.weights[0] == pytest.approx(0.7, abs=0.02)
    assert law.medians == pytest.approx((math.exp(2), math.exp(5)), rel=0.06)
    assert law.sigmas == pytest.approx((0.4, 1.0), abs=0.04)


def test_a_fitted_workload_keeps_the_moments_and_gives_a_near_curve():
    workload = fit_workload(TABLE, think_time_cap_s=60.0)
    assert workload.request_tokens_mean == pytest.approx(TABLE.input_tokens.mean())
    assert workload.theoretical_hit_rate == pytest.approx(TABLE.theoretical_hit_rate)
    capped = np.minimum(TABLE.think_s[TABLE.think_s > 0], 60.0)
    assert workload.think_time.mean() == pytest.approx(capped.mean(), rel=0.05)
    ours = hit_rate_curve(workload, 8, ROOMS)
    theirs = hit_rate_curve(TABLE, 8, ROOMS)
    for one, other in zip(ours.rows, theirs.rows, strict=True):
        assert one.hit_rate == pytest.approx(other.hit_rate, abs=0.08)


def test_gaps_of_nothing_are_a_constant():
    table = drawn_table(sessions=4)
    assert fit_gaps(table.capped(0.0)) == LognormalMixture.constant(0.0)


def test_a_person_may_give_a_few_numbers_of_their_own(run_json):
    base = hit_rate_curve("agentic-coding-2026-04", 12, 1e6)
    own = hit_rate_curve(
        "agentic-coding-2026-04", 12, 1e6,
        overrides={"context_tokens_mean": 60_000, "think_time_mean_s": 10.0},
    )  # fmt: skip
    assert own.rows[0].hit_rate > base.rows[0].hit_rate + 0.1
    code, body = run_json(
        "curve", "agentic-coding-2026-04", "-c", "12", "--capacity-tokens", "1M",
        "--context-tokens-mean", "60000", "--think-time-mean-s", "10",
    )  # fmt: skip
    assert code == 0 and body["rows"][0]["hit_rate"] == pytest.approx(own.rows[0].hit_rate)
    with pytest.raises(SpecError, match="cap of 60 s"):
        hit_rate_curve("agentic-coding-2026-04", 8, 1e6, overrides={"think_time_mean_s": 90.0})
    with pytest.raises(SpecError, match="overrides are for workloads"):
        hit_rate_curve(TABLE, 8, 1e6, overrides={"context_tokens_mean": 3.0})


def test_a_stretched_gap_law_keeps_its_cap_and_gets_its_mean():
    law = LognormalMixture(weights=(0.5, 0.5), medians=(5.0, 40.0), sigmas=(0.5, 1.5), cap=60.0)
    stretched = with_mean_gap(law, 25.0)
    assert stretched.mean() == pytest.approx(25.0, rel=1e-6)
    assert stretched.cap == 60.0
