"""LRU over a loop that is larger than the cache hits nothing, however little too large it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.reuse import order_argument
from capmodel.reuse.stack_distance import Replay
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation
from derivations.reuse.order_argument import one_node


def replay_of(
    context: float, distance: float, requests: int = 40, prefix: float | None = None
) -> Replay:
    """Return a replay in which every request finds the same stack distance."""
    ones = np.ones(requests)
    reuse = context if prefix is None else prefix
    return Replay(
        input_tokens=context * ones,
        prefix_tokens=reuse * ones,
        recent_tokens=reuse * ones,
        distance_tokens=distance * ones,
        deep_distance_tokens=distance * ones,
        hit_tokens=0 * ones,
        start_s=np.arange(requests) * 2.0,
        finish_s=np.arange(requests) * 2.0,
    )


@derivation(
    statement=(
        r"D = (C-1) w, \quad \text{hit} = \min(w, (B - D)^+) = 0 \iff B \le (C-1) w; "
        r"\qquad z \equiv Z \Rightarrow G(y) = 1 \; (y > 0)"
    ),
    assumptions=(
        "C sessions return in the same order, each with w tokens; LRU by session, tails first.",
    ),
    depends_on=("order_argument",),
)
def proof(step: Steps) -> Iterator[Claim]:
    C, w, B, short = sp.symbols("C w B d", positive=True)
    sp.symbols("n", integer=True, positive=True)

    # 1. Between two turns of mine each of the others comes once: the stack distance is (C-1) w.
    distance = (C - 1) * w
    step.equal("1. the loop without me", C * w - w, distance)
    hit = sp.Max(B - distance, 0)
    step.equal("2. a cache one token short of the others hits nothing",
               hit.subs(B, distance - short), 0)  # fmt: skip
    step.equal("3. a cache for all hits everything", hit.subs(B, C * w), w)
    step.equal("4. it all happens in the last context: from 0 to w as B grows by w",
               hit.subs(B, distance + short), short)  # fmt: skip

    # 2. The share that would fit, B/(C w), is near one all the while: the mnemonic fails here.
    step.limit("5. fluid share at the very edge", distance / (C * w), C, sp.oo, 1)

    # 3. By the order argument: equal think times leave E[(Z - Z)^+] = 0 untouched, so everybody
    #    else is more recent, and what misses is all that exceeds the cache, up to my context.
    Y = C * w
    step.equal("6. missing by the order argument, B just short", sp.Min(w, (Y - (Y - w))), w)

    domain = {C: Draw(3, 40, whole=True), w: Draw(5e4, 3e5, "tokens"), B: Draw(2e5, 1e7, "tokens")}

    def cyclic(sessions, context, room):
        share = order_argument.missing_fraction(
            live_tokens=np.asarray([sessions * context]), cycle_s=np.asarray([50.0]),
            capacity_tokens=room, concurrency=sessions, session_cv=0.0, ended_tokens_per_turn=0.0,
            think=one_node(10.0, 0.0),
        )  # fmt: skip
        return share[0]

    missing = sp.Min(w, sp.Max(C * w - B, 0)) / w
    names = ("capmodel.reuse.order_argument:missing_fraction",)  # fmt: skip
    for low, high, where in ((0.3, 0.95, "too large"), (1.05, 3.0, "small enough")):
        share = sp.symbols("r", positive=True)
        yield Claim(
            text=f"missing share of a loop {where} for the cache",
            formula=missing.subs(B, share * (C - 1) * w)
            if low < 1
            else missing.subs(B, share * C * w),
            implements=names,
            domain={C: domain[C], w: domain[w], share: Draw(low, high)},
            code=lambda n_, c, r, low=low: cyclic(n_, c, r * (n_ - 1 if low < 1 else n_) * c),
        )
    edge = sp.symbols("r", positive=True)
    yield Claim(text="missing share inside the last context", formula=1 - edge, implements=names,
                domain={C: domain[C], w: domain[w], edge: Draw(0.05, 0.95)}, falls=(edge,),
                code=lambda n_, c, r: cyclic(n_, c, (n_ - 1 + r) * c), tolerance=1e-8)  # fmt: skip
    rate = ("capmodel.reuse.stack_distance:Replay.hit_rate",)
    yield Claim(text="exact stack distances of a loop", implements=rate, domain=domain,
                formula=sp.Min(w, sp.Max(B - (C - 1) * w, 0)) / w,
                code=lambda n_, c, b: replay_of(c, (n_ - 1) * c).hit_rate(b),
                where=lambda n_, c, b: abs(b / ((n_ - 1) * c) - 1) > 0.01)  # fmt: skip
    yield Claim(text="exact stack distances inside the last context", implements=rate,
                formula=edge * sp.Rational(1, 1), rises=(edge,),
                domain={C: domain[C], w: domain[w], edge: Draw(0.05, 0.95)},
                code=lambda n_, c, r: replay_of(c, (n_ - 1) * c).hit_rate((n_ - 1 + r) * c),
                tolerance=1e-8)  # fmt: skip
    yield Claim(
        text="ceiling of a replay",
        formula=edge,
        domain={w: domain[w], edge: Draw(0.1, 1.0)},
        implements=("capmodel.reuse.stack_distance:Replay.theoretical_hit_rate",),
        code=lambda c, r: replay_of(c, 1.0, prefix=r * c).theoretical_hit_rate,
    )

    # 4. A shared prefix S is held once and always found; an old part of a prefix hits only when all
    #    of the recent part does, at its own distance; with resume points, in whole steps of k.
    S, old, deep, k = sp.symbols("S o d k", positive=True)
    near, far = sp.symbols("n f", positive=True)

    def mixed(context, recent, older, distance, deeper, shared, room, every=0.0):
        ones = np.ones(7)
        run = Replay(
            input_tokens=context * ones,
            prefix_tokens=(recent + older) * ones,
            recent_tokens=recent * ones,
            distance_tokens=distance * ones,
            deep_distance_tokens=deeper * ones,
            hit_tokens=0 * ones,
            start_s=np.arange(7) * 2.0,
            finish_s=np.arange(7) * 2.0,
            shared_prefix_tokens=shared,
            every_tokens=every,
        )
        return run.hit_rate(room)

    parts = {
        w: Draw(2e5, 3e5, "tokens"),
        near: Draw(5e4, 8e4, "tokens"),
        old: Draw(2e4, 6e4, "tokens"),
        far: Draw(1e5, 2e5, "tokens"),
        deep: Draw(3e5, 4e5, "tokens"),
        S: Draw(1e3, 9e3, "tokens"),
        B: Draw(3.2e5, 4.5e5, "tokens"),
    }
    room = B - S
    found = near + sp.Min(old, sp.Max(room - deep, 0))
    yield Claim(
        text="hit rate with a shared prefix and an older part",
        implements=rate,
        formula=(found + S) / (w + S),
        domain=parts,
        code=mixed,
        falls=(w,),
    )
    tight = parts | {B: Draw(1.2e5, 2.6e5, "tokens")}
    yield Claim(
        text="the older part waits for the recent one",
        implements=rate,
        formula=(sp.Min(near, sp.Max(room - far, 0)) + S) / (w + S),
        domain=tight,
        code=mixed,
    )
    yield Claim(
        text="hits in whole steps of resume points",
        implements=rate,
        formula=(k * sp.floor((room - far) / k) + S) / (w + S),
        domain=parts | {B: Draw(2.05e5, 2.4e5, "tokens"), far: Draw(1.8e5, 1.9e5, "tokens"),
                        k: Draw(1e3, 4e3, "tokens")},
        where=lambda *v: 0 < v[6] - v[5] - v[3] < v[1],
        code=mixed,
    )  # fmt: skip
