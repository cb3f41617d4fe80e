"""An arrival waits for what is left of the prefill it meets, and for the queue before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from capmodel.network import amva
from capmodel.network.service_demand import ServiceDemand
from derivations.claim import Claim, Draw
from derivations.flat_engine import flat_demand
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"W = \frac{\rho\, S_r}{1-\rho}, \quad S_r = \frac{E[P^2]}{2 E[P]}, \quad "
        r"\rho = \frac{C-1}{C} X\,E[P], \quad X\,(Z + W + E[P] + D) = C"
    ),
    assumptions=(
        "First come, first served; an arrival sees the other C-1 sessions (Schweitzer).",
        "Exact for open Poisson arrivals; approximate for the closed network.",
    ),
    depends_on=("decode_pace",),
)
def proof(step: Steps) -> Iterator[Claim]:
    X, C, Z, D, P, v, W, rho, t, m = sp.symbols("X C Z D P v W rho t m", positive=True)
    a, b = sp.symbols("a b", positive=True)

    # 1. A prefill met at a random time is size-biased; what is left of it is uniform on its length.
    exponential = sp.exp(-t / P) / P
    left = sp.integrate(t**2 * exponential, (t, 0, sp.oo)) / (2 * P)
    step.equal("1. residual of an exponential prefill is a whole one", left, P)
    residual = P * (1 + v) / 2
    step.equal("2. residual by the squared variation", residual, (P**2 * (1 + v)) / (2 * P))
    step.equal(
        "3. a mixture of two lengths",
        sp.integrate(t / a, (t, 0, a)) * (1 - m) * a + sp.integrate(t / b, (t, 0, b)) * m * b,
        ((1 - m) * a**2 + m * b**2) / 2,
    )

    # 2. Wait = residual if busy + one prefill for each in the queue, and the queue is X W (Little).
    step.solves("4. wait of a first-come server", rho * residual + rho * W - W, W,
                rho * residual / (1 - rho))  # fmt: skip
    wait = rho * residual / (1 - rho)
    below = sp.symbols("u", positive=True)
    step.rises("5. the wait rises with the load",
               (below / (1 + below) * residual / (1 - below / (1 + below))), below)  # fmt: skip
    step.limit("6. no load, no wait", wait, rho, 0, 0)
    step.equal("7. exponential prefills wait as in M/M/1", wait.subs(v, 1), rho * P / (1 - rho))

    # 3. Closing the loop gives a quadratic in X with one root on [0, 1/share P).
    seen = (C - 1) / C * P
    T = Z + D + P
    balance = X * T * (1 - seen * X) + seen * X**2 * residual - C * (1 - seen * X)
    step.equal("8. the closed balance, cleared of fractions",
               sp.expand((X * (T + wait.subs(rho, seen * X)) - C) * (1 - seen * X)),
               sp.expand(balance))  # fmt: skip
    A, B = seen * (residual - T), T + C * seen
    root = 2 * C / (B + sp.sqrt(B**2 + 4 * A * C))
    step.solves("9. its root", balance, X, root)
    step.equal("10. no one waits alone", sp.simplify(root.subs(C, 1)), 1 / T)

    def solved(sessions, think, decode, prefill, squared):
        demand = flat_demand(think_s=think, step_s=0.01 * decode, decode_steps=100.0,
                             hit_s=prefill, variation=squared)  # fmt: skip
        return amva.solve(demand, np.zeros(1), np.zeros(1), sessions)

    seconds = Draw(0.5, 20.0, "s")
    domain = {C: Draw(1, 40, whole=True), Z: seconds, D: seconds, P: Draw(0.5, 5.0, "s"),
              v: Draw(0.0, 2.0)}  # fmt: skip
    names = ("capmodel.network.amva:solve",)
    busy = sp.lambdify((C, Z, D, P, v), root * P)

    def unsaturated(*args):
        return busy(*args) < 0.995

    yield Claim(text="rate of the fast level", formula=root, unit="1/s", domain=domain,
                implements=names, rises=(C,), falls=(Z, D, P), where=unsaturated,
                code=lambda c, *rest: c / solved(c, *rest).cycle_s[0], tolerance=1e-8)  # fmt: skip
    yield Claim(text="wait of the fast level", unit="s", formula=wait.subs(rho, seen * root),
                domain=domain | {C: Draw(2, 20, whole=True)}, implements=names, where=unsaturated,
                code=lambda *args: solved(*args).wait_s[0], tolerance=1e-7)  # fmt: skip
    yield Claim(
        text="utilization of the fast level",
        formula=root * P,
        domain=domain,
        where=unsaturated,
        implements=names,
        code=lambda *args: solved(*args).prefill_utilization[0],
        tolerance=1e-8,
    )

    # 4. Where the running limit binds, X (P + D) = L, and Little's law gives the wait.
    L, load = sp.symbols("L l", positive=True)

    def limited(sessions, think, decode, prefill, most):
        demand = flat_demand(think_s=think, step_s=0.01 * decode, decode_steps=100.0, hit_s=prefill)
        return amva.solve(demand, np.zeros(1), np.zeros(1), sessions, most)

    bound = {C: Draw(20, 60, whole=True), Z: Draw(1.0, 5.0, "s"), D: Draw(5.0, 20.0, "s"),
             P: Draw(0.02, 0.1, "s"), L: Draw(1.5, 6.0)}  # fmt: skip
    yield Claim(text="cycle at the running limit", formula=C * (P + D) / L, unit="s", domain=bound,
                implements=names, code=lambda *args: limited(*args).cycle_s[0],
                tolerance=1e-8)  # fmt: skip
    yield Claim(text="wait at the running limit", unit="s", domain=bound, implements=names,
                formula=C * (P + D) / L - Z - D - P,
                code=lambda *args: limited(*args).wait_s[0], tolerance=1e-8)  # fmt: skip

    # 5. A load from a tier waits for the link in the same manner: l/(1 - X l (C-1)/C).
    def alone_on_link(sessions, think, decode, seconds):
        demand = flat_demand(think_s=think, step_s=0.01 * decode, decode_steps=100.0, hit_s=0.1)
        flow = amva.solve(demand, np.zeros(1), np.full(1, seconds), sessions)
        share = seconds * (sessions - 1) / flow.cycle_s[0]
        return flow.load_s[0] * (1.0 - share)

    yield Claim(text="a load shares the link", formula=load, unit="s", implements=names,
                domain={C: Draw(2, 20, whole=True), Z: Draw(5.0, 20.0, "s"),
                        D: Draw(5.0, 20.0, "s"), load: Draw(0.1, 2.0, "s")},
                code=alone_on_link, tolerance=1e-8,
                where=lambda c, z, d, s: c * s < 0.9 * (z + d))  # fmt: skip

    # 6. Moments of hits and misses mix linearly in the share of misses.
    def mixed(index):
        def value(share, hit, miss, step_s):
            demand = flat_demand(think_s=1.0, step_s=step_s, decode_steps=1.0, hit_s=hit,
                                 miss_s=miss)  # fmt: skip
            return demand.mixture(np.asarray([3.3]), np.asarray([2.0]), np.asarray([share]))[index]

        return value

    tau = sp.symbols("tau", positive=True)
    blend = {m: Draw(0.05, 0.95), a: Draw(0.1, 1.0, "s"), b: Draw(2.0, 9.0, "s"),
             tau: Draw(0.01, 0.1, "s")}  # fmt: skip
    mix = ("capmodel.network.service_demand:ServiceDemand.mixture",)
    yield Claim(text="decode step of a mixture", formula=tau, unit="s", domain=blend,
                implements=mix, code=lambda *v: mixed(0)(*v)[0])  # fmt: skip
    yield Claim(
        text="mean prefill of a mixture",
        formula=(1 - m) * a + m * b,
        unit="s",
        domain=blend,
        implements=mix,
        code=lambda *v: mixed(1)(*v)[0],
        rises=(m,),
    )
    yield Claim(text="second moment of a mixture", formula=2 * ((1 - m) * a**2 + m * b**2),
                unit="s^2", domain=blend, implements=mix,
                code=lambda *v: mixed(2)(*v)[0])  # fmt: skip
    yield Claim(text="steps of a mixture", formula=((1 - m) * a + m * b) / tau, domain=blend,
                implements=mix, code=lambda *v: mixed(3)(*v)[0])  # fmt: skip

    # 7. Between two batches of the grid every curve is a straight line.
    n = sp.symbols("n", positive=True)

    def between(batch, slope):
        grid = np.asarray([0.0, 1.0, 2.0, 4.0, 8.0, 64.0])
        flat = flat_demand(think_s=1.0, step_s=0.01, decode_steps=1.0, hit_s=1.0)
        line = flat.hit.__class__(seconds=1.0 + slope * grid, seconds_squared=1.0 + grid,
                                  steps=1.0 + grid)  # fmt: skip
        demand = ServiceDemand(batch=grid, decode_step_s=1.0 + slope * grid, hit=line, miss=line,
                               decode_steps=1.0, think_mean_s=1.0)  # fmt: skip
        found = demand.mixture(np.asarray([batch]), np.asarray([batch]), np.zeros(1))
        return found[0][0] + found[1][0]

    yield Claim(text="curves are straight between grid points", formula=2 * (1 + m * n),
                domain={n: Draw(0.3, 60.0), m: Draw(0.1, 2.0)}, implements=mix, rises=(n, m),
                code=between)  # fmt: skip

    # 8. Small losses: a request that loses anything loses the share f, so misses are rarer by f and
    #    their prefill is P_h + f (P_m - P_h): the second moment has a square of f.
    f = sp.symbols("f", positive=True)
    chance, part = m / f, a + f * b
    second = (1 - chance) * a**2 + chance * part**2
    step.equal("11. mean work is that of full losses", (1 - chance) * a + chance * part, a + m * b)
    step.equal("12. second moment of small losses", second, a**2 + m * (f * b**2 + 2 * a * b))
    step.equal("13. as the code mixes it", second,
               a**2 + m * (f * ((a + b) ** 2 - a**2) + (1 - f) * 2 * a * b))  # fmt: skip

    def small(share, size, hit, extra):
        demand = flat_demand(
            think_s=1.0, step_s=0.01, decode_steps=1.0, hit_s=hit, miss_s=hit + extra, variation=0.0
        )
        none = np.asarray([3.3])
        return demand.mixture(none, none, np.asarray([share]), size)[2][0]

    yield Claim(
        text="second moment of many small losses",
        implements=mix,
        unit="s^2",
        formula=second,
        domain={m: Draw(0.05, 0.5), f: Draw(0.5, 1.0), a: blend[a], b: blend[b]},
        code=small,
        rises=(m, f, b),
    )

    # 9. The step that a decode sees is that of the batch it is in: itself and the others.
    slope, steps = sp.symbols("g N", positive=True)

    def seen_steps(sessions, think, count, gain):
        base = flat_demand(think_s=think, step_s=0.01, decode_steps=count, hit_s=0.1, hit_steps=1.0)
        curve = 0.01 * (1.0 + gain * base.batch)
        flow = amva.solve(replace(base, decode_step_s=curve), np.zeros(1), np.zeros(1), sessions)
        batch = 1.0 + flow.decoding[0] * (sessions - 1) / sessions
        pace_s = 0.01 * (1.0 + gain * batch)
        busy = amva.met_share(flow.prefill_utilization[0], sessions)
        return flow.decode_s[0] * ((1.0 - busy) / pace_s + busy / 0.1)

    yield Claim(
        text="a decode takes its steps at the pace of its own batch",
        implements=names,
        formula=steps,
        tolerance=1e-7,
        domain={
            C: Draw(2, 30, whole=True),
            Z: Draw(5.0, 20.0),
            steps: Draw(100.0, 900.0),
            slope: Draw(0.02, 0.2),
        },
        code=seen_steps,
    )
