"""One measured run against the model: figures, the run's own noise, the likely cause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..network.benchmark_hour import benchmark_hour
from ..pipeline import Run
from ..scenario import ResolvedScenario
from .adjustment import PARAMETERS, Adjustment, adjusted_run
from .forward import Forward, scenario_forward
from .identifiability import Candidate, forecasts, next_measurement
from .live_check import LiveCheck
from .observation import QUANTITIES, Observation
from .posterior import NORMAL_95, fit, noise_sigma, prior_sigma

CAUSES = {
    "compute_efficiency": ("prefills run slower", "prefills run faster"),
    "bandwidth_efficiency": ("decode steps move bytes slower", "decode steps move bytes faster"),
    "step_overhead": ("steps carry less fixed time", "steps carry more fixed time"),
    "working_set": ("sessions hold fewer live tokens", "sessions hold more live tokens"),
    "gap_scale": ("gaps between requests are shorter", "gaps between requests are longer"),
    "usable_kv": ("the engine keeps fewer KV tokens", "the engine keeps more KV tokens"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: measured, predicted, and where runs of this length would fall."""

    name: str
    measured: float
    predicted: float
    noise_low: float
    noise_high: float

    @property
    def inside(self) -> bool:
        """Whether the measured figure lies in the run's own noise."""
        return self.noise_low <= self.measured <= self.noise_high

    def to_dict(self) -> dict[str, float | str | bool]:
        """Return the row of the contract."""
        return {
            "name": self.name, "measured": self.measured, "predicted": self.predicted,
            "noise_low": self.noise_low, "noise_high": self.noise_high, "inside": self.inside,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """A run beside the model.

    Parameters
    ----------
    concurrency : int
        Live sessions [1].
    rows : tuple of Row
        Figures.
    likely_cause : str
        The one factor that explains most, or that there is nothing to explain.
    suggestion : Candidate or None
        The measurement that would tell most.
    window_s : float
        Length of the run [s].
    live : LiveCheck or None
        Where a scraped deployment stands.
    """

    concurrency: int
    rows: tuple[Row, ...]
    likely_cause: str
    suggestion: Candidate | None
    window_s: float
    live: LiveCheck | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        found = self.suggestion
        return {
            "concurrency": self.concurrency,
            "window_s": self.window_s,
            "rows": [row.to_dict() for row in self.rows],
            "likely_cause": self.likely_cause,
            "next_measurement": None
            if found is None
            else f"{found.quantity} at C = {found.concurrency}, which narrows {found.factor} most",
            "live": None if self.live is None else self.live.to_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{'':22s}{'measured':>11s}{'predicted':>11s}   a run of this length shows"]
        for row in self.rows:
            mark = "" if row.inside else "  outside"
            lines.append(
                f"{row.name:22s}{row.measured:11.4g}{row.predicted:11.4g}   "
                f"{row.noise_low:.4g} to {row.noise_high:.4g}{mark}"
            )
        answer = self.to_dict()
        lines.append(f"likely cause: {self.likely_cause}")
        if answer["next_measurement"]:
            lines.append(f"next: measure {answer['next_measurement']}")
        if self.live is not None:
            lines += ["", str(self.live)]
        return "\n".join(lines)


def compare(
    resolved: ResolvedScenario,
    observation: Observation,
    *,
    window_s: float = 3600.0,
    accepted_tokens: float | None = None,
    level: str = "fast",
    live: LiveCheck | None = None,
) -> RunComparison:
    """Return one measured run beside the uncalibrated model.

    Parameters
    ----------
    resolved : ResolvedScenario
        What was run.
    observation : Observation
        What was measured.
    window_s : float
        Length of the run [s].
    accepted_tokens : float, optional
        Accepted length of a draft [tokens].
    level : str
        Queue model.
    live : LiveCheck, optional
        Where the deployment stands, for a scraped one.
    """
    names = tuple(observation.measured)
    forward = scenario_forward(resolved, names, accepted_tokens=accepted_tokens, level=level)
    predicted = forward(Adjustment(), observation.concurrency)
    solved = adjusted_run(
        resolved,
        concurrency=observation.concurrency,
        accepted_tokens=accepted_tokens,
        level=level,
    )
    rows = tuple(
        _row(name, observation.measured[name], predicted[name], solved, window_s) for name in names
    )
    posterior = fit(forward, [observation])
    most = observation.concurrency
    return RunComparison(
        concurrency=observation.concurrency,
        rows=rows,
        likely_cause=_cause(rows, forward, observation),
        suggestion=next_measurement(
            posterior, forecasts(forward, posterior, sorted({1, most, round(1.5 * most)}))
        ),
        window_s=window_s,
        live=live,
    )


def _row(name: str, measured: float, predicted: float, solved: Run, window_s: float) -> Row:
    kind = QUANTITIES[name]
    if kind == "time":
        spread = math.exp(NORMAL_95 * noise_sigma(name))
        low, high = predicted / spread, predicted * spread
    else:
        hour = benchmark_hour(solved.point, solved.scenario.workload, window_s=window_s)
        runs = hour.hit_rate if kind == "share" else hour.requests_per_s
        edges = np.quantile(runs, [0.05, 0.5, 0.95])
        # Sessions drawn and the machine's own scatter add to the wandering composition.
        sigma = noise_sigma(name)
        if kind == "share":
            low = min(predicted, float(edges[0])) - NORMAL_95 * sigma
            high = max(predicted, float(edges[2])) + NORMAL_95 * sigma
            low, high = max(low, 0.0), min(high, 1.0)
        else:
            spread = math.exp(NORMAL_95 * sigma)
            middle = max(float(edges[1]), 1e-12)
            low = predicted * min(float(edges[0]) / middle, 1.0) / spread
            high = predicted * max(float(edges[2]) / middle, 1.0) * spread
    return Row(name=name, measured=measured, predicted=predicted, noise_low=low, noise_high=high)


def _cause(rows: Sequence[Row], forward: Forward, observation: Observation) -> str:
    """The single factor with the highest posterior density, in words."""
    if all(row.inside for row in rows):
        return "none needed: every figure lies within the scatter of runs of this length"
    best, best_cost, best_log = "", math.inf, 0.0
    for name in PARAMETERS:
        found = fit(forward, [observation], names=(name,))
        cost = float(np.sum(found.residuals**2) + (found.mode[0] / prior_sigma(name)) ** 2)
        if cost < best_cost:
            best, best_cost, best_log = name, cost, float(found.mode[0])
    words = CAUSES[best][0 if best_log < 0 else 1]
    return f"{words} than assumed ({best} x {math.exp(best_log):.2f})"
