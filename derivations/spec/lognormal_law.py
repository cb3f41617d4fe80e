"""Moments of capped lognormal mixtures in the normal integral."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import service_demand
from capmodel.reuse import lane_law
from capmodel.spec.distributions import LognormalMixture
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation

LAW = "capmodel.spec.distributions:LognormalMixture."


@derivation(
    statement=(
        r"E[X^n; X \le x] = m^n e^{n^2\sigma^2/2}\,\Phi\bigl(\tfrac{\ln(x/m)}{\sigma} - "
        r"n\sigma\bigr), \quad E[(X-x)^+] = E[X] - E[\min(X, x)]"
    ),
    assumptions=(
        "X = m exp(sigma N), median m; values above the cap become the cap.",
        "A mixture is a weighted sum of such laws, so every line holds part by part.",
    ),
    depends_on=("normal_excess",),
)
def proof(step: Steps) -> Iterator[Claim]:
    m, sigma, x = sp.symbols("m sigma x", positive=True)
    u, n = sp.symbols("u n", real=True)
    mean, cv, w = sp.symbols("mu k w", positive=True)
    phi = sp.exp(-(u**2) / 2) / sp.sqrt(2 * sp.pi)
    low, high = (1 - w), w

    def Phi(y):
        return sp.erfc(-y / sp.sqrt(2)) / 2

    # 1. Completing the square: m^n e^{n sigma u} phi(u) = m^n e^{n^2 sigma^2/2} phi(u - n sigma).
    step.equal("1. completing the square", sp.exp(n * sigma * u) * phi,
               sp.exp(n**2 * sigma**2 / 2) * phi.subs(u, u - n * sigma))  # fmt: skip

    # 2. Hence the partial moments; their slope in x is x^n times the density.
    score = sp.log(x / m) / sigma
    density = phi.subs(u, score) / (sigma * x)

    def partial(order, edge=x, median=m, width=sigma):
        power = median**order * sp.exp(sp.Integer(order) ** 2 * width**2 / 2)
        return power * Phi(sp.log(edge / median) / width - order * width)

    for order in (0, 1, 2):
        slope = sp.diff(partial(order), x) - x**order * density
        step.zero(f"2.{order} slope of the partial moment of order {order}",
                  sp.simplify(sp.expand_log(slope, force=True)))  # fmt: skip
    # 3. Uncapped moments and the coefficient of variation.
    step.equal("3. mean", m * sp.exp(sigma**2 / 2),
               m * sp.integrate(sp.exp(sigma * u) * phi, (u, -sp.oo, sp.oo)))  # fmt: skip
    ratio = sp.exp(2 * sigma**2) / sp.exp(sigma**2 / 2) ** 2 - 1
    step.solves("4. sigma of a given variation", ratio - cv**2, sigma, sp.sqrt(sp.log(1 + cv**2)))

    # 4. Limited mean: below x the value counts, above it x does. Its slope is the survival.
    survival = 1 - partial(0)
    limited = partial(1) + x * survival
    step.zero("5. the slope of E[min(X, x)] is P(X > x)",
              sp.simplify(sp.expand_log(sp.diff(limited, x) - survival, force=True)))  # fmt: skip
    step.limit("6. nothing is below zero", limited.subs({m: 1, sigma: 1}), x, 0, 0)
    excess = m * sp.exp(sigma**2 / 2) - limited
    step.zero("7. the mean excess falls at the rate P(X > x)",
              sp.simplify(sp.expand_log(sp.diff(excess, x) + survival, force=True)))  # fmt: skip

    def law(median, width, edge=np.inf):
        return LognormalMixture(weights=(1.0,), medians=(median,), sigmas=(width,), cap=edge)

    def mixed(weight, median, width, edge=np.inf):
        return LognormalMixture(weights=(1.0 - weight, weight), medians=(median, 3.0 * median),
                                sigmas=(width, 0.5 * width), cap=edge)  # fmt: skip

    def mixture(moment):
        return low * moment(m, sigma) + high * moment(3 * m, sigma / 2)

    domain = {w: Draw(0.1, 0.9), m: Draw(1.0, 60.0, "s"), sigma: Draw(0.3, 1.6)}
    at = domain | {x: Draw(1.0, 100.0, "s")}
    yield Claim(text="share of gaps longer than x", implements=(LAW + "survival",),
                formula=1 - mixture(lambda a, b: partial(0, x, a, b)), domain=at, falls=(x,),
                code=lambda v, a, b, edge: mixed(v, a, b).survival([edge])[0],
                limits=(Limit(x, 0.0, 1),), rises=(m,))  # fmt: skip
    tail = mixture(lambda a, b: partial(1, x, a, b) + x * (1 - partial(0, x, a, b)))
    yield Claim(text="limited mean of a mixture", unit="s", formula=tail, domain=at, rises=(x, m),
                implements=(LAW + "limited_mean",),
                code=lambda v, a, b, edge: mixed(v, a, b).limited_mean([edge])[0])  # fmt: skip
    whole = mixture(lambda a, b: a * sp.exp(b**2 / 2))
    yield Claim(text="mean excess of a mixture", unit="s", formula=whole - tail, domain=at,
                implements=(LAW + "excess",), falls=(x,),
                code=lambda v, a, b, edge: mixed(v, a, b).excess([edge])[0],
                limits=(Limit(x, 0.0, whole),))  # fmt: skip
    yield Claim(text="mean under a cap", unit="s", domain=at, formula=tail, rises=(x,),
                implements=(LAW + "mean",),
                code=lambda v, a, b, edge: mixed(v, a, b, edge).mean(),
                limits=(Limit(x, 1e9, whole),))  # fmt: skip
    second = mixture(lambda a, b: partial(2, x, a, b) + x**2 * (1 - partial(0, x, a, b)))
    yield Claim(text="variance under a cap", unit="s^2", domain=at, formula=second - tail**2,
                implements=(LAW + "variance",),
                code=lambda v, a, b, edge: mixed(v, a, b, edge).variance())  # fmt: skip
    yield Claim(
        text="variation under a cap",
        domain=at,
        formula=sp.sqrt(second - tail**2) / tail,
        implements=(LAW + "cv",),
        code=lambda v, a, b, edge: mixed(v, a, b, edge).cv(),
    )
    square = mixture(lambda a, b: a**2 * sp.exp(2 * b**2))
    yield Claim(text="variance without a cap", unit="s^2", domain=domain,
                formula=square - whole**2, implements=(LAW + "variance",),
                code=lambda v, a, b: mixed(v, a, b).variance())  # fmt: skip
    single = {m: Draw(1.0, 60.0, "s"), sigma: Draw(0.3, 1.6), cv: Draw(0.05, 0.95)}
    yield Claim(
        text="the quantile returns the chance it was asked for",
        formula=cv,
        domain=single,
        implements=(LAW + "quantile",),
        rises=(cv,),
        code=lambda a, b, p: 1.0 - law(a, b).survival([law(a, b).quantile(p)])[0],
    )

    # 5. A lognormal of given mean and variation.
    given = {mean: Draw(100.0, 1e6, "tokens"), cv: Draw(0.1, 2.0)}
    width = sp.sqrt(sp.log(1 + cv**2))
    median = mean / sp.sqrt(1 + cv**2)
    yield Claim(text="median of given mean and variation", unit="tokens", formula=median,
                domain=given, implements=(LAW + "from_mean_cv",), falls=(cv,), rises=(mean,),
                code=lambda a, k: LognormalMixture.from_mean_cv(a, k).medians[0])  # fmt: skip
    yield Claim(text="log-deviation of given variation", formula=width, domain=given, rises=(cv,),
                implements=(LAW + "from_mean_cv",),
                code=lambda a, k: LognormalMixture.from_mean_cv(a, k).sigmas[0])  # fmt: skip
    yield Claim(text="median of a lane's context", unit="tokens", formula=median, domain=given,
                implements=("capmodel.reuse.lane_law:lognormal_parameters",),
                code=lambda a, k: lane_law.lognormal_parameters(a, k)[0])  # fmt: skip
    yield Claim(text="log-deviation of a lane's context", formula=width, domain=given,
                implements=("capmodel.reuse.lane_law:lognormal_parameters",),
                code=lambda a, k: lane_law.lognormal_parameters(a, k)[1])  # fmt: skip

    # 6. Quadrature nodes keep the mean, and their second moment is the lognormal's.
    def node_moment(a, k, order):
        nodes, weights = service_demand.lognormal_nodes(a, k, 21, np.inf)
        return float(nodes**order @ weights)

    yield Claim(text="quadrature keeps the mean", unit="tokens", formula=mean, domain=given,
                implements=("capmodel.network.service_demand:lognormal_nodes",),
                code=lambda a, k: node_moment(a, k, 1))  # fmt: skip
    yield Claim(text="quadrature has the second moment", unit="tokens^2",
                formula=mean**2 * (1 + cv**2), domain=given | {cv: Draw(0.1, 1.0)},
                implements=("capmodel.network.service_demand:lognormal_nodes",),
                code=lambda a, k: node_moment(a, k, 2))  # fmt: skip

    # 7. Parts without spread are jumps: nothing below their value, everything from it on.
    def jumps(weight, value, width, order):
        law_ = LognormalMixture(
            weights=(weight, 1.0 - weight), medians=(value, 0.0), sigmas=(0.0, 0.0)
        )
        return law_._partial_moment(np.asarray([width * value]), order)[0]

    step_domain = {w: Draw(0.1, 0.9), m: Draw(2.0, 60.0, "s")}
    for order, value, unit in ((0, 1, "1"), (1, w * m, "s"), (2, w * m**2, "s^2")):
        yield Claim(
            text=f"moment {order} of constants, above them",
            formula=value + 0 * m,
            unit=unit,
            domain=step_domain,
            implements=(LAW + "limited_mean", LAW + "mean"),
            code=lambda a, b, o=order: jumps(a, b, 1.5, o),
        )
    yield Claim(
        text="share of constants not above a line below them",
        formula=1 - w,
        domain=step_domain,
        implements=(LAW + "limited_mean", LAW + "mean"),
        code=lambda a, b: jumps(a, b, 0.5, 0),
    )
    yield Claim(
        text="gaps are longer than less than nothing",
        formula=1 + 0 * m,
        domain=step_domain,
        implements=(LAW + "survival",),
        code=lambda a, b: mixed(a, b, 0.5).survival([-1.0])[0],
    )
