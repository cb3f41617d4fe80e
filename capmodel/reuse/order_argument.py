"""Missing tokens of one session among C, by the order argument for LRU under first-come service.

Let a session think for z seconds. Another session is still untouched when it returns if and only
if that one was thinking when the first left and its think time outlasts z: if it waits it is
ahead in the queue, if it runs it is more recent. Queueing delay enters through the cycle time only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..normal import quantile
from ..spec.distributions import LognormalMixture
from .gamma_law import gamma_cdf, gamma_excess, gamma_shape

FloatArray = npt.NDArray[np.float64]

# Up to this many other sessions the number of untouched ones is summed exactly (binomial).
EXACT_POPULATION = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkNodes:
    """Quadrature of a think-time law: nodes, weights and mean excess at the nodes [s], [1], [s]."""

    z_s: FloatArray
    weights: FloatArray
    excess_s: FloatArray


def think_nodes(law: LognormalMixture, points: int = 16) -> ThinkNodes:
    """Return equal-probability nodes of each part of a think-time law under its cap.

    Parameters
    ----------
    law : LognormalMixture
        Think-time law [s].
    points : int
        Nodes per part of the mixture [1].

    Returns
    -------
    ThinkNodes
        Nodes [s], weights that sum to 1 [1], and E[(Z - z)^+] at each node [s].

    Notes
    -----
    Midpoints of equal shares, not Gauss nodes: with many sessions the missing share is nearly a
    step in z, which a polynomial rule cannot follow.
    """
    scores = quantile((np.arange(points) + 0.5) / points)
    z, weights = [], []
    for share, median, sigma in zip(law.weights, law.medians, law.sigmas, strict=True):
        nodes = median * np.exp(sigma * scores) if sigma else np.asarray([median])
        z.append(np.minimum(nodes, law.cap))
        weights.append(np.full(len(nodes), share / len(nodes)))
    nodes = np.concatenate(z)
    return ThinkNodes(z_s=nodes, weights=np.concatenate(weights), excess_s=law.excess(nodes))


def binomial_pmf(trials: int, p: FloatArray) -> FloatArray:
    """Binomial probabilities, shape (trials + 1, *p.shape) [1]."""
    k = np.arange(trials + 1, dtype=np.float64)
    log_choose = math.lgamma(trials + 1) - np.asarray(
        [math.lgamma(i + 1) + math.lgamma(trials - i + 1) for i in range(trials + 1)]
    )
    inside = np.clip(p, 1e-300, 1.0 - 1e-16)
    shape = (-1,) + (1,) * np.ndim(p)
    log_pmf = (
        log_choose.reshape(shape)
        + k.reshape(shape) * np.log(inside)
        + (trials - k.reshape(shape)) * np.log1p(-inside)
    )
    pmf: FloatArray = np.exp(log_pmf)
    return np.asarray(pmf / pmf.sum(axis=0), dtype=np.float64)


def missing_fraction(
    *,
    live_tokens: FloatArray,
    cycle_s: FloatArray,
    capacity_tokens: float,
    concurrency: int,
    session_cv: float,
    ended_tokens_per_turn: float,
    think: ThinkNodes,
    all_or_nothing: bool = False,
) -> FloatArray:
    """Share of a session's reusable tokens that its next turn does not find in cache.

    Parameters
    ----------
    live_tokens : ndarray, shape (n,)
        Sum Y of the live contexts of all sessions, one entry per composition [tokens].
    cycle_s : ndarray, shape (n,)
        Cycle time of a session, think time to think time [s].
    capacity_tokens : float
        Cache capacity B [tokens].
    concurrency : int
        Live sessions C [1].
    session_cv : float
        Coefficient of variation of one session's live tokens [1].
    ended_tokens_per_turn : float
        Tokens that ended sessions leave in cache, per turn of the workload [tokens].
    think : ThinkNodes
        Quadrature of the think-time law.
    all_or_nothing : bool
        True for models with recurrent state: a partial prefix is of no use without its state.

    Returns
    -------
    ndarray, shape (n,)
        Missing fraction, between 0 and 1 [1].

    Notes
    -----
    With ``q(z) = E[(Z' - z)^+] / c`` the untouched mass U(z) is the sum of a binomial(C-1, q)
    number of the others' contexts; a turn misses ``min(w, (Y + extra(z) - B - U(z))^+)`` of its
    own w tokens, tails first. Given k untouched sessions out of C with total Y, the mass is taken
    gamma, with the mean of k others beside a session drawn by size and the variance of sampling
    k of C without replacement.

    Exact for: first-come service, look-up at service start, LRU by session, C = 1, and the fluid
    limit ``min(1, (1 - B/Y) c / Z)`` of exponential think times. Approximate: the gamma law given
    k. Derivation: ``order_argument``.
    """
    total = np.asarray(live_tokens, dtype=np.float64)[:, None]
    cycle = np.asarray(cycle_s, dtype=np.float64)[:, None]
    others = concurrency - 1
    mean = total / concurrency
    # Tokens, not turns, are counted: the session that returns is drawn in proportion to its size,
    # so it is larger than the mean and the others, whose total is given, are smaller.
    own = np.minimum(mean * (1.0 + session_cv**2 * others / concurrency), 0.9 * total)
    own = own if others else total
    other = (total - own) / max(others, 1)
    untouched = np.clip(think.excess_s[None, :] / cycle, 0.0, 1.0)
    repeat = np.maximum(think.z_s[None, :] / cycle - (1.0 - untouched), 0.0)
    extra = repeat * others * ended_tokens_per_turn
    over = np.maximum(total + extra - capacity_tokens, 0.0)
    variance = (session_cv * other) ** 2
    if others == 0:
        share = _missing_share(over, own, np.zeros_like(over), np.zeros_like(over), all_or_nothing)
    elif others <= EXACT_POPULATION:
        pmf = binomial_pmf(others, untouched)
        k = np.arange(others + 1, dtype=np.float64)[:, None, None]
        spread = k * (1.0 - k / concurrency) * variance * concurrency / others
        share = (pmf * _missing_share(over, own, k * other, spread, all_or_nothing)).sum(0)
    else:
        spread = others * (untouched * (variance + other**2) - (untouched * other) ** 2)
        share = _missing_share(over, own, others * untouched * other, spread, all_or_nothing)
    result: FloatArray = np.clip(share @ think.weights, 0.0, 1.0)
    return result


def _missing_share(
    over: FloatArray,
    own: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    all_or_nothing: bool,
) -> FloatArray:
    """E[min(w, (over - U)^+)]/w, or P(U < over) for all-or-nothing, with U gamma (never < 0)."""
    sharp = variance <= 1e-12 * own**2
    size = np.where(sharp, 1.0, mean)
    shape = np.where(sharp, 1.0, gamma_shape(size, variance))
    if all_or_nothing:
        return np.where(sharp, over > mean, gamma_cdf(over, size, shape))
    missing = own + gamma_excess(over, size, shape) - gamma_excess(over - own, size, shape)
    return np.where(sharp, np.clip(over - mean, 0.0, own), missing) / own
