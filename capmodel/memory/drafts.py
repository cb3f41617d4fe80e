"""Drafters of speculative decoding: the layers they add to the KV pool."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ..catalog import raw_item
from ..spec.attention import CompressedAttention, GroupedQueryAttention, LatentAttention, Mixer
from ..spec.deployment import Deployment
from ..spec.model import Model

MODULE_NAMES = ("mtp", "nextn", "eagle")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLayers:
    """`layers` attention layers of a drafter, in groups of their own or with the target's."""

    mixer: Mixer
    layers: int
    own_group: bool


@cache
def _table() -> dict[str, Any]:
    return raw_item("builds", "drafts")


def uses_module(deployment: Deployment) -> bool:
    """Return whether the draft is the checkpoint's own prediction module."""
    speculation = deployment.speculation
    return speculation is not None and speculation.name.lower() in MODULE_NAMES


def draft_layers(model: Model, deployment: Deployment) -> DraftLayers | None:
    """Return the drafter's cached layers, or None without speculation.

    Notes
    -----
    A module has the mixer of the checkpoint's prediction layer; other drafts copy the target's
    growing attention. A name without an entry counts as one such layer.
    """
    if deployment.speculation is None:
        return None
    name = "mtp" if uses_module(deployment) else deployment.speculation.name.lower()
    entry = _table().get(name, {"layers": 1, "mixer": "target", "own_group": False})
    mixers: list[Mixer] = [m for g in model.mtp_stack if (m := g.mixer) is not None]
    if entry["mixer"] == "target" or not mixers:
        mixers = [m for g in model.layers if (m := g.mixer) is not None and _grows(m)]
    if not mixers:
        return None
    return DraftLayers(
        mixer=mixers[0], layers=int(entry["layers"]), own_group=bool(entry["own_group"])
    )


def _grows(mixer: Mixer) -> bool:
    if isinstance(mixer, GroupedQueryAttention):
        return mixer.window_tokens is None and mixer.chunk_tokens is None
    return isinstance(mixer, LatentAttention | CompressedAttention)
