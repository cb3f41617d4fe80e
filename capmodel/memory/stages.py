"""Pipeline stages: which layers a rank holds."""

from __future__ import annotations

from ..spec.model import LayerGroup, Model


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
    """Return the layer groups of each pipeline stage, in order."""
    flat = [
        LayerGroup(mixer=g.mixer, feed_forward=g.feed_forward, count=1)
        for g in model.layers
        for _ in range(g.count)
    ]
    parts, start = [], 0
    for size in stage_sizes(len(flat), stages):
        parts.append(tuple(flat[start : start + size]))
        start += size
    return parts
