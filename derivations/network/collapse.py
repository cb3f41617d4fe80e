"""Misses feed on themselves: the saturated branch, its blow-up, and where the good regime ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import critical
from capmodel.reuse.order_argument import ThinkNodes, missing_fraction
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation

SECONDS = Draw(2.0, 40.0, "s")


@derivation(
    statement=(
        r"c = C(s_h + m\Delta),\; m = \varepsilon c / Z \;\Rightarrow\; "
        r"m = \frac{\varepsilon C s_h}{Z - \varepsilon C \Delta}, \qquad "
        r"\varepsilon^* = \frac{Z\,(Z + D - (C-1) s_h)}{C \Delta (Z + D)}"
    ),
    assumptions=(
        "Exponential think times and many sessions: the fluid law m = e c/Z.",
        "s_h and s_m = s_h + Delta are the prefills of a hit and of a full miss.",
    ),
    depends_on=("fluid_miss", "asymptotes", "fixed_points"),
)
def proof(step: Steps) -> Iterator[Claim]:
    e, C, Z, D, sh, delta, m, c = sp.symbols("epsilon C Z D s_h Delta m c", positive=True)
    slack, others = sp.symbols("d n", positive=True)

    # 1. A saturated server gives the cycle C (s_h + m Delta); misses are e c / Z.
    branch = e * C * sh / (Z - e * C * delta)
    step.solves("1. the saturated branch", m - e * C * (sh + m * delta) / Z, m, branch)

    # 2. Everything misses at e = Z/(C s_m); the branch rises ever steeper until there.
    full = Z / (C * (sh + delta))
    step.equal("2. all reusable tokens are missing", branch.subs(e, full), 1)
    room = branch.subs(Z, e * C * delta + slack)
    slope = sp.diff(branch, e)
    step.equal("3. slope of the branch", slope, C * sh * Z / (Z - e * C * delta) ** 2)
    step.positive("4. it rises", slope.subs(Z, e * C * delta + slack))
    curvature = sp.diff(C * sh / (1 - C * e * delta / Z), e, 2)
    step.equal("5. curvature of the cycle", curvature,
               2 * C**3 * sh * delta**2 * Z / (Z - C * e * delta) ** 3)  # fmt: skip
    step.positive("6. convex below the critical overload",
                  curvature.subs(Z, e * C * delta + slack))  # fmt: skip
    step.equal("7. the same branch, by what is left of Z", room, e * C * sh / slack)

    # 3. The map c -> C (s_h + (e c/Z) Delta) has slope C e Delta/Z: stable only below 1.
    step.equal("8. slope of the map", sp.diff(C * (sh + e * c / Z * delta), c), C * e * delta / Z)
    step.solves("9. critical overload of the map", C * e * delta / Z - 1, e, Z / (C * delta))

    # 4. The good regime ends where C s_eff = Z + D + s_eff.
    at = (Z + D - (C - 1) * sh) / ((C - 1) * delta)
    s_eff = sh + m * delta
    step.solves("10. share of misses that saturates", C * s_eff - (Z + D + s_eff), m, at)
    cycle = C * (sh + at * delta)
    step.equal("11. cycle there", cycle, C * (Z + D) / (C - 1))
    overload = Z * (Z + D - (C - 1) * sh) / (C * delta * (Z + D))
    step.equal("12. overload there, from m = e c/Z", at * Z / cycle, overload)
    step.falls("13. dearer hits saturate earlier", overload.subs(C, 1 + others), sh)
    step.equal("14. alone, saturation needs more than every token missing when D > 0",
               overload.subs(C, 1), Z / delta)  # fmt: skip

    # 5. Below saturation the cycle is (Z + D + s_h)/(1 - e Delta/Z).
    free = (Z + D + sh) / (1 - e * delta / Z)
    step.solves("15. the unsaturated branch", c - (Z + D + sh + e * c / Z * delta), c, free)

    domain = {Z: SECONDS, D: SECONDS, sh: Draw(0.05, 0.5, "s"), delta: Draw(2.0, 20.0, "s"),
              C: Draw(2, 12, whole=True)}  # fmt: skip
    yield Claim(text="share of misses that saturates the server", formula=at, domain=domain,
                implements=("capmodel.network.critical:saturation_miss",), rises=(Z, D),
                falls=(sh, delta, C),
                code=lambda z, d, h, x, n: critical.saturation_miss(z, d, h, h + x, n))  # fmt: skip
    yield Claim(
        text="overload that ends the good regime",
        formula=overload,
        domain=domain,
        implements=("capmodel.network.critical:critical_overload",),
        rises=(Z, D),
        falls=(sh, delta, C),
        code=lambda z, d, h, x, n: critical.critical_overload(z, d, h, h + x, n),
    )
    yield Claim(
        text="no overload is tolerated by a server that hits alone saturate",
        formula=sp.Integer(0) * Z,
        domain=domain | {sh: Draw(50.0, 90.0, "s")},
        implements=("capmodel.network.critical:critical_overload",),
        code=lambda z, d, h, x, n: critical.critical_overload(z, d, h, h + x, n),
    )

    # 6. The code's miss law has the branch as its fixed point: at the branch's cycle, it misses m.
    def miss_at_branch(share, sessions, think, hit, extra):
        found = share * sessions * hit / (think - share * sessions * extra)
        cycle_s = sessions * (hit + found * extra)
        return fluid_miss(share, cycle_s, think)

    tight = {e: Draw(0.02, 0.1), C: Draw(20, 60, whole=True), Z: Draw(30.0, 60.0, "s"),
             sh: Draw(0.1, 0.5, "s"), delta: Draw(1.0, 3.0, "s")}  # fmt: skip
    yield Claim(text="the miss law holds on the saturated branch", formula=branch, domain=tight,
                implements=("capmodel.reuse.order_argument:missing_fraction",),
                code=miss_at_branch, rises=(e, sh, delta), falls=(Z,), tolerance=2e-3,
                where=lambda s, n, z, h, x: s * n * x < 0.7 * z
                and 0.05 < s * n * h / (z - s * n * x) < 0.7
                and n * h > 0.3 * z,
                )  # fmt: skip


def fluid_miss(
    overload: float, cycle_s: float, think_s: float, sessions: int = 10_000_000
) -> float:
    """The code's miss fraction for very many sessions with exponential think times [1]."""
    nodes = 4096
    z = -think_s * np.log1p(-(np.arange(nodes) + 0.5) / nodes)
    think = ThinkNodes(z_s=z, weights=np.full(nodes, 1.0 / nodes),
                       excess_s=think_s * np.exp(-z / think_s))  # fmt: skip
    live = np.asarray([1e9 * 1.0])
    share = missing_fraction(
        live_tokens=live,
        cycle_s=np.asarray([cycle_s]),
        capacity_tokens=float(live[0]) * (1 - overload),
        concurrency=sessions,
        session_cv=1.0,
        ended_tokens_per_turn=0.0,
        think=think,
    )
    return float(share[0])
