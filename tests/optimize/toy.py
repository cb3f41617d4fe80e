"""A configuration whose points cost nothing to solve, so that brute force can be the referee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import capmodel as cm
from capmodel.optimize.configuration import Configuration
from capmodel.optimize.evaluation import Evaluated, Evaluator, Rules
from capmodel.scenario import ResolvedScenario


@dataclass(frozen=True)
class Toy:
    """Think, one queue, and a hit share that falls smoothly once live tokens exceed the cache."""

    think_s: float
    service_s: float
    miss_s: float
    hbm: float
    sharpness: float
    knee: float

    def hits(self, sessions: int, dram: float) -> float:
        room = max(self.hbm, dram)
        return 1.0 / (1.0 + (sessions / room) ** self.sharpness)

    def rate(self, sessions: int, dram: float) -> float:
        return self.capacity(sessions, 1.0 - self.hits(sessions, dram))

    def capacity(self, sessions: int, misses: float) -> float:
        service = self.service_s + misses * self.miss_s
        free = sessions / (self.think_s + service)
        # A smooth minimum of the two asymptotes, rising in sessions and falling in misses.
        return (free**-self.knee + (1.0 / service) ** -self.knee) ** (-1.0 / self.knee)


class ToyEvaluator(Evaluator):
    """Solves toy points in place of the pipeline."""

    def __init__(self, configuration: Configuration, rules: Rules, level: str, toy: Toy, most: int):
        self.configuration, self.rules, self.level = configuration, rules, level
        self.toy, self.most = toy, most
        self.evaluated: dict[tuple[int, float], Evaluated] = {}
        self.lossless_rates: dict[tuple[int, int], float] = {}

    @property
    def largest_concurrency(self) -> int:
        return self.most

    def _evaluate(self, concurrency: int, dram_bytes: float) -> Evaluated:
        share = self.toy.hits(concurrency, dram_bytes)
        run: Any = SimpleNamespace(
            requests_per_s=self.toy.rate(concurrency, dram_bytes),
            point=SimpleNamespace(headline=SimpleNamespace(hit_rate=share)),
        )
        broken = () if share >= self.rules.hit_share else (f"hits at {share:.0%}",)
        return Evaluated(
            concurrency=concurrency,
            dram_bytes=dram_bytes,
            run=run,
            hit_share=share,
            broken=broken,
        )

    def _lossless(self, concurrency: int, fewest: int) -> float:
        return self.toy.capacity(concurrency, 0.0)


def random_toy(rng: np.random.Generator) -> Toy:
    """A toy with everything drawn over an order of magnitude."""
    return Toy(
        think_s=float(np.exp(rng.uniform(0, 4))),
        service_s=float(np.exp(rng.uniform(-3, 0.5))),
        miss_s=float(np.exp(rng.uniform(-1, 3))),
        hbm=float(rng.uniform(2, 20)),
        sharpness=float(rng.uniform(4, 16)),
        knee=float(rng.uniform(2, 8)),
    )


def scenario(**changes: Any) -> ResolvedScenario:
    """A small real scenario that toys borrow their prices and workload from."""
    fields: dict[str, Any] = {
        "model": "qwen3-8b",
        "node": "1xH100-80GB",
        "context_tokens_mean": 8000.0,
        "output_tokens_mean": 300.0,
        "price": "in=1,cached=0.1,out=4",
    }
    return cm.Scenario(**{**fields, **changes}).resolve()


def brute_force(
    evaluators: list[ToyEvaluator], objective: Any
) -> tuple[float, tuple[int, int, float] | None]:
    """The best value over every allowed point, and where it is."""
    from capmodel.optimize.evidence import point_value

    best, place = math.inf, None
    for index, made in enumerate(evaluators):
        for dram in made.configuration.dram_sizes_bytes:
            for sessions in range(1, made.largest_concurrency + 1):
                point = made._evaluate(sessions, dram)
                value = None if point.broken else point_value(objective, made.configuration, point)
                if value is not None and value < best:
                    best, place = value, (index, sessions, dram)
    return best, place
