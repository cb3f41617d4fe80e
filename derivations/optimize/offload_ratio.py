"""The best amount of host memory: where its share of the cost equals the elasticity of the rate."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.cost import rental, tokens
from derivations.claim import Claim, Draw
from derivations.cost.elasticities import log_slope
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"\min_B \frac{c_0 + q B}{X(B)}: \quad \frac{q B}{c_0 + q B} = \frac{B X'(B)}{X(B)}, "
        r"\qquad \pi = \frac{c_0 + q B}{X} X' = q"
    ),
    assumptions=(
        "Host memory is rented at q per byte and hour beside c_0 for the rest.",
        "X rises with B; where it is concave the condition has one root.",
    ),
    depends_on=("interval_bound", "elasticities"),
)
def proof(step: Steps) -> Iterator[Claim]:
    B, c0, q, a, b, d = sp.symbols("B c_0 q a b d", positive=True)
    X = sp.Function("X")(B)

    # 1. Stationarity in logarithms: the two elasticities balance.
    cost = (c0 + q * B) / X
    gap = q * B / (c0 + q * B) - B * sp.diff(X, B) / X
    step.equal(
        "1. elasticity of the cost per request", sp.simplify(sp.diff(cost, B) * B / cost), gap
    )
    # 2. In dollars: buy while a byte's shadow price exceeds its rent.
    shadow = cost * sp.diff(X, B)
    step.equal(
        "2. slope of the cost, times the rate", sp.simplify(sp.diff(cost, B) * X), q - shadow
    )

    # 3. A saturating rate X = a B/(b + B): one root, and it is a minimum.
    rate = a * B / (b + B)
    value = (c0 + q * B) / rate
    best = sp.sqrt(b * c0 / q)
    step.solves("3. the best size for a saturating rate", sp.diff(value, B), B, best)
    step.positive("4. convex in the size, so the root is the minimum", sp.diff(value, B, 2))
    step.falls("5. dearer memory, less of it", best, q)
    step.rises("6. a dearer node, more of it", best, c0)
    # 4. With hits from HBM alone the rate does not start at zero: none is bought below a price.
    start = a * (1 + B / (b + B))
    first = sp.diff((c0 + q * B) / start, B).subs(B, 0)
    step.solves("7. price from which the first byte does not pay", first, q, c0 / b)
    # 5. An S-shaped rate has up to two stationary points: the first is a maximum of the cost.
    step.equal("8. curvature of the logistic changes sign at its middle",
               sp.diff(1 / (1 + sp.exp(-d * B)), B, 2).subs(B, 0), 0)  # fmt: skip

    # 6. The ratio in the answer: tokens of the tier over all tokens, monotone in the bytes.
    hbm = sp.symbols("h", positive=True)
    ratio = B / (hbm + B)
    step.rises("9. the offload ratio is a monotone name of the size", ratio, B)

    def unit_cost(size, base, rent, top, half):
        hour = rental.usd_per_hour(1, base, size, rent)
        return tokens.usd_per_mtok(hour, top * size / (half + size))

    money = {B: Draw(1e11, 4e12, "bytes"), c0: Draw(5.0, 50.0, "usd/h"),
             q: Draw(1e-4, 1e-2, "usd/h/bytes"), a: Draw(1e3, 1e5, "tokens/s"),
             b: Draw(1e11, 4e12, "bytes")}  # fmt: skip
    names = ("capmodel.cost.rental:usd_per_hour", "capmodel.cost.tokens:usd_per_mtok")
    per_gb = q / 10**9
    yield Claim(text="cost per million tokens of a saturating rate", unit="usd/mtok", domain=money,
                formula=(c0 + per_gb * B) / (a * B / (b + B) * 3600) * 10**6, implements=names,
                rises=(c0, q, b), falls=(a,), code=unit_cost)  # fmt: skip
    yield Claim(
        text="elasticity of the cost in the memory",
        domain=money,
        tolerance=2e-5,
        formula=per_gb * B / (c0 + per_gb * B) - b / (b + B),
        implements=names,
        where=lambda x, c, r, t, h: abs(r * 1e-9 * x / (c + r * 1e-9 * x) - h / (h + x)) > 0.05,
        code=lambda x, c, r, t, h: log_slope(lambda y: unit_cost(y, c, r, t, h), x, 1e-3),
    )
    yield Claim(
        text="at the best size the elasticities balance",
        formula=0 * c0 + 1,
        domain={k: v for k, v in money.items() if k != B},
        implements=names,
        tolerance=1e-5,
        code=lambda c, r, t, h: (
            1 + log_slope(lambda y: unit_cost(y, c, r, t, h), (h * c / (r * 1e-9)) ** 0.5, 1e-3)
        ),
    )
