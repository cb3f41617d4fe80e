"""Cost: published digits, identities of the tariff, and the sign trap of actual billing."""

from __future__ import annotations

import pytest

from capmodel import catalog
from capmodel.cost.breakeven import breakeven_multiple, breakeven_requests_per_s, margin
from capmodel.cost.rental import usd_per_hour
from capmodel.cost.statement import cost_statement
from capmodel.cost.tokens import billed_cached_tokens, revenue_per_request_usd, usd_per_mtok
from capmodel.errors import SpecError
from capmodel.spec.prices import Tariff, parse_tariff

FLOOR = Tariff(input_usd_per_mtok=3.0, cached_input_usd_per_mtok=0.3, output_usd_per_mtok=15.0)


@pytest.mark.parametrize(
    ("output_tokens_per_s", "published"), [(49.6, 101), (54.9, 91), (245.0, 20.5), (260.6, 19.3)]
)
def test_published_cost_per_million_output_tokens(
    output_tokens_per_s: float, published: float
) -> None:
    """Kimi K3 on 8 x B300 at $2.26 per GPU-hour, all cost on output."""
    found = usd_per_mtok(usd_per_hour(8, 2.26), output_tokens_per_s)
    assert found == pytest.approx(published, rel=0.006)


def test_published_cost_per_million_total_tokens() -> None:
    """GB300 at $2.31 and 11,423 tokens/s/GPU: $0.056 per million."""
    assert usd_per_mtok(2.31, 11423.1) == pytest.approx(0.056, abs=0.0005)


def test_published_revenue_without_a_cache_discount() -> None:
    """GB300 at 48 sessions, $3/$15 with no cached price: about $1,013 per hour."""
    seconds = 3600
    hourly = revenue_per_request_usd(
        FLOOR, (11423.1 - 75.34) * 8 * seconds, 0.0, 75.34 * 8 * seconds
    )
    assert hourly == pytest.approx(1013, rel=0.005)


def test_offload_memory_is_billed_on_top() -> None:
    assert usd_per_hour(8, 2.0, 1000e9, 0.004) == pytest.approx(16 + 4)


def test_breakeven_makes_the_margin_vanish() -> None:
    revenue, cost = 45.0, 18.08
    assert margin(revenue * breakeven_multiple(revenue, cost), cost) == pytest.approx(0.0)
    each = revenue_per_request_usd(FLOOR, 135e3, 0.95 * 135e3, 906)
    rate = breakeven_requests_per_s(cost, each)
    assert rate * each * 3600 == pytest.approx(cost)


def test_actual_billing_earns_more_per_turn_when_the_cache_fails() -> None:
    """dR/dh = -(p_in - p_cached): the sign trap."""
    kept, lost = (
        revenue_per_request_usd(FLOOR, 1e5, billed_cached_tokens("actual", 1e5, h, 0.95), 500)
        for h in (0.95, 0.05)
    )
    assert lost - kept == pytest.approx(0.9 * 1e5 * (3.0 - 0.3) / 1e6)
    same = {billed_cached_tokens("eligible", 1e5, h, 0.95) for h in (0.95, 0.05)}
    assert len(same) == 1
    assert billed_cached_tokens("none", 1e5, 0.9, 0.95) == 0.0


def test_statement_adds_up() -> None:
    load = catalog.workload("agentic-coding")
    cost = cost_statement(
        usd_per_hour=18.08,
        price_basis="given",
        tariff=FLOOR,
        tariff_basis="given",
        bill_cached="eligible",
        workload=load,
        requests_per_s=0.18,
        hit_rate=0.9,
    )
    assert cost.usd_per_turn == pytest.approx(18.08 / 3600 / 0.18)
    assert cost.usd_per_session == pytest.approx(cost.usd_per_turn * load.turns_mean)
    ratio = cost.usd_per_mtok_output / cost.usd_per_mtok_total
    tokens = load.request_tokens_mean + load.output_tokens_mean
    assert ratio == pytest.approx(tokens / load.output_tokens_mean)
    revenue = cost.revenue_usd_per_hour
    assert revenue["eligible"] < revenue["actual"] < revenue["none"]
    assert cost.to_dict()["breakeven_usd_per_mtok_input"] == pytest.approx(
        3.0 * 18.08 / revenue["eligible"]
    )


def test_unknown_prices_give_null_not_nan() -> None:
    cost = cost_statement(
        usd_per_hour=None,
        price_basis="unknown",
        tariff=None,
        tariff_basis="unknown",
        bill_cached="eligible",
        workload=catalog.workload("8k1k"),
        requests_per_s=1.0,
        hit_rate=0.0,
    )
    values = cost.to_dict()
    assert values["usd_per_mtok_total"] is None
    assert values["margin"] is None
    assert values["breakeven_usd_per_mtok_output"] is None


def test_tariff_text() -> None:
    assert parse_tariff("in=3,cached=0.3,out=15") == FLOOR
    assert parse_tariff("in=$3,out=$15").cached_input_usd_per_mtok == 3.0
    for bad in ("in=3", "in=3,out=-1", "in=3,out=nan", "in=3,out=15,in=2", "fee=2,in=1,out=1", ""):
        with pytest.raises(SpecError):
            parse_tariff(bad)
