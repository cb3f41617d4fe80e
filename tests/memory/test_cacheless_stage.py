"""A pipeline stage whose layers keep no cache is limited by its weights alone."""

from __future__ import annotations

from dataclasses import replace

from capmodel import catalog
from capmodel.memory.budget import kv_budget
from capmodel.memory.inverse import shortage
from capmodel.spec.deployment import Deployment
from capmodel.spec.model import DenseFeedForward


def test_a_model_that_no_node_holds_says_so() -> None:
    model = catalog.model("nemotron-3-nano-4b")
    wide = DenseFeedForward(intermediate_size=10**9)
    layers = tuple(
        replace(g, feed_forward=wide) if isinstance(g.feed_forward, DenseFeedForward) else g
        for g in model.layers
    )
    giant = replace(model, layers=layers)
    node = catalog.node("1xH100-80GB")
    budget = kv_budget(giant, node, Deployment())
    assert not budget.fits
    assert budget.shortfall_bytes_per_gpu > 1e12
    assert "does not fit" in str(shortage(giant, node, Deployment(), budget))
