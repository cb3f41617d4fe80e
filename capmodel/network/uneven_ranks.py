"""Sessions that do not divide by the data-parallel ranks: some ranks hold one more than others."""

from __future__ import annotations

from dataclasses import replace

from .operating_point import OperatingPoint, Settled


def uneven_point(
    fuller: OperatingPoint, lighter: OperatingPoint, ranks: int, sessions: int
) -> OperatingPoint:
    """Return the point of the fuller ranks with the averages of all ranks.

    Parameters
    ----------
    fuller, lighter : OperatingPoint
        Ranks with one session more, and the others.
    ranks, sessions : int
        Data-parallel ranks and sessions of the whole replica [1].

    Notes
    -----
    Rates add over ranks, hit rates are weighted by them. The rate is stated so that the replica
    has ``rate sessions / fuller.concurrency``, as it has where all ranks are alike. Latency and
    flows stay those of the fuller ranks.
    """
    many = sessions - ranks * lighter.concurrency
    states = tuple(
        _averaged(high, low, many, ranks - many, fuller.concurrency / sessions)
        for high, low in _paired(fuller.all_states, lighter.all_states)
    )
    return replace(fuller, headline=states[-1], all_states=states)


def _paired(
    fuller: tuple[Settled, ...], lighter: tuple[Settled, ...]
) -> list[tuple[Settled, Settled]]:
    """States of both kinds of rank from the best to the headline, which is the last of each."""
    if len(fuller) == len(lighter):
        return list(zip(fuller, lighter, strict=True))
    return [(state, lighter[0]) for state in fuller[:-1]] + [(fuller[-1], lighter[-1])]


def _averaged(high: Settled, low: Settled, many: int, few: int, share: float) -> Settled:
    rate = many * high.requests_per_s + few * low.requests_per_s
    weight = many * high.requests_per_s / rate
    return Settled(
        requests_per_s=rate * share,
        hit_rate_hbm=weight * high.hit_rate_hbm + (1.0 - weight) * low.hit_rate_hbm,
        hit_rate_offload=weight * high.hit_rate_offload + (1.0 - weight) * low.hit_rate_offload,
        stable=high.stable and low.stable,
    )
