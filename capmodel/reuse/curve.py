"""The hit-rate surface H(B, C), from whatever describes the sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import SpecError, nearest_names
from ..spec.workload import Workload
from .block_curve import split_hit_rates, streamed_hit_rates, survival_hit_rates
from .characteristic_time import (
    finite_population_hit_rate,
    fluid_hit_rate,
    mean_field_hit_rate,
)
from .curve_result import CurveResult, CurveRow
from .curve_source import BlockTraceFile, Source, resolved_source
from .feedback import feedback_point
from .fit import fit_gaps, input_sensitivities
from .granularity import checkpointed, state_room, with_shared_prefix
from .lane_law import LaneLaw, lane_law
from .moments import lane_law_of_moments, moments_of_table, moments_of_workload
from .service_model import ServiceModel, parse_service
from .session_table import SessionTable
from .stack_distance import Checkpoints, exact_hit_rates

FloatArray = npt.NDArray[np.float64]

METHODS = ("exact", "finite-population", "mean-field", "moments", "fluid")
# Cap of the public replays of the recorded sessions; a workload brings its own.
DEFAULT_CAP_S = 60.0


def _service_name(service: ServiceModel) -> str:
    if service.kind != "prefill":
        return service.kind
    return f"prefill:{service.prefill_tokens_per_s:g}"


def analytic_hit_rates(
    law: LaneLaw,
    concurrencies: Sequence[int],
    capacities_tokens: Sequence[float],
    method: str,
    service: ServiceModel,
) -> tuple[FloatArray, FloatArray]:
    """Return cold and warm hit rates, shape (concurrencies, capacities) [1]."""
    lanes = np.asarray(concurrencies, dtype=np.float64)[:, None]
    room = np.asarray(capacities_tokens, dtype=np.float64)[None, :]
    if service.has_feedback:
        if method not in ("finite-population", "moments"):
            raise SpecError(
                f"{method} has no queue feedback; use finite-population, moments or exact.",
                field="method",
            )
        points = [
            [feedback_point(law, int(c), float(b), service) for b in capacities_tokens]
            for c in concurrencies
        ]
        cold = np.array([[p.hit_rate for p in row] for row in points])
        return cold, np.array([[p.warm_hit_rate for p in row] for row in points])
    if method == "fluid":
        rates = fluid_hit_rate(law, lanes, room)
    elif method == "mean-field":
        rates = mean_field_hit_rate(law, lanes, room, service.kind)
    else:
        rates = finite_population_hit_rate(law, lanes, room, service.kind)
    return rates, rates


def _checked(values: Sequence[float] | float, field: str, whole: bool) -> list[float]:
    numbers = [float(v) for v in np.atleast_1d(np.asarray(values, dtype=np.float64))]
    low = 1.0 if whole else 0.0
    for value in numbers:
        if not (math.isfinite(value) and value >= low) or (whole and value != int(value)):
            kind = "whole numbers from 1" if whole else "finite numbers from 0"
            raise SpecError(f"{field}: needs {kind}, got {value:g}.", field=field)
    if not numbers:
        raise SpecError(f"{field}: give at least one value.", field=field)
    return numbers


def hit_rate_curve(
    source: Source,
    concurrency: Sequence[int] | int,
    capacity_tokens: Sequence[float] | float,
    method: str = "finite-population",
    service: str | ServiceModel = "none",
    think_time_cap_s: float | None = None,
    *,
    gaps: str = "benchmark",
    idle_limit_s: float = 3600.0,
    shared_prefix_tokens: float | None = None,
    checkpoints: Checkpoints | None = None,
    service_mean_s: float = 0.0,
    sensitivity: bool = False,
    seeds: int = 4,
    requests: int = 100_000,
    shards: int = 1,
    executor: Executor | None = None,
) -> CurveResult:
    """Return the hit rate at every concurrency and capacity.

    Parameters
    ----------
    source : str, path, Workload or SessionTable
        Catalog name, trace file or folder, or the thing itself.
    concurrency, capacity_tokens : number or sequence
        C [1] and B [tokens].
    method : {"finite-population", "exact", "mean-field", "moments", "fluid"}
        Closed form, or replay.
    service : {"none", "recorded", "prefill:RATE"}
        Time in service; a prefill server [tokens/s] brings the queue feedback.
    think_time_cap_s : float, optional
        Cap on gaps [s]; default 60 s for traces, its own for a workload.
    gaps : {"benchmark", "production"}
        Capped gaps, or uncapped ones with sessions that end after `idle_limit_s` [s].
    shared_prefix_tokens : float, optional
        Prefix that all sessions share [tokens]; default the workload's own, 0 for traces.
    checkpoints : Checkpoints, optional
        Resume points and state of a hybrid model.
    service_mean_s : float
        Mean recorded service of a workload that has no table [s].
    sensitivity : bool
        Also say how much the answer depends on each input; for workloads.
    seeds, requests : int
        Replays per concurrency and their length, for ``exact`` [1].
    shards, executor
        Where the exact work runs: parts of a block trace, and any `concurrent.futures.Executor`.

    Returns
    -------
    CurveResult
        Rows of concurrency, capacity, hit rate and ceiling.

    Examples
    --------
    >>> curve = hit_rate_curve("agentic-coding-2026-04", [8, 16], [1e6, 3.25e6])
    >>> [round(row.hit_rate, 1) for row in curve.rows]
    [0.9, 1.0, 0.6, 1.0]
    """
    lanes = [int(c) for c in _checked(concurrency, "concurrency", True)]
    rooms = _checked(capacity_tokens, "capacity_tokens", False)
    if method not in METHODS:
        raise SpecError(
            f"unknown method {method!r}.", field="method",
            nearest=nearest_names(method, METHODS) or METHODS,
        )  # fmt: skip
    model = parse_service(service)
    found = resolved_source(source)
    if isinstance(found, BlockTraceFile):
        return _block_curve(found, lanes, rooms, method, shards, executor)
    name = found.name
    notes: tuple[str, ...] = found.notes if isinstance(found, SessionTable) else ()
    half_widths: tuple[float, ...] = ()
    moves: dict[str, float] = {}
    if isinstance(found, Workload):
        if method == "exact":
            raise SpecError(
                "an exact replay needs sessions: give a trace or a session table.", field="method"
            )
        if model.kind == "recorded" and service_mean_s <= 0:
            raise SpecError(
                "a workload has no recorded service: give service_mean_s, or prefill:RATE.",
                field="service",
            )
        if gaps == "production":
            found = found.with_overrides(think_time_cap_s=idle_limit_s)
        elif think_time_cap_s is not None:
            found = found.with_overrides(think_time_cap_s=think_time_cap_s)
        if shared_prefix_tokens is not None:
            found = replace(found, shared_prefix_tokens=shared_prefix_tokens)
        cap, workload = found.think_time.cap, found

        def surface(item: Workload) -> tuple[FloatArray, FloatArray, float]:
            return _workload_surface(item, lanes, rooms, method, model, checkpoints, service_mean_s)

        cold, warm, ceiling = surface(workload)
        ceilings = np.full(len(lanes), ceiling)
        if sensitivity:
            moves = input_sensitivities(workload, lambda item: float(surface(item)[0].mean()))
    else:
        cap = (
            idle_limit_s
            if gaps == "production"
            else (DEFAULT_CAP_S if think_time_cap_s is None else think_time_cap_s)
        )
        table = found.with_gaps(gaps, think_time_cap_s=cap, idle_limit_s=idle_limit_s)
        shared = shared_prefix_tokens or 0.0
        if method == "exact":
            rates, tops = exact_hit_rates(
                table, lanes, rooms, model, seeds=seeds, requests=requests, executor=executor,
                shared_prefix_tokens=shared, checkpoints=checkpoints,
            )  # fmt: skip
            cold = warm = rates.mean(axis=1)
            ceilings = tops.mean(axis=1)
            if seeds > 1:
                # 95% of Student's law with few degrees of freedom, near 3 for four seeds.
                spread = 3.18 * rates.std(axis=1, ddof=1) / math.sqrt(seeds)
                half_widths = tuple(float(h) for h in spread.ravel())
        else:
            private = table.without_shared_prefix(shared)
            law = (
                lane_law_of_moments(
                    moments_of_table(private, fit_gaps(found).capped(cap), model.kind)
                )
                if method == "moments"
                else lane_law(private)
            )
            cold, warm, ceiling = _law_surface(
                law, lanes, rooms, method, model, checkpoints, shared
            )
            ceilings = np.full(len(lanes), ceiling)
    rows = tuple(
        CurveRow(
            concurrency=c, capacity_tokens=b, hit_rate=float(cold[i, j]),
            theoretical_hit_rate=float(ceilings[i]),
        )
        for i, c in enumerate(lanes)
        for j, b in enumerate(rooms)
    )  # fmt: skip
    return CurveResult(
        rows=rows, method=method, service=_service_name(model), source=name,
        think_time_cap_s=float(cap), half_widths=half_widths, sensitivities=moves, notes=notes,
        warm_hit_rates=tuple(float(h) for h in warm.ravel()) if model.has_feedback else (),
    )  # fmt: skip


def _workload_surface(
    workload: Workload, lanes: list[int], rooms: list[float], method: str, model: ServiceModel,
    checkpoints: Checkpoints | None, service_mean_s: float,
) -> tuple[FloatArray, FloatArray, float]:  # fmt: skip
    shared = workload.shared_prefix_tokens
    moments = moments_of_workload(workload, service_mean_s)
    if shared > 0:
        request = max(workload.request_tokens_mean - shared, 1.0)
        found = workload.theoretical_hit_rate * workload.request_tokens_mean - shared
        moments = replace(
            moments,
            context_mean=max(moments.context_mean - shared, 1.0),
            request_mean=request,
            theoretical_hit_rate=min(max(found / request, 0.0), 0.999),
        )
    law = lane_law_of_moments(moments)
    return _law_surface(law, lanes, rooms, method, model, checkpoints, shared)


def _law_surface(
    law: LaneLaw, lanes: list[int], rooms: list[float], method: str, model: ServiceModel,
    checkpoints: Checkpoints | None, shared_prefix_tokens: float,
) -> tuple[FloatArray, FloatArray, float]:  # fmt: skip
    """Return cold and warm surfaces and the ceiling of whole prompts [1]."""
    inside = [max(room - shared_prefix_tokens, 0.0) for room in rooms]
    if checkpoints is not None:
        inside = [state_room(room, law, checkpoints.state_tokens) for room in inside]
        law = checkpointed(law, checkpoints.every_tokens)
    cold, warm = analytic_hit_rates(law, lanes, inside, method, model)
    ceiling = law.theoretical_hit_rate
    if shared_prefix_tokens > 0:
        mean = law.request_mean
        for column, room in enumerate(rooms):
            for grid in (cold,) if warm is cold else (cold, warm):
                grid[:, column] = [
                    with_shared_prefix(h, mean, shared_prefix_tokens, room) for h in grid[:, column]
                ]
        ceiling = with_shared_prefix(ceiling, mean, shared_prefix_tokens, math.inf)
    return cold, warm, ceiling


def _block_curve(
    trace: BlockTraceFile, lanes: list[int], rooms: list[float], method: str, shards: int,
    executor: Executor | None,
) -> CurveResult:  # fmt: skip
    """Return the curve of a block trace, whose own arrivals take the place of lanes."""
    notes = ["open loop: the trace's own arrivals; concurrency does not enter"]
    if method == "exact" and (shards > 1 or executor is not None):
        rates, ceiling = split_hit_rates(
            trace.path, rooms, notes, shards=max(shards, 2), executor=executor
        )
    elif method == "exact":
        rates, ceiling = streamed_hit_rates(trace.path, rooms, notes)
    elif method in ("mean-field", "finite-population"):
        rates, ceiling = survival_hit_rates(trace.path, rooms, notes)
        notes.append("characteristic time of the trace's own reuse times")
    else:
        raise SpecError(f"{method} needs sessions; a block trace has exact and mean-field.")
    return CurveResult(
        rows=tuple(
            CurveRow(
                concurrency=c, capacity_tokens=b, hit_rate=float(rate),
                theoretical_hit_rate=ceiling,
            )
            for c in lanes
            for b, rate in zip(rooms, rates, strict=True)
        ),
        method=method, service="none", source=trace.path, think_time_cap_s=math.inf,
        notes=tuple(notes),
    )  # fmt: skip
