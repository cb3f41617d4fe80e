"""Data-parallel ranks with one session more than others: rates add, hits weigh by rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from capmodel.network.operating_point import Settled
from capmodel.network.uneven_ranks import uneven_point
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@dataclass(frozen=True)
class _Rank:
    """The part of an operating point that is averaged."""

    concurrency: int
    headline: Settled
    all_states: tuple[Settled, ...]


def _rank(sessions: int, rate: float, hits: float) -> _Rank:
    state = Settled(
        requests_per_s=rate, hit_rate_hbm=0.7 * hits, hit_rate_offload=0.3 * hits, stable=True
    )
    return _Rank(concurrency=sessions, headline=state, all_states=(state,))


@derivation(
    statement=(
        r"X = r X_{q+1} + (D - r) X_q, \qquad C = q D + r, \qquad "
        r"h = \frac{r X_{q+1} h_{q+1} + (D - r) X_q h_q}{X}"
    ),
    assumptions=("Sessions are spread over the ranks as evenly as whole numbers allow.",),
)
def proof(step: Steps) -> Iterator[Claim]:
    D, r, q, high, low = sp.symbols("D r q X_1 X_0", positive=True)
    first, second = sp.symbols("h_1 h_0", positive=True)

    # 1. Counting: r ranks with q + 1 sessions and the others with q hold all C.
    step.equal("1. every session has a rank", r * (q + 1) + (D - r) * q, q * D + r)
    total = r * high + (D - r) * low
    step.equal("2. alike ranks multiply", total.subs(high, low), D * low)
    step.rises("3. one more fuller rank adds the difference", total.subs(high, low + first), r)
    # 2. Requests that hit add over ranks, so the replica's hit rate weighs by the rates.
    hits = (r * high * first + (D - r) * low * second) / total
    step.equal("4. hits of alike ranks", sp.simplify(hits.subs(second, first)), first)

    domain = {
        D: Draw(4, 16, whole=True),
        r: Draw(1, 3, whole=True),
        q: Draw(1, 20, whole=True),
        high: Draw(0.1, 2.0, "1/s"),
        low: Draw(0.1, 2.0, "1/s"),
        first: Draw(0.1, 0.9),
        second: Draw(0.1, 0.9),
    }

    def whole(ranks, more, few, rate, other, hit, miss):
        sessions = few * ranks + more
        point = uneven_point(
            _rank(few + 1, rate, hit), _rank(few, other, miss), ranks, sessions
        )  # fmt: skip
        return point.headline, sessions / point.concurrency

    def rate_of(*values):
        state, scale = whole(*values)
        return state.requests_per_s * scale

    names = ("capmodel.network.uneven_ranks:uneven_point",)
    yield Claim(text="rate of a replica with uneven ranks", formula=total, unit="1/s",
                domain=domain, implements=names, code=rate_of, rises=(high, low))  # fmt: skip
    yield Claim(text="hit rate of a replica with uneven ranks", formula=hits, domain=domain,
                implements=names, code=lambda *v: whole(*v)[0].hit_rate,
                rises=(first, second))  # fmt: skip
