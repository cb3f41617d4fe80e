"""From a workload's moments to sessions that grow, reset and end."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..spec.distributions import LognormalMixture
from ..spec.workload import Workload
from .case import SessionLaws

SHAPE = Path(__file__).parent / "data" / "session_shape.yaml"


@cache
def session_shape() -> dict[str, Any]:
    """Return the shape constants with their provenance."""
    shape: dict[str, Any] = yaml.safe_load(SHAPE.read_text(encoding="utf-8"))
    return shape


def session_laws(workload: Workload, branches: int = 1) -> SessionLaws:
    """Return session laws whose turns have the workload's mean prompt and ceiling.

    Parameters
    ----------
    workload : Workload
        Moments of requests; the spread of the contexts follows `tree_tokens_cv`, because that is
        what decides how often the live contexts exceed the budget.

    branches : int
        Contexts of a session; one turn in `branches` goes on with a given one [1].

    Returns
    -------
    SessionLaws
        Laws of first turns, growth, resets and gaps.

    Notes
    -----
    Over a long time what contexts gain per turn they lose by renewals (session ends and resets):
    with prompt w, output o and new tokens m = (1 - H) w per turn, a turn is a renewal with
    probability ``q = (m + o) / (w + o)``, whatever the split of m between renewals and growth.
    Growth takes its share g of m: ``u = g m / (1 - q)`` and ``L0 = (1 - g) m / q``. Renewals beyond
    the session ends, ``q - b/K`` with b branches, are resets that keep nothing private.
    Exact for: the mean prompt and the ceiling with geometric ages. Approximate for: ages drawn as
    a lognormal of the same mean and cv 1, and contexts cut at the longest prompt (within 5%).
    """
    shape = session_shape()
    prompt = workload.request_tokens_mean - workload.shared_prefix_tokens
    output = workload.output_tokens_mean
    fresh = (1.0 - workload.theoretical_hit_rate) * workload.request_tokens_mean
    renewal = min((fresh + output) / (prompt + output), 1.0)
    # A branch sees every end of its session, but only its share of the turns.
    ends = min(branches / workload.turns_mean, renewal)
    growth_share = float(shape["growth_share_of_misses"]["value"]) if renewal < 1.0 else 0.0
    growth = growth_share * fresh / (1.0 - renewal) if renewal < 1.0 else 1.0
    first = max((1.0 - growth_share) * fresh / renewal, 1.0)
    parts = shape["new_tokens"]
    new_tokens = LognormalMixture(
        weights=tuple(parts["weights"]),
        medians=tuple(float(median) for median in parts["medians"]),
        sigmas=tuple(parts["sigmas"]),
    )
    turns = branches / ends
    first_law = LognormalMixture.from_mean_cv(
        first, _first_cv(workload, first, growth + output, renewal)
    )
    return SessionLaws(
        first_tokens=first_law,
        new_tokens=new_tokens.scaled(growth / new_tokens.mean()),
        output_tokens=LognormalMixture.from_mean_cv(output, workload.output_tokens_cv),
        turns=LognormalMixture.from_mean_cv(
            turns, float(shape["turns_cv"]["value"]) if turns > 1.0 else 0.0
        ),
        think_time=workload.think_time,
        reset_probability=max(renewal - ends, 0.0) / max(1.0 - ends, ends),
        reset_tokens=first_law,
    )


def _first_cv(workload: Workload, first: float, step: float, renewal: float) -> float:
    """Spread of first turns that leaves the contexts' spread as given [1]."""
    wanted = workload.tree_tokens_cv * workload.request_tokens_mean
    # A geometric age has this variance; each of its turns adds `step` tokens.
    grown = step * math.sqrt(max(1.0 - renewal, 0.0)) / renewal
    return math.sqrt(max(wanted**2 - grown**2, 0.0)) / first
