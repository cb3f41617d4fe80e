"""In an open stream a token stays while a cache's worth of others arrives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.reuse.open_loop import ReuseTimes, open_loop_hit_rate
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=r"B = \lambda \int_0^T S(t)\,dt, \qquad H(B) = 1 - S(T)",
    assumptions=(
        "Independent arrivals at lambda tokens per second; S is the share not reused by t.",
    ),
    depends_on=("characteristic_time",),
)
def proof(step: Steps) -> Iterator[Claim]:
    t, T, lam, Z, B, h = sp.symbols("t T lambda Z B h", positive=True)
    t1, t2 = sp.symbols("t_1 t_2", positive=True)

    # 1. Tokens touched in [t, t+dt] that are the most recent touch of their kind: lambda S(t) dt.
    S = 1 - h * (1 - sp.exp(-t / Z))
    filled = lam * sp.integrate(S, (t, 0, T))
    step.equal("1. the cache fills at the rate of its own misses", sp.diff(filled, T),
               lam * S.subs(t, T))  # fmt: skip
    step.limit("2. never reused: the share 1 - h of the stream", S, t, sp.oo, 1 - h)
    step.equal("3. all reused (h = 1): the closed form of the characteristic time",
               filled.subs(h, 1), lam * Z * (1 - sp.exp(-T / Z)))  # fmt: skip
    keep = -Z * sp.log(1 - B / (lam * Z))
    step.solves("4. its inverse", filled.subs(h, 1) - B, T, keep)
    step.equal(
        "5. hits are the share of the working set lambda Z",
        (1 - S.subs(h, 1)).subs(t, keep),
        B / (lam * Z),
    )

    # 2. Observed gaps make S a staircase: two gaps t1 < t2 with shares s1 and s2 of the tokens.
    a, b, gap = sp.symbols("a b g", positive=True)
    span, extra = sp.symbols("L x", positive=True)
    area = t1 + (1 - a) * (t2 - t1)
    step.equal(
        "6. area under a staircase up to its second step",
        sp.integrate(sp.Integer(1), (t, 0, t1)) + sp.integrate(1 - a, (t, t1, t2)),
        area,
    )

    def reuse(first, later, one, two, length, touched):
        return ReuseTimes.from_gaps(np.asarray([first, first + later]), np.asarray([one, two]),
                                    touched, length)  # fmt: skip

    domain = {t1: Draw(1.0, 5.0, "s"), gap: Draw(5.0, 20.0, "s"), a: Draw(1e5, 4e5, "tokens"),
              b: Draw(1e5, 4e5, "tokens"), span: Draw(100.0, 900.0, "s"),
              extra: Draw(1e6, 3e6, "tokens")}  # fmt: skip
    rate = extra / span
    first_edge = rate * t1
    second_edge = rate * (t1 + (1 - a / extra) * gap)
    share = sp.symbols("r", positive=True)
    names = ("capmodel.reuse.open_loop:open_loop_hit_rate",
             "capmodel.reuse.open_loop:ReuseTimes.from_gaps")  # fmt: skip
    cases = (
        ("under the first gap", share * first_edge, sp.Integer(0) * a, (0.1, 0.99)),
        (
            "between the gaps",
            first_edge + share * (second_edge - first_edge),
            a / extra,
            (0.01, 0.99),
        ),
        ("over both gaps", second_edge * (1 + share), (a + b) / extra, (0.01, 0.5)),
    )
    for where, room, hits, (low, high) in cases:
        capacity = sp.lambdify([*domain, share], room)
        yield Claim(text=f"open-loop hits with a capacity {where}", formula=hits,
                    implements=names, domain=domain | {share: Draw(low, high)},
                    code=lambda *v, c=capacity: open_loop_hit_rate(
                        reuse(v[0], v[1], v[2], v[3], v[4], v[5]), c(*v)))  # fmt: skip
    yield Claim(text="touch rate of observed gaps", formula=extra / span, unit="tokens/s",
                domain=domain, rises=(extra,), falls=(span,), implements=names[1:],
                code=lambda *v: reuse(*v).tokens_per_s)  # fmt: skip
