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
        r"\text{pace} = \frac{1-U}{\tau} + U\frac{S}{P},\; U = f X P,\; "
        r"n = \frac{X N}{\text{pace}} "
        r"\;\Rightarrow\; X = \frac{n/\tau}{N + f n\,(P/\tau - S)}"
    ),
    assumptions=(
        "A prefill takes P seconds and S steps; a pure decode step takes tau; a decode N steps.",
        "A decode meets the share f = (C-1)/C of the prefills: never its own.",
        "A mixed step is never faster than a pure one: P/S >= tau.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    X, n, N, tau, S, P, f, x = sp.symbols("X n N tau S P f x", positive=True)

    # 1. Little's law on the decodes: n of them, each N steps at the pace.
    pace = (1 - f * X * P) / tau + f * X * P * S / P
    closed = (n / tau) / (N + f * n * (P / tau - S))
    step.solves("1. the rate that keeps n decoding", n * pace - X * N, X, closed)

    # 2. It rises with the batch, so the batch that a rate needs is unique.
    slow = closed.subs(P, tau * S + x)
    step.rises("2. more decodes, more requests", slow, n)
    step.falls("3. slower mixed steps lower the rate", slow, x)
    step.limit("4. prefills that slow nobody leave N tau per request",
               slow, x, 0, n / (N * tau))  # fmt: skip
    step.limit("5. a full batch is bound by the prefills alone",
               closed, n, sp.oo, 1 / (f * (P - S * tau)))  # fmt: skip

    # 3. The decode of one request lasts n/X, longer than alone by f n (P - S tau).
    step.equal("6. duration of a decode", n / closed, N * tau + f * n * (P - S * tau))

    step.equal("7. alone, a session decodes at its own pace", closed.subs(f, 0), n / (N * tau))

    slowed = {n: Draw(0.5, 60.0), N: Draw(20.0, 2000.0), tau: Draw(0.005, 0.05, "s"),
              P: Draw(1.0, 9.0, "s"), S: Draw(2.0, 18.0), f: Draw(0.2, 1.0)}  # fmt: skip
    yield Claim(text="request rate of a decode batch", formula=closed, unit="1/s", domain=slowed,
                implements=("capmodel.network.amva:request_rate",),
                code=lambda a, b, t, p, k, g: amva.request_rate(
                    np.asarray(a), b, np.asarray(t), np.asarray(p), np.asarray(k), g),
                where=lambda a, b, t, p, k, g: p > 1.05 * k * t, rises=(n, S), falls=(N, P, f),
                limits=(Limit(n, 1e12, 1 / (f * (P - S * tau))),))  # fmt: skip
    yield Claim(
        text="request rate where prefills slow nobody",
        formula=n / (N * tau),
        unit="1/s",
        implements=("capmodel.network.amva:request_rate",),
        domain={n: slowed[n], N: slowed[N], tau: slowed[tau]},
        code=lambda a, b, t: amva.request_rate(
            np.asarray(a), b, np.asarray(t), np.asarray(0.9 * t), np.asarray(1.0)
        ),
    )

    # 4. The solved flow obeys the pace: D ((1-U)/tau + U S/P) = N.
    # One session alone is never slowed: its cycle is the sum of its parts.
    Z, C = sp.symbols("Z C", positive=True)

    def solved(sessions, think, steps, step_s, seconds, prefill_steps):
        demand = flat_demand(think_s=think, step_s=step_s, decode_steps=steps, hit_s=seconds,
                             hit_steps=prefill_steps)  # fmt: skip
        return amva.solve(demand, np.zeros(1), np.zeros(1), sessions)

    def recovered(sessions, think, steps, step_s, seconds, prefill_steps):
        flow = solved(sessions, think, steps, step_s, seconds, prefill_steps)
        busy = (sessions - 1) / flow.cycle_s[0] * seconds
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
