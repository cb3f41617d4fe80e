"""How many whole contexts fit: a renewal count, so variation adds or takes half a context."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import sympy as sp

from capmodel.network import operating_point
from capmodel.network.operating_point import Cache
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=r"E[N(B)] \to \frac{B}{m} + \frac{c^2 - 1}{2}",
    assumptions=("Contexts of mean m and variation c are taken in turn until one does not fit.",),
)
def proof(step: Steps) -> Iterator[Claim]:
    B, m, c, x = sp.symbols("B m c x", positive=True)
    out = sp.symbols("o", positive=True)

    # 1. Wald: E[S_{N+1}] = m (E N + 1), and it overshoots B by the mean residual m (1 + c^2)/2.
    N = sp.symbols("N", positive=True)
    overshoot = m * (1 + c**2) / 2
    step.solves("1. mean count", m * (N + 1) - (B + overshoot), N, B / m + (c**2 - 1) / 2)
    # 2. Residual life: size-biased and uniform: E[f^2]/(2 E[f]).
    second = m**2 * (1 + c**2)
    step.equal("2. mean overshoot", second / (2 * m), overshoot)
    # 3. Exponential contexts: a Poisson count, B/m exactly.
    count = B / m + (c**2 - 1) / 2
    step.equal("3. exponential contexts", count.subs(c, 1), B / m)
    # 4. Equal contexts: floor(B/m), which loses half a context on average.
    k = sp.symbols("k", integer=True, positive=True)
    step.equal(
        "4. equal contexts, averaged over a period of B",
        sp.integrate(k, (x, k, k + 1)) - sp.integrate(x, (x, k, k + 1)),
        -sp.Rational(1, 2),
    )
    step.equal("5. which the formula has", count.subs(c, 0) - B / m, -sp.Rational(1, 2))
    step.rises("6. varied contexts pack better on average", count, c)

    def room(capacity, mean, output, variation, limit=10**9):
        load = SimpleNamespace(request_tokens_mean=mean, output_tokens_mean=output,
                               request_tokens_cv=variation)  # fmt: skip
        return operating_point.running_room(Cache(hbm_tokens=capacity), load, limit)

    held = m + out / 2
    sizes = {
        B: Draw(1e6, 9e6, "tokens"),
        m: Draw(1e5, 2e5, "tokens"),
        out: Draw(100.0, 900.0, "tokens"),
        c: Draw(0.2, 1.5),
    }
    names = ("capmodel.network.operating_point:running_room",)
    yield Claim(text="requests that run at once", formula=B / held + (c**2 - 1) / 2, domain=sizes,
                implements=names, rises=(B, c), falls=(m, out), code=room)  # fmt: skip
    yield Claim(text="the engine's limit holds", formula=0 * c + 3, domain=sizes, implements=names,
                code=lambda *v: room(*v, limit=3))  # fmt: skip
    yield Claim(
        text="one request always runs",
        formula=0 * c + 1,
        implements=names,
        domain=sizes | {B: Draw(1e4, 5e4, "tokens"), c: Draw(0.2, 0.9)},
        code=room,
    )
