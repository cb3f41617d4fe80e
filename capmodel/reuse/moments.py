"""The lane law from a handful of moments, for people who have no trace."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import SpecError
from ..normal import cdf
from ..spec.distributions import LognormalMixture
from ..spec.workload import Workload
from .lane_law import LaneLaw, lognormal_parameters
from .session_table import SessionTable

FloatArray = npt.NDArray[np.float64]

_GAP_NODES, _LENGTH_NODES, _DEPTH_NODES = 12, 10, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMoments:
    """As little as the curve needs, everything independent of everything.

    Parameters
    ----------
    context_mean, context_cv : float
        Tokens that a lane holds: mean [tokens] and coefficient of variation [1].
    theoretical_hit_rate : float
        Share of prompt tokens that an infinite cache finds [1].
    think_time : LognormalMixture
        Gap law under its cap [s].
    output_mean : float
        Output of a request [tokens].
    service_mean_s : float
        Recorded service, 0 where unknown [s].
    request_mean : float
        Prompt of a request [tokens].
    held_ratio : float
        Mean context weighted by the time it is held, over the mean by turns: long contexts go
        with long gaps [1].
    """

    context_mean: float
    context_cv: float
    theoretical_hit_rate: float
    think_time: LognormalMixture
    output_mean: float = 1.0
    service_mean_s: float = 0.0
    request_mean: float = 0.0
    held_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not (self.context_mean >= 1 and self.context_cv >= 0):
            raise SpecError("a context needs a mean of at least 1 and a nonnegative variation.")
        if not 0 <= self.theoretical_hit_rate < 1:
            raise SpecError("theoretical_hit_rate must be in [0, 1).", field="theoretical_hit_rate")


def moments_of_workload(workload: Workload, service_mean_s: float = 0.0) -> SessionMoments:
    """Return the moments of a workload; its lanes hold session trees, not requests."""
    return SessionMoments(
        context_mean=workload.tree_tokens_mean,
        context_cv=workload.tree_tokens_cv,
        theoretical_hit_rate=workload.theoretical_hit_rate,
        think_time=workload.think_time,
        output_mean=workload.output_tokens_mean,
        service_mean_s=service_mean_s,
        request_mean=workload.request_tokens_mean,
    )


def moments_of_table(
    table: SessionTable, think_time: LognormalMixture, service: str = "none"
) -> SessionMoments:
    """Return the moments of a session table, gaps already capped, under a gap law.

    A lane holds its context while it waits for the next request, so occupancy weighs every
    context by the time until then.
    """
    context = table.input_tokens
    held_s = table.following(table.think_s) + (table.service_s if service == "recorded" else 0.0)
    held_s = held_s if held_s.sum() > 0 else np.ones_like(held_s)
    mean = float(context.mean())
    return SessionMoments(
        context_mean=mean,
        context_cv=float(context.std()) / mean,
        theoretical_hit_rate=table.theoretical_hit_rate,
        think_time=think_time,
        output_mean=float(table.output_tokens.mean()),
        service_mean_s=float(table.service_s.mean()),
        request_mean=mean,
        held_ratio=float((context * held_s).sum() / held_s.sum()) / mean,
    )


def _quantiles(law: LognormalMixture, shares: FloatArray) -> FloatArray:
    """Return quantiles of a mixture, by bisection on all of them at once."""
    low = np.zeros_like(shares)
    high = np.full_like(shares, min(law.cap, max(law.medians) * math.exp(12.0) + 1e-9))
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = law.survival(middle) > 1.0 - shares
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def _cells(limited: FloatArray, edges: FloatArray, share: float) -> FloatArray:
    """Return the conditional mean of each cell, from E[min(X, edge)] at edges of equal share."""
    tails = 1.0 - share * np.arange(1, edges.size)
    inner = limited[1:] - limited[:-1]
    # E[min(X,b)] - E[min(X,a)] = E[X - a; a < X <= b] + (b - a) P(X > b).
    widths = np.where(np.isfinite(edges[1:]), edges[1:] - edges[:-1], 0.0)
    means: FloatArray = edges[:-1] + (inner - widths * np.maximum(tails, 0.0)) / share
    return means


def _lognormal_nodes(mean: float, cv: float, count: int) -> FloatArray:
    """Return the means of `count` cells of equal probability of a lognormal [its unit]."""
    if cv == 0:
        return np.full(count, mean)
    _, sigma = lognormal_parameters(mean, cv)
    score = np.linspace(-8.0, 8.0, 4001)
    inner = np.interp(np.linspace(0.0, 1.0, count + 1)[1:-1], cdf(score), score)
    below = np.concatenate([[0.0], cdf(inner - sigma), [1.0]])
    return mean * np.diff(below) * count


def lane_law_of_moments(moments: SessionMoments) -> LaneLaw:
    """Return the law of one lane with lognormal contexts, independent of gaps and service.

    Notes
    -----
    Every request finds H_max of its prompt. Approximate for: contexts that go with gaps, and
    sessions that restart; mean error 0.004 to 0.011 against replays of the table.
    """
    gap = moments.think_time
    if gap.mean() <= 0:
        gap = LognormalMixture.constant(1.0)  # lanes that never wait take turns
    share = 1.0 / _GAP_NODES
    inner = _quantiles(gap, np.linspace(0.0, 1.0, _GAP_NODES + 1)[1:-1])
    edges = np.concatenate([[0.0], inner, [np.inf]])
    limited = gap.limited_mean(edges)
    nodes = np.maximum.accumulate(np.maximum(_cells(limited, edges, share), 0.0))
    mean_gap, held = gap.mean(), moments.held_ratio
    least = held * gap.limited_mean(nodes)
    idle = held * np.maximum(mean_gap - gap.limited_mean(nodes), 0.0)
    top, mean = moments.theoretical_hit_rate, moments.context_mean
    square = mean**2 * (1.0 + moments.context_cv**2)
    context = _lognormal_nodes(mean, moments.context_cv, _LENGTH_NODES)
    depth_edges = top * context[-1] * np.linspace(0.0, 1.0, _DEPTH_NODES + 1) ** 1.5
    deep = np.minimum(top * context[:, None], depth_edges[None, :]).mean(axis=0)
    cells = (_GAP_NODES, _LENGTH_NODES)
    return LaneLaw(
        gap_s=nodes,
        prefix_tokens=np.broadcast_to(top * context, cells),
        context_tokens=np.broadcast_to(context, cells),
        share=np.full(cells, share / _LENGTH_NODES),
        fresh_tokens=np.array([mean]),
        fresh_share=np.array([0.0]),
        depth_tokens=0.5 * (depth_edges[1:] + depth_edges[:-1]),
        depth_weight=np.broadcast_to(share * np.diff(deep), (_GAP_NODES, _DEPTH_NODES)),
        live_token_s=top * mean * least,
        live_square_s=square * held * least,
        untouched_token_s=mean * idle,
        dead_token_s=(1.0 - top) * mean * np.maximum(nodes - gap.limited_mean(nodes), 0.0),
        context_mean=mean,
        context_square=square,
        prefix_mean=top * mean,
        gap_mean_s=mean_gap,
        context_gap_s=held * mean * mean_gap,
        output_mean=moments.output_mean,
        context_output=mean * moments.output_mean,
        square_output=square * moments.output_mean,
        service_mean_s=moments.service_mean_s,
        context_service=held * mean * moments.service_mean_s,
        square_service=held**2 * square * moments.service_mean_s,
        live_square=square,
        request_mean=moments.request_mean or mean,
    )
