"""Who is still untouched when I return: exactly those who think now and thought when I left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.reuse import order_argument
from capmodel.reuse.order_argument import ThinkNodes
from capmodel.spec.distributions import LognormalMixture
from derivations.claim import Claim, Draw, Limit
from derivations.cube_root import cube_root_chance, cube_root_excess
from derivations.proof import Steps, derivation

MISSING = ("capmodel.reuse.order_argument:missing_fraction",)
TABLED = 3e-5  # the normal law comes from a table


def one_node(think_s: float, excess_s: float) -> ThinkNodes:
    """Return a think time of one value, with a given mean excess over it."""
    return ThinkNodes(z_s=np.asarray([think_s]), weights=np.ones(1),
                      excess_s=np.asarray([excess_s]))  # fmt: skip


@derivation(
    statement=(
        r"q(z) = \frac{E[(Z'-z)^+]}{c}, \qquad U(z) \sim \sum_{i \le \mathrm{Bin}(C-1,\,q)} f_i, "
        r"\qquad m = E\bigl[\min(w, (Y + e - B - U)^+)\bigr] / w"
    ),
    assumptions=(
        "First come, first served; the cache is looked up when service starts; LRU by session.",
        "Exact given the law of U; a gamma law with the moments of sampling k of C contexts.",
    ),
    depends_on=("gamma_law", "lognormal_law"),
)
def proof(step: Steps) -> Iterator[Claim]:
    z, t, Z, c, C, k = sp.symbols("z t Z c C k", positive=True)
    w, V = sp.symbols("w V", positive=True)
    Y = sp.symbols("Y", positive=True)

    # 1. A cycle starts with a think time Z'. I leave at a uniform moment of the other's cycle; it
    #    stays untouched for z iff that moment lies in its think time, more than z before the end.
    law = sp.exp(-t / Z) / Z
    excess = sp.integrate((t - z) * law, (t, z, sp.oo))
    step.equal("1. mean excess of an exponential think time", excess, Z * sp.exp(-z / Z))
    q = excess / c
    step.limit("2. thinking at all has the share Z/c", q, z, 0, Z / c)
    step.falls("3. a longer absence finds fewer untouched", q, z)
    step.falls("4. so does a longer cycle: waiting enters here and nowhere else", q, c)
    slope = sp.diff(excess, z)
    step.equal("5. the excess falls at the rate P(Z' > z)", slope,
               -sp.integrate(law, (t, z, sp.oo)))  # fmt: skip

    # 2. The number untouched is binomial; its moments by the generating function.
    a, p = sp.symbols("a p", positive=True)
    n = sp.symbols("n", positive=True, integer=True)
    generating = (1 - p + p * a) ** n
    mean = sp.diff(generating, a).subs(a, 1)
    second = sp.diff(generating, a, 2).subs(a, 1)
    step.equal("6. mean number", mean, n * p)
    step.equal("7. variance of the number", second + mean - mean**2, n * p * (1 - p))

    # 3. Compound: f has mean w and variance V. Cumulants from log(1 - p + p M(s)).
    s = sp.symbols("s", real=True)
    moments = 1 + w * s + (V + w**2) * s**2 / 2
    cumulant = sp.series(n * sp.log(1 - p + p * moments), s, 0, 3).removeO()
    step.equal("8. mean of the untouched mass", cumulant.coeff(s, 1), n * p * w)
    step.equal("9. its variance", 2 * cumulant.coeff(s, 2),
               n * (p * (V + w**2) - p**2 * w**2))  # fmt: skip

    # 4. Given Y the contexts are negatively correlated: k of C without replacement.
    pair = -V / (C - 1)
    step.equal("10. variance of k of C contexts with a fixed sum",
               k * V + k * (k - 1) * pair, k * (1 - k / C) * V * C / (C - 1))  # fmt: skip
    step.equal("11. all of them have none left", (k * V + k * (k - 1) * pair).subs(k, C), 0)

    # 5. Tokens are counted, so who returns is drawn by size: E[w^2]/E[w], with Var w = V (C-1)/C
    #    given the sum; the others share the rest.
    biased = (w**2 + V * (C - 1) / C) / w
    step.equal("12. mean of a size-biased context given the sum", biased,
               w * (1 + V / w**2 * (C - 1) / C))  # fmt: skip
    step.equal("13. alone it is the whole sum", biased.subs(C, 1), w)
    step.limit("14. among many, by the full second moment", biased, C, sp.oo, w + V / w)

    # 6. Tails are evicted first, at most the whole own context.
    over, own = sp.symbols("o w", positive=True)
    step.equal("15. a partial hit is a difference of excesses",
               sp.Max(own + over, 0) - sp.Max(over, 0), own)  # fmt: skip

    # -- binomial weights
    share = sp.symbols("q", positive=True)
    trials = 6
    for hits in (0, 2, 6):
        yield Claim(
            text=f"chance that {hits} of {trials} are untouched",
            implements=("capmodel.reuse.order_argument:binomial_pmf",),
            formula=sp.binomial(trials, hits) * share**hits * (1 - share) ** (trials - hits),
            domain={share: Draw(0.05, 0.95)},
            code=lambda v, h=hits: order_argument.binomial_pmf(trials, np.asarray([v]))[h, 0],
        )

    # -- the whole formula, term by term, for three sessions and for thirty
    B, cv, ended, absence, left = sp.symbols("B k e z x", positive=True)
    cycle = sp.symbols("c", positive=True)

    def others(sessions):
        qq = sp.Min(left / cycle, 1)
        repeat = sp.Max(absence / cycle - (1 - qq), 0)
        surplus = sp.Max(Y + repeat * (sessions - 1) * ended - B, 0)
        mine = sp.Min(Y / sessions * (1 + cv**2 * sp.Rational(sessions - 1, sessions)),
                      sp.Rational(9, 10) * Y)  # fmt: skip
        return qq, surplus, mine, (Y - mine) / (sessions - 1)

    def missing(sessions, room, context, variation, dead, gone, rest, period, whole=False):
        share = order_argument.missing_fraction(
            live_tokens=np.asarray([context]), cycle_s=np.asarray([period]), capacity_tokens=room,
            concurrency=sessions, session_cv=variation, ended_tokens_per_turn=dead,
            think=one_node(gone, rest), all_or_nothing=whole,
        )  # fmt: skip
        return share[0]

    domain = {B: Draw(0.75e6, 0.98e6, "tokens"), Y: Draw(1.0e6, 1.2e6, "tokens"),
              cv: Draw(0.3, 0.9), ended: Draw(1e3, 2e4, "tokens"), absence: Draw(30.0, 90.0, "s"),
              left: Draw(20.0, 60.0, "s"), cycle: Draw(70.0, 100.0, "s")}  # fmt: skip

    def partial(surplus, own_, mean_, variance_):
        shape = mean_**2 / variance_
        return 1 + mean_ * (cube_root_excess(shape, surplus / mean_)
                            - cube_root_excess(shape, (surplus - own_) / mean_)) / own_  # fmt: skip

    sessions = 3
    qq, surplus, own_, other = others(sessions)
    value = (1 - qq) ** 2 * sp.Min(surplus, own_) / own_
    for held, chance in ((1, 2 * qq * (1 - qq)), (2, qq**2)):
        spread = held * (1 - sp.Rational(held, 3)) * (cv * other) ** 2 * 3 / 2
        value += chance * partial(surplus, own_, held * other, spread)
    yield Claim(
        text="missing share of three sessions",
        implements=MISSING,
        formula=value,
        domain=domain,
        code=lambda *v: missing(3, *v),
        falls=(B,),
        rises=(cycle,),
        tolerance=TABLED,
    )
    yield Claim(
        text="missing share of three very uneven sessions",
        implements=MISSING,
        formula=value,
        domain=domain | {cv: Draw(2.0, 3.0)},
        code=lambda *v: missing(3, *v),
        tolerance=TABLED,
    )
    blunt = (1 - qq) ** 2
    for held, chance in ((1, 2 * qq * (1 - qq)), (2, qq**2)):
        spread = held * (1 - sp.Rational(held, 3)) * (cv * other) ** 2 * 3 / 2
        blunt += chance * cube_root_chance((held * other) ** 2 / spread, surplus / (held * other))
    yield Claim(
        text="missing share of three sessions with recurrent state",
        implements=MISSING,
        formula=blunt,
        domain=domain,
        code=lambda *v: missing(3, *v, whole=True),
        tolerance=TABLED,
    )

    sessions = 30
    qq, surplus, own_, other = others(sessions)
    average = (sessions - 1) * qq * other
    spread = (sessions - 1) * (qq * ((cv * other) ** 2 + other**2) - (qq * other) ** 2)
    yield Claim(text="missing share of thirty sessions", implements=MISSING,
                formula=partial(surplus, own_, average, spread), domain=domain,
                code=lambda *v: missing(30, *v), tolerance=3e-4,
                where=lambda *v: missing(30, *v) > 0.05)  # fmt: skip
    yield Claim(text="missing share of thirty sessions with recurrent state", implements=MISSING,
                formula=cube_root_chance(average**2 / spread, surplus / average), domain=domain,
                code=lambda *v: missing(30, *v, whole=True), tolerance=TABLED)  # fmt: skip

    # -- exact ends: alone, and with room for all
    yield Claim(text="alone, one misses what does not fit", implements=MISSING,
                formula=sp.Max(Y - B, 0) / Y, domain=domain,
                code=lambda *v: missing(1, *v), limits=(Limit(B, 2e6, 0),))  # fmt: skip
    yield Claim(text="with room for all, nobody misses", implements=MISSING,
                formula=sp.Integer(0) * Y, domain=domain | {B: Draw(3e6, 4e6, "tokens")},
                code=lambda *v: missing(7, *v))  # fmt: skip

    # -- the quadrature of a think-time law: midpoints of equal shares, with the law's own excess
    m, sigma = sp.symbols("m sigma", positive=True)
    laws = {m: Draw(5.0, 60.0, "s"), sigma: Draw(0.2, 0.8)}

    def quadrature(median, width, kind):
        law_ = LognormalMixture(weights=(0.4, 0.6), medians=(median, 2 * median),
                                sigmas=(width, 0.0))  # fmt: skip
        nodes = order_argument.think_nodes(law_, points=10)
        if kind == "level":
            return LognormalMixture(weights=(1.0,), medians=(median,), sigmas=(width,)).survival(
                nodes.z_s[:10]
            )[2]
        if kind == "total":
            return nodes.weights.sum()
        if kind == "share":
            return nodes.weights[4]
        return nodes.excess_s[3] / law_.excess(nodes.z_s[3:4])[0]

    names = ("capmodel.reuse.order_argument:think_nodes",)
    yield Claim(
        text="a think node is the midpoint of its share",
        domain=laws,
        implements=names,
        formula=sp.Rational(75, 100) + 0 * m,
        code=lambda *v: quadrature(*v, "level"),
    )
    yield Claim(
        text="nodes of a part share its weight",
        domain=laws,
        implements=names,
        formula=sp.Rational(4, 100) + 0 * m,
        code=lambda *v: quadrature(*v, "share"),
    )
    yield Claim(text="a constant part is one node", domain=laws, implements=names, unit="s",
                formula=2 * m * sp.Rational(6, 10),
                code=lambda a_, b_: order_argument.think_nodes(
                    LognormalMixture(weights=(0.4, 0.6), medians=(a_, 2 * a_), sigmas=(b_, 0.0)),
                    points=10).z_s[10:] @ np.asarray([0.6]))  # fmt: skip
    yield Claim(text="think nodes have weights that sum to one", formula=sp.Integer(1) + 0 * m,
                domain=laws, implements=names, code=lambda *v: quadrature(*v, "total"))  # fmt: skip
    yield Claim(
        text="think nodes carry the law's own excess",
        formula=sp.Integer(1) + 0 * m,
        domain=laws,
        implements=names,
        code=lambda *v: quadrature(*v, "excess"),
    )
