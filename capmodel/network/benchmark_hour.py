"""What one benchmark hour would show: the composition wanders slowly, so short runs scatter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..spec.workload import Workload
from .operating_point import OperatingPoint

FloatArray = npt.NDArray[np.float64]

MAX_CYCLES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkHour:
    """Distribution over runs of `window_s` seconds from a stationary start.

    Parameters
    ----------
    requests_per_s, hit_rate : ndarray, shape (runs,)
        Rate [requests/s] and overall hit rate [1] of each run.
    window_s : float
        Length of a run [s].
    """

    requests_per_s: FloatArray
    hit_rate: FloatArray
    window_s: float

    def quantiles(self, values: FloatArray) -> dict[str, float]:
        """Return the 5%, 50% and 95% points of one figure over runs."""
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        return {"p5": float(low), "p50": float(middle), "p95": float(high)}

    def collapsed(self, theoretical_hit_rate: float) -> float:
        """Share of runs whose hit rate is under half of the theoretical one [1]."""
        return float(np.mean(self.hit_rate < 0.5 * theoretical_hit_rate))


def benchmark_hour(
    point: OperatingPoint,
    workload: Workload,
    *,
    window_s: float = 3600.0,
    runs: int | None = None,
) -> BenchmarkHour:
    """Return the scatter of benchmark runs at an operating point.

    Parameters
    ----------
    point : OperatingPoint
        Solved network, one flow per composition.
    workload : Workload
        Session lengths and sizes.
    window_s : float
        Length of a run [s].
    runs : int, optional
        Sampled runs; fewer for very many sessions [1].

    Notes
    -----
    Sessions grow by the step ``cv mu / sqrt(K (K - 1))`` per turn and end with probability 1/K,
    which gives their size the mean mu and the coefficient of variation cv. Each cycle takes the
    time and has the misses of its composition (quasi-static), until the window is over.
    Exact for: nothing. Approximate for: windows longer than a few cycles.
    """
    sessions = point.concurrency
    paths = runs or int(np.clip(8192 // sessions, 64, 400))
    rng = np.random.default_rng(20260728)
    mean, turns = workload.tree_tokens_mean, workload.turns_mean
    spread = min(workload.tree_tokens_cv, 0.98)
    growth = spread * mean / np.sqrt(max(turns * (turns - 1.0), 1.0))
    first = mean - growth * (turns - 1.0)
    ends = 1.0 / turns
    ages = rng.geometric(ends, size=(paths, sessions)) - 1
    live = point.composition.live_tokens
    flow = point.branch.flow
    kept_share = 1.0 - point.branch.tier_miss
    clock = np.zeros(paths)
    done, tokens, kept = np.zeros(paths), np.zeros(paths), np.zeros(paths)
    for _ in range(MAX_CYCLES):
        running = clock < window_s
        if not running.any():
            break
        total = first * sessions + growth * ages.sum(axis=1)
        cycle = np.exp(np.interp(total, live, np.log(flow.cycle_s)))
        share = np.minimum((window_s - clock) / cycle, 1.0) * running
        done += sessions * share
        # Tokens count, not turns: a heavy composition has longer prompts.
        tokens += total * share
        kept += total * share * np.interp(total, live, kept_share)
        clock += cycle * running
        ages = np.where(rng.random((paths, sessions)) < ends, 0, ages + 1)
    floor = min(
        workload.shared_prefix_tokens / workload.request_tokens_mean, workload.theoretical_hit_rate
    )
    elapsed = np.minimum(np.maximum(clock, 1e-9), window_s)
    return BenchmarkHour(
        requests_per_s=done / elapsed,
        hit_rate=floor + (workload.theoretical_hit_rate - floor) * kept / np.maximum(tokens, 1e-12),
        window_s=window_s,
    )
