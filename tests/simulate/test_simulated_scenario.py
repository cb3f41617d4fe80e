"""From workload moments and scenarios to cases, and the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from capmodel.cli.simulate import command
from capmodel.errors import InfeasibleError, SpecError
from capmodel.scenario import Scenario, load_workload
from capmodel.simulate import published_case, simulate
from capmodel.simulate.scenario_case import scenario_case
from capmodel.simulate.workload_laws import session_laws, session_shape


@pytest.mark.parametrize(("name", "branches"), [("agentic-coding", 2), ("8k1k", 1)])
def test_sessions_have_the_workloads_moments(name: str, branches: int) -> None:
    workload = load_workload(name)
    case = replace(
        published_case("kimi-k3-8xB300", concurrency=20),
        sessions=session_laws(workload, branches),
        branches=branches,
        kv_tokens=1e8,
        shared_prefix_tokens=0,
        max_context_tokens=workload.max_context_tokens,
        block_tokens=16,
    )
    result = simulate(case, turns=25_000, seeds=2)
    prompt = result.input_tokens_per_s / result.requests_per_s
    noise = 2 * result.half_widths["input_tokens_per_s"] / result.input_tokens_per_s
    assert prompt == pytest.approx(workload.request_tokens_mean, rel=0.02 + noise)
    output = result.output_tokens_per_s / result.requests_per_s
    assert output == pytest.approx(workload.output_tokens_mean, rel=0.04)
    assert result.hit_rate.theoretical == pytest.approx(workload.theoretical_hit_rate, abs=0.004)
    assert result.hit_rate.reusable in (0.0, 1.0)  # nothing to reuse, or all of it found
    live = 20 * branches * (workload.request_tokens_mean + workload.output_tokens_mean)
    if branches > 1:  # a session of one turn holds nothing while it thinks
        assert result.composition.live_tokens_over_budget == pytest.approx(live / 1e8, rel=0.12)


def test_the_shape_constants_have_a_source_and_an_interval() -> None:
    shape = session_shape()
    assert shape["provenance"]["source"]
    for name in ("growth_share_of_misses", "turns_cv"):
        low, high = shape[name]["interval"]
        assert low < shape[name]["value"] < high


def test_a_hybrid_model_pays_for_its_state() -> None:
    resolved = Scenario(model="kimi-k3", node="8xB300", kv_dtype="fp8").resolve()
    described = scenario_case(resolved, 8)
    case, budget = described.case, described.budget
    assert case.state.resume == "turn_end"
    assert case.block_tokens == budget.block_tokens == 1536
    per_request = budget.resident_blocks_per_live_request * 1536
    tree = resolved.workload.tree_tokens_mean / resolved.workload.request_tokens_mean
    assert (case.branches, described.tree_factor) == (1, pytest.approx(tree))
    split = scenario_case(resolved, 8, tree="branches")
    assert split.case.branches * split.tree_factor == pytest.approx(tree)
    assert split.case.branches > 1
    with pytest.raises(SpecError, match="whole or branches"):
        scenario_case(resolved, 8, tree="half")  # type: ignore[arg-type]
    assert case.state.running_tokens * described.tree_factor == pytest.approx(per_request, abs=2)
    assert case.kv_tokens * described.tree_factor == pytest.approx(budget.kv_blocks * 1536)


def test_ranks_share_the_sessions_and_the_tier() -> None:
    given = {"model": "deepseek-v3", "node": "8xB300", "offload": "dram:1000GB"}
    whole = scenario_case(Scenario(**given).resolve(), 16)
    split = scenario_case(Scenario(**given, dp=4, tp=2).resolve(), 16)
    assert (whole.ranks, whole.case.concurrency) == (1, 16)
    assert (split.ranks, split.case.concurrency) == (4, 4)
    assert split.case.tier is not None
    assert whole.case.tier is not None
    # Eight copies of a latent for one rank, or two for each of four: the same bytes per rank.
    assert split.case.tier.tokens == pytest.approx(whole.case.tier.tokens)


def test_what_cannot_run_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="does not fit"):
        scenario_case(Scenario(model="llama-3.1-405b", node="1xH100-80GB").resolve(), 4)
    with pytest.raises(SpecError, match="whole number"):
        scenario_case(Scenario(model="llama-3.1-8b", node="1xH100-80GB").resolve(), 0)


def test_k3_is_best_at_eight_and_collapsed_at_sixteen() -> None:
    # Public replays on 8xB300 without offload: best at 8; 49.6 output tokens/s at 16.
    resolved = Scenario(model="kimi-k3", node="8xB300", kv_dtype="fp8").resolve()
    output, hits = {}, {}
    for sessions in (4, 8, 16):
        result = simulate(scenario_case(resolved, sessions).case, turns=5000, seeds=2)
        output[sessions] = result.output_tokens_per_s
        hits[sessions] = result.hit_rate.overall
    assert output[8] == max(output.values())
    assert hits[8] > 0.8
    assert hits[16] < 0.4
    assert 1.6 < output[8] / output[16] < 5.0


def test_the_command_prints_one_object() -> None:
    run = CliRunner().invoke(
        command,
        ["llama-3.1-70b", "--on", "8xH100-80GB", "-c", "4", "--turns", "600", "--seeds", "2",
         "--window-s", "600", "--json"],
    )  # fmt: skip
    assert run.exit_code == 0, run.stderr
    answer = json.loads(run.stdout)
    hits = answer["hit_rate"]
    assert hits["hbm"] + hits["offload"] == pytest.approx(hits["overall"])
    assert answer["half_widths"]["throughput.requests_per_s"] > 0
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert answer[name]["p50"] <= answer[name]["p90"] <= answer[name]["p99"]
    tpot, speed = answer["tpot_s"], answer["interactivity_tokens_per_s"]
    assert speed["p90"] == pytest.approx(1 / tpot["p90"])
    assert answer["benchmark_hour"]["p5"] <= answer["benchmark_hour"]["p95"]
    total = answer["throughput"]["total_tokens_per_s"]
    assert answer["throughput"]["total_tokens_per_s_per_gpu"] == pytest.approx(total / 8)


def test_the_command_talks_to_people_and_scales_to_the_replica() -> None:
    arguments = ["deepseek-v3", "--on", "8xB300", "-c", "12", "--turns", "200", "--seeds", "1"]
    run = CliRunner().invoke(command, [*arguments, "--dp", "8", "--tp", "1"])
    assert run.exit_code == 0, run.stderr
    assert "turns/s" in run.stdout
    assert "times 6 for the replica" in run.stdout  # 12 sessions, 2 on the simulated rank
