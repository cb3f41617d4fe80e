"""What one per cent buys: elasticities of cost and of a settled cycle, and a token's price."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.cost import breakeven, tokens
from capmodel.network import critical
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


def log_slope(function, value: float, step: float = 1e-4) -> float:
    """Elasticity of a function at a point, by a central difference in logarithms [1]."""
    import math

    up, down = function(value * math.exp(step)), function(value * math.exp(-step))
    return (math.log(up) - math.log(down)) / (2 * step)


@derivation(
    statement=(
        r"\frac{\partial \ln (c/X)}{\partial \ln X} = -1, \qquad "
        r"\frac{d \ln c}{d \ln \theta} = \frac{e_\theta}{1 - e_c}, \qquad "
        r"\pi = -\frac{\partial c}{\partial B}\,\frac{X}{C}\,v"
    ),
    assumptions=(
        "c = T(c, theta) has elasticities e_c and e_theta at the fixed point.",
        "v is what a turn is worth per second of the replica: revenue or cost rate.",
    ),
    depends_on=("fixed_points", "tariff", "critical_concurrency"),
)
def proof(step: Steps) -> Iterator[Claim]:
    C, B, v, X, D, theta = sp.symbols("C B v X D theta", positive=True)
    ec, et = sp.symbols("e_c e_theta", positive=True)
    b, zeta, kappa, mu = sp.symbols("b zeta kappa mu", positive=True)

    # 1. Cost per token is cost over rate: a per cent of rate is a per cent of cost.
    unit = D / (3600 * X)
    step.equal("1. elasticity of cost in the rate", sp.diff(unit, X) * X / unit, -1)
    step.equal("2. and in the price of the hour", sp.diff(unit, D) * D / unit, 1)

    # 2. A settled cycle: d ln c = e_c d ln c + e_theta d ln theta.
    slope = sp.symbols("s", real=True)
    step.solves(
        "3. elasticity of the settled cycle", slope - (ec * slope + et), slope, et / (1 - ec)
    )
    power = D * theta**et
    root = power ** (1 / (1 - ec))
    step.equal("4. the power map T = D theta^e c^ec has this root",
               sp.powsimp(sp.powdenest(power * root**ec / root, force=True)), 1)  # fmt: skip
    step.equal("5. with this elasticity", sp.simplify(sp.diff(sp.log(root), theta) * theta),
               et / (1 - ec))  # fmt: skip
    step.limit(
        "6. it blows up where the fixed point loses its stability", 1 / (1 - ec), ec, 1, -sp.oo
    )

    # 3. Shadow price: dX/dB = -(C/c^2) dc/dB, and a turn is worth v/X per turn of the hour.
    cycle = sp.Function("c")(B)
    gain = sp.diff(C / cycle, B) * v / (C / cycle)
    price = -sp.diff(cycle, B) / cycle * v
    step.equal("7. worth of one more resident token per second", gain, price)
    step.equal("8. the same by X/C = 1/c", -sp.diff(cycle, B) * (C / cycle) / C * v, price)

    # 4. Critical concurrency: its elasticity in capacity is above one, as variation averages out.
    half = zeta * kappa / 2
    critical_c = (sp.sqrt(b + half**2) - half) ** 2
    elasticity = sp.diff(critical_c, b) * b / critical_c
    step.equal("9. elasticity of the critical concurrency in capacity", sp.simplify(elasticity),
               sp.simplify(1 + half / sp.sqrt(b + half**2)))  # fmt: skip
    step.positive("10. above one by the safety margin's share",
                  (half / sp.sqrt(b + half**2)))  # fmt: skip

    # 5. A resource of n units with elasticity e: the rent p per unit at which cost per token stays,
    #    (P + p n d)/(X (1 + e d)) = P/X for a small share d more of it.
    e, P, p, amount, d = sp.symbols("e P p n d", positive=True)
    step.solves(
        "11. shadow price of a resource", (P + p * amount * d) / (1 + e * d) - P, p, P * e / amount
    )

    # 6. Value of the code's own elasticities.
    yield Claim(text="cost per token falls one for one with the rate", formula=-1 + 0 * D,
                domain={D: Draw(1.0, 100.0, "usd/h"), X: Draw(10.0, 1e4, "tokens/s")},
                implements=("capmodel.cost.tokens:usd_per_mtok",),
                code=lambda d, x: log_slope(lambda y: tokens.usd_per_mtok(d, y), x))  # fmt: skip
    R = sp.symbols("R", positive=True)
    yield Claim(
        text="margin gains the break-even share per per cent of revenue",
        formula=D / R,
        domain={D: Draw(1.0, 9.0, "usd/h"), R: Draw(10.0, 99.0, "usd/h")},
        tolerance=1e-6,
        implements=("capmodel.cost.breakeven:margin",),
        falls=(R,),
        rises=(D,),
        code=lambda d, r: (
            (breakeven.margin(r * 1.0001, d) - breakeven.margin(r / 1.0001, d))
            / (2 * 0.000099995000333)
        ),
    )
    yield Claim(
        text="elasticity of the critical concurrency in capacity",
        formula=1 + half / sp.sqrt(B / mu + half**2),
        tolerance=1e-6,
        domain={
            B: Draw(1e6, 1e7, "tokens"),
            mu: Draw(5e4, 3e5, "tokens"),
            kappa: Draw(0.2, 1.2),
            zeta: Draw(1.0, 3.5),
        },
        implements=("capmodel.network.critical:critical_concurrency",),
        falls=(B,),
        rises=(kappa, zeta),
        code=lambda cap, m, k, z: log_slope(
            lambda y: critical.critical_concurrency(y, m, k, score=z), cap, 1e-3
        ),
    )
