"""The three published solver tests, built from their raw step-law coefficients."""

from __future__ import annotations

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
