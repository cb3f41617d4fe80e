"""What one lane holds inside a window: running, live and idle, and dead tokens, by Little's law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.reuse.lane_law import LaneLaw
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


def lane(
    *,
    gap_s: object,
    context: float = 1.0,
    prefix: float = 1.0,
    service_s: float = 0.0,
    live_token_s: object = 0.0,
    live_square_s: object = 0.0,
    share: object = None,
) -> LaneLaw:
    """Return a lane of equal contexts with gaps at the given nodes."""
    gaps = np.atleast_1d(np.asarray(gap_s, dtype=np.float64))
    weight = np.full(gaps.size, 1.0 / gaps.size) if share is None else np.asarray(share)
    ones = np.ones_like(gaps)
    depths = 16
    return LaneLaw(
        gap_s=gaps, prefix_tokens=prefix * ones[:, None], context_tokens=context * ones[:, None],
        share=weight[:, None], fresh_tokens=np.asarray([context]), fresh_share=np.zeros(1),
        depth_tokens=prefix * (np.arange(depths) + 0.5) / depths,
        depth_weight=np.outer(weight, np.full(depths, prefix / depths)),
        live_token_s=ones * live_token_s, live_square_s=ones * live_square_s,
        untouched_token_s=0 * ones, dead_token_s=0 * ones, context_mean=context,
        context_square=context**2, prefix_mean=prefix, gap_mean_s=float(weight @ gaps),
        context_gap_s=context * float(weight @ gaps), output_mean=1.0, context_output=context,
        square_output=context**2, service_mean_s=service_s, context_service=context * service_s,
        square_service=context**2 * service_s, live_square=context**2, request_mean=context,
    )  # fmt: skip


@derivation(
    statement=(
        r"U_1(x) = \frac{E[w s] + E[l' \min(z', x)] + E[w - l']\,x}{E[s] + E[z]}, \qquad "
        r"V_1(x) = \frac{E[w^2 s] + E[w^2 \min(z', x)]}{E[s] + E[z]} - U_1(x)^2"
    ),
    assumptions=(
        "A lane alternates service s and gap z; of a context w the next turn reuses l'.",
        "The window of x seconds ends at a random moment. Exact for the mean.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    w, length, s, z, x, Z, t, g = sp.symbols("w length s z x Z t g", positive=True)

    # 1. Little: tokens present = (tokens times seconds that each turn contributes) / cycle.
    running, idle, dead = w * s, length * sp.Min(z, x), (w - length) * x
    mean = (running + idle + dead) / (s + Z)
    step.equal("1. a window of no length sees only what runs", mean.subs(x, 0), w * s / (s + Z))

    # 2. Idle tokens count while they were touched at most x ago: int_0^x P(z > t) dt.
    gaps = sp.exp(-t / Z) / Z
    touched = sp.integrate(sp.exp(-t / Z), (t, 0, x))
    limited = sp.integrate(t * gaps, (t, 0, x)) + x * sp.integrate(gaps, (t, x, sp.oo))
    step.equal("2. E[min(z, x)] is the integral of the survival", limited, touched)
    step.limit("3. an endless window holds every idle token", touched, x, sp.oo, Z)

    # 3. All reusable and never pinned, a lane holds at most its context.
    held = w * touched / Z
    step.rises("4. a longer window holds more", held, x)
    step.limit("5. and in the end the whole context", held, x, sp.oo, w)
    step.equal("6. the share held is the chance of a gap under x (exponential)", held / w,
               sp.integrate(gaps, (t, 0, x)))  # fmt: skip

    # 4. Second moment: at any moment the lane holds w or nothing, so E[U^2] = w E[U].
    chance = g / (1 + g)
    step.equal("7. variance of a context held with a chance p",
               w**2 * chance - (w * chance) ** 2, w**2 * chance * (1 - chance))  # fmt: skip

    live, square, service = sp.symbols("A Q s", positive=True)
    lost = sp.symbols("d", positive=True)
    domain = {w: Draw(1e5, 3e5, "tokens"), lost: Draw(1e3, 2e4, "tokens"), x: Draw(5.0, 60.0, "s"),
              service: Draw(1.0, 20.0, "s"), live: Draw(1e5, 1e6, "tokens*s"),
              square: Draw(1e12, 9e12, "tokens^2*s")}  # fmt: skip
    names = ("capmodel.reuse.lane_law:LaneLaw.window_tokens",)

    def window(context, gone, gap, pinned, idle_s, square_s, kind, part):
        law = lane(gap_s=gap, context=context, prefix=context - gone, service_s=pinned,
                   live_token_s=idle_s, live_square_s=square_s)  # fmt: skip
        return law.window_tokens(kind)[part][0]

    pinned = (w * service + live + lost * x) / (x + service)
    free = (live + lost * x) / x
    yield Claim(text="tokens of a lane, service pinned", formula=pinned, unit="tokens",
                domain=domain, implements=names, rises=(w, lost, live),
                code=lambda *v: window(*v, "recorded", 0))  # fmt: skip
    yield Claim(text="tokens of a lane, service instant", formula=free, unit="tokens",
                domain=domain, implements=names, rises=(lost, live),
                code=lambda *v: window(*v, "none", 0))  # fmt: skip
    floor = sp.Rational(5, 100)
    yield Claim(text="variance of a lane, service pinned", unit="tokens^2", domain=domain,
                formula=sp.Max((w**2 * service + square) / (x + service) - pinned**2,
                               floor * pinned**2), implements=names,
                code=lambda *v: window(*v, "recorded", 1))  # fmt: skip
    yield Claim(text="variance of a lane, service instant", unit="tokens^2", domain=domain,
                formula=sp.Max(square / x - free**2, floor * free**2), implements=names,
                code=lambda *v: window(*v, "none", 1))  # fmt: skip
    yield Claim(text="variance of a lane is at least a twentieth of the square", unit="tokens^2",
                formula=floor * free**2, implements=names,
                domain=domain | {square: Draw(1e6, 1e7, "tokens^2*s")},
                code=lambda *v: window(*v, "none", 1))  # fmt: skip
    yield Claim(text="ceiling of a lane", formula=(w - lost) / w, domain=domain, rises=(w,),
                implements=("capmodel.reuse.lane_law:LaneLaw.theoretical_hit_rate",), falls=(lost,),
                code=lambda c, d, *rest: lane(gap_s=rest[0], context=c, prefix=c - d)
                .theoretical_hit_rate)  # fmt: skip
