"""Decodes advance once per mixed step while a prefill runs, so the rate is linear in the batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import amva, closed_form
from derivations.claim import Claim, Draw, Limit
from derivations.flat_engine import flat_demand
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"\text{pace} = \frac{1-b}{\tau} + b\frac{S}{P},\; b = \frac{(C-1) U}{C-U},\; U = X P,\; "
        r"n = \frac{X N}{\text{pace}}"
    ),
    assumptions=(
        "A prefill takes P seconds and S steps; a pure decode step takes tau; a decode N steps.",
        "While a session does not prefill, the C-1 others do so independently of its decode.",
        "A mixed step is never faster than a pure one: P/S >= tau.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    X, n, N, tau, S, P, C, U, x = sp.symbols("X n N tau S P C U x", positive=True)

    # 1. A session decodes only outside its own prefills, which take the share U/C of its time.
    met = (U - U / C) / (1 - U / C)
    step.equal("1. prefills met, given that one's own is not running", met, (C - 1) * U / (C - U))
    step.equal("2. alone one meets none", met.subs(C, 1), 0)
    step.equal("3. a saturated server always prefills for others", met.subs(U, 1), 1)
    step.limit("4. among many, the server's utilisation", met, C, sp.oo, U)

    # 2. Little's law on the decodes: n of them, each N steps at the pace. Cleared of fractions:
    b = met.subs(U, X * P)
    pace = (1 - b) / tau + b * S / P
    middle = N * C + n * P / tau + n * (C - 1) * (P / tau - S)
    cleared = sp.expand(sp.simplify((X * N - n * pace) * (X * P - C)))
    step.equal("5. a quadratic in the rate", cleared,
               sp.expand(N * P * X**2 - middle * X + n * C / tau))  # fmt: skip
    inside = middle**2 - 4 * N * P * n * C / tau
    rate = 2 * n * C / tau / (middle + sp.sqrt(inside))
    step.solves("6. its smaller root", N * P * X**2 - middle * X + n * C / tau, X, rate)
    step.equal("7. where mixed steps are as fast as pure ones the root is rational",
               sp.expand(inside.subs(S, P / tau)),
               sp.expand((N * C - n * P / tau) ** 2))  # fmt: skip
    step.equal("8. slower ones only add to the middle term", middle.subs(P, tau * S + x)
               - (N * C + n * (S + x / tau)), n * (C - 1) * x / tau)  # fmt: skip
    step.limit("9. among many sessions", sp.simplify(middle / C), C, sp.oo,
               N + n * (P / tau - S))  # fmt: skip

    # 3. The code.
    slowed = {n: Draw(0.5, 60.0), N: Draw(20.0, 2000.0), tau: Draw(0.005, 0.05, "s"),
              P: Draw(1.0, 9.0, "s"), S: Draw(2.0, 18.0), C: Draw(2, 80, whole=True)}  # fmt: skip

    def code(a_, b_, t_, p_, k_, c_):
        return amva.request_rate(
            np.asarray(a_), b_, np.asarray(t_), np.asarray(p_), np.asarray(k_), c_
        )

    names = ("capmodel.network.amva:request_rate",)
    yield Claim(text="request rate of a decode batch", formula=rate, unit="1/s", domain=slowed,
                implements=names, code=code, rises=(n, S), falls=(N, P),
                where=lambda a_, b_, t_, p_, k_, c_: p_ > 1.05 * k_ * t_)  # fmt: skip
    yield Claim(text="request rate where prefills slow nobody", formula=n / (N * tau), unit="1/s",
                implements=names, domain={key: slowed[key] for key in (n, N, tau)},
                code=lambda a_, b_, t_: code(a_, b_, t_, 0.9 * t_, 1.0, 80))  # fmt: skip
    yield Claim(text="prefills that a decode meets",
                implements=("capmodel.network.amva:met_share",),
                formula=(C - 1) * U / (C - U), domain={U: Draw(0.05, 0.99), C: slowed[C]},
                code=amva.met_share, rises=(U, C),
                limits=(Limit(C, 1e12, U), Limit(C, 1, 0)))  # fmt: skip

    # 4. The solved flow obeys the pace: D ((1-b)/tau + b S/P) = N.
    # One session alone is never slowed: its cycle is the sum of its parts.
    Z = sp.symbols("Z", positive=True)

    def solved(sessions, think, steps, step_s, seconds, prefill_steps):
        demand = flat_demand(think_s=think, step_s=step_s, decode_steps=steps, hit_s=seconds,
                             hit_steps=prefill_steps)  # fmt: skip
        return amva.solve(demand, np.zeros(1), np.zeros(1), sessions)

    def recovered(sessions, think, steps, step_s, seconds, prefill_steps):
        flow = solved(sessions, think, steps, step_s, seconds, prefill_steps)
        busy = amva.met_share(sessions / flow.cycle_s[0] * seconds, sessions)
        return flow.decode_s[0] * ((1 - busy) / step_s + busy * prefill_steps / seconds)

    yield Claim(text="a solved decode takes its steps", formula=N,
                implements=("capmodel.network.amva:solve",
                            "capmodel.network.amva:request_rate"),
                domain={C: Draw(2, 40, whole=True), Z: Draw(5.0, 30.0, "s"), **{
                    key: slowed[key] for key in (N, tau, P, S)}},
                where=lambda c, z, b, t, p, k: p > 1.05 * k * t, code=recovered,
                tolerance=1e-8)  # fmt: skip
    yield Claim(text="a lone session's cycle is the sum of its parts", formula=Z + P + N * tau,
                implements=("capmodel.network.amva:solve",
                            "capmodel.network.closed_form:solve"), unit="s",
                domain={Z: Draw(5.0, 30.0, "s"), **{key: slowed[key] for key in (N, tau, P, S)}},
                where=lambda z, b, t, p, k: p > 1.05 * k * t, tolerance=1e-6,
                code=lambda z, b, t, p, k: 0.5 * (
                    solved(1, z, b, t, p, k).cycle_s[0] + closed_form.solve(
                        flat_demand(think_s=z, step_s=t, decode_steps=b, hit_s=p, hit_steps=k),
                        np.zeros(1), np.zeros(1), 1).cycle_s[0]))  # fmt: skip
