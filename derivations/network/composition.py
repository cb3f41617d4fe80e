"""Contexts advance by turns, so rates over a wandering composition average harmonically."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import sympy as sp

from capmodel.network import composition as grid
from capmodel.network import operating_point
from capmodel.network.fixed_points import Branch
from derivations.claim import Claim, Draw
from derivations.network.fixed_points import still_flow_of
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"X = \frac{C}{E_Y[c(Y)]}, \quad "
        r"X_{arith} - X_{harm} = \frac{p(1-p)(X_u - X_d)^2}{(1-p)X_d + pX_u} \ge 0, \quad "
        r"Y \sim \Gamma(C\mu, C\sigma^2)"
    ),
    assumptions=(
        "Each turn advances one context, so the law of Y is stationary in turns, not in seconds.",
        "Contexts are independent; their sum is taken gamma, exact if they are exponential.",
    ),
    depends_on=("gamma_law",),
)
def proof(step: Steps) -> Iterator[Claim]:
    p, up, down, C, c1, c2, n = sp.symbols("p X_u X_d C c_1 c_2 n", positive=True)
    q = sp.symbols("q", positive=True)

    # 1. Of N turns a share p has the cycle c1, the rest c2: they take N (p c1 + (1-p) c2)/C.
    turns = n / (n * (p * c1 + (1 - p) * c2) / C)
    step.equal("1. turns over time", turns, C / (p * c1 + (1 - p) * c2))

    # 2. In rates that is the harmonic mean, below the arithmetic one.
    harmonic = 1 / (p / up + (1 - p) / down)
    arithmetic = p * up + (1 - p) * down
    # A turn-share p at X_u and 1-p at X_d:
    step.equal("2. cycles are reciprocal rates", turns.subs({c1: C / up, c2: C / down}), harmonic)
    gap = p * (1 - p) * (up - down) ** 2 / ((1 - p) * up + p * down)
    step.equal("3. what arithmetic averaging overstates", arithmetic - harmonic, gap)
    apart = sp.symbols("d", positive=True)
    share = q / (1 + q)
    step.positive("4. it is positive unless the rates are equal",
                  gap.subs({up: down + apart, p: share}))  # fmt: skip
    step.limit("5. collapse rules: a vanishing rate takes the mean down with it",
               harmonic, down, 0, 0)  # fmt: skip
    step.limit("6. while the arithmetic mean hardly notices", arithmetic, down, 0, p * up)

    # 3. The moments of a sum of C independent contexts; its variation shrinks as 1/sqrt(C).
    mu, sigma, cv, y, s = sp.symbols("mu sigma k y s", positive=True)
    step.equal("7. variation of the sum", sp.sqrt(C * sigma**2) / (C * mu), sigma / mu / sp.sqrt(C))
    density = s**s * y ** (s - 1) * sp.exp(-s * y) / sp.gamma(s)
    step.equal("8. exponential contexts add up to exactly this law (two of them)",
               sp.integrate(sp.exp(-n) * sp.exp(-(2 * y - n)) * 2, (n, 0, 2 * y)),
               sp.simplify(density.subs(s, 2)))  # fmt: skip

    # 4. The code's grid carries the gamma density: weights at two nodes stand in its ratio.
    names = ("capmodel.network.composition:gamma_composition",)
    sizes = {C: Draw(2, 40, whole=True), mu: Draw(1e4, 4e5, "tokens"), cv: Draw(0.4, 1.2)}

    def moments(sessions, mean, variation, order):
        found = grid.gamma_composition(sessions, mean, variation, points=4001)
        scaled = found.live_tokens / (sessions * mean)
        return float(found.weights @ scaled**order)

    yield Claim(text="mean of the composition", formula=C * mu, unit="tokens", domain=sizes,
                implements=names, tolerance=3e-3, rises=(C, mu),
                where=lambda c, m, k: c > 8 * k * k,
                code=lambda c, m, k: c * m * moments(c, m, k, 1))  # fmt: skip
    yield Claim(
        text="variation of the composition",
        formula=cv**2 / C,
        domain=sizes,
        implements=names,
        tolerance=0.03,
        where=lambda c, m, k: c > 8 * k * k,
        code=lambda c, m, k: moments(c, m, k, 2) / moments(c, m, k, 1) ** 2 - 1,
    )

    def log_ratio(sessions, mean, variation):
        found = grid.gamma_composition(sessions, mean, variation)
        first, last = found.live_tokens[7], found.live_tokens[31]
        shape = sessions / variation**2
        rate = shape / (sessions * mean)
        drop = (shape - 1) * np.log(last / first) - rate * (last - first)
        return np.log(found.weights[31] / found.weights[7]) / drop

    yield Claim(text="weights follow the gamma density", formula=sp.Integer(1) + 0 * C,
                domain=sizes, implements=names, code=log_ratio)  # fmt: skip

    def edge(index):
        def value(sessions, mean, variation):
            return grid.gamma_composition(sessions, mean, variation).live_tokens[index]

        return value

    # 5. The grid reaches 3.8 deviations below and five and more above, where the tail is thin.
    w = cv / sp.sqrt(C)
    yield Claim(text="lower end of the grid", unit="tokens", domain=sizes, implements=names,
                formula=C * mu * sp.Max(1 - sp.Rational(38, 10) * w,
                                        sp.Rational(2, 100) * sp.Min(1 / w**2, 1)),
                code=edge(0))  # fmt: skip
    yield Claim(
        text="upper end of the grid",
        unit="tokens",
        domain=sizes,
        implements=names,
        formula=C * mu * (1 + sp.Rational(5, 4) * w * (4 + 2 * w)),
        code=edge(-1),
    )
    yield Claim(text="equal contexts have one composition", formula=C * mu, unit="tokens",
                domain={C: sizes[C], mu: sizes[mu]}, implements=names,
                code=lambda c, m: grid.gamma_composition(c, m, 0.0).live_tokens @
                grid.gamma_composition(c, m, 0.0).weights)  # fmt: skip

    # 6. The averages of the solved network: harmonic rate, linear hits.
    m1, t1, shared, reach, request, ratio = sp.symbols("m_1 t_1 S v w r", positive=True)

    def settled(share, first, second, sessions, miss, tier, prefix, tokens, reusable, longer):
        weights = np.asarray([share, 1.0 - share])
        branch = Branch(flow=still_flow_of(np.asarray([first, second])),
                        miss=np.asarray([miss, miss / 2]),
                        tier_miss=np.asarray([miss * tier, miss * tier / 2]))  # fmt: skip
        load = SimpleNamespace(shared_prefix_tokens=prefix, request_tokens_mean=tokens,
                               theoretical_hit_rate=0.95)  # fmt: skip
        average = operating_point._averages(
            None, SimpleNamespace(weights=weights), np.asarray([1.0, longer]), load, sessions,
            reusable)  # fmt: skip
        return average(branch, True)

    everything = {p: Draw(0.1, 0.9), c1: Draw(5.0, 50.0, "s"), c2: Draw(60.0, 900.0, "s"),
                  C: Draw(2, 40, whole=True), m1: Draw(0.1, 1.0), t1: Draw(0.1, 0.9),
                  shared: Draw(1e3, 9e3, "tokens"), request: Draw(1e5, 2e5, "tokens"),
                  reach: Draw(2e4, 9e4, "tokens"), ratio: Draw(1.0, 2.0)}  # fmt: skip
    inside = ("capmodel.network.operating_point:_averages",)
    # Tokens are counted, and the contexts of a heavy composition have more of them.
    token_share = p / (p + (1 - p) * ratio)
    kept = m1 * (token_share + (1 - token_share) / 2)
    step.equal("9. token weights", token_share + (1 - p) * ratio / (p + (1 - p) * ratio), 1)
    yield Claim(text="long-run rate over compositions", formula=C / (p * c1 + (1 - p) * c2),
                unit="1/s", domain=everything, implements=inside, rises=(p, C), falls=(c1, c2),
                code=lambda *v: settled(*v).requests_per_s)  # fmt: skip
    yield Claim(text="hit rate in HBM over compositions",
                formula=shared / request + reach / request * (1 - kept),
                domain=everything, implements=inside, falls=(m1, p), rises=(shared, reach),
                code=lambda *v: settled(*v).hit_rate_hbm)  # fmt: skip
    yield Claim(text="hit rate in the tier over compositions",
                formula=reach / request * kept * (1 - t1), domain=everything, implements=inside,
                falls=(t1,), rises=(m1,), code=lambda *v: settled(*v).hit_rate_offload)  # fmt: skip
    yield Claim(text="hits of all tiers add up",
                formula=shared / request + reach / request * (1 - kept * t1), domain=everything,
                implements=("capmodel.network.operating_point:Settled.hit_rate",),
                code=lambda *v: settled(*v).hit_rate)  # fmt: skip
