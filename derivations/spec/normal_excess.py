"""The mean excess of a normal law, and the clamp that prefix hits need."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel import normal
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"\psi(y) = E[(y+N)^+] = y\,\Phi(y) + \varphi(y), \qquad "
        r"E[\min((a-U)^+, l)] = s\,\bigl(\psi(\tfrac{a-m}{s}) - \psi(\tfrac{a-m-l}{s})\bigr)"
    ),
    assumptions=("N is standard normal; U is normal with mean m and deviation s.",),
)
def proof(step: Steps) -> Iterator[Claim]:
    x, y = sp.symbols("x y", real=True)
    a, m, length = sp.symbols("a m l", real=True)
    s = sp.symbols("s", positive=True)

    # 1. Density and distribution function.
    phi = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
    Phi = sp.erfc(-y / sp.sqrt(2)) / 2
    step.equal("1. the distribution function integrates the density",
               sp.integrate(phi, (x, -sp.oo, y)), Phi)  # fmt: skip

    # 2. E[(y + N)^+] over n > -y, with n phi(n) = -phi'(n).
    excess = sp.integrate((y + x) * phi, (x, -y, sp.oo))
    psi = y * Phi + phi.subs(x, y)
    step.equal("2. the mean excess is y Phi + phi", excess, psi)

    # 3. Its slope is the distribution function, its curvature the density: convex and rising.
    step.equal("3. psi' = Phi", sp.diff(psi, y), Phi)
    step.positive("4. psi'' > 0, so psi is convex", sp.diff(psi, y, 2))
    step.limit("5. nothing is left far below", psi, y, -sp.oo, 0)
    step.limit("6. psi(y) - y vanishes far above", psi - y, y, sp.oo, 0)

    # 4. A clamp is a difference of two positive parts, each a scaled excess.
    gap, part = sp.symbols("g l", positive=True)
    clamp = sp.Min(sp.Max(gap, 0), part)
    step.equal("7. min(g^+, l) = g^+ - (g - l)^+ where g < l", clamp.subs(part, gap + part), gap)
    step.equal("8. the same where g > l", clamp.subs(gap, gap + part),
               sp.Max(gap + part, 0) - sp.Max(gap, 0))  # fmt: skip
    shifted = s * (psi.subs(y, (a - m) / s) - psi.subs(y, (a - m - length) / s))
    step.equal("9. d/da of the clamp is the chance that the edge lies in the prefix",
               sp.diff(shifted, a),
               Phi.subs(y, (a - m) / s) - Phi.subs(y, (a - m - length) / s))  # fmt: skip

    line = {y: Draw(-6.0, 6.0)}
    yield Claim(text="complementary error function", implements=("capmodel.normal:erfc",),
                formula=sp.erfc(y), domain=line, code=normal.erfc, falls=(y,))  # fmt: skip
    yield Claim(text="complementary error function near zero", formula=sp.erfc(y),
                implements=("capmodel.normal:erfc",), domain={y: Draw(-0.46, 0.46)},
                code=normal.erfc)  # fmt: skip
    yield Claim(text="complementary error function far out", formula=sp.erfc(y),
                implements=("capmodel.normal:erfc",), domain={y: Draw(4.1, 9.0)},
                code=normal.erfc)  # fmt: skip
    yield Claim(text="normal distribution function", implements=("capmodel.normal:cdf",),
                formula=Phi, domain=line, code=normal.cdf, rises=(y,),
                limits=(Limit(y, 9.0, 1),))  # fmt: skip
    yield Claim(text="normal density", implements=("capmodel.normal:pdf",),
                formula=phi.subs(x, y), domain=line, code=normal.pdf)  # fmt: skip
    yield Claim(text="normal mean excess", implements=("capmodel.normal:mean_excess",),
                formula=psi, domain={y: Draw(-4.0, 6.0)}, code=normal.mean_excess, rises=(y,),
                limits=(Limit(y, 12.0, y),))  # fmt: skip

    # 5. The quantile is the inverse: drawing y and asking for the quantile of Phi(y) returns y.
    yield Claim(text="the quantile inverts the distribution function",
                implements=("capmodel.normal:quantile",), formula=y,
                domain={y: Draw(-4.5, 4.5)}, code=lambda v: normal.quantile(normal.cdf(v)),
                rises=(y,), tolerance=1e-8)  # fmt: skip
