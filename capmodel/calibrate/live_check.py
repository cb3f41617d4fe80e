"""The live check: from two scrapes, where a deployment stands against its cliff."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answer import find_cliff
from ..memory.budget import kv_budget
from ..scenario import ResolvedScenario
from ..units import GIB
from .forward import scenario_forward
from .metrics_scrape import Window
from .observation import Observation
from .posterior import NORMAL_95, fit, prior_sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCheck:
    """A deployment against its predicted cliff.

    Parameters
    ----------
    sessions : float
        Live sessions, given or by Little's law [1].
    sessions_are_given : bool
        Whether they were given.
    pool_tokens : float
        KV tokens that the engine reports, or the model's [tokens].
    working_set_tokens : tuple of float
        Live tokens of a session: value, low, high [tokens].
    residency_working_set_tokens : float or None
        The same from the time that blocks lie untouched before eviction [tokens].
    residency_hit_rate : float or None
        Hits that the same time implies: ceiling times the share of shorter gaps [1].
    hit_rate : float or None
        Measured, over tiers [1].
    cliff, cap : int or None
        Sessions at which half of the hits are lost, and the largest number that stays clear [1].
    running, waiting : float
        Requests at the last scrape [1].
    """

    sessions: float
    sessions_are_given: bool
    pool_tokens: float
    working_set_tokens: tuple[float, float, float]
    residency_working_set_tokens: float | None
    residency_hit_rate: float | None
    hit_rate: float | None
    cliff: int | None
    cap: int | None
    running: float
    waiting: float

    @property
    def distance(self) -> float | None:
        """Cliff over live sessions; under one is past it [1]."""
        return None if self.cliff is None else self.cliff / self.sessions

    @property
    def verdict(self) -> str:
        """What to do, in one line."""
        far = self.distance
        if far is None:
            return "no cliff up to a million sessions"
        if self.cap is not None and self.sessions > self.cap:
            place = "past the cliff" if far < 1.0 else "inside the transition or close to it"
            return f"{place}: cap live sessions at {self.cap}"
        room = f" (room for {self.cap - math.ceil(self.sessions)} more)" if self.cap else ""
        return f"clear of the cliff{room}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        value, low, high = self.working_set_tokens
        return {
            "sessions": self.sessions,
            "sessions_are_given": self.sessions_are_given,
            "pool_tokens": self.pool_tokens,
            "working_set_tokens": {"value": value, "low": low, "high": high},
            "residency_working_set_tokens": self.residency_working_set_tokens,
            "residency_hit_rate": self.residency_hit_rate,
            "hit_rate": self.hit_rate,
            "cliff_concurrency": self.cliff,
            "distance_to_cliff": self.distance,
            "session_cap": self.cap,
            "running": self.running,
            "waiting": self.waiting,
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        value, low, high = self.working_set_tokens
        how = "given" if self.sessions_are_given else "Little's law"
        lines = [
            f"live sessions {self.sessions:.1f} ({how}), running {self.running:.0f}, waiting "
            f"{self.waiting:.0f}",
            f"pool {self.pool_tokens:,.0f} tokens; a session holds {value:,.0f} "
            f"[{low:,.0f}, {high:,.0f}]",
        ]
        if self.residency_working_set_tokens is not None:
            lines.append(
                f"by block residency a session holds {self.residency_working_set_tokens:,.0f}"
            )
        lines.append(f"cliff at {self.cliff}, recommended cap {self.cap}: {self.verdict}")
        return "\n".join(lines)


def sessions_by_little(resolved: ResolvedScenario, window: Window) -> float:
    """Live sessions from the rate and a session's cycle, at least those in the engine [1].

    Notes
    -----
    ``C = X (E[gap] + TTFT + output TPOT)``; exact for any queue, with the workload's gap law.
    """
    output = window.output_tokens_per_s / window.requests_per_s
    service = (window.ttft_mean_s or 0.0) + (window.tpot_mean_s or 0.0) * max(output - 1.0, 0.0)
    cycle = resolved.workload.think_time.mean() + service
    return max(window.requests_per_s * cycle, window.running + window.waiting, 1.0)


def with_reported_pool(resolved: ResolvedScenario, pool_tokens: float | None) -> ResolvedScenario:
    """Return the scenario with the pool that the engine reports."""
    budget = kv_budget(resolved.model, resolved.node, resolved.deployment)
    if pool_tokens is None or budget.kv_tokens <= 0:
        return resolved
    gib = budget.available_kv_bytes_per_gpu / GIB * pool_tokens / budget.kv_tokens
    return replace(resolved, deployment=replace(resolved.deployment, available_kv_gib=gib))


def with_observed_requests(resolved: ResolvedScenario, window: Window) -> ResolvedScenario:
    """Return the scenario with the prompts and outputs that the counters show."""
    workload = resolved.workload.with_overrides(
        context_tokens_mean=window.prompt_tokens_per_s / window.requests_per_s,
        output_tokens_mean=max(window.output_tokens_per_s / window.requests_per_s, 1.0),
    )
    return replace(resolved, workload=workload)


def live_check(
    resolved: ResolvedScenario, window: Window, *, concurrency: int | None = None
) -> tuple[LiveCheck, ResolvedScenario, Observation]:
    """Return where a deployment stands, the scenario as observed, and the window as a point.

    Parameters
    ----------
    resolved : ResolvedScenario
        What is deployed.
    window : Window
        Two scrapes.
    concurrency : int, optional
        Live sessions; None to take them from Little's law [1].

    Notes
    -----
    The working set is the one factor fitted, to the measured hit rate: inside the transition it
    is sharp, before it only its upper end is.
    """
    seen = with_observed_requests(with_reported_pool(resolved, window.pool_tokens), window)
    sessions = float(concurrency) if concurrency else sessions_by_little(seen, window)
    at = max(round(sessions), 1)
    point = window.observation(at)
    tree = seen.workload.tree_tokens_mean
    factors = (1.0, 1.0, 1.0)
    if window.hit_rate is not None:
        only_hits = replace(point, measured={"hit_rate": window.hit_rate})
        found = fit(scenario_forward(seen, ("hit_rate",)), [only_hits], names=("working_set",))
        factors = found.interval("working_set")
    else:
        half = math.exp(NORMAL_95 * prior_sigma("working_set"))
        factors = (1.0, 1.0 / half, half)
    value, low, high = (tree * factor for factor in factors)
    workload = replace(
        seen.workload,
        tree_tokens_mean=value,
        intervals={**seen.workload.intervals, "tree_tokens_mean": (low, high)},
    )
    cliff, cap = find_cliff(replace(seen, workload=workload))
    budget = kv_budget(seen.model, seen.node, seen.deployment)
    check = LiveCheck(
        sessions=sessions,
        sessions_are_given=concurrency is not None,
        pool_tokens=float(budget.kv_tokens),
        working_set_tokens=(value, low, high),
        residency_working_set_tokens=residency_working_set(seen, window, sessions),
        residency_hit_rate=residency_hit_rate(seen, window),
        hit_rate=window.hit_rate,
        cliff=cliff.concurrency,
        cap=cap,
        running=window.running,
        waiting=window.waiting,
    )
    return check, seen, point


def residency_working_set(
    resolved: ResolvedScenario, window: Window, sessions: float
) -> float | None:
    """Live tokens of a session from the characteristic time, None where it is not scraped.

    Notes
    -----
    At the characteristic time T the sessions' recent tokens fill the pool: ``B = C U(T)``,
    ``U = w (E[s] + E[min(gap, T)]) / E[c]``, stale tokens neglected, so that w is an upper bound.
    """
    time_s, pool = window.idle_before_evict_s, window.pool_tokens
    if time_s is None or pool is None:
        return None
    gaps = resolved.workload.think_time
    cycle = sessions / window.requests_per_s
    service = max(cycle - gaps.mean(), 0.0)
    held = service + float(gaps.limited_mean(np.asarray([time_s]))[0])
    return pool / sessions * cycle / held if held > 0 else None


def residency_hit_rate(resolved: ResolvedScenario, window: Window) -> float | None:
    """Hits implied by the characteristic time: ``ceiling P(gap <= T)``, None if not scraped [1].

    Exact for: prefixes that are touched once per request and lost as a whole.
    """
    if window.idle_before_evict_s is None:
        return None
    workload = resolved.workload
    longer = float(workload.think_time.survival(np.asarray([window.idle_before_evict_s]))[0])
    return workload.theoretical_hit_rate * (1.0 - longer)
