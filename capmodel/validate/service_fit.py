"""Engine constants from benchmarks: a few losses per engine, fitted over sources, never per model.

Kimi K3 rows stay out, so that its anchors are predictions; agentic rows are in no table read here.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from ..catalog import accelerator, efficiencies
from ..service.roofline import EngineConstants, precedes
from .service_cases import ServiceCase, cases, law_of, prediction

FloatArray = npt.NDArray[np.float64]

HELD_OUT = Path(__file__).parent / "data" / "service_held_out.yaml"
ENGINES = ("vllm", "sglang", "trtllm", "atom")
EARLY = ("vllm", "sglang")
SOFT_LOG = 0.2
PRIOR_WEIGHT = 0.2
SOURCE_ROWS = 12
LATENCY_WEIGHT = 0.4
FEW_CLIENTS = 8
Z90 = 1.645


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One constant: its prior median and the standard deviation of its logarithm [1]."""

    name: str
    prior: float
    spread: float


def parameters() -> tuple[Parameter, ...]:
    """Return every fitted constant with its prior, in a fixed order."""
    per_engine = [
        Parameter(name=f"{engine}.{name}", prior=prior, spread=spread)
        for engine in ENGINES
        for name, prior, spread in (
            ("kernel_floor_s", 2.5e-6, 0.5),
            ("prefill_efficiency", 0.8, 0.15),
            ("decode_efficiency", 0.85, 0.2),
        )
    ]
    early = [
        Parameter(name=f"{engine}.early.{name}", prior=prior, spread=spread)
        for engine in EARLY
        for name, prior, spread in (
            ("kernel_floor_s", 4e-6, 0.5),
            ("prefill_efficiency", 0.5, 0.3),
        )
    ]
    shared = [
        Parameter(name="amd.kernel_floor_factor", prior=1.4, spread=0.5),
        Parameter(name="host_step_s", prior=5e-4, spread=0.8),
        Parameter(name="host_sequence_s", prior=1e-5, spread=0.8),
        Parameter(name="request_s", prior=0.05, spread=0.6),
        Parameter(name="expert_dispersion", prior=1.0, spread=0.7),
        Parameter(name="experts_efficiency", prior=0.8, spread=0.3),
    ]
    return (*per_engine, *early, *shared)


def constants_of(values: dict[str, float], case: ServiceCase) -> EngineConstants:
    """Return the constants that parameter values mean for a case's engine, build and vendor."""
    assert case.deployment is not None
    engine, version = case.deployment.engine, case.deployment.engine_version
    table = efficiencies("engines")["engines"][engine]
    early = any(precedes(version, build["before"]) for build in table.get("builds", ()))
    build = f"{engine}.early" if early else engine
    floor = values[f"{build}.kernel_floor_s"]
    # ATOM runs on AMD alone, so its own floor has the factor in it.
    if engine != "atom" and accelerator(case.accelerator).vendor == "AMD":
        floor *= values["amd.kernel_floor_factor"]
    return EngineConstants(
        mixed_steps=bool(table["mixed_steps"]),
        kernel_floor_s=floor,
        prefill_efficiency=min(1.0, values[f"{build}.prefill_efficiency"]),
        decode_efficiency=min(1.0, values[f"{engine}.decode_efficiency"]),
        host_step_s=values["host_step_s"],
        host_sequence_s=values["host_sequence_s"],
        request_s=values["request_s"],
        expert_dispersion=values["expert_dispersion"],
        experts_efficiency=min(1.0, values["experts_efficiency"]),
    )


def fitted_cases() -> list[ServiceCase]:
    """Return the cases constants are fitted on."""
    return [case for case in cases() if not case.unusable and case.model != "kimi-k3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFit:
    """A fit.

    Parameters
    ----------
    values : dict of str to float
        Constants by name.
    intervals : dict of str to (float, float)
        90% jackknife over sources.
    held_out : dict of str to dict
        Constants without each source, one Gauss-Newton step from the fit.
    """

    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    held_out: dict[str, dict[str, float]]


def residuals(values: dict[str, float]) -> tuple[FloatArray, list[str]]:
    """Return weighted log residuals of the fitted cases, and the source of each."""
    chosen = fitted_cases()
    counts = Counter(case.collection for case in chosen)
    rows: list[float] = []
    sources: list[str] = []
    for case in chosen:
        key = case.collection
        weight = min(1.0, math.sqrt(SOURCE_ROWS / counts[key]))
        point = prediction(case, law_of(case, constants_of(values, case)))
        assert case.deployment is not None
        pairs = [(weight, point.output_tokens_per_s, case.output_tokens_per_s)]
        if case.requests is None and point.running >= case.concurrency / case.deployment.dp:
            pairs.append((weight, point.tpot_s, case.tpot_s))
        if case.concurrency <= FEW_CLIENTS:
            pairs.append((LATENCY_WEIGHT * weight, point.ttft_s, case.ttft_s))
        for factor, predicted, measured in pairs:
            if measured:
                rows.append(factor * math.log(predicted / measured))
                sources.append(key)
    return np.asarray(rows), sources


def fit() -> ServiceFit:
    """Fit the constants by robust least squares on logarithms, with weak priors.

    Notes
    -----
    Minimises ``sum rho(w log(predicted / measured)) + sum ((log theta - log prior) / s)^2`` with
    ``rho(r) = 2 d^2 (sqrt(1 + (r/d)^2) - 1)``; a source counts as at most 12 rows.
    """
    from scipy.optimize import least_squares

    table = parameters()
    prior = np.log([parameter.prior for parameter in table])
    spread = np.asarray([parameter.spread for parameter in table])

    def named(theta: FloatArray) -> dict[str, float]:
        return {p.name: float(math.exp(x)) for p, x in zip(table, theta, strict=True)}

    def objective(theta: FloatArray) -> FloatArray:
        rows, _ = residuals(named(theta))
        soft = SOFT_LOG * np.sqrt(2 * (np.sqrt(1 + (rows / SOFT_LOG) ** 2) - 1))
        return np.concatenate([soft, PRIOR_WEIGHT * (theta - prior) / spread])

    found = least_squares(objective, prior, diff_step=3e-3, max_nfev=12)
    _, sources = residuals(named(found.x))
    left_out = {}
    for key in sorted(set(sources)):
        kept = np.array([source != key for source in sources] + [True] * len(table))
        step = np.linalg.lstsq(found.jac[kept], -found.fun[kept], rcond=None)[0]
        left_out[key] = found.x + step
    stack = np.asarray(list(left_out.values()))
    scatter = ((stack - stack.mean(axis=0)) ** 2).sum(axis=0)
    error = np.sqrt((len(stack) - 1) / len(stack) * scatter)
    low, high = named(found.x - Z90 * error), named(found.x + Z90 * error)
    return ServiceFit(
        values=named(found.x),
        intervals={p.name: (low[p.name], high[p.name]) for p in table},
        held_out={key: named(theta) for key, theta in left_out.items()},
    )


@cache
def held_out_values() -> dict[str, Any]:
    """Return the shipped fit: constants with all sources, and without each."""
    loaded: dict[str, Any] = yaml.safe_load(HELD_OUT.read_text(encoding="utf-8"))
    return loaded


def constants_without_source(case: ServiceCase) -> EngineConstants:
    """Return the constants for a case, fitted without the source it comes from."""
    shipped = held_out_values()
    names: list[str] = shipped["parameters"]
    row = shipped["without"].get(case.collection, shipped["all"])
    return constants_of(dict(zip(names, row, strict=True)), case)
