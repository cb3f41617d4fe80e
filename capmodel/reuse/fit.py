"""Fit the mixture families of a workload to a session table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..spec.distributions import LognormalMixture
from ..spec.workload import Workload
from .session_table import SessionTable

FloatArray = npt.NDArray[np.float64]


def fit_lognormal_mixture(
    values: FloatArray, parts: int = 2, *, floor: float = 0.5, iterations: int = 200
) -> LognormalMixture:
    """Return the mixture of lognormals of greatest likelihood, by expectation-maximisation.

    Parameters
    ----------
    values : ndarray
        Positive numbers; values under `floor` are raised to it, half of the resolution of a
        recorded second [unit of the variable].
    parts : int
        Number of lognormals [1].
    """
    if values.size < 2 * parts:
        raise SpecError(f"{parts} lognormals need at least {2 * parts} values.")
    logs = np.sort(np.log(np.maximum(values, floor)))
    chunks = np.array_split(logs, parts)
    weight = np.full(parts, 1.0 / parts)
    mean = np.array([chunk.mean() for chunk in chunks])
    sigma = np.maximum([chunk.std() for chunk in chunks], 0.05)
    for _ in range(iterations):
        score = (logs[:, None] - mean) / sigma
        density = weight / sigma * np.exp(-0.5 * score**2) + 1e-300
        member = density / density.sum(axis=1, keepdims=True)
        mass = member.sum(axis=0)
        before = mean
        mean = (member * logs[:, None]).sum(axis=0) / mass
        spread = (member * (logs[:, None] - mean) ** 2).sum(axis=0) / mass
        sigma = np.maximum(np.sqrt(spread), 0.05)
        weight = mass / mass.sum()
        if np.abs(mean - before).max() < 1e-7:
            break
    order = np.argsort(mean)
    shares = [float(w) for w in weight[order]]
    shares[-1] = 1.0 - sum(shares[:-1])
    return LognormalMixture(
        weights=tuple(shares),
        medians=tuple(float(m) for m in np.exp(mean[order])),
        sigmas=tuple(float(s) for s in sigma[order]),
    )


def fit_gaps(table: SessionTable, parts: int = 3) -> LognormalMixture:
    """Return the law of the gaps between the requests of a session, uncapped [s]."""
    first = np.zeros(table.requests, dtype=np.bool_)
    first[table.session_starts[:-1]] = True
    gaps = table.think_s[~first]
    if gaps.size < 2 * parts or not np.any(gaps > 0):
        return LognormalMixture.constant(float(gaps.mean()) if gaps.size else 0.0)
    return fit_lognormal_mixture(gaps, parts)


def fit_workload(table: SessionTable, *, think_time_cap_s: float = 60.0) -> Workload:
    """Return the workload whose moments are those of a session table.

    Lanes hold what a request holds: a table of serial requests does not know session trees.
    """
    context, output = table.input_tokens, table.output_tokens
    return Workload(
        name=table.name,
        request_tokens_mean=float(context.mean()),
        request_tokens_cv=float(context.std() / context.mean()),
        tree_tokens_mean=float(context.mean()),
        tree_tokens_cv=float(context.std() / context.mean()),
        output_tokens_mean=float(max(output.mean(), 1.0)),
        output_tokens_cv=float(output.std() / max(output.mean(), 1.0)),
        turns_mean=table.requests / table.sessions,
        theoretical_hit_rate=table.theoretical_hit_rate,
        think_time=fit_gaps(table).capped(think_time_cap_s),
        max_context_tokens=float(context.max()),
        provenance={"kind": "fitted", "source": table.name},
    )


def with_mean_gap(law: LognormalMixture, mean_s: float) -> LognormalMixture:
    """Return a gap law stretched so that its mean under its cap is `mean_s` [s].

    Raises
    ------
    SpecError
        If the cap does not allow that mean.
    """
    if not 0 < mean_s < law.cap:
        raise SpecError(
            f"a mean gap must lie between 0 and the cap of {law.cap:g} s, got {mean_s:g}.",
            field="think_time_mean_s",
        )
    low, high = 1e-9, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        below = law.scaled(middle).mean() < mean_s
        low, high = (middle, high) if below else (low, middle)
    return law.scaled(high)


def input_sensitivities(
    workload: Workload, hit_rate: Callable[[Workload], float], step: float = 0.05
) -> dict[str, float]:
    """Return how much the hit rate moves when an input moves by its evidence, or by 10% [1].

    Parameters
    ----------
    workload : Workload
        Central values; `intervals` where the evidence has them.
    hit_rate : callable
        The quantity of interest as a function of the workload.
    step : float
        Half-width taken for inputs without an interval [1].
    """
    moves: dict[str, float] = {}
    scalars = (
        "tree_tokens_mean", "tree_tokens_cv", "request_tokens_mean", "output_tokens_mean",
        "theoretical_hit_rate",
    )  # fmt: skip
    for name in scalars:
        centre = getattr(workload, name)
        low, high = workload.intervals.get(name, (centre * (1 - step), centre * (1 + step)))
        if name == "theoretical_hit_rate":
            high = min(high, 0.999)
        ends = [hit_rate(replace(workload, **{name: value})) for value in (low, high)]
        moves[name] = ends[1] - ends[0]
    gaps = [workload.think_time.scaled(factor) for factor in (1 - step, 1 + step)]
    ends = [hit_rate(replace(workload, think_time=gap)) for gap in gaps]
    moves["think_time"] = ends[1] - ends[0]
    return moves
