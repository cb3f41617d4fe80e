"""A rising map has a least and a greatest fixed point, and its slope decides which are stable."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import fixed_points as solver
from derivations.claim import Claim, Draw
from derivations.flat_engine import still_flow
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"c = T(c;\theta),\; T' \ge 0 \;\Rightarrow\; "
        r"\frac{dc}{d\theta} = \frac{T_\theta}{1 - T_c}, \quad "
        r"\text{stable} \iff T_c < 1"
    ),
    assumptions=(
        "T is nondecreasing and maps the interval of cycle times into itself.",
        "One iteration is one cycle: deviations shrink by T_c per cycle.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    theta, c, c0, k, low, high = sp.symbols("theta c c_0 k l h", positive=True)
    root = sp.Function("r")(theta)
    n = sp.symbols("n", positive=True, integer=True)

    # 1. Implicit differentiation of r(theta) = T(r(theta), theta).
    a, b = sp.symbols("a b", positive=True)
    total = sp.diff(root, theta) - (a * sp.diff(root, theta) + b)
    step.solves("1. sensitivity of a fixed point", total, sp.diff(root, theta), b / (1 - a))

    # 2. A straight map: one fixed point, reached geometrically.
    straight = c0 + k * c
    fixed = c0 / (1 - k)
    step.solves("2. fixed point of a straight map", straight - c, c, fixed)
    step.equal("3. one cycle shrinks the distance by k", straight - fixed, k * (c - fixed))
    step.equal(
        "4. after n cycles by k^n",
        sp.simplify(c0 * (1 - k**n) / (1 - k) + k**n * c - fixed),
        k**n * (c - fixed),
    )
    step.equal("5. sensitivity to the free cycle, by the rule", sp.diff(fixed, c0), 1 / (1 - k))

    # 3. A steep ramp between two floors has three fixed points; the middle one repels.
    steep = sp.symbols("s", positive=True)
    middle = (low + high) / 2
    ramp = middle + (1 + steep) * (c - middle)
    step.solves("6. the ramp's own fixed point", ramp - c, c, middle)
    step.equal("7. its slope exceeds one", sp.diff(ramp, c) - 1, steep)
    step.positive("8. just above it the map runs away upwards",
                  (ramp - c).subs(c, middle + steep))  # fmt: skip
    step.negative("9. just below it, downwards", (ramp - c).subs(c, middle - steep))

    # 4. The elasticity decides uniqueness: with d ln T/d ln c < 1, ln T - ln c falls, one root.
    q = sp.symbols("q", positive=True)
    power = c0 * c ** (1 / (1 + q))
    step.negative("10. elasticity below one: the gap falls throughout",
                  sp.diff(sp.log(power) - sp.log(c), c))  # fmt: skip

    def roots(first, slope):
        return solver.find_all(
            lambda index, cycle: (still_flow_of(first + slope * cycle), cycle * 0, cycle * 0),
            np.asarray([first]), np.asarray([4.0 * first / (1 - slope)]),
        )  # fmt: skip

    seconds = {c0: Draw(1.0, 100.0, "s"), k: Draw(0.05, 0.9)}
    names = ("capmodel.network.fixed_points:find_all",)
    for branch in ("warm", "cold", "unstable"):
        yield Claim(text=f"{branch} root of a straight map", formula=fixed, unit="s",
                    implements=names, domain=seconds, rises=(c0, k), tolerance=1e-8,
                    code=lambda *v, b=branch: getattr(roots(*v), b).flow.cycle_s[0])  # fmt: skip
    yield Claim(text="a straight map has one root", formula=sp.Integer(0) * c0, domain=seconds,
                implements=names, code=lambda *v: roots(*v).several[0])  # fmt: skip

    def three(floor, ratio, slope):
        top = floor * ratio
        centre = 0.5 * (floor + top)

        def cycle_map(index, cycle):
            mapped = np.clip(centre + slope * (cycle - centre), floor, top)
            return still_flow_of(mapped), cycle * 0, cycle * 0

        return solver.find_all(cycle_map, np.asarray([floor * 0.5]), np.asarray([top * 2.0]))

    r = sp.symbols("r", positive=True)
    shape = {low: Draw(1.0, 50.0, "s"), r: Draw(6.0, 9.0), k: Draw(4.0, 6.0)}
    for branch, value in (("warm", low), ("cold", low * r), ("unstable", low * (1 + r) / 2)):
        yield Claim(text=f"{branch} root of a steep ramp", formula=value, unit="s", domain=shape,
                    implements=names, tolerance=1e-4,
                    code=lambda *v, b=branch: getattr(three(*v), b).flow.cycle_s[0])  # fmt: skip
    yield Claim(text="a steep ramp has several roots", formula=sp.Integer(1) + 0 * low,
                domain=shape, implements=names, code=lambda *v: three(*v).several[0])  # fmt: skip


def still_flow_of(cycle: np.ndarray) -> solver.Flow:
    """Return a flow of these cycle times; its other fields carry nothing."""
    one = still_flow(1.0)
    return solver.Flow(**{name: getattr(one, name)[0] + 0 * cycle if name != "cycle_s" else cycle
                          for name in one.__dataclass_fields__})  # fmt: skip
