"""Throughput peaks where one more session costs as much in collapses as it brings in work."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.network import critical
from capmodel.normal import cdf
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=(r"X = \frac{C}{c_0 (1 + P(C)(R-1))}, \qquad X' = 0 \iff 1 + P(R-1) = C P'(C)(R-1)"),
    assumptions=(
        "Two regimes: cycle c_0 while the contexts fit, R c_0 with the chance P that they do not.",
        "Contexts add up to a normal sum, so P(C) = Phi((C - b)/(kappa sqrt(C))).",
    ),
    depends_on=("composition", "critical_concurrency"),
)
def proof(step: Steps) -> Iterator[Claim]:
    C, c0, R, b, kappa, zeta = sp.symbols("C c_0 R b kappa zeta", positive=True)
    extra = sp.symbols("r", positive=True)
    P = sp.Function("P")(C)

    # 1. The harmonic mixture and its slope.
    X = C / (c0 * (1 + P * (R - 1)))
    condition = 1 + P * (R - 1) - C * sp.diff(P, C) * (R - 1)
    step.equal("1. the slope has the sign of the condition", sp.diff(X, C),
               condition / (c0 * (1 + P * (R - 1)) ** 2))  # fmt: skip
    # 2. In elasticities: P may grow by (1 + P(R-1))/(P(R-1)) per cent per cent of sessions.
    weight = P * (R - 1) / (1 + P * (R - 1))
    growth = C * sp.diff(P, C) / P
    step.equal("2. elasticity of the rate", sp.simplify(sp.diff(X, C) * C / X), 1 - weight * growth)

    # 3. The normal chance of overload is the score of the critical concurrency.
    score = (C - b) / (kappa * sp.sqrt(C))
    chance = sp.erfc(-score / sp.sqrt(2)) / 2
    step.rises("3. overload grows with the sessions", score.subs(b, extra), C)
    half = zeta * kappa / 2
    edge = (b / (sp.sqrt(b + half**2) + half)) ** 2
    step.equal("4. at the critical concurrency the score is -zeta",
               sp.simplify(score.subs(C, edge)), -zeta)  # fmt: skip
    slope = sp.diff(chance, C)
    density = sp.exp(-(score**2) / 2) / sp.sqrt(2 * sp.pi)
    step.equal(
        "5. slope of the chance", slope, density * (C + b) / (2 * kappa * C ** sp.Rational(3, 2))
    )
    step.limit(
        "6. no collapse penalty, no peak",
        (C / (c0 * (1 + chance * (R - 1)))).subs(R, 1 + extra).subs(extra, 0),
        C,
        sp.oo,
        sp.oo,
    )

    yield Claim(
        text="chance of overload at the critical concurrency",
        formula=sp.erfc(zeta / sp.sqrt(2)) / 2,
        falls=(zeta,),
        tolerance=1e-6,
        domain={b: Draw(5.0, 100.0), kappa: Draw(0.2, 1.2), zeta: Draw(1.0, 3.0)},
        implements=("capmodel.network.critical:critical_concurrency",),
        code=lambda n, k, z: _overload(critical.critical_concurrency(n, 1.0, k, score=z), n, k),
    )


def _overload(sessions: float, fitting: float, variation: float) -> float:
    return float(cdf((sessions - fitting) / (variation * sessions**0.5)))
