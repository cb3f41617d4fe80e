"""A certificate is accepted when true and refused when anything in it is false."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import capmodel as cm
from capmodel.errors import SpecError
from capmodel.optimize.check import check


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    given = cm.Scenario(model="kimi-k3", node="8xB300", offload="dram:1600GB")
    plan = cm.optimize(given, level="closed")
    return json.loads(json.dumps(plan.certificate.to_dict(), allow_nan=False))


def test_a_true_certificate_is_valid(answer: dict[str, Any]) -> None:
    report = check(answer)
    assert report.ok, report.failures
    assert report.points == 1024 * len(answer["dram_sizes_bytes"][0])
    assert check({"certificate": answer}).ok


def test_a_lower_bound_that_is_too_low_a_promise_is_refused(answer: dict[str, Any]) -> None:
    false = {**answer, "lower_bound": answer["lower_bound"] * 1.05}
    failures = check(false).failures
    assert any("better than the bound" in f or "gap" in f for f in failures)


def test_a_better_optimum_than_there_is_is_refused(answer: dict[str, Any]) -> None:
    false = {**answer, "optimum": answer["optimum"] * 0.9, "lower_bound": answer["optimum"] * 0.9}
    assert any("the optimum is worth" in f for f in check(false).failures)


def test_missing_evidence_is_found(answer: dict[str, Any]) -> None:
    false = {**answer, "evidence": [e for e in answer["evidence"] if e["kind"] != "rate"]}
    assert any("not covered" in f for f in check(false).failures)


@pytest.mark.parametrize("kind", ["rate", "point", "single", "peak"])
def test_a_changed_rate_is_found(answer: dict[str, Any], kind: str) -> None:
    false = copy.deepcopy(answer)
    at = next((e for e in false["evidence"] if e["kind"] == kind), None)
    if at is None:
        pytest.fail(f"the certificate has no {kind} statement; choose another case")
    at["requests_per_s"] *= 0.9
    assert any("the rate is" in f for f in check(false).failures)


def test_an_allowed_point_declared_broken_is_found(answer: dict[str, Any]) -> None:
    false = copy.deepcopy(answer)
    index, sessions, dram = answer["optimum_at"]
    false["evidence"].append(
        {"kind": "broken", "configuration": index, "concurrency": sessions, "dram_bytes": dram}
    )
    assert any("keeps every rule" in f for f in check(false).failures)


def test_other_inputs_are_noticed(answer: dict[str, Any]) -> None:
    false = copy.deepcopy(answer)
    false["question"]["scenarios"][0]["context_tokens_mean"] = 140_000.0
    assert any("inputs differ" in f for f in check(false).failures)


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(SpecError, match="not a certificate"):
        check({"rows": []})


def test_a_scenario_of_objects_has_to_be_given(answer: dict[str, Any]) -> None:
    resolved = cm.Scenario(model="kimi-k3", node="8xB300", max_num_seqs=6, offload="none").resolve()
    body = cm.optimize(resolved, level="closed").certificate.to_dict()
    with pytest.raises(SpecError, match="give the scenarios"):
        check(body)
    assert check(body, [resolved]).ok


def test_a_failed_assumption_costs_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    from capmodel.optimize import planner
    from capmodel.optimize.evidence import Monotonicity

    given = cm.Scenario(model="kimi-k3", node="8xB300", offload="none")
    sure = cm.optimize(given, level="closed").certificate
    false = [Monotonicity(statement="hits do not rise with sessions", pairs=1, worst=0.5)]
    monkeypatch.setattr(planner, "monotonicities", lambda evaluators: false)
    unsure = cm.optimize(given, level="closed").certificate
    assert sure.assumptions_hold and not unsure.assumptions_hold
    assert unsure.lower_bound < sure.lower_bound
    assert unsure.relative_gap > 0
    assert "fails by 50.0%" in unsure.method


def test_a_search_that_stops_short_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from capmodel.optimize import branch_and_bound

    given = cm.Scenario(model="kimi-k3", node="8xB300", offload="none")
    monkeypatch.setattr(branch_and_bound, "MAX_EVALUATIONS", 3)
    short = cm.optimize(given, level="closed", allow_past_cliff=True)
    assert short.certificate.relative_gap > 0
    kept = cm.optimize(given, level="closed").certificate.optimum
    assert short.certificate.lower_bound <= kept
    assert "stopped short" in short.certificate.method
    report = check(json.loads(json.dumps(short.certificate.to_dict())))
    assert report.ok, report.failures
