"""The forward model of a calibration: factors and a concurrency in, measured quantities out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from ..memory.budget import KvBudget
from ..pipeline import Run, fitting_budget
from ..scenario import ResolvedScenario
from .adjustment import Adjustment, base_law, solved_under

PERCENTILES = ("_p50_s", "_p90_s")
Forward = Callable[[Adjustment, int], Mapping[str, float]]


def scenario_forward(
    resolved: ResolvedScenario,
    quantities: Sequence[str],
    *,
    accepted_tokens: float | None = None,
    level: str = "fast",
) -> Forward:
    """Return the forward model of a scenario for the quantities asked for.

    Parameters
    ----------
    resolved : ResolvedScenario
        What was run.
    quantities : sequence of str
        Names of `QUANTITIES`; percentiles are only sampled where one is asked for.
    accepted_tokens : float, optional
        Accepted length of a draft [tokens].
    level : str
        Queue model.
    """
    sampled = any(name.endswith(PERCENTILES) for name in quantities)
    law = base_law(resolved, accepted_tokens)

    @cache
    def budget(concurrency: int) -> KvBudget:
        return fitting_budget(resolved, concurrency)

    @cache
    def forward(adjustment: Adjustment, concurrency: int) -> Mapping[str, float]:
        solved = solved_under(resolved, budget(concurrency), law, adjustment, concurrency, level)
        workload, state = solved.scenario.workload, solved.point.headline
        rate = solved.requests_per_s
        found = {
            "requests_per_s": rate,
            "output_tokens_per_s": rate * workload.output_tokens_mean,
            "total_tokens_per_s": rate
            * (workload.request_tokens_mean + workload.output_tokens_mean),
            "hit_rate": state.hit_rate,
            "hit_rate_hbm": state.hit_rate_hbm,
            **mean_latency(solved),
        }
        if sampled:
            latency = solved.latency()
            for name, spread in (("ttft", latency.ttft_s), ("tpot", latency.tpot_s)):
                found[f"{name}_p50_s"] = spread.p50
                found[f"{name}_p90_s"] = spread.p90
        return found

    return forward


def mean_latency(solved: Run) -> dict[str, float]:
    """Return the mean TTFT and TPOT of a solved run, exact means of its network [s]."""
    weights, flow = solved.point.composition.weights, solved.point.branch.flow
    output = solved.scenario.workload.output_tokens_mean
    return {
        "ttft_mean_s": float(weights @ (flow.wait_s + flow.load_s + flow.prefill_s)),
        "tpot_mean_s": float(weights @ flow.decode_s) / max(output - 1.0, 1.0),
    }
