"""Calibration: a user's own points in, factors with intervals and a sharper model out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..scenario import ResolvedScenario, Scenario
from .adjustment import PARAMETERS, Adjustment
from .calibrated_cliff import CalibratedCliff, calibrated_cliff
from .checks import check_points, check_units
from .forward import scenario_forward
from .identifiability import Candidate, Forecast, forecasts, next_measurement, warnings
from .observation import QUANTITIES, Observation
from .point_files import read_points
from .posterior import Posterior, fit, prior_table

ABSOLUTE = {
    "working_set": ("tree_tokens_mean", "tokens"),
    "usable_kv": ("usable_kv_tokens", "tokens"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Factors on the uncalibrated model with 90% intervals.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    points : tuple of Observation
        What was fitted.
    absolute : dict of str to float
        Uncalibrated figures that a factor multiplies.
    warnings : tuple of str
        What the points leave open.
    forecasts : tuple of Forecast
        Answers at loads of interest, with intervals from the factors'.
    suggestion : Candidate or None
        The measurement that would help most next.
    cliff : CalibratedCliff or None
        Where hits are lost under these factors.
    """

    posterior: Posterior
    points: tuple[Observation, ...]
    absolute: dict[str, float]
    warnings: tuple[str, ...]
    forecasts: tuple[Forecast, ...]
    suggestion: Candidate | None
    cliff: CalibratedCliff | None

    @property
    def adjustment(self) -> Adjustment:
        """Factors to solve a scenario with."""
        return self.posterior.adjustment

    @property
    def residuals(self) -> list[dict[str, Any]]:
        """Relative (or, for shares, absolute) errors after the fit and left out, per figure."""
        fitted = self.posterior.residuals * self.posterior.sigmas
        left_out = self.posterior.leave_one_out
        return [
            {
                "concurrency": concurrency,
                "quantity": quantity,
                "fitted_error": _relative(quantity, -float(error)),
                "leave_one_out_error": _relative(quantity, -float(held)),
            }
            for (concurrency, quantity), error, held in zip(
                self.posterior.labels, fitted, left_out, strict=True
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        rows = self.residuals
        errors = [abs(row["leave_one_out_error"]) for row in rows]
        return {
            "parameters": {name: self._parameter(name) for name in self.posterior.names},
            "residuals": rows,
            "leave_one_out_median_abs_error": float(np.median(errors)),
            "noise_inflation": self.posterior.inflation,
            "forecasts": [forecast.to_dict() for forecast in self.forecasts],
            "cliff": None if self.cliff is None else self.cliff.to_dict(),
            "robustness": self.robustness,
            "warnings": list(self.warnings),
            "next_measurement": None
            if self.suggestion is None
            else {
                "concurrency": self.suggestion.concurrency,
                "quantity": self.suggestion.quantity,
                "narrows": self.suggestion.factor,
            },
        }

    @property
    def robustness(self) -> str | None:
        """Whether the largest measured load is on a known side of the cliff."""
        if self.cliff is None:
            return None
        return self.cliff.robustness(max(point.concurrency for point in self.points))

    def _parameter(self, name: str) -> dict[str, Any]:
        value, low, high = self.posterior.interval(name)
        entry = {"value": value, "low": low, "high": high, "kind": "fitted", "unit": "1"}
        if name in ABSOLUTE:
            label, unit = ABSOLUTE[name]
            base = self.absolute[name]
            entry["absolute"] = {
                "name": label, "unit": unit,
                "value": base * value, "low": base * low, "high": base * high,
            }  # fmt: skip
        prior = prior_table()["priors"][name]
        entry["prior_sigma"] = prior["sigma"]
        return entry

    def __str__(self) -> str:
        lines = ["factors on the uncalibrated model, 90% intervals"]
        for name in self.posterior.names:
            entry = self._parameter(name)
            line = f"  {name:22s}{entry['value']:7.3f}  [{entry['low']:.3f}, {entry['high']:.3f}]"
            if "absolute" in entry:
                held = entry["absolute"]
                line += f"   {held['name']} {held['value']:.4g} {held['unit']}"
            lines.append(line)
        answer = self.to_dict()
        lines.append(
            "error of a point predicted from the others: median "
            f"{100 * answer['leave_one_out_median_abs_error']:.1f}%"
        )
        for forecast in self.forecasts:
            value, low, high = forecast.values["output_tokens_per_s"]
            hits = forecast.values["hit_rate"][0]
            lines.append(
                f"C = {forecast.concurrency:<4d} output {value:.4g} tok/s [{low:.4g}, {high:.4g}], "
                f"hits {hits:.2f}"
            )
        if self.cliff is not None:
            lines.append(
                f"cliff at C = {self.cliff.concurrency} [{self.cliff.low}, {self.cliff.high}], cap "
                f"{self.cliff.session_cap}; {self.robustness}"
            )
        lines += [f"note: {text}" for text in self.warnings]
        if self.suggestion is not None:
            lines.append(
                f"next: measure {self.suggestion.quantity} at C = {self.suggestion.concurrency}; "
                f"it narrows {self.suggestion.factor} most"
            )
        return "\n".join(lines)


def _relative(quantity: str, error: float) -> float:
    return error if QUANTITIES[quantity] == "share" else float(np.expm1(error))


def calibrate(
    scenario: Scenario | ResolvedScenario,
    points: Sequence[Observation] | str | Path,
    *,
    names: Sequence[str] = PARAMETERS,
    rate_noise: float | None = None,
    accepted_tokens: float | None = None,
    level: str = "fast",
) -> Calibration:
    """Return the factors that a deployment's own points imply.

    Parameters
    ----------
    scenario : Scenario
        What was run.
    points : sequence of Observation, or path
        At least two concurrencies; a file is read as the command line reads it.
    names : sequence of str
        Factors to fit, of `PARAMETERS`.
    rate_noise : float, optional
        Relative standard deviation of measured rates [1].
    accepted_tokens : float, optional
        Accepted length of a draft [tokens].
    level : str
        Queue model.

    Raises
    ------
    IngestError
        If the points are malformed, mixed, too few or contradict each other.
    """
    resolved = scenario.resolve() if isinstance(scenario, Scenario) else scenario
    if isinstance(points, str | Path):
        points = read_points([points], gpus=resolved.node.total_gpus)
    check_points(points)
    recorded = {name for point in points for name in point.measured}
    forward = scenario_forward(
        resolved, tuple(recorded), accepted_tokens=accepted_tokens, level=level
    )
    plain = Adjustment()
    check_units(points, [forward(plain, p.concurrency) for p in points], resolved.node.total_gpus)
    posterior = fit(forward, points, names=names, rate_noise=rate_noise)
    answers = forecasts(forward, posterior, _candidates(points))
    return Calibration(
        posterior=posterior,
        points=tuple(points),
        absolute=_absolute(resolved),
        warnings=warnings(posterior),
        forecasts=answers,
        suggestion=next_measurement(posterior, answers),
        cliff=calibrated_cliff(
            forward,
            posterior,
            resolved.workload.theoretical_hit_rate,
            max(point.concurrency for point in points),
        ),
    )


def _candidates(points: Sequence[Observation]) -> list[int]:
    """Concurrencies worth asking about: one, doublings, and beyond what was measured."""
    most = max(point.concurrency for point in points)
    return sorted({1, max(most // 2, 1), most, round(1.5 * most), 2 * most})


def _absolute(resolved: ResolvedScenario) -> dict[str, float]:
    from ..memory.budget import kv_budget

    budget = kv_budget(resolved.model, resolved.node, resolved.deployment)
    return {
        "working_set": resolved.workload.tree_tokens_mean,
        "usable_kv": float(budget.usable_kv_tokens),
    }
