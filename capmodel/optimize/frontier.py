"""Frontiers: cost, and throughput per GPU, against interactivity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..cost.tokens import usd_per_mtok
from .objective import hourly_usd, tokens_per_request

if TYPE_CHECKING:
    from .plan import Plan

POINTS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """One concurrency at one DRAM size.

    Parameters
    ----------
    concurrency : int
        Live sessions [1].
    offload_bytes : float
        Tier per node [bytes].
    usd_per_mtok, usd_per_mtok_output : float
        Cost on all tokens and on output tokens [USD per 1e6 tokens].
    tokens_per_s_per_gpu, output_tokens_per_s : float
        Prompt and output tokens per GPU, output of the replica [tokens/s].
    interactivity_tokens_per_s_p50, interactivity_tokens_per_s_p90 : float
        One over the percentile of the time per output token [tokens/s].
    ttft_s_p90 : float
        [s].
    hit_share : float
        Hits over their ceiling [1].
    allowed : bool
        True where it keeps every rule of the plan.
    cost_efficient, throughput_efficient : bool
        True where no allowed point has more interactivity (p50) and is better on that axis too.
    """

    concurrency: int
    offload_bytes: float
    usd_per_mtok: float
    usd_per_mtok_output: float
    tokens_per_s_per_gpu: float
    output_tokens_per_s: float
    interactivity_tokens_per_s_p50: float
    interactivity_tokens_per_s_p90: float
    ttft_s_p90: float
    hit_share: float
    allowed: bool
    cost_efficient: bool = False
    throughput_efficient: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def frontier(plan: Plan) -> tuple[FrontierPoint, ...]:
    """Return points over concurrency with the plan's DRAM and without any, ordered by sessions."""
    sizes = sorted({0.0, plan.dram_bytes})
    rows = [
        point
        for size in sizes
        for sessions in _sessions(plan.concurrency)
        if (point := _point(plan, sessions, size)) is not None
    ]
    rows.sort(key=lambda row: (row.concurrency, row.offload_bytes))
    return tuple(
        replace(
            row,
            cost_efficient=row.allowed and _undominated(row, rows, lambda r: -r.usd_per_mtok),
            throughput_efficient=row.allowed
            and _undominated(row, rows, lambda r: r.tokens_per_s_per_gpu),
        )
        for row in rows
    )


def _sessions(most: int) -> list[int]:
    """Concurrencies from 1 to the plan's, about evenly spaced in their logarithm."""
    return sorted({max(round(most ** (i / (POINTS - 1))), 1) for i in range(POINTS)})


def _point(plan: Plan, sessions: int, dram_bytes: float) -> FrontierPoint | None:
    made = plan.search.evaluators[plan.found.configuration]
    evaluated = made.point(sessions, dram_bytes)
    if evaluated.run is None:
        return None
    scenario, latency = made.scenario, evaluated.run.latency()
    rate = evaluated.requests_per_s
    hourly = hourly_usd(scenario, dram_bytes)
    tokens, output = tokens_per_request(scenario), scenario.workload.output_tokens_mean
    return FrontierPoint(
        concurrency=sessions,
        offload_bytes=dram_bytes,
        usd_per_mtok=usd_per_mtok(hourly, rate * tokens),
        usd_per_mtok_output=usd_per_mtok(hourly, rate * output),
        tokens_per_s_per_gpu=rate * tokens / scenario.node.total_gpus,
        output_tokens_per_s=rate * output,
        interactivity_tokens_per_s_p50=1.0 / latency.tpot_s.p50,
        interactivity_tokens_per_s_p90=1.0 / latency.tpot_s.p90,
        ttft_s_p90=latency.ttft_s.p90,
        hit_share=evaluated.hit_share,
        allowed=not evaluated.broken,
    )


def _undominated(
    row: FrontierPoint, rows: list[FrontierPoint], gain: Callable[[FrontierPoint], float]
) -> bool:
    """True where no allowed point is at least as good on both axes and better on one."""
    for other in rows:
        if other is row or not other.allowed:
            continue
        faster = other.interactivity_tokens_per_s_p50 - row.interactivity_tokens_per_s_p50
        better = gain(other) - gain(row)
        if faster >= 0 and better >= 0 and (faster > 0 or better > 0):
            return False
    return True
