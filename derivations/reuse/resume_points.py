"""Resume points every k tokens lose half a step of each prefix, and states take room."""

from __future__ import annotations

import math
from collections.abc import Iterator

import sympy as sp

from capmodel.reuse import granularity
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation
from derivations.reuse.occupancy import lane


@derivation(
    statement=(
        r"E\bigl[k\lfloor l/k \rfloor\bigr] = E[l] - \tfrac{k}{2}, \qquad "
        r"B_{eff} = B\,\frac{E[w]}{E[w] + s}, \qquad H = \frac{H_p w_p + \min(S, B)}{w_p + S}"
    ),
    assumptions=(
        "Prefixes are spread evenly over a step; every retained context holds one state.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    k, length, w, s, B, S, H = sp.symbols("k length w s B S H", positive=True)
    b = sp.symbols("b", integer=True, positive=True)
    i = sp.symbols("i", integer=True)

    # 1. Of a prefix n k + x, x uniform on [0, k), n k is resumed.
    x = sp.symbols("x", positive=True)
    loss = sp.integrate(x / k, (x, 0, k))
    step.equal("1. half a step is lost on average", loss, k / 2)
    # 2. Whole tokens: x = 0 ... b - 1, all alike.
    step.equal("2. in whole tokens half a block less half a token",
               sp.summation(i, (i, 0, b - 1)) / b, (b - 1) / 2)  # fmt: skip
    # 3. B tokens hold B/(w + s) contexts, each of w tokens.
    room = B / (w + s) * w
    step.equal("3. room for tokens", room, B * w / (w + s))
    step.limit("4. states for free cost nothing", room, s, 0, B)
    step.falls("5. larger states leave less", room, s)
    # 4. A prompt of a private part and a shared head that the latest request holds.
    whole = (H * w + S) / (w + S)
    step.limit("6. the floor in a thrash is the shared head", whole, H, 0, S / (w + S))
    step.equal("7. all private hits hit all", whole.subs(H, 1), 1)

    tokens = {
        w: Draw(1e5, 3e5, "tokens"),
        length: Draw(5e4, 9e4, "tokens"),
        k: Draw(64.0, 4e3, "tokens"),
    }
    yield Claim(text="ceiling with resume points", formula=(length - k / 2) / w, domain=tokens,
                implements=("capmodel.reuse.granularity:checkpoint_hit_rate",), rises=(length,),
                falls=(w, k), code=lambda c, p, e: granularity.checkpoint_hit_rate(
                    lane(gap_s=5.0, context=c, prefix=p), e),
                limits=(Limit(k, math.inf, length / w),))  # fmt: skip
    whole_blocks = {w: tokens[w], length: tokens[length], b: Draw(2, 512, whole=True)}
    yield Claim(
        text="hits lost to whole blocks",
        formula=(b - 1) / (2 * w),
        domain=whole_blocks | {w: Draw(1e5, 3e5)},
        rises=(b,),
        falls=(w,),
        implements=("capmodel.reuse.granularity:block_loss",),
        code=lambda c, p, e: granularity.block_loss(lane(gap_s=5.0, context=c, prefix=p), e),
    )
    yield Claim(
        text="room beside states",
        formula=room,
        unit="tokens",
        rises=(B, w),
        falls=(s,),
        implements=("capmodel.reuse.granularity:state_room",),
        domain={B: Draw(1e6, 9e6, "tokens"), w: tokens[w], s: Draw(1e3, 9e4, "tokens")},
        code=lambda c, p, e: granularity.state_room(c, lane(gap_s=5.0, context=p, prefix=p), e),
    )
    yield Claim(text="hit rate with a shared prefix", rises=(H, S), limits=(Limit(H, 1.0, 1),),
                formula=(H * w + S) / (w + S),
                implements=("capmodel.reuse.granularity:with_shared_prefix",),
                domain={H: Draw(0.1, 0.9), w: tokens[w], S: Draw(1e3, 2e4, "tokens")},
                code=lambda h, c, p: granularity.with_shared_prefix(h, c, p, 1e7))  # fmt: skip
    yield Claim(
        text="a cache under the shared prefix holds a part of it",
        rises=(B,),
        formula=(H * w + B) / (w + S),
        implements=("capmodel.reuse.granularity:with_shared_prefix",),
        domain={
            H: Draw(0.1, 0.9),
            w: tokens[w],
            S: Draw(1e4, 2e4, "tokens"),
            B: Draw(1e3, 9e3, "tokens"),
        },
        code=granularity.with_shared_prefix,
    )
