"""With many sessions and exponential think times, misses are the excess over who is thinking."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derivations.claim import Claim, Draw, Limit
from derivations.network.collapse import fluid_miss
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"\frac{Z}{c} e^{-z^*/Z} = \varepsilon \;\Rightarrow\; m = e^{-z^*/Z} = "
        r"\frac{\varepsilon c}{Z} = 1 - \frac{B/Y - \alpha}{1 - \alpha}, \quad "
        r"\varepsilon = 1 - \frac{B}{Y},\; \alpha = 1 - \frac{Z}{c}"
    ),
    assumptions=("Many sessions, so the untouched mass equals its mean; exponential think times.",),
    depends_on=("order_argument",),
)
def proof(step: Steps) -> Iterator[Claim]:
    z, Z, c, B, Y = sp.symbols("z Z c B Y", positive=True)
    e = sp.symbols("epsilon", positive=True)

    # 1. A turn misses once the untouched share of Y falls under the excess share e.
    untouched = Z / c * sp.exp(-z / Z)
    edge = Z * sp.log(Z / (e * c))
    step.solves("1. the think time at which misses begin", untouched - e, z, edge)

    # 2. Longer think times miss: P(z > z*).
    miss = sp.exp(-edge / Z)
    step.equal("2. share of turns that miss", miss, e * c / Z)
    step.rises("3. it rises with the cycle: the feedback in one line", e * c / Z, c)
    step.limit("4. no excess, no misses", e * c / Z, e, 0, 0)

    # 3. In words: excess tokens over the tokens of sessions that think.
    thinking = Y * Z / c
    step.equal("5. excess over thinking", (Y - B) / thinking, (1 - B / Y) * c / Z)

    # 4. The same from a characteristic time with an active share alpha = 1 - Z/c.
    alpha = 1 - Z / c
    hit = (B / Y - alpha) / (1 - alpha)
    step.equal("6. the characteristic-time form", 1 - hit, (1 - B / Y) * c / Z)
    step.equal("7. all capacity, all hits", hit.subs(B, Y), 1)
    step.equal("8. room for the active ones alone hits nothing", hit.subs(B, alpha * Y), 0)

    domain = {e: Draw(0.02, 0.2), c: Draw(20.0, 60.0, "s"), Z: Draw(15.0, 19.0, "s")}
    yield Claim(text="miss fraction of very many sessions", formula=e * c / Z, domain=domain,
                implements=("capmodel.reuse.order_argument:missing_fraction",),
                where=lambda s, t, z: 0.05 < s * t / z < 0.8, code=fluid_miss, rises=(e, c),
                falls=(Z,), tolerance=2e-3, limits=(Limit(e, 0.95, 1, 2e-3),))  # fmt: skip
