"""From finished turns to rates, percentiles, windows and confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .case import SimulationCase
from .result import (
    ClassResult,
    Composition,
    HitRates,
    SimulationResult,
    Summary,
    Windows,
    mean_half_width,
    ratio_half_width,
)
from .state import (
    COMPOSITION_BIN,
    COMPOSITION_BINS,
    PHASES,
    FloatArray,
    Records,
    Settings,
    joined,
    rows,
)

if TYPE_CHECKING:
    from .simulation import SeedRun

BATCHES = 20  # batches over all seeds; enough for the interval, few enough to be independent
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0}


def reduced(
    case: SimulationCase,
    settings: Settings,
    runs: Sequence[SeedRun],
    *,
    window_s: float,
    wall_s: float,
    complete: bool,
) -> SimulationResult:
    """Return the result of all seeds together."""
    records = joined([run.records for run in runs])
    batches = _batches(runs)
    shared = settings.shared_tokens
    seconds = sum(run.ended_s - run.began_s for run in runs)
    prompt = records.prompt + shared
    hits = records.hbm_hit + records.tier_hit
    widths = {
        "requests_per_s": _width(batches, lambda r: r.finish_s.size, _span),
        "output_tokens_per_s": _width(batches, lambda r: r.output.sum(), _span),
        "input_tokens_per_s": _width(batches, lambda r: (r.prompt + shared).sum(), _span),
    }
    for name, part in (
        ("hbm", lambda r: (r.hbm_hit + shared).sum()),
        ("offload", lambda r: r.tier_hit.sum()),
        ("overall", lambda r: (r.hbm_hit + r.tier_hit + shared).sum()),
        ("theoretical", lambda r: (r.ceiling + shared).sum()),
    ):
        widths[f"hit_rate.{name}"] = _width(
            batches, part, lambda r, _: float((r.prompt + shared).sum())
        )
    widths["hit_rate.reusable"] = _width(
        batches,
        lambda r: (r.hbm_hit + r.tier_hit).sum(),
        lambda r, _: float(max(r.ceiling.sum(), 1)),
    )
    total = float(prompt.sum())
    return SimulationResult(
        name=case.name,
        concurrency=case.concurrency,
        seeds=len(runs),
        turns=int(records.finish_s.size),
        complete=complete,
        simulated_s=seconds,
        wall_s=wall_s,
        requests_per_s=records.finish_s.size / seconds,
        output_tokens_per_s=float(records.output.sum()) / seconds,
        input_tokens_per_s=total / seconds,
        hit_rate=HitRates(
            hbm=float((records.hbm_hit + shared).sum()) / total,
            offload=float(records.tier_hit.sum()) / total,
            overall=float((hits + shared).sum()) / total,
            theoretical=float((records.ceiling + shared).sum()) / total,
            reusable=float(hits.sum()) / max(float(records.ceiling.sum()), 1.0),
        ),
        ttft_s=_summary(batches, records, lambda r: r.first_token_s - r.arrival_s),
        tpot_s=_summary(batches, records, _tpot_s),
        e2e_s=_summary(batches, records, lambda r: r.finish_s - r.arrival_s),
        utilization=sum(run.busy_s for run in runs) / seconds,
        prefill_utilization=sum(run.prefill_busy_s for run in runs) / seconds,
        preemptions=sum(run.preemptions for run in runs),
        sessions_turned_away=sum(run.turned_away for run in runs),
        composition=_composition(settings, runs, seconds),
        windows=_windows(runs, shared, window_s),
        by_class=_by_class(records, shared, seconds),
        half_widths=widths,
    )


Batch = tuple[Records, float]  # a stretch of turns and the seconds it took


def _batches(runs: Sequence[SeedRun]) -> list[Batch]:
    per_run = max(1, BATCHES // len(runs))
    found: list[Batch] = []
    for run in runs:
        edges = np.linspace(0, run.records.finish_s.size, per_run + 1).astype(int)
        start_s = run.began_s
        for first, last in pairwise(edges):
            if last > first:
                part = rows(run.records, first, last)
                end_s = float(part.finish_s[-1])
                found.append((part, end_s - start_s))
                start_s = end_s
    return found


def _span(_: Records, seconds: float) -> float:
    return seconds


def _width(
    batches: list[Batch],
    top: Callable[[Records], float],
    bottom: Callable[[Records, float], float],
) -> float:
    tops = np.asarray([float(top(part)) for part, _ in batches])
    bottoms = np.asarray([float(bottom(part, seconds)) for part, seconds in batches])
    return ratio_half_width(tops, bottoms)


def _tpot_s(records: Records) -> FloatArray:
    several = records.output > 1
    after_s = (records.finish_s - records.first_token_s)[several]
    return np.asarray(after_s / (records.output[several] - 1))


def _summary(
    batches: list[Batch], records: Records, values: Callable[[Records], FloatArray]
) -> Summary:
    pooled = values(records)
    if pooled.size == 0:
        nothing = float("nan")
        return Summary(mean=nothing, p50=nothing, p90=nothing, p99=nothing, half_widths={})
    parts = [part for part in (values(batch) for batch, _ in batches) if part.size]
    quantiles = {name: float(np.percentile(pooled, q)) for name, q in PERCENTILES.items()}
    widths = {
        name: mean_half_width(np.asarray([np.percentile(part, q) for part in parts]))
        for name, q in PERCENTILES.items()
    }
    sums, sizes = [part.sum() for part in parts], [part.size for part in parts]
    widths["mean"] = ratio_half_width(np.asarray(sums, float), np.asarray(sizes, float))
    return Summary(mean=float(pooled.mean()), half_widths=widths, **quantiles)


def _by_class(records: Records, shared_tokens: int, seconds: float) -> tuple[ClassResult, ...]:
    found = []
    for kind in np.unique(records.kind):
        mine = records.kind == kind
        hits = float((records.hbm_hit + records.tier_hit)[mine].sum())
        prompt = records.prompt[mine] + shared_tokens
        ttft_s = (records.first_token_s - records.arrival_s)[mine]
        found.append(
            ClassResult(
                number=int(kind),
                requests_per_s=int(mine.sum()) / seconds,
                prompt_tokens_mean=float(prompt.mean()),
                hit_rate=(hits + shared_tokens * prompt.size) / float(prompt.sum()),
                reusable=hits / max(float(records.ceiling[mine].sum()), 1.0),
                ttft_mean_s=float(ttft_s.mean()),
            )
        )
    return tuple(found)


def _composition(settings: Settings, runs: Sequence[SeedRun], seconds: float) -> Composition:
    phases = sum((run.phase_s for run in runs), np.zeros(len(PHASES))) / seconds
    shares = sum((run.composition_s for run in runs), np.zeros(COMPOSITION_BINS)) / seconds
    middles = (np.arange(COMPOSITION_BINS) + 0.5) * COMPOSITION_BIN
    over = round(1.0 / COMPOSITION_BIN)
    pinned = sum(run.pinned_block_s for run in runs) / seconds
    return Composition(
        thinking=float(phases[0]),
        waiting=float(phases[1]),
        loading=float(phases[2]),
        prefilling=float(phases[3]),
        decoding=float(phases[4]),
        delegating=float(phases[5]),
        live_tokens_over_budget=float(shares @ middles),
        over_budget_share=float(shares[over:].sum()),
        pinned_share=pinned / settings.capacity_blocks,
        histogram=tuple(float(share) for share in shares),
    )


def _windows(runs: Sequence[SeedRun], shared_tokens: int, window_s: float) -> Windows:
    output: list[float] = []
    requests: list[float] = []
    hit_rates: list[float] = []
    for run in runs:
        number = ((run.records.finish_s - run.began_s) // window_s).astype(int)
        count = int((run.ended_s - run.began_s) // window_s)
        whole = number < count
        number = number[whole]
        turns = np.bincount(number, minlength=count)
        tokens = np.bincount(number, weights=run.records.output[whole], minlength=count)
        prompt = np.bincount(
            number, weights=run.records.prompt[whole] + shared_tokens, minlength=count
        )
        found = run.records.hbm_hit + run.records.tier_hit + shared_tokens
        hits = np.bincount(number, weights=found[whole], minlength=count)
        output.extend(tokens / window_s)
        requests.extend(turns / window_s)
        hit_rates.extend(hits / np.maximum(prompt, 1.0))
    return Windows(
        seconds=window_s,
        output_tokens_per_s=tuple(float(value) for value in output),
        requests_per_s=tuple(float(value) for value in requests),
        hit_rate=tuple(float(value) for value in hit_rates),
    )
