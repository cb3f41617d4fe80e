"""A simulated scenario under the names an estimate uses, for the whole replica."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .result import SimulationResult, Summary
from .scenario_case import ScenarioCase

COLLAPSED = 0.5  # a window under this share of the theoretical hit rate
DRIFT = 0.05  # realised mean prompt against the workload's, before it is said aloud


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationAnswer:
    """A result of one data-parallel rank, and what scales it to the replica.

    Parameters
    ----------
    scenario_case : ScenarioCase
        What ran.
    result : SimulationResult
        What came out, one rank.
    request_tokens_mean : float
        Mean prompt that the workload asks for [tokens].
    """

    scenario_case: ScenarioCase
    result: SimulationResult
    request_tokens_mean: float

    @property
    def scale(self) -> float:
        """Replica over simulated rank [1]."""
        return self.scenario_case.concurrency / self.result.concurrency

    @property
    def warnings(self) -> list[str]:
        """What the numbers do not show by themselves."""
        found = list(self.scenario_case.budget.warnings)
        result = self.result
        if not result.complete:
            found.append(f"the time limit cut the run to {result.turns} turns.")
        realised = result.input_tokens_per_s / result.requests_per_s
        if abs(realised / self.request_tokens_mean - 1.0) > DRIFT:
            found.append(
                f"the simulated mean prompt is {realised:.0f} tokens, the workload's "
                f"{self.request_tokens_mean:.0f}: long contexts are rare, and end at the longest "
                "request."
            )
        branches, factor = self.scenario_case.case.branches, self.scenario_case.tree_factor
        if branches > 1:
            found.append(
                f"a session tree is simulated as {branches} branches of prompt size, picked at "
                "random turn by turn: an assumption."
            )
        elif factor > 1.0:
            found.append(
                f"every turn is taken to use, and pin, its whole session tree of {factor:.2f} "
                "prompts: an assumption (--tree branches for the other end)."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of ``capmodel simulate``; rates are the replica's."""
        result, scale, gpus = self.result, self.scale, self.scenario_case.gpus
        hits, width = result.hit_rate, result.half_widths
        total = (result.input_tokens_per_s + result.output_tokens_per_s) * scale
        rates = ("requests_per_s", "output_tokens_per_s", "input_tokens_per_s")
        half_widths = {f"throughput.{name}": width[name] * scale for name in rates}
        half_widths |= {name: value for name, value in width.items() if "." in name}
        for name, summary in self._times().items():
            half_widths |= {f"{name}.{key}": value for key, value in summary.half_widths.items()}
        answer: dict[str, Any] = {
            "model": self.scenario_case.budget.model,
            "node": self.scenario_case.budget.node,
            "concurrency": self.scenario_case.concurrency,
            "kv_tokens": self.scenario_case.budget.kv_tokens,
            "usable_kv_tokens": self.scenario_case.budget.usable_kv_tokens,
            "hit_rate": {
                "hbm": hits.hbm,
                "offload": hits.offload,
                "overall": hits.overall,
                "theoretical": hits.theoretical,
            },
            "throughput": {
                **{name: getattr(result, name) * scale for name in rates},
                "total_tokens_per_s": total,
                "total_tokens_per_s_per_gpu": total / gpus,
            },
            **{
                name: {key: getattr(summary, key) for key in ("mean", "p50", "p90", "p99")}
                for name, summary in self._times().items()
            },
            "interactivity_tokens_per_s": {
                key: 1.0 / getattr(result.tpot_s, key) for key in ("p50", "p90")
            },
            "utilization": result.utilization,
            "preemptions_per_request": result.preemptions / result.turns,
            "composition": {
                name: getattr(result.composition, name)
                for name in (
                    "thinking",
                    "waiting",
                    "loading",
                    "prefilling",
                    "decoding",
                    "live_tokens_over_budget",
                    "over_budget_share",
                    "pinned_share",
                )
            },
            "benchmark_hour": self._benchmark_hour(),
            "p_collapsed": self._collapsed_share(),
            "half_widths": half_widths,
            "simulated": {
                "turns": result.turns,
                "seeds": result.seeds,
                "seconds": result.simulated_s,
                "ranks": 1,
                "complete": result.complete,
            },
            "warnings": self.warnings,
            "evidence": self.scenario_case.budget.evidence,
        }
        return {key: _finite(value) for key, value in answer.items()}

    def __str__(self) -> str:
        hour = self._benchmark_hour()
        scatter = "no whole benchmark window"
        if hour is not None:
            scatter = "{p5:.3g} / {p50:.3g} / {p95:.3g} output tokens/s".format(**hour)
        lines = [str(self.result), f"  one window (p5 / p50 / p95): {scatter}"]
        if self.scale != 1.0:
            lines.append(f"  one rank above; times {self.scale:g} for the replica")
        return "\n".join([*lines, *(f"  note: {text}" for text in self.warnings)])

    def _times(self) -> dict[str, Summary]:
        result = self.result
        return {"ttft_s": result.ttft_s, "tpot_s": result.tpot_s, "e2e_s": result.e2e_s}

    def _benchmark_hour(self) -> dict[str, float] | None:
        spread = self.result.windows.percentiles()
        if spread is None:
            return None
        return {name: value * self.scale for name, value in spread.items()}

    def _collapsed_share(self) -> float | None:
        rates = self.result.windows.hit_rate
        if not rates:
            return None
        bound = COLLAPSED * self.result.hit_rate.theoretical
        return sum(rate < bound for rate in rates) / len(rates)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
