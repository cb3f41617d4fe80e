"""The hit-rate surface H(B, C), from whatever describes the sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import SpecError, nearest_names
from ..spec.workload import Workload
from .block_curve import split_hit_rates, streamed_hit_rates, survival_hit_rates
from .curve_result import CurveResult, CurveRow
from .curve_source import BlockTraceFile, Source, resolved_source
from .fit import fit_gaps, input_sensitivities, with_mean_gap
from .lane_law import lane_law
from .moments import lane_law_of_moments, moments_of_table
from .sampling import student_quantile
from .service_model import ServiceModel, parse_service
from .stack_distance import Checkpoints, exact_hit_rates
from .surface import Surface, law_surface, workload_surface

FloatArray = npt.NDArray[np.float64]

METHODS = ("exact", "finite-population", "mean-field", "moments", "fluid")
# Cap of the public replays of the recorded sessions; a workload brings its own.
DEFAULT_CAP_S = 60.0


def _service_name(service: ServiceModel) -> str:
    if service.kind != "prefill":
        return service.kind
    return f"prefill:{service.prefill_tokens_per_s:g}"


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
    overrides: Mapping[str, float | None] | None = None,
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
    overrides : mapping, optional
        Fields of a workload to replace by one's own numbers, as in `Workload.with_overrides`,
        and `think_time_mean_s`, the mean gap under the cap [s].
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
    if isinstance(found, Workload):
        if shared_prefix_tokens is not None:
            found = replace(found, shared_prefix_tokens=shared_prefix_tokens)
        cap = idle_limit_s if gaps == "production" else think_time_cap_s
        return _workload_curve(
            _overridden(found, cap, overrides), lanes, rooms, method, model, checkpoints,
            service_mean_s, sensitivity,
        )  # fmt: skip
    if any(value is not None for value in (overrides or {}).values()):
        raise SpecError("sessions are what they are: overrides are for workloads.")
    cap_s = DEFAULT_CAP_S if think_time_cap_s is None else think_time_cap_s
    table = found.with_gaps(gaps, think_time_cap_s=cap_s, idle_limit_s=idle_limit_s)
    cap_s = idle_limit_s if gaps == "production" else cap_s
    shared = shared_prefix_tokens or 0.0
    if method == "exact":
        rates, tops = exact_hit_rates(
            table, lanes, rooms, model, seeds=seeds, requests=requests, executor=executor,
            shared_prefix_tokens=shared, checkpoints=checkpoints,
        )  # fmt: skip
        return CurveResult(
            rows=_rows(lanes, rooms, rates.mean(axis=1), tops.mean(axis=1)),
            method=method, service=_service_name(model), source=found.name,
            think_time_cap_s=cap_s, half_widths=_half_widths(rates), notes=found.notes,
        )  # fmt: skip
    private = table.without_shared_prefix(shared)
    if method == "moments":
        gap_law = fit_gaps(found).capped(cap_s)
        law = lane_law_of_moments(moments_of_table(private, gap_law, model.kind))
    else:
        law = lane_law(private)
    surface = law_surface(law, lanes, rooms, method, model, checkpoints, shared)
    return _closed_curve(surface, lanes, rooms, method, model, found.name, cap_s, found.notes)


def _overridden(
    workload: Workload, cap_s: float | None, overrides: Mapping[str, float | None] | None
) -> Workload:
    """Return the workload with one's own numbers in place of its own."""
    given = {**(overrides or {}), "think_time_cap_s": cap_s}
    gap_mean_s = given.pop("think_time_mean_s", None)
    changed = workload.with_overrides(**given)
    if gap_mean_s is None:
        return changed
    return replace(changed, think_time=with_mean_gap(changed.think_time, gap_mean_s))


def _rows(
    lanes: Sequence[int], rooms: Sequence[float], rates: FloatArray, ceilings: npt.ArrayLike
) -> tuple[CurveRow, ...]:
    tops = np.broadcast_to(np.asarray(ceilings, dtype=np.float64), (len(lanes),))
    return tuple(
        CurveRow(
            concurrency=c, capacity_tokens=b, hit_rate=float(rates[i, j]),
            theoretical_hit_rate=float(tops[i]),
        )
        for i, c in enumerate(lanes)
        for j, b in enumerate(rooms)
    )  # fmt: skip


def _half_widths(rates: FloatArray) -> tuple[float, ...]:
    """Half of the 95% interval over seeds, by Student's law; empty for one seed [1]."""
    seeds = rates.shape[1]
    if seeds < 2:
        return ()
    spread = student_quantile(seeds - 1) * rates.std(axis=1, ddof=1) / math.sqrt(seeds)
    return tuple(float(half) for half in spread.ravel())


def _closed_curve(
    surface: Surface, lanes: list[int], rooms: list[float], method: str, model: ServiceModel,
    source: str, cap_s: float, notes: tuple[str, ...] = (), moves: dict[str, float] | None = None,
) -> CurveResult:  # fmt: skip
    bounds = model.has_feedback
    return CurveResult(
        rows=_rows(lanes, rooms, surface.hit_rate, surface.theoretical_hit_rate),
        method=method, service=_service_name(model), source=source, think_time_cap_s=cap_s,
        cold_hit_rates=tuple(float(h) for h in surface.cold.ravel()) if bounds else (),
        warm_hit_rates=tuple(float(h) for h in surface.warm.ravel()) if bounds else (),
        sensitivities=moves or {}, notes=notes,
    )  # fmt: skip


def _workload_curve(
    workload: Workload, lanes: list[int], rooms: list[float], method: str, model: ServiceModel,
    checkpoints: Checkpoints | None, service_mean_s: float, sensitivity: bool,
) -> CurveResult:  # fmt: skip
    if method == "exact":
        raise SpecError(
            "an exact replay needs sessions: give a trace or a session table.", field="method"
        )
    if model.kind == "recorded" and service_mean_s <= 0:
        raise SpecError(
            "a workload has no recorded service: give service_mean_s, or prefill:RATE.",
            field="service",
        )

    def surface(item: Workload) -> Surface:
        return workload_surface(item, lanes, rooms, method, model, checkpoints, service_mean_s)

    moves = {}
    if sensitivity:
        moves = input_sensitivities(workload, lambda item: float(surface(item).hit_rate.mean()))
    return _closed_curve(
        surface(workload), lanes, rooms, method, model, workload.name, workload.think_time.cap,
        moves=moves,
    )  # fmt: skip


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
        rows=_rows(lanes, rooms, np.tile(rates, (len(lanes), 1)), ceiling),
        method=method, service="none", source=trace.path, think_time_cap_s=math.inf,
        notes=tuple(notes),
    )  # fmt: skip
