"""From what a turn adds to what a workload holds: moments over turns of growing sessions."""

from __future__ import annotations

import math

import numpy as np

from ..errors import SpecError
from ..normal import quantile
from .distributions import LognormalMixture
from .workload import Workload

STRATA = 20_000


def workload_of_turns(
    name: str,
    *,
    first_tokens: LognormalMixture,
    new_tokens: LognormalMixture,
    output_tokens: LognormalMixture,
    turns: LognormalMixture,
    think_time: LognormalMixture,
    shared_prefix_tokens: float = 0.0,
    max_context_tokens: float = math.inf,
) -> Workload:
    """Return the workload of sessions that grow turn by turn, by renewal-reward over turns.

    Parameters
    ----------
    name : str
        Label.
    first_tokens, new_tokens, output_tokens : LognormalMixture
        Private prompt of the first turn, new input and output of every later one [tokens].
    turns : LognormalMixture
        Turns of a session, rounded to at least 1 [1].
    think_time : LognormalMixture
        Gap between a response and the next request [s].
    shared_prefix_tokens : float
        Prefix of every prompt [tokens].
    max_context_tokens : float
        A session ends before its mean context would pass this [tokens].

    Notes
    -----
    A random turn has age k with probability P(K >= k)/E[K], so its context has mean
    ``L0 + o + (E[k] - 1)(u + o)`` with ``E[k] = (E[K^2] + E[K])/(2 E[K])``, and variance
    ``Var L0 + Var o + (E[k] - 1)(Var u + Var o) + (u + o)^2 Var k``. Derivation: ``turn_age``.

    Examples
    --------
    >>> law = LognormalMixture.from_mean_cv
    >>> load = workload_of_turns(
    ...     "agent", first_tokens=law(20e3, 0.6), new_tokens=law(2480, 1), turns=law(65, 0.6),
    ...     output_tokens=law(444, 1), think_time=law(15, 1.2), shared_prefix_tokens=15e3)
    >>> round(3.249e6 / load.tree_tokens_mean, 1)
    22.0
    """
    first, new, output = first_tokens.mean(), new_tokens.mean(), output_tokens.mean()
    step = new + output
    room = (max_context_tokens - shared_prefix_tokens - first) / step
    if room < 1:
        raise SpecError("the first turn does not fit the longest context.", field="first_tokens")
    k = np.maximum(np.round(_strata(turns)), 1.0)
    k = np.minimum(k, math.floor(room) if math.isfinite(room) else np.inf)
    mean, square = float(k.mean()), float((k**2).mean())
    age = (square + mean) / (2.0 * mean)
    age_square = float((k * (k + 1) * (2 * k + 1) / 6.0).mean()) / mean
    tree = first + output + (age - 1.0) * step
    variance = (
        first_tokens.variance()
        + output_tokens.variance()
        + (age - 1.0) * (new_tokens.variance() + output_tokens.variance())
        + step**2 * (age_square - age**2)
    )
    prompt = shared_prefix_tokens + first + (age - 1.0) * step
    fresh = (first + (mean - 1.0) * new) / mean
    second = (
        first_tokens.variance() + first**2 + (mean - 1.0) * (new_tokens.variance() + new**2)
    ) / mean
    return Workload(
        name=name,
        request_tokens_mean=prompt,
        request_tokens_cv=math.sqrt(variance) / prompt,
        tree_tokens_mean=tree,
        tree_tokens_cv=math.sqrt(variance) / tree,
        output_tokens_mean=output,
        output_tokens_cv=output_tokens.cv(),
        turns_mean=mean,
        turns_cv=math.sqrt(max(square / mean**2 - 1.0, 0.0)),
        theoretical_hit_rate=1.0 - fresh / prompt,
        think_time=think_time,
        new_tokens_cv=math.sqrt(max(second / fresh**2 - 1.0, 0.0)),
        shared_prefix_tokens=shared_prefix_tokens,
        max_context_tokens=max_context_tokens,
    )


def _strata(law: LognormalMixture) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Equal-probability points of a mixture, each part in proportion to its weight."""
    parts = []
    for weight, median, sigma in zip(law.weights, law.medians, law.sigmas, strict=True):
        count = max(round(weight * STRATA), 1)
        parts.append(median * np.exp(sigma * quantile((np.arange(count) + 0.5) / count)))
    return np.minimum(np.concatenate(parts), law.cap)
