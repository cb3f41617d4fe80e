"""A few lanes do not hold their mean: prefix hits against a random amount of others' tokens."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.reuse import characteristic_time
from capmodel.reuse import gamma_law as lane_gamma
from derivations.claim import Claim, Draw, Limit
from derivations.cube_root import cube_root_chance, cube_root_excess
from derivations.proof import Steps, derivation
from derivations.reuse.occupancy import lane


@derivation(
    statement=(
        r"E[\min(l, (B - M)^+)] = \int_0^l P(M \le B - y)\,dy, \qquad "
        r"E[M] = (C-1)U_1,\; \mathrm{Var}\,M = (C-1)V_1"
    ),
    assumptions=(
        "The other C-1 lanes are independent; what they touched in my gap is M.",
        "M is taken gamma; heads of prefixes stay longest (tails are evicted first).",
    ),
    depends_on=("occupancy", "gamma_law", "characteristic_time"),
)
def proof(step: Steps) -> Iterator[Claim]:
    y, length, B, s, m = sp.symbols("y length B s m", positive=True)
    C, u, v = sp.symbols("C u v", positive=True)
    room = sp.symbols("r", positive=True)

    # 1. A token at depth y hits iff M <= B - y; adding up over depths is the clamp.
    inside = sp.integrate(sp.Integer(1), (y, 0, room))
    step.equal("1. room for a part: that part hits (0 < B - M < length)", inside,
               sp.Min(room, room + length))  # fmt: skip
    whole = sp.integrate(sp.Integer(1), (y, 0, length))
    step.equal("2. room for all: all hits (B - M > length)", whole, sp.Min(length, length + room))

    # 2. Normal M: the integral is a difference of excesses, s (psi((B-m)/s) - psi((B-m-length)/s)).
    a = sp.symbols("a", real=True)

    def psi(q):
        return q * sp.erfc(-q / sp.sqrt(2)) / 2 + sp.exp(-(q**2) / 2) / sp.sqrt(2 * sp.pi)

    slope = sp.diff(s * (psi(a / s) - psi((a - length) / s)), length)
    step.equal("3. its slope in the prefix is the chance at the far end", slope,
               sp.erfc(-(a - length) / s / sp.sqrt(2)) / 2)  # fmt: skip
    step.limit(
        "4. an empty prefix hits nothing", s * (psi(a / s) - psi((a - length) / s)), length, 0, 0
    )

    # 3. The relative spread of M vanishes with many lanes: back to the characteristic time.
    spread = sp.sqrt((C - 1) * v) / ((C - 1) * u)
    step.limit("5. many lanes hold their mean", spread, C, sp.oo, 0)
    step.equal("6. the shape of C - 1 lanes is C - 1 times that of one", 1 / spread**2,
               (C - 1) * u**2 / v)  # fmt: skip

    # 4. The code, on one gap and equal contexts (so that U1 and V1 are plain).
    w, gap, live, square = sp.symbols("w z A Q", positive=True)
    domain = {C: Draw(3, 40, whole=True), B: Draw(5e5, 2e6, "tokens"), w: Draw(1e5, 2e5, "tokens"),
              gap: Draw(5.0, 60.0, "s"), live: Draw(1e6, 4e6, "tokens*s"),
              square: Draw(3e11, 2e12, "tokens^2*s")}  # fmt: skip
    mean = (C - 1) * live / gap
    variance = (C - 1) * sp.Max(square / gap - (live / gap) ** 2, (live / gap) ** 2 / 20)
    depths = [(sp.Rational(2 * i + 1, 32)) * w for i in range(16)]
    hit = sum(cube_root_chance(mean**2 / variance, (B - d) / mean) for d in depths) / 16
    names = (
        "capmodel.reuse.characteristic_time:finite_population_hit_rate",
        "capmodel.reuse.gamma_law:gamma_cdf",
        "capmodel.reuse.gamma_law:gamma_shape",
    )

    def finite(lanes, capacity, context, gap_s, live_s, square_s):
        law = lane(gap_s=gap_s, context=context, prefix=context, live_token_s=live_s,
                   live_square_s=square_s)  # fmt: skip
        return characteristic_time.finite_population_hit_rate(law, lanes, capacity)

    yield Claim(text="finite-population hit rate", formula=hit, domain=domain, implements=names,
                code=finite, rises=(B,), falls=(C,), tolerance=3e-4,
                where=lambda n, b, c, z, a, q: 0.3 * b < (n - 1) * a / z < 1.3 * b)  # fmt: skip
    alone = {B: Draw(3e4, 3e5, "tokens"), w: Draw(1e5, 2e5, "tokens"), gap: domain[gap]}
    yield Claim(text="a single lane hits what fits", formula=sp.Min(w, B) / w, domain=alone,
                implements=names, limits=(Limit(B, 1e7, 1),),
                code=lambda b, c, z: finite(1, b, c, z, 0.0, 0.0))  # fmt: skip

    # 5. The other excess, what a gamma mass holds above a line: its slope is minus the tail.
    k, x = sp.symbols("k x", positive=True)
    over = m * cube_root_excess(k, x / m)
    yield Claim(
        text="gamma excess above a line",
        unit="tokens",
        tolerance=3e-4,
        implements=("capmodel.reuse.gamma_law:gamma_excess",),
        formula=over,
        domain={x: Draw(5e4, 2e5, "tokens"), m: Draw(1e5, 3e5, "tokens"), k: Draw(0.8, 20.0)},
        code=lane_gamma.gamma_excess,
        falls=(x,),
        rises=(m,),
    )
    yield Claim(
        text="gamma excess below nothing is the mean and the gap",
        unit="tokens",
        implements=("capmodel.reuse.gamma_law:gamma_excess",),
        formula=m + x,
        domain={x: Draw(5e4, 2e5, "tokens"), m: Draw(1e5, 3e5, "tokens"), k: Draw(0.8, 20.0)},
        code=lambda a_, b_, c_: lane_gamma.gamma_excess(-a_, b_, c_),
    )
