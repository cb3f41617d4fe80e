"""Engine and model → block geometry of every pipeline stage."""

from __future__ import annotations

from collections import Counter

from ..spec.accelerator import Accelerator
from ..spec.attention import CompressedAttention
from ..spec.deployment import Deployment
from ..spec.model import LayerGroup, Model
from . import engine_defaults
from .compressed_pages import compressed_plan
from .drafts import draft_layers
from .kv_layout import CachePart, cache_parts
from .pages import LayerClass, PagePlan, plain_plan, unified_plan
from .pools import static_pools, whole_context_plan
from .stages import stage_layers

ClassKey = tuple[CachePart, bool]


def page_plans(model: Model, deployment: Deployment, accelerator: Accelerator) -> list[PagePlan]:
    """Return the block geometry of each pipeline stage."""
    stages = stage_layers(model, deployment.pp)
    return [
        stage_plan(model, stage, deployment, accelerator, last=number == len(stages) - 1)
        for number, stage in enumerate(stages)
    ]


def state_blocks(deployment: Deployment) -> int:
    """Return the blocks a state group holds per running request [1].

    Notes
    -----
    One for the state itself, one for the checkpoint that prefix caching keeps at the last block
    boundary (in builds that cache prefixes of hybrids), and one per draft token.
    """
    drafts = deployment.speculation.draft_tokens if deployment.speculation else 0
    return 1 + engine_defaults.caches_hybrid_prefixes(deployment) + drafts


def layer_classes(
    model: Model, stage: tuple[LayerGroup, ...], deployment: Deployment, *, last: bool = True
) -> list[LayerClass]:
    """Return the kinds of cache of a stage, with the model's own counts beside the stage's."""
    whole = _counts(model, model.layers, deployment)
    here = _counts(model, stage, deployment)
    draft = draft_layers(model, deployment)
    if draft is not None:
        for part in cache_parts(draft.mixer, model, deployment):
            whole[part, draft.own_group] += draft.layers
            here[part, draft.own_group] += draft.layers if last else 0
    return [
        LayerClass(part=key[0], layers=count, stage_layers=here.get(key, 0), draft=key[1])
        for key, count in whole.items()
    ]


def stage_bytes_per_token(
    model: Model, stage: tuple[LayerGroup, ...], deployment: Deployment, *, last: bool
) -> float:
    """Return the bytes each further token takes on a rank of the stage, padding aside [bytes].

    Notes
    -----
    Where nothing grows, the bytes of a token inside the window.
    """
    classes = layer_classes(model, stage, deployment, last=last)
    grown = sum(c.stage_layers * c.part.bytes_per_token for c in classes if c.part.grows)
    inside = sum(c.stage_layers * c.part.bytes_per_token for c in classes)
    return grown / deployment.dcp if grown else inside


def _counts(
    model: Model, layers: tuple[LayerGroup, ...], deployment: Deployment
) -> Counter[ClassKey]:
    counts: Counter[ClassKey] = Counter()
    for group in layers:
        for part in cache_parts(group.mixer, model, deployment):
            counts[part, False] += group.count
    return counts


def stage_plan(
    model: Model,
    stage: tuple[LayerGroup, ...],
    deployment: Deployment,
    accelerator: Accelerator,
    *,
    last: bool,
) -> PagePlan:
    """Return the block geometry of one pipeline stage."""
    classes = layer_classes(model, stage, deployment, last=last)
    step = engine_defaults.max_num_batched_tokens(deployment, accelerator)
    block = engine_defaults.block_tokens(model, deployment)
    per_token = sum(c.stage_layers * c.part.bytes_per_token for c in classes if c.part.grows)
    if deployment.engine == "sglang":
        return static_pools(classes, block_tokens=block, dcp=deployment.dcp, step_tokens=step)
    if deployment.engine == "trtllm":
        return whole_context_plan(classes, block_tokens=block, step_tokens=step)
    if any(isinstance(g.mixer, CompressedAttention) for g in model.layers):
        layers = sum(c.stage_layers for c in classes if c.part.kind == "window")
        return compressed_plan(model, layers, deployment, block_tokens=block, step_tokens=step)
    if all(c.part.grows for c in classes):
        return plain_plan(per_token, block, dcp=deployment.dcp, step_tokens=step)
    return unified_plan(
        classes,
        block_tokens=block,
        alignment_tokens=engine_defaults.state_alignment_tokens(model, deployment),
        dcp=deployment.dcp,
        state_blocks=state_blocks(deployment),
        step_tokens=step,
    )
