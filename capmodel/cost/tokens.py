"""Cost and revenue of requests under a three-part tariff."""

from __future__ import annotations

from ..spec.prices import Tariff
from ..units import MILLION, SECONDS_PER_HOUR


def usd_per_mtok(usd_per_hour: float, tokens_per_s: float) -> float:
    """Cost per million tokens at a token rate, all cost on these tokens [USD per 1e6 tokens].

    Parameters
    ----------
    usd_per_hour : float
        Cost of the replica [USD/h].
    tokens_per_s : float
        Tokens of the kind counted [tokens/s].

    Examples
    --------
    >>> round(usd_per_mtok(8 * 2.26, 49.6), 1)
    101.3
    """
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR) * MILLION


def revenue_per_request_usd(
    tariff: Tariff, input_tokens: float, cached_tokens: float, output_tokens: float
) -> float:
    """Revenue of one request [USD].

    Parameters
    ----------
    tariff : Tariff
        Prices per million tokens.
    input_tokens : float
        Prompt tokens, cached ones included [tokens].
    cached_tokens : float
        Prompt tokens sold at the cached price [tokens].
    output_tokens : float
        Completion tokens [tokens].

    Notes
    -----
    ``R = p_in (n - h) + p_cached h + p_out o``; a provider that bills actual hits earns more per
    request when its cache fails, since ``dR/dh = -(p_in - p_cached)``. Derivation: ``tariff``.
    """
    fresh = input_tokens - cached_tokens
    return (
        tariff.input_usd_per_mtok * fresh
        + tariff.cached_input_usd_per_mtok * cached_tokens
        + tariff.output_usd_per_mtok * output_tokens
    ) / MILLION


def billed_cached_tokens(
    billing: str, input_tokens: float, hit_rate: float, theoretical_hit_rate: float
) -> float:
    """Prompt tokens sold at the cached price under a billing rule [tokens].

    Parameters
    ----------
    billing : {"eligible", "actual", "none"}
        What an infinite cache would hit, what this cache hits, or nothing.
    input_tokens : float
        Prompt tokens of a request [tokens].
    hit_rate, theoretical_hit_rate : float
        Token-weighted, of this cache and of an infinite one [1].
    """
    share = {"eligible": theoretical_hit_rate, "actual": hit_rate, "none": 0.0}[billing]
    return share * input_tokens
