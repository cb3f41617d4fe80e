"""What the model says of a measured agentic point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..calibrate.adjustment import Adjustment, adjusted_run
from ..network.benchmark_hour import benchmark_hour
from .measured_point import MeasuredPoint, regime
from .replay_clock import replayed_requests_per_s

# InferenceX benchmarks/benchmark_lib.sh: length of the measured window.
WINDOW_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Rates of the replica and hits of one point: the median over windows of the replay's length.

    Parameters
    ----------
    requests_per_s, output_tokens_per_s, total_tokens_per_s : float
        On the replay's clock; total counts cached input [requests/s], [tokens/s].
    hit_rate_hbm, hit_rate, theoretical_hit_rate : float
        Shares of prompt tokens; that of HBM alone is the long-run mean [1].
    gap_share : float
        Share of a session's cycle that is a gap [1].
    """

    requests_per_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float
    hit_rate_hbm: float
    hit_rate: float
    theoretical_hit_rate: float
    gap_share: float

    @property
    def regime(self) -> str:
        """Before, at or past the cliff."""
        return regime(self.hit_rate, self.theoretical_hit_rate)


def prediction(
    point: MeasuredPoint, adjustment: Adjustment | None = None, level: str = "fast"
) -> Prediction:
    """Return the prediction for a usable point, uncalibrated unless adjusted.

    Raises
    ------
    SpecError, InfeasibleError
        If the scenario cannot be solved.
    """
    assert point.scenario is not None
    solved = adjusted_run(
        point.scenario,
        concurrency=point.concurrency,
        adjustment=adjustment,
        accepted_tokens=point.accepted_tokens,
        level=level,
    )
    workload, state = solved.scenario.workload, solved.point.headline
    gap_s = workload.think_time.mean()
    hour = benchmark_hour(solved.point, workload, window_s=WINDOW_S)
    usual = float(np.median(hour.requests_per_s))
    in_a_window = solved.requests_per_s * usual / state.requests_per_s
    rate = replayed_requests_per_s(workload.think_time, in_a_window, float(point.concurrency))
    return Prediction(
        requests_per_s=rate,
        output_tokens_per_s=rate * workload.output_tokens_mean,
        total_tokens_per_s=rate * (workload.request_tokens_mean + workload.output_tokens_mean),
        hit_rate_hbm=state.hit_rate_hbm,
        hit_rate=float(np.median(hour.hit_rate)),
        theoretical_hit_rate=workload.theoretical_hit_rate,
        gap_share=min(gap_s * solved.requests_per_s / point.concurrency, 1.0),
    )
