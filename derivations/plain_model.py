"""A model of given layers whose other dimensions are plain numbers."""

from __future__ import annotations

from typing import Any

from capmodel.spec.model import LayerGroup, Model
from capmodel.spec.precision import WeightPrecision


def plain_model(layers: tuple[LayerGroup, ...], **given: Any) -> Model:
    """Return a model of these layers; everything else has a default.

    Parameters
    ----------
    layers : tuple of LayerGroup
        The stack.
    **given
        Any other field of `Model`.
    """
    fields: dict[str, Any] = {
        "name": "drawn", "family": "plain", "hidden_size": 1024, "vocab_size": 32_000,
        "max_position_tokens": 131_072, "tied_embeddings": False,
        "precision": WeightPrecision(),
    }  # fmt: skip
    return Model(layers=layers, **{**fields, **given})
