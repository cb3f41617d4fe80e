"""Kimi K3's logged pools, to the token."""

from __future__ import annotations

import doctest

import pytest

from capmodel import catalog
from capmodel.memory import budget as budget_module
from capmodel.memory.budget import kv_budget
from capmodel.spec.deployment import Deployment


def test_day_zero_log_is_reproduced_to_the_token() -> None:
    budget = kv_budget(
        catalog.model("kimi-k3"),
        catalog.node("8xB300"),
        Deployment(tp=8, kv_dtype="fp8", available_kv_gib=42.23, max_model_len=1048576),
    )
    assert budget.kv_tokens == 3249215
    assert (budget.kv_blocks, budget.blocks_per_request, budget.block_tokens) == (2135, 689, 1536)


@pytest.mark.parametrize(("nodes", "pp", "fits"), [(1, 1, False), (2, 2, True)])
def test_one_b200_node_is_too_small_and_two_are_enough(nodes: int, pp: int, fits: bool) -> None:
    budget = kv_budget(
        catalog.model("kimi-k3"),
        catalog.node("8xB200", nodes),
        Deployment(tp=8, pp=pp, kv_dtype="fp8"),
    )
    assert budget.fits is fits
    assert (budget.shortfall_bytes_per_gpu > 0) is not fits


def test_the_documented_example() -> None:
    outcome = doctest.testmod(budget_module)
    assert outcome.attempted >= 3
    assert outcome.failed == 0
