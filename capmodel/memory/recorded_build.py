"""Weights that a recorded build of an engine really loads, where model, engine and layout match."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..catalog import reference_build
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..units import parse_bytes

ARCHITECTURE_ONLY = "architecture"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBuild:
    """Loaded weights per rank [bytes], the recipe's running limit [1], and where they stand."""

    name: str
    weights_bytes: float
    max_num_seqs: int | None
    source: str


def recorded_build(model: Model, deployment: Deployment) -> RecordedBuild | None:
    """Return the recorded build that the deployment runs, or None.

    Notes
    -----
    `engine_version` ``"architecture"`` asks for the weights that follow from the model alone.
    """
    version = deployment.engine_version
    if version == ARCHITECTURE_ONLY or deployment.weights != "auto":
        return None
    item = reference_build(model.name, deployment.engine, version)
    layout = item.get("layout")
    if not layout or any(getattr(deployment, axis) != size for axis, size in layout.items()):
        return None
    return RecordedBuild(
        name=str(item["name"]),
        weights_bytes=parse_bytes(item["loaded_weights"], "loaded_weights"),
        max_num_seqs=item.get("max_num_seqs"),
        source=str(item["provenance"]["loaded_weights"]),
    )


def with_recipe(deployment: Deployment, build: RecordedBuild | None) -> Deployment:
    """Return the deployment with the recorded recipe's running limit where the user gave none."""
    if build is None or deployment.max_num_seqs is not None or build.max_num_seqs is None:
        return deployment
    return replace(deployment, max_num_seqs=build.max_num_seqs)
