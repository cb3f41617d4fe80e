"""The short corpus: what is left of a workload when long prompts are dropped."""

from __future__ import annotations

import math
from dataclasses import replace

from ..normal import cdf
from ..spec.workload import Workload


def without_long_prompts(workload: Workload, longest_tokens: float) -> Workload:
    """Return the workload of requests up to a length, exact for lognormal prompts.

    Parameters
    ----------
    workload : Workload
        Full corpus.
    longest_tokens : float
        Longest prompt kept [tokens].

    Notes
    -----
    ``E[X | X <= x] = E[X] N(z - s) / N(z)``, ``z = (ln x - m) / s``; the tree, whose prompts are
    cut, shrinks in proportion, and so does its interval.
    """
    spread = math.sqrt(math.log1p(workload.request_tokens_cv**2))
    score = (math.log(longest_tokens / workload.request_tokens_mean) + 0.5 * spread**2) / spread
    kept = float(cdf(score))
    first = float(cdf(score - spread)) / kept
    second = float(cdf(score - 2.0 * spread)) / kept
    mean = workload.request_tokens_mean * first
    square = (workload.request_tokens_mean**2) * math.exp(spread**2) * second
    ends = workload.intervals.get("tree_tokens_mean")
    intervals = {k: v for k, v in workload.intervals.items() if k != "request_tokens_mean"}
    if ends is not None:
        intervals["tree_tokens_mean"] = (ends[0] * first, ends[1] * first)
    return replace(
        workload,
        name=f"{workload.name} up to {longest_tokens:.0f} tokens",
        request_tokens_mean=mean,
        request_tokens_cv=math.sqrt(square / mean**2 - 1.0),
        tree_tokens_mean=workload.tree_tokens_mean * first,
        max_context_tokens=longest_tokens,
        intervals=intervals,
    )
