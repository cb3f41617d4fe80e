"""Bytes an engine takes beside weights and pool: context, activations, buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ..catalog import raw_item
from ..spec.accelerator import Accelerator
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..units import parse_bytes
from .engine_defaults import max_num_batched_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Non-KV bytes of one rank beside its weights, with the range the measured starts span.

    Parameters
    ----------
    parts : dict of str to float
        Bytes by cause [bytes].
    low, high : float
        Range of the total [bytes].
    """

    parts: dict[str, float]
    low: float
    high: float

    @property
    def total(self) -> float:
        """Sum of the parts [bytes]."""
        return sum(self.parts.values())


@cache
def _table() -> dict[str, Any]:
    return raw_item("builds", "overhead")


def overhead(model: Model, deployment: Deployment, accelerator: Accelerator) -> Overhead:
    """Return the engine's bytes beside weights and pool on one rank [bytes]."""
    rule = _table()["vllm"]
    tokens = max_num_batched_tokens(deployment, accelerator)
    parallel = 1.0 if deployment.tp > 1 else 0.0
    totals = {}
    for edge in ("value", "low", "high"):
        totals[edge] = {
            "context": parse_bytes(rule["context"][edge]),
            "activations": rule["activation_bytes_per_token"][edge] * tokens,
            "communication": parallel * parse_bytes(rule["tensor_parallel"][edge]),
        }
    return Overhead(
        parts=totals["value"],
        low=sum(totals["low"].values()),
        high=sum(totals["high"].values()),
    )
