"""Two straight lines bound a closed queue, and cross where the server saturates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import closed_form, critical
from derivations.claim import Claim, Draw
from derivations.flat_engine import flat_demand
from derivations.proof import Steps, derivation

SECONDS = Draw(0.2, 30.0, "s")


@derivation(
    statement=(
        r"X \le \min\Bigl(\frac{C}{Z+D+s}, \frac{1}{s}\Bigr), \qquad N^* = \frac{Z+D+s}{s}, "
        r"\qquad c = \max\Bigl(Z+D+s,\; C s,\; \frac{C (s+D)}{L}\Bigr)"
    ),
    assumptions=(
        "C sessions think for Z, prefill for s on one server and decode for D in parallel.",
        "At most L requests run at once.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    C, Z, D, s, L = sp.symbols("C Z D s L", positive=True)
    slack = sp.symbols("d", positive=True)

    # 1. A cycle without waiting is Z + D + s; one server completes at most one per s.
    free, cap = C / (Z + D + s), 1 / s
    crossing = (Z + D + s) / s
    step.solves("1. the asymptotes cross at N*", free - cap, C, crossing)
    step.negative("2. below N* the free line binds",
                  (free - cap).subs(C, crossing / (1 + slack)))  # fmt: skip
    step.positive("3. above N* the server binds", (free - cap).subs(C, crossing * (1 + slack)))

    # 2. Little's law on the running requests: X (s + D) <= L, so the cycle is at least C (s+D)/L.
    held = C / (C * (s + D) / L)
    step.equal("4. the running limit is another line", held * (s + D), L)

    # 3. The bound rises with C and falls with every demand; N* falls with s.
    step.rises("5. more sessions, more throughput on the free line", free, C)
    step.falls("6. a longer prefill saturates earlier", crossing, s)
    step.limit("7. a server without work never saturates", crossing, s, 0, sp.oo)

    yield Claim(text="concurrency at saturation", formula=crossing,
                implements=("capmodel.network.critical:saturation_concurrency",),
                domain={Z: SECONDS, D: SECONDS, s: SECONDS}, rises=(Z, D), falls=(s,),
                code=critical.saturation_concurrency)  # fmt: skip

    # 4. On an engine with flat curves the closed level is the largest of the three cycles.
    def solved(sessions, think, decode, prefill, limit):
        demand = flat_demand(think_s=think, step_s=0.01 * decode, decode_steps=100.0, hit_s=prefill)
        return closed_form.solve(demand, np.zeros(1), np.zeros(1), sessions, limit)

    domain = {C: Draw(2, 60, whole=True), Z: SECONDS, D: SECONDS, s: SECONDS, L: Draw(1.5, 80.0)}
    cycle = sp.Max(Z + D + s, C * s, C * (s + D) / L)
    yield Claim(text="cycle of the closed level", formula=cycle, unit="s", domain=domain,
                implements=("capmodel.network.closed_form:solve",),
                code=lambda *v: solved(*v).cycle_s[0])  # fmt: skip
    yield Claim(text="waiting of the closed level", formula=cycle - Z - D - s, unit="s",
                domain=domain, implements=("capmodel.network.closed_form:solve",),
                where=lambda n, z, d, p, m: max(n * p, n * (p + d) / m) > 1.01 * (z + d + p),
                code=lambda *v: solved(*v).wait_s[0])  # fmt: skip
    yield Claim(text="decoding sequences of the closed level", formula=C * D / cycle,
                domain=domain, implements=("capmodel.network.closed_form:solve",),
                code=lambda *v: solved(*v).decoding[0])  # fmt: skip
    yield Claim(text="server utilization of the closed level", formula=C * s / cycle,
                domain=domain, implements=("capmodel.network.closed_form:solve",),
                code=lambda *v: solved(*v).prefill_utilization[0])  # fmt: skip

    # 5. A load from a tier is one more delay of the free cycle.
    load = sp.symbols("l", positive=True)

    def loaded(sessions, think, decode, prefill, seconds):
        demand = flat_demand(think_s=think, step_s=0.01 * decode, decode_steps=100.0, hit_s=prefill)
        return closed_form.solve(demand, np.zeros(1), np.full(1, seconds), sessions)

    yield Claim(
        text="cycle of the closed level with a tier",
        unit="s",
        formula=sp.Max(Z + D + s + load, C * s),
        implements=("capmodel.network.closed_form:solve",),
        domain={C: Draw(2, 12, whole=True), Z: SECONDS, D: SECONDS, s: SECONDS, load: SECONDS},
        code=lambda *v: loaded(*v).cycle_s[0],
    )
