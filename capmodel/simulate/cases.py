"""The three published solver tests, built from their raw step-law coefficients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ..errors import SpecError, nearest_names
from ..service.step_law import raw_step_law
from ..spec.distributions import LognormalMixture
from .case import SessionLaws, SimulationCase, Tier

DATA = Path(__file__).parent / "data" / "published_cases.yaml"

STEP_LAW_FIELDS = (
    "active_params",
    "fixed_weight_bytes",
    "expert_weight_bytes",
    "experts",
    "experts_per_token",
    "flop_per_s",
    "bytes_per_s",
    "prefill_pair_flop",
    "decode_pair_flop",
    "kv_read_bytes_per_token",
    "step_overhead_s",
    "max_batched_tokens",
    "verify_tokens",
    "accepted_tokens",
)


def _law(entry: dict[str, float]) -> LognormalMixture:
    return LognormalMixture.from_mean_cv(entry["mean"], entry["cv"])


def _case(name: str, item: dict[str, Any], concurrency: int, tier: bool) -> SimulationCase:
    second = None
    if tier:
        if "tier_tokens" not in item:
            raise SpecError(f"{name} has no published second tier.", field="tier")
        second = Tier(
            tokens=item["tier_tokens"],
            bytes_per_token=item["link_bytes_per_token"],
            bytes_per_s=item["link_bytes_per_s"],
        )
    return SimulationCase(
        name=name,
        step_law=raw_step_law(**{field: item[field] for field in STEP_LAW_FIELDS}),
        kv_tokens=item["kv_tokens"],
        sessions=SessionLaws(
            first_tokens=_law(item["first_tokens"]),
            new_tokens=_law(item["new_tokens"]),
            output_tokens=_law(item["output_tokens"]),
            turns=_law(item["turns"]),
            think_time=_law(item["think_time_s"]),
        ),
        concurrency=concurrency,
        shared_prefix_tokens=item["shared_prefix_tokens"],
        max_context_tokens=item["max_context_tokens"],
        tier=second,
    )


def frozen_case(case: SimulationCase, live_over_budget: float) -> SimulationCase:
    """Return a case with equal contexts that no longer grow.

    Parameters
    ----------
    case : SimulationCase
        The case whose laws of new input, output and think time stay.
    live_over_budget : float
        Sum of the private contexts over the budget left by the shared prefix [1].
    """
    budget = case.kv_tokens - case.shared_prefix_tokens
    context = live_over_budget * budget / case.concurrency
    return replace(case, frozen_context_tokens=(context,) * case.concurrency)


def bistable_case(
    think_time_cv: float = 2.0, live_over_budget: float = 1.06, concurrency: int | None = None
) -> SimulationCase:
    """Return the published bistable case: many sessions, heavy-tailed gaps, a little too much live.

    Parameters
    ----------
    think_time_cv : float
        Coefficient of variation of the think time; 2 or more gives two states [1].
    live_over_budget : float
        Live tokens over budget [1].
    concurrency : int, optional
        Sessions; 64 as published [1].
    """
    data = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    spec = data["bistable"]
    item = dict(data["cases"][spec["base"]])
    for field in ("kv_tokens", "flop_per_s", "bytes_per_s"):
        item[field] *= spec["node_factor"]
    item["think_time_s"] = {"mean": spec["think_time_mean_s"], "cv": think_time_cv}
    case = _case("bistable", item, concurrency or spec["concurrency"], False)
    return frozen_case(case, live_over_budget)


def published_cases(concurrency: int = 1) -> dict[str, SimulationCase]:
    """Return the three cases by name, at a concurrency [sessions]."""
    items = yaml.safe_load(DATA.read_text(encoding="utf-8"))["cases"]
    return {name: _case(name, item, concurrency, False) for name, item in items.items()}


def published_case(name: str, concurrency: int, *, tier: bool = False) -> SimulationCase:
    """Return one published case, with its second tier if asked for.

    Raises
    ------
    SpecError
        If the name is unknown or the case has no published tier.
    """
    items = yaml.safe_load(DATA.read_text(encoding="utf-8"))["cases"]
    if name not in items:
        raise SpecError(f"no published case {name!r}.", nearest=nearest_names(name, items))
    return _case(name, items[name], concurrency, tier)
