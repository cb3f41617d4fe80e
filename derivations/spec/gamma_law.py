"""The gamma law of given mean and shape: its mean excess, and its distribution by the cube root."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.reuse import gamma_law as lane_gamma
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"E[(x - X)^+] = x\,P(s, s x) - P(s+1, s x), \qquad "
        r"P(s, s x) \approx \Phi\bigl(3\sqrt{s}\,(x^{1/3} - 1 + \tfrac{1}{9 s})\bigr)"
    ),
    assumptions=(
        "X is gamma with mean 1 and shape s; P is the regularised lower incomplete gamma.",
        "The cube-root law (Wilson and Hilferty) is an approximation; everything else is exact.",
    ),
    depends_on=("normal_excess",),
)
def proof(step: Steps) -> Iterator[Claim]:
    s, x, t, mean, variance = sp.symbols("s x t m v", positive=True)

    # 1. Unit mean: the rate of the law equals its shape.
    density = s**s * t ** (s - 1) * sp.exp(-s * t) / sp.gamma(s)
    for order, moment in ((0, 1), (1, 1), (2, 1 + 1 / s)):
        found = sp.integrate(density * t**order, (t, 0, sp.oo), conds="none")
        step.equal(f"1. moment of order {order}", found, moment)

    # 2. The variance is mean^2/s, so two moments fix the shape.
    step.solves("2. the shape of given mean and variance",
                mean**2 / s - variance, s, mean**2 / variance)  # fmt: skip

    # 3. t times the density is the density of one shape higher, so E[X; X < x] = P(s+1, s x).
    raised = density.subs(s, s + 1).subs(t, t * s / (s + 1)) * s / (s + 1)
    step.equal("3. size-biasing raises the shape by one", t * density, raised)

    # 4. Whole shapes have elementary integrals: the excess is x P(s, sx) - P(s+1, sx).
    for whole in (1, 2, 3):
        law = density.subs(s, whole)
        excess = sp.integrate((x - t) * law, (t, 0, x))
        below = sp.integrate(law, (t, 0, x))
        above = sp.integrate(law * t, (t, 0, x))
        step.equal(f"4.{whole} excess of an Erlang-{whole} law", excess, x * below - above)
        step.equal(f"5.{whole} its slope is the distribution function", sp.diff(excess, x), below)

    # 5. Cube root: the score rises with x, and is nearly zero at the median for large shapes.
    score = 3 * sp.sqrt(s) * (sp.cbrt(x) - 1 + 1 / (9 * s))
    step.rises("6. the score rises with x", score, x)
    step.limit("7. the median tends to the mean", score.subs(x, 1), s, sp.oo, 0)
    spread = sp.symbols("k", positive=True)
    other = 3 * sp.sqrt(s) * (sp.cbrt(spread / mean) - (1 - 1 / (9 * s)))
    step.equal("8. the same score in tokens", other.subs(spread, x * mean), score)

    # 6. The code tabulates the normal law and interpolates, to 2e-7.
    yield Claim(text="gamma distribution function, in tokens",
                implements=("capmodel.reuse.gamma_law:gamma_cdf",),
                formula=sp.erfc(-other / sp.sqrt(2)) / 2,
                domain={spread: Draw(5e4, 5e5, "tokens"), mean: Draw(1e5, 3e5, "tokens"),
                        s: Draw(0.8, 30.0)},
                code=lane_gamma.gamma_cdf, rises=(spread,), falls=(mean,),
                tolerance=1e-5)  # interpolated in a table  # fmt: skip
    yield Claim(text="gamma shape of given moments",
                implements=("capmodel.reuse.gamma_law:gamma_shape",), formula=mean**2 / variance,
                domain={mean: Draw(1e3, 1e6, "tokens"), variance: Draw(1e6, 1e11, "tokens^2")},
                code=lane_gamma.gamma_shape, rises=(mean,), falls=(variance,))  # fmt: skip
