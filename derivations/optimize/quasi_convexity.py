"""Affine cost over a concave rate is quasi-convex; the collapse is neither, so it is enumerated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import closed_form
from derivations.claim import Claim, Draw
from derivations.flat_engine import flat_demand
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"\Bigl\{x: \frac{a + b x}{g(x)} \le t\Bigr\} = \{x : a + b x - t\,g(x) \le 0\} "
        r"\text{ is convex for concave } g > 0; \qquad "
        r"X(C) = \min\Bigl(\frac{C}{Z+s}, \frac{1}{s}\Bigr) \text{ is concave}"
    ),
    assumptions=("t > 0; below the cliff, where misses do not depend on the decision.",),
    depends_on=("asymptotes",),
)
def proof(step: Steps) -> Iterator[Claim]:
    a, b, x, t, c, d, Z, s, C = sp.symbols("a b x t c d Z s C", positive=True)
    C1, C2, w = sp.symbols("C_1 C_2 w", positive=True)

    # 1. Sublevel sets: convex left side, whatever the level.
    g = c + d * sp.sqrt(x)
    level = a + b * x - t * g
    step.negative("1. the rate is concave in the memory", sp.diff(g, x, 2))
    step.positive("2. so every level set is that of a convex function", sp.diff(level, x, 2))
    # 2. One stationary point: the numerator of the derivative rises.
    top = sp.simplify(sp.diff((a + b * x) / g, x) * g**2)
    step.rises("3. the slope's sign changes once", top, x)
    # 3. The asymptotic rate is a minimum of two affine functions of C: concave.
    line, cap = C / (Z + s), 1 / s
    step.equal("4. one side is linear", sp.diff(line, C, 2), 0)
    mixed = w * C1 + (1 - w) * C2
    step.equal("5. its chord is itself", (line.subs(C, mixed)
               - w * line.subs(C, C1) - (1 - w) * line.subs(C, C2)), 0)  # fmt: skip
    step.equal("6. the other is a constant", sp.diff(cap, C), 0)

    # 4. Cost per request c/X(C) falls along the line and is flat on the cap: quasi-convex in C.
    step.falls("7. cost falls below saturation", a / line, C)
    # 5. Two regimes: 1/X = (1-P)/X_u + P/X_d with P logistic in C. Along C the cost per turn
    #    is convex where P is and concave past its middle.
    up, down, k, m = sp.symbols("X_u X_d k m", positive=True)
    P = 1 / (1 + sp.exp(-k * (C - m)))
    inverse = (1 - P) / up + P / (up / (1 + down))
    curvature = sp.simplify(sp.diff(inverse, C, 2))
    before = sp.symbols("y", positive=True)
    step.positive("8. convex before the cliff's middle",
                  sp.simplify(curvature.subs(C, m - sp.log(1 + before) / k)))  # fmt: skip
    step.negative("9. concave behind it",
                  sp.simplify(curvature.subs(C, m + sp.log(1 + before) / k)))  # fmt: skip

    # 6. Posynomials: ln(e^u + e^v) is convex, so the design below the cliff is geometric.
    u, v, h1, h2 = sp.symbols("u v h_1 h_2", real=True)
    soft = sp.log(sp.exp(u) + sp.exp(v))
    quadratic = (sp.diff(soft, u, 2) * h1**2 + 2 * sp.diff(soft, u, v) * h1 * h2
                 + sp.diff(soft, v, 2) * h2**2)  # fmt: skip
    step.equal(
        "10. its Hessian form is a square",
        quadratic,
        sp.exp(u + v) / (sp.exp(u) + sp.exp(v)) ** 2 * (h1 - h2) ** 2,
    )
    zeta, mu, sigma, B = sp.symbols("zeta mu sigma B", positive=True)
    y = sp.symbols("q", real=True)
    budget = (mu * C + zeta * sigma * sp.sqrt(C)) / B
    inside = budget.subs(C, sp.exp(y))
    step.positive("11. the memory constraint is convex in ln C",
                  sp.simplify(sp.diff(sp.log(inside), y, 2)
                              * (mu * sp.exp(y) + zeta * sigma * sp.exp(y / 2)) ** 2))  # fmt: skip

    # 7. The closed level on a flat engine is that concave bound.
    def rate(sessions, think, prefill):
        demand = flat_demand(think_s=think, step_s=1e-9, decode_steps=1e-9, hit_s=prefill)
        flow = closed_form.solve(demand, np.zeros(1), np.zeros(1), sessions)
        return sessions / flow.cycle_s[0]

    domain = {C: Draw(2, 60, whole=True), Z: Draw(1.0, 30.0, "s"), s: Draw(0.2, 5.0, "s")}
    yield Claim(
        text="rate of the closed level without decodes",
        unit="1/s",
        domain=domain,
        formula=sp.Min(C / (Z + s), 1 / s),
        implements=("capmodel.network.closed_form:solve",),
        code=rate,
    )
    yield Claim(text="second difference of the closed rate is never positive", domain=domain,
                formula=sp.Heaviside(0 * C + 1),
                implements=("capmodel.network.closed_form:solve",),
                code=lambda n, z, p: float(rate(n + 1, z, p) - 2 * rate(n, z, p) + rate(n - 1, z, p)
                                           < 1e-12))  # fmt: skip
