"""Limits that are not arithmetic: known out-of-memory points and refusals to start, as warnings."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..catalog import raw_item
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..spec.node import Node
from . import engine_defaults
from .drafts import draft_is_known, uses_module
from .pages import PagePlan

# A build's share of memory is stated to two decimals.
UTILIZATION_STEP = 0.005


@cache
def _limits() -> list[dict[str, Any]]:
    return list(raw_item("builds", "utilization-limits")["limits"])


def utilization_warnings(model: Model, node: Node, deployment: Deployment) -> list[str]:
    """Return a warning per recorded limit that the deployment's utilization exceeds."""
    found = []
    for limit in _limits():
        if limit["model"] not in ("", model.name):
            continue
        if limit["accelerator"] not in ("", node.accelerator.name):
            continue
        if deployment.gpu_memory_utilization > float(limit["above"]) + UTILIZATION_STEP:
            found.append(
                f"utilization above {limit['above']} is known to run out of memory "
                f"({limit['when']}; {limit['source']})."
            )
    return found


def draft_warnings(model: Model, deployment: Deployment) -> list[str]:
    """Return what is not known of the drafter's memory."""
    if deployment.speculation is None:
        return []
    found = []
    if not draft_is_known(model, deployment):
        found.append("the drafter's cache is not on record for this model; it counts as one layer.")
    if not uses_module(deployment):
        found.append("the drafter's weights are not in the figures.")
    if deployment.dcp > 1:
        found.append(
            "the drafter's cache is copied on every context-parallel rank in current builds "
            "(SemiAnalysisAI/InferenceX commit e6658a194), so the tokens are overstated."
        )
    return found


def state_warnings(
    plan: PagePlan, available_bytes: float, node: Node, deployment: Deployment
) -> list[str]:
    """Return a warning where the engine's running limit asks for more states than fit."""
    limit = engine_defaults.max_num_seqs(deployment, node.accelerator)
    slots = plan.state_slots(available_bytes)
    if slots is not None and slots < limit:
        return [f"the state pool has {slots} slots for running requests and retained prefixes."]
    blocks = plan.blocks(available_bytes)
    if not plan.state_groups or deployment.engine != "vllm" or not 0 < blocks < limit:
        return []
    return [
        f"{limit} running requests are asked for and {blocks} state blocks are there; the engine "
        f"may refuse to start without --max-num-seqs {blocks} (NVIDIA-AI-Blueprints "
        "retail-shopping-assistant PR 95: 1,024 asked, 524 available)."
    ]


def layout_warnings(model: Model, deployment: Deployment) -> list[str]:
    """Return a warning where tensor parallelism does not divide the attention heads."""
    heads = {
        count
        for group in model.layers
        if (count := getattr(group.mixer, "query_heads", 0)) % deployment.tp
    }
    if not heads:
        return []
    counts = ", ".join(map(str, sorted(heads)))
    return [f"tp {deployment.tp} does not divide the {counts} attention heads; engines refuse it."]


def refuses_long_requests(deployment: Deployment) -> bool:
    """Return whether the engine will not start when one request of maximal length does not fit."""
    return deployment.engine in ("vllm", "atom")
