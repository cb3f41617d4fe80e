"""How many sessions fit when their sizes vary: a quadratic in the square root of the count."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.network import critical
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"C\mu + \zeta\sigma\sqrt{C} = \frac{B}{1-\varepsilon} \;\Rightarrow\; "
        r"C^* = \Bigl(\sqrt{b + (\zeta\kappa/2)^2} - \zeta\kappa/2\Bigr)^2, \quad "
        r"b = \frac{B}{(1-\varepsilon)\mu},\; \kappa = \frac{\sigma}{\mu}"
    ),
    assumptions=(
        "The sum of C contexts is normal with mean C mu and deviation sigma sqrt(C).",
        "zeta is the normal score of the tolerated overload.",
    ),
    depends_on=("collapse", "normal_excess"),
)
def proof(step: Steps) -> Iterator[Claim]:
    b, zeta, kappa, x, N = sp.symbols("b zeta kappa x N", positive=True)
    B, mu = sp.symbols("B mu", positive=True)
    e = sp.symbols("epsilon", positive=True)

    # 1. With x = sqrt(C) the budget is x^2 + zeta kappa x = b; the positive root is x.
    half = zeta * kappa / 2
    root = sp.sqrt(b + half**2) - half
    step.solves("1. the positive root", x**2 + zeta * kappa * x - b, x, root)
    step.positive("2. it is positive", b / (sp.sqrt(b + half**2) + half))
    step.equal("3. written so", root, b / (sp.sqrt(b + half**2) + half))

    # 2. The score of the overload at C sessions is (b - C)/(kappa sqrt(C)), which is zeta there.
    step.equal("4. the score is zeta", sp.simplify((b - root**2) / (kappa * root)), zeta)

    # 3. Equal sizes: C* = b. Variation costs about zeta kappa sqrt(b) sessions.
    step.limit("5. equal sizes fit b sessions", root**2, kappa, 0, b)
    step.equal(
        "6. the first-order price of variation",
        sp.series(root**2, kappa, 0, 2).removeO(),
        b - zeta * kappa * sp.sqrt(b),
    )
    slope = sp.diff(root, kappa)
    claimed = -(zeta / 2) * (1 - half / sp.sqrt(b + half**2))
    step.equal("7. slope in the variation", slope, claimed)
    step.equal("8. so x falls by zeta x / (2 sqrt(...))", claimed,
               -zeta * root / (2 * sp.sqrt(b + half**2)))  # fmt: skip
    step.positive("9. more room, more sessions",
                  sp.diff(root, b))  # fmt: skip

    # 4. Pooling N caches into one gains zeta kappa sqrt(b) (N - sqrt(N)) sessions to first order.
    pooled = (sp.sqrt(N * b + half**2) - half) ** 2
    gain = sp.series(pooled - N * root**2, kappa, 0, 2).removeO()
    step.equal("10. gain of one shared cache", gain, zeta * kappa * sp.sqrt(b) * (N - sp.sqrt(N)))

    # 5. Random assignment of sessions adds the variance of their number: kappa^2 -> 1 + kappa^2.
    C, sigma = sp.symbols("C sigma", positive=True)
    compound = C * sigma**2 + C * mu**2
    step.equal("11. compound Poisson variance", compound.subs(sigma, kappa * mu),
               C * mu**2 * (1 + kappa**2))  # fmt: skip

    tokens = {B: Draw(1e6, 2e7, "tokens"), mu: Draw(5e4, 3e5, "tokens"), kappa: Draw(0.2, 1.2),
              e: Draw(0.01, 0.3), zeta: Draw(1.0, 3.5)}  # fmt: skip
    formula = (root**2).subs(b, B / ((1 - e) * mu))
    yield Claim(text="critical concurrency", formula=formula, domain=tokens,
                implements=("capmodel.network.critical:critical_concurrency",),
                code=lambda cap, mean, cv, over, score: critical.critical_concurrency(
                    cap, mean, cv, overload=over, score=score),
                rises=(B, e), falls=(mu, kappa, zeta),
                limits=(Limit(kappa, 1e-9, B / ((1 - e) * mu)),))  # fmt: skip
