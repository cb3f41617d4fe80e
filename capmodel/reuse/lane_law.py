"""What one lane holds in a window: the law that every analytic form reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .session_table import SessionTable

FloatArray = npt.NDArray[np.float64]

# Resolution of the compressed law; doubling each moves no grid point by more than 1e-3.
_GAP_NODES, _LENGTH_NODES, _FRESH_NODES, _DEPTH_NODES = 32, 10, 12, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLaw:
    """One lane of sessions, compressed to a few nodes; primes mark the next request.

    Parameters
    ----------
    gap_s : ndarray, shape (gaps,)
        Gap z before a request that finds a prefix; increasing [s].
    prefix_tokens, context_tokens, share : ndarray, shape (gaps, lengths)
        Reusable prefix l, context w and share of the requests of each node.
    fresh_tokens, fresh_share : ndarray, shape (fresh,)
        Context and share of the requests that find nothing.
    depth_tokens : ndarray, shape (depths,)
        Positions y inside a prefix [tokens].
    depth_weight : ndarray, shape (gaps, depths)
        Prefix tokens per request found around y at that gap [tokens].
    live_token_s, live_square_s, untouched_token_s, dead_token_s : ndarray, shape (gaps,)
        E[l' min(z', z)], E[w^2 min(z', z); live], E[w (z' - z)^+], E[(w - l')(z - z')^+].
    context_mean, context_square, prefix_mean : float
        E[w], E[w^2], E[l] [tokens], [tokens^2].
    gap_mean_s, context_gap_s : float
        E[z] [s] and E[w z'] [tokens s].
    output_mean, context_output, square_output : float
        E[o], E[w o], E[w^2 o].
    service_mean_s, context_service, square_service : float
        E[s], E[w s], E[w^2 s] of the recorded service.
    live_square : float
        E[w^2; not the last request] [tokens^2].
    request_mean : float
        Prompt of a request, where lanes hold whole session trees; else E[w] [tokens].
    """

    gap_s: FloatArray
    prefix_tokens: FloatArray
    context_tokens: FloatArray
    share: FloatArray
    fresh_tokens: FloatArray
    fresh_share: FloatArray
    depth_tokens: FloatArray
    depth_weight: FloatArray
    live_token_s: FloatArray
    live_square_s: FloatArray
    untouched_token_s: FloatArray
    dead_token_s: FloatArray
    context_mean: float
    context_square: float
    prefix_mean: float
    gap_mean_s: float
    context_gap_s: float
    output_mean: float
    context_output: float
    square_output: float
    service_mean_s: float
    context_service: float
    square_service: float
    live_square: float
    request_mean: float

    @property
    def theoretical_hit_rate(self) -> float:
        """Share of prompt tokens that an infinite cache finds [1]."""
        return self.prefix_mean / self.context_mean

    def window_tokens(self, service: str) -> tuple[FloatArray, FloatArray]:
        """Mean [tokens] and variance [tokens^2] of what one lane touched within each gap.

        Notes
        -----
        U1(z) = (E[w s] + E[l' min(z', z)] + E[w - l'] z)/E[c]: running, live idle, and dead
        tokens, by Little's law. Exact for the mean.
        """
        recorded = service == "recorded"
        cycle = self.gap_mean_s + (self.service_mean_s if recorded else 0.0)
        running = self.context_service if recorded else 0.0
        square = self.square_service if recorded else 0.0
        stale = self.context_mean - self.prefix_mean
        cycle = max(cycle, 1e-9)
        mean = (running + self.live_token_s + stale * self.gap_s) / cycle
        second = (square + self.live_square_s) / cycle
        # Dead tokens are not in the second moment: keep a spread of at least 5% of the square.
        return mean, np.maximum(second - mean**2, 0.05 * mean**2)


def _depth_weights(
    prefix: list[FloatArray], counts: float, top: float
) -> tuple[FloatArray, FloatArray]:
    """Return depth nodes and, per gap node, the prefix tokens per request around each."""
    edges = top * np.linspace(0.0, 1.0, _DEPTH_NODES + 1) ** 1.5
    inside = [
        (np.minimum(part[:, None], edges[None, 1:]) - np.minimum(part[:, None], edges[None, :-1]))
        .sum(axis=0)
        for part in prefix
    ]  # fmt: skip
    return 0.5 * (edges[1:] + edges[:-1]), np.array(inside) / counts


def _running_mean(gaps: FloatArray, weight: FloatArray, at: FloatArray) -> FloatArray:
    """Return the mean over all requests of weight * min(gap, x), at each x."""
    order = np.argsort(gaps)
    sums = np.append(0.0, np.cumsum(weight[order] * gaps[order]))
    tail = weight.sum() - np.append(0.0, np.cumsum(weight[order]))
    cut = np.searchsorted(gaps[order], at)
    mean: FloatArray = (sums[cut] + tail[cut] * at) / gaps.size
    return mean


def lane_law(table: SessionTable) -> LaneLaw:
    """Return the law of one lane that plays the sessions of a table, gaps already capped.

    Where no request waits at all the lanes take turns: then every gap counts as one second.
    """
    if not np.any(table.think_s > 0):
        waits = np.ones(table.requests)
        waits[table.session_starts[:-1]] = 0.0
        table = replace(table, think_s=waits)
    context, prefix = table.input_tokens, table.prefix_tokens
    following, gap_next = table.following(prefix), table.following(table.think_s)
    found = np.flatnonzero(prefix > 0)
    found = found[np.argsort(table.think_s[found], kind="stable")]
    rows = np.array_split(found, min(_GAP_NODES, max(found.size, 1)))
    length_nodes = min(_LENGTH_NODES, max(1, min(row.size for row in rows)))
    cells = [np.array_split(row[np.argsort(prefix[row])], length_nodes) for row in rows]
    gap = np.array([table.think_s[row].mean() if row.size else 0.0 for row in rows])

    def node_mean(column: FloatArray) -> FloatArray:
        return np.array([[column[c].mean() if c.size else 0.0 for c in row] for row in cells])

    fresh = np.sort(context[prefix <= 0])
    parts = np.array_split(fresh, min(_FRESH_NODES, max(fresh.size, 1)))
    depth, depth_weight = _depth_weights(
        [prefix[row] for row in rows], context.size, float(prefix.max(initial=1.0))
    )
    alive = np.where(table.is_last, 0.0, context**2)
    stale = context - following
    # E[(w - l')(x - z')^+] = x E[w - l'] - E[(w - l') min(z', x)].
    dead = gap * stale.mean() - _running_mean(gap_next, stale, gap)
    context_gap = float((context * gap_next).mean())
    output, service = table.output_tokens, table.service_s
    return LaneLaw(
        gap_s=gap,
        prefix_tokens=node_mean(prefix),
        context_tokens=node_mean(context),
        share=np.array([[c.size for c in row] for row in cells]) / context.size,
        fresh_tokens=np.array([part.mean() if part.size else 1.0 for part in parts]),
        fresh_share=np.array([part.size for part in parts]) / context.size,
        depth_tokens=depth,
        depth_weight=depth_weight,
        live_token_s=_running_mean(gap_next, following, gap),
        live_square_s=_running_mean(gap_next, alive, gap),
        untouched_token_s=np.maximum(context_gap - _running_mean(gap_next, context, gap), 0.0),
        dead_token_s=np.maximum(dead, 0.0),
        context_mean=float(context.mean()),
        context_square=float((context**2).mean()),
        prefix_mean=float(prefix.mean()),
        gap_mean_s=float(table.think_s.mean()),
        context_gap_s=context_gap,
        output_mean=float(output.mean()),
        context_output=float((context * output).mean()),
        square_output=float((context**2 * output).mean()),
        service_mean_s=float(service.mean()),
        context_service=float((context * service).mean()),
        square_service=float((context**2 * service).mean()),
        live_square=float(alive.mean()),
        request_mean=float(context.mean()),
    )


def lognormal_parameters(mean: float, cv: float) -> tuple[float, float]:
    """Return (median, log-standard deviation) of the lognormal of given mean and variation."""
    sigma = math.sqrt(math.log1p(cv * cv))
    return mean * math.exp(-0.5 * sigma * sigma), sigma
