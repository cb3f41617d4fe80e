"""Three old rules of load control in today's words: half-busy, work equals repair, and the knee."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import amva
from derivations.claim import Claim, Draw
from derivations.flat_engine import flat_demand
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"W = \frac{U s}{1 - U} = s \iff U = \tfrac{1}{2}, \qquad "
        r"L = S \iff m (s_m - s_h) X = w X, \qquad \frac{d\ln W}{d\ln U} = \frac{1}{1-U}"
    ),
    assumptions=(
        "Exponential prefills; w is the useful work of a turn, m (s_m - s_h) the repair.",
    ),
    depends_on=("residual_service",),
)
def proof(step: Steps) -> Iterator[Claim]:
    U, s, d, m, w, X = sp.symbols("U s d m w X", positive=True)

    # 1. The half-busy rule: an M/M/1 wait equals one service at U = 1/2.
    wait = U * s / (1 - U)
    step.solves("1. the wait equals one service", wait - s, U, sp.Rational(1, 2))
    # 2. Past it the wait grows out of proportion.
    step.equal("2. elasticity of the wait", sp.diff(wait, U) * U / wait, 1 / (1 - U))
    step.equal("3. two at half busy", (1 / (1 - U)).subs(U, sp.Rational(1, 2)), 2)
    step.limit("4. one when idle", 1 / (1 - U), U, 0, 1)
    # 3. Lifetime w/m equals the repair s_m - s_h: repair is half of all work.
    repair = m * d
    step.solves("5. lifetime equals repair time", w / m - d, m, w / d)
    step.equal("6. repair then has half of the server's work",
               (repair * X / ((repair + w) * X)).subs(m, w / d), sp.Rational(1, 2))  # fmt: skip
    # 4. The knee: least time per fault spent on both, min of (1/m)(...) is where m falls as 1/w.
    step.equal("7. total work per turn relative to useful work", (repair + w) / w, 1 + m * d / w)

    # 5. The code's wait at half load, many sessions: one prefill.
    N = sp.symbols("N", positive=True)

    def half_busy(prefill_s, sessions):
        # Open limit: the free cycle that makes the server half busy, (C-1)/C of it seen.
        seen = (sessions - 1) / sessions
        think = 2 * sessions * prefill_s - prefill_s - prefill_s * seen / (2 - seen) - 1.0
        demand = flat_demand(think_s=think, step_s=0.01, decode_steps=100.0, hit_s=prefill_s)
        return amva.solve(demand, np.zeros(1), np.zeros(1), sessions).wait_s[0]

    share = (N - 1) / N
    yield Claim(text="wait at half load", formula=s * share / (2 - share), rises=(N, s),
                domain={s: Draw(0.5, 5.0), N: Draw(20, 60, whole=True)}, tolerance=1e-6,
                implements=("capmodel.network.amva:solve",), code=half_busy)  # fmt: skip
