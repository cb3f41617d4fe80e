"""An inclusive tier reaches as far as the larger one, an exclusive tier as far as the sum."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.reuse import tiers
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"H_{incl} = H(\max(B_1, B_2)), \qquad H_{excl} = H(B_1 + B_2), \qquad "
        r"H_{HBM} = H(B_1)"
    ),
    assumptions=(
        "LRU in both tiers over the same requests; H(B) is the hit rate at a capacity B.",
        "Inclusive: written through, every copy in HBM is also in the tier. Exclusive: the tier "
        "takes what HBM evicts.",
    ),
    depends_on=("characteristic_time",),
)
def proof(step: Steps) -> Iterator[Claim]:
    B1, B2, D = sp.symbols("B_1 B_2 D", positive=True)
    more, w = sp.symbols("d W", positive=True)

    # 1. A token at stack distance D hits a cache of B iff D < B: inclusion.
    def hit(room):
        return sp.Heaviside(room - D, 1)

    step.equal("1. a larger cache has all hits of a smaller one",
               hit(D + B1) * hit(D + B1 + more), hit(D + B1))  # fmt: skip

    # 2. Write-through: the tier is the same stack cut at B2, so a hit in either is D < max.
    either = 1 - (1 - hit(B1)) * (1 - hit(B2))
    for name, inside in (("first", {B1: D + more, B2: D}), ("second", {B1: D - more, B2: D + more}),
                         ("neither", {B1: D - more, B2: D - 2 * more})):  # fmt: skip
        step.equal(f"2. a hit in either tier, distance under {name}",
                   either.subs(inside, simultaneous=True),
                   hit(sp.Max(B1, B2)).subs(inside, simultaneous=True))  # fmt: skip

    # 3. Victim tier: the most recent B1 are in HBM, the next B2 in the tier: one stack of B1 + B2.
    depth = sp.symbols("y", positive=True)
    fluid = sp.integrate(1 / w, (depth, 0, B1)) + sp.integrate(1 / w, (depth, B1, B1 + B2))
    step.equal("3. the tiers of a victim cache follow each other", fluid, (B1 + B2) / w)
    for name, larger in (("tier", {B2: B1 + more}), ("HBM", {B1: B2 + more})):
        step.equal(
            f"4. with the larger {name}, inclusion costs the smaller one",
            (B1 + B2 - sp.Max(B1, B2)).subs(larger),
            sp.Min(B1, B2).subs(larger),
        )

    room = {B1: Draw(1e6, 4e6, "tokens"), B2: Draw(5e5, 2e7, "tokens")}
    reach = ("capmodel.reuse.tiers:reachable_tokens",)
    yield Claim(text="reach of an inclusive tier", formula=sp.Max(B1, B2), unit="tokens",
                domain=room, implements=reach,
                code=lambda a, b: tiers.reachable_tokens(a, b, "inclusive"))  # fmt: skip
    yield Claim(text="reach of an exclusive tier", formula=B1 + B2, unit="tokens", domain=room,
                implements=reach, rises=(B1, B2),
                code=lambda a, b: tiers.reachable_tokens(a, b, "exclusive"))  # fmt: skip

    # 4. Any rising H: here the fluid law of a working set W.
    H = sp.Lambda(depth, depth / (depth + w))
    sets = room | {w: Draw(1e6, 1e7, "tokens")}

    def split(first, second, working, policy):
        return tiers.tiered_hit_rate(lambda b: b / (b + working), first, second, policy)

    names = ("capmodel.reuse.tiers:tiered_hit_rate",)
    for policy, total in (("inclusive", sp.Max(B1, B2)), ("exclusive", B1 + B2)):
        yield Claim(
            text=f"hits in HBM before an {policy} tier",
            formula=H(B1),
            domain=sets,
            implements=names,
            code=lambda *v, p=policy: split(*v, p).hbm,
            rises=(B1,),
        )
        yield Claim(text=f"hits in an {policy} tier", formula=H(total) - H(B1), domain=sets,
                    implements=names, code=lambda *v, p=policy: split(*v, p).offload)  # fmt: skip
        yield Claim(text=f"hits with an {policy} tier", formula=H(total), domain=sets, falls=(w,),
                    implements=("capmodel.reuse.tiers:TieredHitRate.overall",),
                    code=lambda *v, p=policy: split(*v, p).overall)  # fmt: skip
