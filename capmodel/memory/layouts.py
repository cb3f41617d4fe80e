"""Engine and model → page plan of every pipeline stage."""

from __future__ import annotations

from collections import Counter

from ..spec.accelerator import Accelerator
from ..spec.deployment import Deployment
from ..spec.model import LayerGroup, Model
from . import engine_defaults
from .kv_layout import CachePart, cache_parts
from .pages import LayerClass, PagePlan, plain_plan, unified_plan
from .stages import stage_layers

PREFIX_CACHED_STATE_BLOCKS = 2


def page_plans(model: Model, deployment: Deployment, accelerator: Accelerator) -> list[PagePlan]:
    """Return the block geometry of each pipeline stage."""
    return [
        _stage_plan(model, stage, deployment, accelerator)
        for stage in stage_layers(model, deployment.pp)
    ]


def state_blocks(deployment: Deployment) -> int:
    """Return the blocks a state group holds per running request: current, checkpoint, drafts."""
    drafts = deployment.speculation.draft_tokens if deployment.speculation else 0
    return (PREFIX_CACHED_STATE_BLOCKS if deployment.prefix_caching else 1) + drafts


def _stage_plan(
    model: Model,
    stage: tuple[LayerGroup, ...],
    deployment: Deployment,
    accelerator: Accelerator,
) -> PagePlan:
    whole = _class_counts(model, model.layers, deployment)
    here = _class_counts(model, stage, deployment)
    prefill = engine_defaults.max_num_batched_tokens(deployment, accelerator)
    if all(part.grows for part in whole):
        return plain_plan(
            sum(n * part.bytes_per_token for part, n in here.items()),
            engine_defaults.block_tokens(model, deployment),
            dcp=deployment.dcp,
            prefill_tokens=prefill,
        )
    return unified_plan(
        [
            LayerClass(part=part, layers=count, stage_layers=here.get(part, 0))
            for part, count in whole.items()
        ],
        block_tokens=engine_defaults.block_tokens(model, deployment),
        alignment_tokens=engine_defaults.state_alignment_tokens(model, deployment),
        dcp=deployment.dcp,
        state_blocks=state_blocks(deployment),
        prefill_tokens=prefill,
    )


def _class_counts(
    model: Model, layers: tuple[LayerGroup, ...], deployment: Deployment
) -> Counter[CachePart]:
    counts: Counter[CachePart] = Counter()
    for group in layers:
        for part in cache_parts(group.mixer, model, deployment):
            counts[part] += group.count
    return counts
