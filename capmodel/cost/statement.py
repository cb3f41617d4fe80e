"""The cost statement of an operating point, under every billing rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..spec.prices import Tariff
from ..spec.workload import Workload
from ..units import SECONDS_PER_HOUR
from .breakeven import breakeven_multiple, breakeven_occupancy, margin
from .tokens import billed_cached_tokens, revenue_per_request_usd, usd_per_mtok

BILLING = ("eligible", "actual", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Money of one replica at an operating point; None where no price is known.

    Parameters
    ----------
    usd_per_hour : float or None
        Rent of the replica [USD/h].
    price_basis : str
        Where the GPU-hour price comes from.
    usd_per_mtok_total, usd_per_mtok_output : float or None
        All cost on all tokens, and all cost on output tokens [USD per 1e6 tokens].
    usd_per_turn, usd_per_session : float or None
        Cost of a request and of a whole session [USD].
    tariff : Tariff or None
        What the market pays.
    bill_cached : str
        Billing rule of the headline revenue.
    revenue_usd_per_hour, margin : dict of str to float
        By billing rule [USD/h], [1].
    breakeven_multiple, breakeven_occupancy : float or None
        Tariff factor and share of hours at which the margin is zero, headline rule [1].
    """

    usd_per_hour: float | None
    price_basis: str
    usd_per_mtok_total: float | None
    usd_per_mtok_output: float | None
    usd_per_turn: float | None
    usd_per_session: float | None
    tariff: Tariff | None
    tariff_basis: str
    bill_cached: str
    revenue_usd_per_hour: dict[str, float]
    margin: dict[str, float]
    breakeven_multiple: float | None
    breakeven_occupancy: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the contract's cost object."""
        scaled = {}
        for kind in ("input", "cached_input", "output"):
            key = f"{kind}_usd_per_mtok"
            priced = self.tariff is not None and self.breakeven_multiple is not None
            scaled[f"breakeven_usd_per_mtok_{kind}"] = (
                getattr(self.tariff, key) * self.breakeven_multiple if priced else None
            )
        return {
            "usd_per_hour": self.usd_per_hour,
            "price_basis": self.price_basis,
            "usd_per_mtok_total": self.usd_per_mtok_total,
            "usd_per_mtok_output": self.usd_per_mtok_output,
            "usd_per_turn": self.usd_per_turn,
            "usd_per_session": self.usd_per_session,
            "revenue_usd_per_hour": self.revenue_usd_per_hour.get(self.bill_cached),
            "margin": self.margin.get(self.bill_cached),
            "bill_cached": self.bill_cached,
            "tariff_basis": self.tariff_basis,
            "revenue_usd_per_hour_by_billing": self.revenue_usd_per_hour,
            "margin_by_billing": self.margin,
            "breakeven_occupancy": self.breakeven_occupancy,
            **scaled,
        }


def cost_statement(
    *,
    usd_per_hour: float | None,
    price_basis: str,
    tariff: Tariff | None,
    tariff_basis: str,
    bill_cached: str,
    workload: Workload,
    requests_per_s: float,
    hit_rate: float,
) -> Cost:
    """Return the cost statement of an operating point.

    Parameters
    ----------
    usd_per_hour : float or None
        Rent of the replica [USD/h].
    requests_per_s : float
        Model requests [requests/s].
    hit_rate : float
        Token-weighted overall hit rate [1].
    """
    prompt, output = workload.request_tokens_mean, workload.output_tokens_mean
    revenue = {}
    if tariff is not None:
        for rule in BILLING:
            cached = billed_cached_tokens(rule, prompt, hit_rate, workload.theoretical_hit_rate)
            each = revenue_per_request_usd(tariff, prompt, cached, output)
            revenue[rule] = each * requests_per_s * SECONDS_PER_HOUR
    per_turn = None if usd_per_hour is None else usd_per_hour / SECONDS_PER_HOUR / requests_per_s
    known = usd_per_hour is not None and revenue.get(bill_cached, 0.0) > 0
    headline = revenue.get(bill_cached, 0.0)
    hour = usd_per_hour if usd_per_hour is not None else 0.0
    return Cost(
        usd_per_hour=usd_per_hour,
        price_basis=price_basis,
        usd_per_mtok_total=None
        if usd_per_hour is None
        else usd_per_mtok(hour, requests_per_s * (prompt + output)),
        usd_per_mtok_output=None
        if usd_per_hour is None
        else usd_per_mtok(hour, requests_per_s * output),
        usd_per_turn=per_turn,
        usd_per_session=None if per_turn is None else per_turn * workload.turns_mean,
        tariff=tariff,
        tariff_basis=tariff_basis,
        bill_cached=bill_cached,
        revenue_usd_per_hour=revenue,
        margin={rule: margin(value, hour) for rule, value in revenue.items() if value > 0}
        if usd_per_hour is not None
        else {},
        breakeven_multiple=breakeven_multiple(headline, hour) if known else None,
        breakeven_occupancy=breakeven_occupancy(headline, hour) if known else None,
    )
