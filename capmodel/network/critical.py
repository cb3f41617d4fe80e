"""Critical concurrency: where overload ends the good regime, and how far below B/mu to stay.

Everything here is closed form, for first looks, bounds and the operator's rule of thumb; the
operating points themselves come from the fixed points.
"""

from __future__ import annotations

import math


def saturation_concurrency(think_s: float, decode_s: float, prefill_s: float) -> float:
    """Sessions at which one prefill server is busy all the time, queueing aside [1].

    Parameters
    ----------
    think_s, decode_s, prefill_s : float
        Think time, decode and prefill of a request [s].

    Notes
    -----
    The asymptotes ``C/(Z + D + s)`` and ``1/s`` cross at ``(Z + D + s)/s``.
    Derivation: ``asymptotes``.
    """
    return (think_s + decode_s + prefill_s) / prefill_s


def saturation_miss(
    think_s: float, decode_s: float, hit_prefill_s: float, miss_prefill_s: float, concurrency: float
) -> float:
    """Share of full misses at which the prefill server saturates, may leave [0, 1] [1].

    Parameters
    ----------
    think_s, decode_s : float
        Think time and decode of a request [s].
    hit_prefill_s, miss_prefill_s : float
        Prefill of a hit and of a full miss [s].
    concurrency : float
        Live sessions C > 1 [1].

    Notes
    -----
    ``m = (Z + D - (C - 1) s_h)/((C - 1)(s_m - s_h))``. Derivation: ``collapse``.
    """
    others = concurrency - 1.0
    spare = think_s + decode_s - others * hit_prefill_s
    return spare / (others * (miss_prefill_s - hit_prefill_s))


def critical_overload(
    think_s: float, decode_s: float, hit_prefill_s: float, miss_prefill_s: float, concurrency: float
) -> float:
    """Excess share 1 - B/Y of live tokens at which misses saturate the server [1].

    Parameters
    ----------
    think_s, decode_s, hit_prefill_s, miss_prefill_s, concurrency : float
        As in `saturation_miss`.

    Notes
    -----
    ``e* = Z (Z + D - (C - 1) s_h)/(C (s_m - s_h)(Z + D))``, at least 0.
    Exact for: exponential think times and many sessions. Derivation: ``collapse``.
    """
    free_s = think_s + decode_s
    spare = free_s - (concurrency - 1.0) * hit_prefill_s
    slope = concurrency * (miss_prefill_s - hit_prefill_s) * free_s
    return max(think_s * spare / slope, 0.0)


def critical_concurrency(
    capacity_tokens: float,
    tokens_mean: float,
    tokens_cv: float,
    *,
    overload: float = 0.0,
    score: float = 2.5,
) -> float:
    """Sessions whose live tokens stay under the tolerated overload with a given confidence [1].

    Parameters
    ----------
    capacity_tokens : float
        Cache capacity B [tokens].
    tokens_mean, tokens_cv : float
        Live tokens of one session: mean [tokens] and coefficient of variation [1].
    overload : float
        Tolerated excess share of the live tokens, such as `critical_overload` [1].
    score : float
        Normal score of the tolerated overload quantile; 2.5 to 3 finds the throughput peak [1].

    Notes
    -----
    ``C mu + z sigma sqrt(C) = B/(1 - e)``, a quadratic in sqrt(C):
    ``C = (sqrt(b + (z k/2)^2) - z k/2)^2`` with ``b = B/((1 - e) mu)`` and ``k = sigma/mu``.
    Exact for: a normal sum of contexts. Derivation: ``critical_concurrency``.

    Examples
    --------
    >>> round(critical_concurrency(3.249e6, 148e3, 0.75, score=2.5), 1)
    14.8
    """
    naive = capacity_tokens / ((1.0 - overload) * tokens_mean)
    half = 0.5 * score * tokens_cv
    return (math.sqrt(naive + half * half) - half) ** 2
