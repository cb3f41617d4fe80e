"""Where money is neither made nor lost."""

from __future__ import annotations


def margin(revenue_usd_per_hour: float, usd_per_hour: float) -> float:
    """Share of revenue left after cost: (revenue - cost)/revenue [1]."""
    return (revenue_usd_per_hour - usd_per_hour) / revenue_usd_per_hour


def breakeven_multiple(revenue_usd_per_hour: float, usd_per_hour: float) -> float:
    """Factor on the whole tariff at which the margin is zero [1]."""
    return usd_per_hour / revenue_usd_per_hour


def breakeven_occupancy(revenue_usd_per_hour: float, usd_per_hour: float) -> float:
    """Share of hours that must be sold at this rate to cover cost, may exceed 1 [1]."""
    return usd_per_hour / revenue_usd_per_hour


def breakeven_requests_per_s(usd_per_hour: float, revenue_per_request_usd: float) -> float:
    """Request rate whose revenue pays the hour [requests/s].

    Notes
    -----
    ``X_be = cost / (3600 R)``. Derivation: ``tariff``.
    """
    return usd_per_hour / 3600.0 / revenue_per_request_usd
