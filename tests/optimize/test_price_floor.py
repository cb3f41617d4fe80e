"""Floors and requirements: each answer, put back in, gives the margin asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import capmodel as cm
import capmodel.optimize.price_floor as price_floor_module
from capmodel.errors import SpecError
from capmodel.optimize.plan import Plan
from capmodel.optimize.price_floor import price_floor, requirement

GIVEN = cm.Scenario(
    model="kimi-k3", node="8xB300", offload="none", price="in=3,cached=0.3,out=15",
)  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return cm.optimize(GIVEN, level="closed")


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_floor_leaves_its_margin(plan: Plan, margin: float) -> None:
    floor = price_floor(plan, margin)
    again = cm.optimize(replace(GIVEN, price=floor.tariff), level="closed")
    assert again.run.cost.margin["eligible"] == pytest.approx(margin, abs=1e-9)
    zero = price_floor(plan).breakeven_requests_per_s / plan.run.requests_per_s
    assert zero == pytest.approx(price_floor(plan).multiple)


def test_the_rent_that_leaves_a_margin(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_floor_module, "BISECTIONS", 0)  # HBM has its own test
    need = requirement(plan, 0.8)
    assert need.margin_now < 0.8
    again = cm.optimize(replace(GIVEN, gpu_hour_usd=need.gpu_hour_usd), level="closed")
    assert again.run.cost.margin["eligible"] == pytest.approx(0.8, abs=1e-9)
    assert need.rate_factor > 1
    assert need.by_price_basis  # rental and own, from the catalog


def test_more_hbm_alone_can_leave_a_margin(plan: Plan) -> None:
    now = plan.configuration.scenario.node.accelerator.hbm_bytes / 2**30
    more = requirement(plan, plan.run.cost.margin["eligible"] + 0.1).hbm_gib_per_gpu
    assert more is not None and more > now
    assert requirement(plan, 0.999).hbm_gib_per_gpu is None


def test_a_floor_needs_a_tariff() -> None:
    bare = cm.Scenario(model="qwen3-0.6b", node="1xH100-80GB", offload="none", max_num_seqs=4)
    planned = cm.optimize(bare, level="closed", allow_past_cliff=True)
    if planned.run.scenario.tariff is not None:
        pytest.fail("the catalog has a tariff for this model now; choose another one")
    with pytest.raises(SpecError, match="tariff"):
        price_floor(planned)
