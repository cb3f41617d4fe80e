"""Heavy tails of think time make misses react more than in proportion, light tails less."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.spec.distributions import LognormalMixture
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"m = \bar F(z^*),\; \frac{E[(Z-z^*)^+]}{c} = \varepsilon \;\Rightarrow\; "
        r"\frac{d \ln m}{d \ln c} = h(z^*)\,\ell(z^*), \quad "
        r"h = \frac{f}{\bar F},\; \ell = \frac{E[(Z-z)^+]}{\bar F}"
    ),
    assumptions=("Many sessions; h is the hazard and l the mean residual life of the think time.",),
    depends_on=("fluid_miss",),
)
def proof(step: Steps) -> Iterator[Claim]:
    z, c, r, a, b, p = sp.symbols("z c r a b p", positive=True)
    tail, excess, density = (sp.Function(name)(z) for name in ("F", "G", "f"))

    # 1. d/dz of the edge condition G(z)/c = e at fixed e gives dz/dc = G/(c G') = -G/(c F).
    shift = sp.symbols("s", real=True)
    moved = sp.diff(excess, z) * shift / c - excess / c**2
    found = sp.solve(moved.subs(sp.diff(excess, z), -tail), shift)[0]
    step.equal("1. the edge moves left as the cycle grows", found, -excess / (c * tail))
    # 2. So d ln m / d ln c = (c/F)(-f)(dz/dc), the hazard times the mean residual life.
    step.equal("2. the elasticity is hazard times residual life", c / tail * (-density) * found,
               (density / tail) * (excess / tail))  # fmt: skip

    def elasticity(survival):
        sp.integrate(survival, (z, z, sp.oo)) if False else None
        life = sp.integrate(survival.subs(z, r), (r, z, sp.oo))
        return sp.simplify(-sp.diff(survival, z) / survival * life / survival)

    # 3. Exponential: exactly one.
    step.equal("3. exponential think times", elasticity(sp.exp(-a * z)), 1)

    # 4. Erlang-2 (light tail): below one everywhere.
    erlang = elasticity((1 + 2 * z) * sp.exp(-2 * z))
    step.equal("4. Erlang-2", erlang, 4 * z * (1 + z) / (1 + 2 * z) ** 2)
    step.positive("5. its distance from one", 1 - 4 * z * (1 + z) / (1 + 2 * z) ** 2)

    # 5. Two exponentials (heavy tail): above one by p q (a-b)^2 over a square.
    q = sp.symbols("q", positive=True)
    mixed = elasticity(p * sp.exp(-a * z) + q * sp.exp(-b * z))
    surplus = sp.factor(sp.simplify(mixed - 1))
    claimed = (p * q * (a - b) ** 2 * sp.exp(-(a + b) * z)
               / (a * b * (p * sp.exp(-a * z) + q * sp.exp(-b * z)) ** 2))  # fmt: skip
    step.equal("6. two exponentials", surplus, claimed)
    step.positive("7. above one unless the rates are equal", claimed.subs(a, b + c))

    # 6. A lognormal gap: both factors in the normal integral; the code's law has them.
    m, sigma = sp.symbols("m sigma", positive=True)
    score = sp.log(z / m) / sigma
    survival = sp.erfc(score / sp.sqrt(2)) / 2
    mean = m * sp.exp(sigma**2 / 2)
    over = mean * sp.erfc((score - sigma) / sp.sqrt(2)) / 2 - z * survival
    step.zero("8. its excess falls at the rate of its survival",
              sp.simplify(sp.expand_log(sp.diff(over, z) + survival, force=True)))  # fmt: skip
    life = over / survival
    hazard = -sp.diff(survival, z) / survival

    def code(edge, median, width):
        law = LognormalMixture(weights=(1.0,), medians=(median,), sigmas=(width,))
        tail_at = law.survival([edge])[0]
        density_at = np.exp(-0.5 * (np.log(edge / median) / width) ** 2) / (
            edge * width * np.sqrt(2 * np.pi)
        )
        return density_at / tail_at * law.excess([edge])[0] / tail_at

    yield Claim(text="elasticity of lognormal gaps", formula=hazard * life, tolerance=1e-8,
                implements=("capmodel.spec.distributions:LognormalMixture.excess",
                            "capmodel.spec.distributions:LognormalMixture.survival"),
                domain={z: Draw(1.0, 60.0, "s"), m: Draw(5.0, 20.0, "s"), sigma: Draw(0.4, 1.8)},
                code=code)  # fmt: skip
