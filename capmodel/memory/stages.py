"""Pipeline stages: which layers a rank holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..spec.model import LayerGroup, Model


def layer_kinds(layers: Iterable[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Return the groups with equal layers counted together; bytes do not depend on their order."""
    counts: Counter[LayerGroup] = Counter()
    for group in layers:
        counts[replace(group, count=1)] += group.count
    return tuple(replace(kind, count=count) for kind, count in counts.items())


def stage_sizes(layers: int, stages: int) -> list[int]:
    """Return the layers of each pipeline stage [1].

    Notes
    -----
    Even shares; layers left over go to the stages before the last, from the back, since the
    last one also has the output head.
    """
    base, left = divmod(layers, stages)
    sizes = [base] * stages
    for back in range(2, left + 2):
        sizes[-min(back, stages)] += 1
    return sizes


def stage_layers(model: Model, stages: int) -> list[tuple[LayerGroup, ...]]:
    """Return the kinds of layers of each pipeline stage, stages in order."""
    if stages == 1:
        return [layer_kinds(model.layers)]
    flat = [replace(group, count=1) for group in model.layers for _ in range(group.count)]
    parts, start = [], 0
    for size in stage_sizes(len(flat), stages):
        parts.append(layer_kinds(flat[start : start + size]))
        start += size
    return parts
