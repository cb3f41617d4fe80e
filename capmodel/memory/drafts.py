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


def _entry(deployment: Deployment) -> dict[str, Any]:
    assert deployment.speculation is not None
    name = "mtp" if uses_module(deployment) else deployment.speculation.name.lower()
    entry: dict[str, Any] = _table().get(name, {"layers": 1, "mixer": "target"})
    return entry


def draft_is_known(model: Model, deployment: Deployment) -> bool:
    """Return whether the drafter's cache of this model is on record."""
    if deployment.speculation is None:
        return True
    if uses_module(deployment):
        return True
    name = deployment.speculation.name.lower()
    return name in _table() and model.name in _table()[name].get("models", [model.name])


def draft_layers(model: Model, deployment: Deployment) -> DraftLayers | None:
    """Return the drafter's cached layers, or None where it caches nothing of its own.

    Notes
    -----
    A module has the mixer of the checkpoint's prediction layer; a model without one has a
    drafter that reads the target's cache. Other drafts copy the target's growing attention, and
    a name without an entry counts as one such layer.
    """
    if deployment.speculation is None:
        return None
    entry = _entry(deployment)
    if entry["mixer"] == "module":
        mixers: list[Mixer] = [m for g in model.mtp_stack if (m := g.mixer) is not None]
    else:
        mixers = [m for g in model.layers if (m := g.mixer) is not None and _grows(m)]
    if not mixers:
        return None
    return DraftLayers(
        mixer=mixers[0],
        layers=int(entry["layers"]),
        own_group=bool(entry.get("own_group", False)),
    )


def kept_hidden_layers(deployment: Deployment) -> int:
    """Return the target layers whose hidden states the drafter reads, beside the last [1]."""
    return int(_entry(deployment).get("hidden_layers", 0)) if deployment.speculation else 0


def _grows(mixer: Mixer) -> bool:
    if isinstance(mixer, GroupedQueryAttention):
        return mixer.window_tokens is None and mixer.chunk_tokens is None
    return isinstance(mixer, LatentAttention | CompressedAttention)
