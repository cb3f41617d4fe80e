"""Two pools: Little's law, saturation of either, and rates that match."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.service.closed_loop import fixed_length_point
from capmodel.service.disaggregation import disaggregated_point, matched_prefill_replicas
from capmodel.service.engine_law import engine_law
from capmodel.service.transfer import pool_transfer
from capmodel.spec.deployment import Deployment

MODEL, NODE = catalog.model("deepseek-v3"), catalog.node("8xH200")
DEPLOYMENT = Deployment(engine="sglang", tp=8)
LAW = engine_law(MODEL, NODE, DEPLOYMENT)
LINK = pool_transfer(MODEL, NODE, DEPLOYMENT)


@pytest.mark.parametrize("clients", [1, 8, 64, 400])
def test_littles_law_over_both_pools(clients: int) -> None:
    point = disaggregated_point(LAW, LAW, LINK, 8192.0, 1024.0, clients)
    latency = point.ttft_s + 1023 * point.tpot_s
    assert point.output_tokens_per_s / 1024 * latency == pytest.approx(clients, rel=1e-6)


def test_decode_is_undisturbed_by_prefill() -> None:
    apart = disaggregated_point(LAW, LAW, LINK, 8192.0, 1024.0, 32)
    together = fixed_length_point(LAW, 8192.0, 1024.0, 32)
    assert apart.tpot_s < together.tpot_s


def test_a_saturated_prefill_pool_caps_the_rate_and_lets_ttft_grow() -> None:
    few = disaggregated_point(LAW, LAW, LINK, 32_000.0, 64.0, 64)
    many = disaggregated_point(LAW, LAW, LINK, 32_000.0, 64.0, 256)
    assert few.prefill_utilization == pytest.approx(1.0, abs=1e-3)
    assert many.output_tokens_per_s == pytest.approx(few.output_tokens_per_s, rel=1e-3)
    assert many.ttft_s > 3 * few.ttft_s
    doubled = disaggregated_point(LAW, LAW, LINK, 32_000.0, 64.0, 256, prefill_replicas=2)
    assert doubled.output_tokens_per_s > 1.8 * many.output_tokens_per_s


def test_matched_replicas_saturate_both_pools_at_once() -> None:
    batch = 64.0
    replicas = matched_prefill_replicas(LAW, LAW, 8192.0, 1024.0, batch)
    whole = max(1, round(replicas))
    point = disaggregated_point(
        LAW, LAW, LINK, 8192.0, 1024.0, 2000, prefill_replicas=whole, decode_replicas=1
    )
    assert point.prefill_utilization == pytest.approx(1.0, abs=0.01)
    assert 0.3 * batch < point.decoding < 4 * batch * whole


def test_output_grows_with_clients() -> None:
    rates = [
        disaggregated_point(LAW, LAW, LINK, 4096.0, 512.0, clients).output_tokens_per_s
        for clients in (1, 2, 8, 32, 128)
    ]
    assert rates == sorted(rates)
