"""One characteristic time: what was touched within it is in cache, and the eviction age says so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.reuse import characteristic_time
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation
from derivations.reuse.occupancy import lane


@derivation(
    statement=(
        r"C\,U_1(T) = B,\; H = \frac{E[l; z \le T]}{E[w]}; \qquad "
        r"B = \Lambda \int_0^T P(rt > t)\,dt,\; H = P(rt \le T); \qquad "
        r"H \le H_{max}\min\Bigl(1, \frac{B}{C w}\Bigr)"
    ),
    assumptions=(
        "Many lanes, so that what they hold is its mean; LRU.",
        "The second form (average eviction time) is the first without service and dead tokens.",
    ),
    depends_on=("occupancy",),
)
def proof(step: Steps) -> Iterator[Claim]:
    C, w, Z, T, t, B = sp.symbols("C w Z T t B", positive=True)

    # 1. No service, all reusable: C U1(T) = C w E[min(z, T)]/E[z], touched at C w/Z per second.
    survival = sp.exp(-t / Z)
    limited = sp.integrate(survival, (t, 0, T))
    touched = C * w / Z
    step.equal("1. occupancy is the eviction-time integral", C * w * limited / Z,
               touched * sp.integrate(survival, (t, 0, T)))  # fmt: skip
    step.equal("2. a cache grows by the misses of its own size",
               sp.diff(touched * limited, T), touched * survival.subs(t, T))  # fmt: skip

    # 2. Exponential gaps: T in closed form, and hits are in proportion to size.
    size = C * w * (1 - sp.exp(-T / Z))
    root = -Z * sp.log(1 - B / (C * w))
    step.solves("3. characteristic time of exponential gaps", size - B, T, root)
    hit = (1 - sp.exp(-T / Z)).subs(T, root)
    step.equal("4. the hit rate is the share that fits: the fluid line", hit, B / (C * w))

    # 3. Equal gaps: either everything is touched within T or nothing: LRU's worst case.
    equal = sp.Piecewise((t, t < Z), (Z, True))
    step.equal("5. a window under the gap holds T/Z of all", (C * w * equal / Z).subs(t, Z / 3),
               C * w / 3)  # fmt: skip
    step.is_true("6. and a gap longer than the window hits nothing",
                 sp.Gt(Z, Z / 3))  # fmt: skip

    # 4. The mean-field form on any lane, and the fluid line for it.
    lost = sp.symbols("d", positive=True)
    top = (w - lost) / w
    step.falls("7. dead tokens lower the ceiling", top, lost)

    sizes = {C: Draw(4, 60, whole=True), w: Draw(1e5, 3e5, "tokens"),
             lost: Draw(1e3, 2e4, "tokens"), B: Draw(1e6, 4e6, "tokens")}  # fmt: skip

    def fluid(lanes, context, gone, room):
        law = lane(gap_s=10.0, context=context, prefix=context - gone)
        return characteristic_time.fluid_hit_rate(law, lanes, room)

    yield Claim(text="fluid hit rate", formula=top * sp.Min(1, B / (C * w)), domain=sizes,
                implements=("capmodel.reuse.characteristic_time:fluid_hit_rate",), code=fluid,
                limits=(Limit(B, 1e9, top),))  # fmt: skip

    # 5. Exponential gaps on a fine grid: the code's characteristic time gives the fluid line.
    def mean_field(lanes, context, room, mean_gap):
        nodes = 4000
        gaps = -mean_gap * np.log1p(-(np.arange(nodes) + 0.5) / nodes)
        limited_mean = mean_gap * -np.expm1(-gaps / mean_gap)
        law = lane(gap_s=gaps, context=context, prefix=context, live_token_s=context * limited_mean)
        return characteristic_time.mean_field_hit_rate(law, lanes, room)

    names = ("capmodel.reuse.characteristic_time:mean_field_hit_rate",)
    yield Claim(
        text="mean-field hit rate of exponential gaps",
        formula=B / (C * w),
        tolerance=2e-3,
        implements=names,
        code=mean_field,
        rises=(B,),
        falls=(C, w),
        where=lambda n, c, b, g: 0.05 < b / (n * c) < 0.95,
        domain={C: sizes[C], w: sizes[w], B: sizes[B], Z: Draw(5.0, 50.0, "s")},
    )

    # 6. Two gaps, one node each: between the nodes found tokens grow in proportion to capacity.
    short, long = sp.symbols("z_1 z_2", positive=True)

    def two_gaps(lanes, context, room, first, second):
        gaps = np.asarray([first, second])
        live = context * np.asarray([first, 0.5 * (first + second)])
        law = lane(gap_s=gaps, context=context, prefix=context, live_token_s=live)
        return characteristic_time.mean_field_hit_rate(law, lanes, room)

    mean = (short + long) / 2
    middle = w * (short + mean) / 2 / mean
    yield Claim(text="mean-field hit rate of two gaps", implements=names, code=two_gaps,
                formula=(1 + (B / C - middle) / (w - middle)) / 2, rises=(B,),
                domain={C: Draw(10, 30, whole=True), w: sizes[w], B: Draw(2e6, 6e6, "tokens"),
                        short: Draw(5.0, 9.0, "s"), long: Draw(20.0, 40.0, "s")},
                where=lambda n, c, b, a, z: c * (a + 0.5 * (a + z)) / (a + z) * 1.001 < b / n
                < 0.999 * c)  # fmt: skip
