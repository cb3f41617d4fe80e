"""Equal blocks: how bytes become blocks, blocks become requests, and requests a reported number."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.memory import pages
from capmodel.memory.pages import LayerGroups, PagePlan
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation

PAGES = "capmodel.memory.pages:"


@derivation(
    statement=(
        r"N = \Bigl\lfloor \frac{A}{b} \Bigr\rfloor, \qquad P = g\Bigl\lceil \frac{M}{\beta} "
        r"\Bigr\rceil + s\,k, \qquad \text{tokens} = \Bigl\lfloor \frac{N}{P} M \Bigr\rfloor, "
        r"\qquad \beta_{state} = a \Bigl\lceil \frac{S}{a\,\kappa} \Bigr\rceil"
    ),
    assumptions=(
        "One pool of equal blocks of b bytes; g growing groups of beta tokens per block, s state "
        "groups of k blocks per request.",
        "M is the longest request; A the bytes of one rank left for the pool.",
    ),
    depends_on=("kv_per_token",),
)
def proof(step: Steps) -> Iterator[Claim]:
    A, b, beta, g, s, k, n = sp.symbols("A b beta g s k n", positive=True, integer=True)
    x = sp.symbols("x", positive=True, integer=True)
    f = sp.symbols("f", positive=True)

    # 1. The last block of a context is filled evenly: it wastes (beta-1)/2 on average.
    i = sp.symbols("i", integer=True)
    waste = sp.summation(beta - i, (i, 1, beta)) / beta
    step.equal("1. mean waste of the last block", waste, (beta - 1) / 2)
    step.equal(
        "2. half a block in the long run", sp.limit(waste / beta, beta, sp.oo), sp.Rational(1, 2)
    )
    # 2. Whole blocks: a request that fills its blocks needs no more.
    step.equal("3. a full context", sp.ceiling(x * beta / beta), x)
    # 3. Bytes per token: g groups, one block of b bytes per beta tokens each.
    per_token = b * g / beta
    step.equal("4. tokens of a growing pool times bytes per token", n * b / per_token, n * beta / g)
    # 4. The nominal number for requests of one length fills the pool, states aside.
    nominal = n / (g * x) * (x * beta)
    step.equal("5. without states the reported tokens are the pool's", nominal, n * beta / g)
    with_states = n / (g * x + s * k) * (x * beta)
    step.positive("6. states make it fewer", nominal - with_states)
    # 5. Kimi K3 on eight ranks with fp8 KV: pages of 1,536 tokens x 576 B x 24 layers, from the
    #    state of 6 MiB... over 128 x 576 B per multiple of the kernel.
    block = 1536 * 576 * 24
    blocks = sp.floor(sp.Rational(4223, 100) * 2**30 / block)
    request = sp.ceiling(sp.Rational(1048576, 1536)) + 3 * 2
    step.equal("7. bytes of a block", sp.Integer(block), 21233664)
    step.equal("8. blocks of 42.23 GiB", blocks, 2135)
    step.equal("9. blocks of the longest request", request, 689)
    step.equal("10. reported tokens", sp.floor(blocks / request * 1048576), 3249215)

    # 6. Claims on drawn plans.
    tokens, bound, add = sp.symbols("T W u", positive=True, integer=True)
    T = Draw(1, 200_000, "tokens", whole=True)
    sizes = {g: Draw(1, 4, whole=True), beta: Draw(16, 2048, "tokens", whole=True), tokens: T}
    names = (PAGES + "LayerGroups.blocks",)
    yield Claim(
        text="blocks of a growing group",
        formula=g * sp.ceiling(tokens / beta),
        domain=sizes,
        implements=names,
        rises=(g,),
        code=lambda a, c, t: LayerGroups(groups=a, block_tokens=c).blocks(t, 1),
    )
    window = {k_: Draw(v.low, v.high, whole=True) for k_, v in sizes.items()} | {
        bound: Draw(128, 4096, whole=True), add: Draw(1, 512, whole=True)}  # fmt: skip
    yield Claim(text="blocks of a window", domain=window, implements=names,
                formula=g * (sp.ceiling(sp.Min(bound - 1 + add, tokens) / beta) + 1),
                code=lambda a, c, t, w, u: LayerGroups(
                    groups=a, block_tokens=c, bound_tokens=w).blocks(t, u))  # fmt: skip
    yield Claim(
        text="blocks of a chunk",
        domain=window,
        implements=names,
        formula=g * sp.ceiling(sp.Min(bound + add, tokens) / beta),
        code=lambda a, c, t, w, u: LayerGroups(
            groups=a, block_tokens=c, bound_tokens=w, chunked=True
        ).blocks(t, u),
    )

    def plan(groups, block, block_bytes, states, per_state, window_tokens=256, **more):
        return PagePlan(
            block_tokens=block, block_bytes=block_bytes,
            growing=(LayerGroups(groups=groups, block_tokens=block),),
            bounded=(LayerGroups(groups=2, block_tokens=block, bound_tokens=window_tokens),),
            state_groups=states, state_blocks=per_state, **more)  # fmt: skip

    pool = {
        g: sizes[g],
        beta: Draw(16, 2048, whole=True),
        b: Draw(1e5, 4e7),
        s: Draw(1, 4, whole=True),
        k: Draw(1, 3, whole=True),
    }
    yield Claim(
        text="groups of a pool",
        formula=g + s + 2,
        domain=pool,
        rises=(g, s),
        implements=(PAGES + "PagePlan.groups",),
        code=lambda *v: plan(*v).groups,
    )
    resident = s * k + 2 * (sp.ceiling(255 / beta) + 1)
    yield Claim(text="blocks of a live request whatever its length", formula=resident, domain=pool,
                implements=(PAGES + "PagePlan.resident_blocks",), rises=(s, k),
                code=lambda *v: plan(*v).resident_blocks)  # fmt: skip
    yield Claim(text="pool bytes of a further token", formula=b * g / beta, domain=pool,
                implements=(PAGES + "PagePlan.bytes_per_token",), rises=(b, g), falls=(beta,),
                code=lambda *v: plan(*v).bytes_per_token)  # fmt: skip
    room = pool | {A: Draw(1e9, 1e11), f: Draw(0.3, 0.9)}
    yield Claim(text="blocks of the available bytes", formula=sp.floor(A * f / b), domain=room,
                implements=(PAGES + "PagePlan.blocks",),
                code=lambda *v: plan(*v[:5], pool_share=v[6]).blocks(v[5]))  # fmt: skip
    slot = sp.symbols("z", positive=True)
    yield Claim(
        text="state slots beside the pool",
        formula=sp.floor(A * (1 - f) / slot),
        domain=room | {slot: Draw(1e6, 1e8)},
        implements=(PAGES + "PagePlan.state_slots",),
        code=lambda *v: plan(*v[:5], pool_share=v[6], state_slot_bytes=v[7]).state_slots(v[5]),
    )
    beside = sp.symbols("r", positive=True)
    request = pool | {
        tokens: Draw(1, 200_000, whole=True),
        add: Draw(1, 4096, whole=True),
        beside: Draw(1e5, 1e9),
    }
    per_request = (g * sp.ceiling(tokens / beta) + s * k + sp.ceiling(beside / b)
                   + 2 * (sp.ceiling(sp.Min(255 + add, tokens) / beta) + 1))  # fmt: skip
    yield Claim(text="blocks that a request reserves", formula=per_request, domain=request,
                implements=(PAGES + "PagePlan.blocks_per_request",),
                code=lambda *v: plan(*v[:5], step_tokens=v[6], request_bytes=v[7])
                .blocks_per_request(v[5]))  # fmt: skip
    live = sp.symbols("C", positive=True, integer=True)
    have = pool | {n: Draw(5000, 50_000, whole=True), live: Draw(1, 40, whole=True)}
    yield Claim(text="tokens left for contexts", implements=(PAGES + "PagePlan.usable_tokens",),
                formula=sp.floor((n - live * (resident + g / 2)) * beta / g), domain=have,
                code=lambda *v: plan(*v[:5]).usable_tokens(v[5], v[6]))  # fmt: skip
    # 7. The longest request still fits, and one token more does not.
    simple = {
        g: sizes[g],
        beta: pool[beta],
        b: pool[b],
        s: pool[s],
        k: pool[k],
        n: Draw(500, 50_000, whole=True),
    }

    def longest(groups, block, size, states, per_state, blocks):
        made = PagePlan(
            block_tokens=block,
            block_bytes=size,
            state_groups=states,
            state_blocks=per_state,
            growing=(LayerGroups(groups=groups, block_tokens=block),),
        )
        return made.longest_request(blocks)

    yield Claim(
        text="longest request that fits",
        formula=beta * sp.floor((n - s * k) / g),
        domain=simple,
        implements=(PAGES + "PagePlan.longest_request",),
        code=longest,
    )
    yield Claim(text="nothing fits where the states alone do not", formula=0 * g, domain=simple,
                implements=(PAGES + "PagePlan.longest_request",),
                code=lambda a, c, e, x_, y, z: longest(a, c, e, 9, 9, 81))  # fmt: skip

    # 8. Plain plans: one block of all layers, tokens divided over context-parallel ranks.
    dcp = sp.symbols("d", positive=True, integer=True)
    plain = {
        b: Draw(100.0, 1e5, "bytes/tokens"),
        beta: Draw(16, 256, "tokens", whole=True),
        dcp: Draw(1, 8, whole=True),
    }
    made = (PAGES + "plain_plan",)
    for text, formula, unit, part in (
        ("block of a plain plan", beta * dcp, "tokens", "block_tokens"),
        ("bytes of a plain block", b * beta, "bytes", "block_bytes"),
        ("bytes per token of a plain plan", b / dcp, "bytes/tokens", "bytes_per_token"),
    ):
        yield Claim(text=text, formula=formula, unit=unit, domain=plain, implements=made,
                    code=lambda y, z, w, p=part: getattr(
                        pages.plain_plan(y, z, dcp=w, step_tokens=1), p))  # fmt: skip

    # 9. Groups whose page is a share of the pool's take that share of a block.
    share = sp.symbols("q", positive=True)
    small = window | {share: Draw(0.2, 0.9)}
    yield Claim(
        text="blocks of a growing group with small pages",
        formula=g * sp.ceiling(tokens / beta) * share,
        domain=small,
        implements=names,
        rises=(g, share),
        code=lambda a, c, t, w, u, q: LayerGroups(groups=a, block_tokens=c, page_share=q).blocks(
            t, u
        ),
    )
    yield Claim(
        text="blocks of a window with small pages",
        formula=g * (sp.ceiling(sp.Min(bound - 1 + add, tokens) / beta) + 1) * share,
        domain=small,
        implements=names,
        code=lambda a, c, t, w, u, q: LayerGroups(
            groups=a, block_tokens=c, bound_tokens=w, page_share=q
        ).blocks(t, u),
    )
    yield Claim(
        text="a window one token under a block boundary",
        formula=2 * g + 0 * beta,
        domain={g: Draw(1, 4, whole=True), beta: Draw(16, 2048, whole=True)},
        implements=names,
        code=lambda a, c: LayerGroups(groups=a, block_tokens=c, bound_tokens=c + 1).blocks(
            10 * c, 0
        ),
    )
    yield Claim(
        text="pool bytes of a further token with small pages",
        formula=b * g * share / beta,
        domain={g: pool[g], beta: pool[beta], b: pool[b], share: small[share]},
        implements=(PAGES + "PagePlan.bytes_per_token",),
        rises=(share,),
        code=lambda a, c, e, q: (
            PagePlan(
                block_tokens=c,
                block_bytes=e,
                growing=(LayerGroups(groups=a, block_tokens=c, page_share=q),),
            ).bytes_per_token
        ),
    )
