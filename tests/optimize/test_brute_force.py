"""Agreement: the interval search finds what a grid finds, on random problems of every kind."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import capmodel as cm
from capmodel.optimize import branch_and_bound
from capmodel.optimize.branch_and_bound import search
from capmodel.optimize.configuration import Configuration
from capmodel.optimize.evaluation import Evaluator, Rules
from capmodel.optimize.evidence import monotonicities, point_value
from capmodel.optimize.objective import Objective

from .toy import ToyEvaluator, brute_force, random_toy, scenario

RULES = Rules()


def _objective(rng: np.random.Generator) -> Objective:
    kind = str(rng.choice(["cost", "margin", "throughput"]))
    demand = float(np.exp(rng.uniform(-1, 3))) if rng.random() < 0.4 else None
    budget = float(np.exp(rng.uniform(1.5, 5))) if rng.random() < 0.2 else None
    return Objective(
        kind=kind,
        demand_requests_per_s=demand,
        headroom=0.9 if demand else 1.0,
        spare_replicas=int(rng.integers(0, 2)) if demand else 0,
        budget_usd_per_hour=budget,
    )


@pytest.mark.parametrize("seed", range(200))
def test_optimum_equals_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_and_bound, "MAX_EVALUATIONS", 10**6)
    rng = np.random.default_rng(seed)
    price = float(rng.choice([0.0, 0.05, 0.3]))
    billing = str(rng.choice(["eligible", "actual", "none"]))
    base = scenario(dram_gb_hour_usd=price, bill_cached=billing)
    sizes = (0.0, *np.sort(rng.uniform(1, 60, int(rng.integers(1, 12)))).tolist())
    spaces, toys = [], []
    for _ in range(int(rng.integers(1, 4))):
        hour = float(rng.uniform(1, 4))
        given = replace(base, gpu_hour_usd=hour)
        # The toy counts DRAM in sessions; prices count bytes, so a size is worth its own GB.
        spaces.append(Configuration(scenario=given, dram_sizes_bytes=tuple(sizes)))
        toys.append(random_toy(rng))
    made: dict[int, ToyEvaluator] = {
        id(space): ToyEvaluator(space, RULES, "fast", toy, int(rng.integers(3, 90)))
        for space, toy in zip(spaces, toys, strict=True)
    }
    objective = _objective(rng)
    found = search(spaces, objective, RULES, "fast", evaluator=lambda space, *_: made[id(space)])
    best, _ = brute_force([made[id(space)] for space in spaces], objective)
    if not math.isfinite(best):
        assert found.best is None
        return
    assert found.best is not None
    assert found.best.value == pytest.approx(best, rel=1e-9)
    total = sum(len(sizes) * m.largest_concurrency for m in made.values())
    assert found.evaluated <= total
    bounds = [e.value for e in found.evidence if e.kind != "point" and e.value is not None]
    assert all(bound >= best * (1 - 1e-9) for bound in bounds)
    assumed = monotonicities(list(made.values()))
    assert max(m.worst for m in assumed) < 1e-9


def test_search_solves_a_small_part_of_a_large_space() -> None:
    rng = np.random.default_rng(5)
    space = Configuration(scenario=scenario(), dram_sizes_bytes=tuple(range(64)))
    made = ToyEvaluator(space, RULES, "fast", random_toy(rng), 1024)
    found = search([space], Objective(), RULES, "fast", evaluator=lambda *_: made)
    assert found.best is not None
    assert found.evaluated < 0.01 * 64 * 1024


@pytest.mark.parametrize("seed", range(5))
def test_real_scenarios_equal_their_grid(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    given = cm.Scenario(
        model=str(rng.choice(["qwen3-8b", "llama-3.1-8b"])),
        node=str(rng.choice(["1xH100-80GB", "1xL40S", "1xH200"])),
        context_tokens_mean=float(rng.uniform(8e3, 4e4)),
        output_tokens_mean=float(rng.uniform(100, 900)),
        max_num_seqs=int(rng.integers(4, 10)),
        max_model_len=100_000,
        offload=f"dram:{int(rng.integers(2, 12))}GB",
        dram_gb_hour_usd=float(rng.choice([0.0, 0.01])),
        gpu_hour_usd=2.0,
    )
    plan = cm.optimize(given, level="closed")
    made = plan.search.evaluators[0]
    grid = Evaluator(made.configuration, plan.question.rules, "closed")
    every = made.configuration.dram_sizes_bytes
    sizes = every[:: max(len(every) // 4, 1)]
    values = [
        point_value(plan.question.objective, made.configuration, point)
        for dram in (*sizes, every[-1])
        for sessions in range(1, made.largest_concurrency + 1)
        if not (point := grid.point(sessions, dram)).broken
    ]
    best = min(v for v in values if v is not None)
    certificate = plan.certificate
    assert certificate.lower_bound <= best * (1 + 1e-9)
    assert certificate.optimum <= best * (1 + 1e-9)
    assert certificate.relative_gap == 0.0
    assert certificate.plan_value <= certificate.optimum / 0.99
