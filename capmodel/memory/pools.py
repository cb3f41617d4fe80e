"""Pools of engines that size by memory share: SGLang's static pools, TensorRT-LLM's one pool."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..catalog import raw_item
from .pages import LayerClass, LayerGroups, PagePlan


@cache
def _rule() -> dict[str, Any]:
    return raw_item("builds", "static-pools")


def static_pools(
    classes: list[LayerClass],
    *,
    block_tokens: int,
    dcp: int,
    step_tokens: int,
    window_ratio: float | None = None,
) -> PagePlan:
    """Return SGLang's pools as one plan per token of the full-attention pool.

    Notes
    -----
    A second pool holds the window layers, smaller by a fixed ratio of tokens; recurrent states
    have slots of their own, in a fixed proportion of bytes to the token pools.
    """
    default_ratio = float(_rule()["window_tokens_ratio"]["value"])
    ratio = default_ratio if window_ratio is None else window_ratio
    memory_ratio = float(_rule()["state_memory_ratio"]["value"])
    full = sum(c.stage_layers * c.part.bytes_per_token for c in classes if c.part.grows)
    bounded = sum(
        c.stage_layers * c.part.bytes_per_token
        for c in classes
        if not c.part.grows and not c.part.state_bytes
    )
    state = sum(c.stage_layers * c.part.state_bytes for c in classes)
    per_token = full + ratio * bounded if full else bounded
    tokens = block_tokens * dcp
    return PagePlan(
        block_tokens=tokens,
        block_bytes=block_tokens * (per_token or 1.0),
        growing=(LayerGroups(groups=1, block_tokens=tokens),),
        step_tokens=step_tokens,
        pool_share=1 / (1 + memory_ratio) if state else 1.0,
        state_slot_bytes=state,
    )


def whole_context_plan(
    classes: list[LayerClass], *, block_tokens: int, step_tokens: int
) -> PagePlan:
    """Return TensorRT-LLM's pool: every attention layer keeps every token, states per request."""
    per_token = sum(c.stage_layers * c.part.bytes_per_token for c in classes)
    state = sum(c.stage_layers * c.part.state_bytes for c in classes)
    return PagePlan(
        block_tokens=block_tokens,
        block_bytes=block_tokens * (per_token or 1.0),
        growing=(LayerGroups(groups=1, block_tokens=block_tokens),),
        step_tokens=step_tokens,
        request_bytes=state,
        resident_bytes=state,
    )
