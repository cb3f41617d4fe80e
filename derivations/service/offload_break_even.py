"""Loading a token beats computing it where its bytes take the link less time than its FLOPs."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.service import transfer
from capmodel.service.transfer import Transfer
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation
from derivations.service.roofline import dense_law


def link(
    kv: float,
    state: float,
    load: float,
    store: float = 1e9,
    overlap: float = 0.0,
    first: float = 0.0,
) -> Transfer:
    """Return a transfer of these bytes and rates."""
    return Transfer(bytes_per_token=kv, state_bytes=state, load_bytes_per_s=load,
                    store_bytes_per_s=store, load_interval_bytes_per_s=(load, load),
                    overlap=overlap, first_layer=first, kind="given", source="drawn")  # fmt: skip


@derivation(
    statement=(
        r"\frac{\kappa}{B_l} < \frac{2P + a p}{F} \iff p > p^* = \frac{\kappa F/B_l - 2P}{a}, "
        r"\qquad n^* = 2p^*, \qquad t_{split} = n\frac{r_l r_c}{r_l + r_c}"
    ),
    assumptions=(
        "One token at position p; kappa bytes on the link of rate B_l; F FLOP/s of prefill.",
        "Nothing overlaps, except in the split, where both sides work at once.",
    ),
    depends_on=("chunk_additivity",),
)
def proof(step: Steps) -> Iterator[Claim]:
    kappa, Bl, F, P, a, p, n = sp.symbols("kappa B_l F P a p n", positive=True)
    rl, rc, x, f, o = sp.symbols("r_l r_c x f o", positive=True)
    d = sp.symbols("d", positive=True)

    # 1. Per token: computing gets dearer with its position, loading does not.
    load, compute = kappa / Bl, (2 * P + a * p) / F
    edge = (kappa * F / Bl - 2 * P) / a
    step.solves("1. position where both are equal", compute - load, p, edge)
    step.positive(
        "2. behind it loading wins",
        (compute - load).subs(kappa, (2 * P + a * p) * Bl / F).subs(p, p) + a * d / F,
    )
    # 2. A whole context from zero: the mean position is half its length.
    whole = (2 * P * n + a * n**2 / 2) / F
    step.solves("3. context where both are equal", whole - n * load, n, 2 * edge)
    step.equal("4. twice the token's position", 2 * edge / edge, 2)
    # 3. The ratio of cached to new tokens above which a request is bound by the link.
    step.equal("5. critical ratio", (compute / load), (2 * P + a * p) * Bl / (F * kappa))

    # 4. Load the head, compute the tail, finish together.
    share = rc / (rl + rc)
    step.solves("6. loaded share", x * rl - (1 - x) * rc, x, share)
    time = n * rl * rc / (rl + rc)
    step.equal("7. time of the split", n * share * rl, time)
    step.positive("8. never slower than loading all", n * rl - time)
    step.positive("9. nor than computing all", n * rc - time)

    # 5. Layer by layer, a load L hides under a prefill P up to its first layer's share f.
    L, T = sp.symbols("L T", positive=True)
    seen = T + L - o * sp.Min(T, (1 - f) * L)
    step.equal("10. no overlap: one after the other", seen.subs(o, 0), T + L)
    step.equal("11. full overlap of a long prefill leaves the first layer",
               seen.subs({o: 1, T: L + d}), L + d + f * L)  # fmt: skip

    # 6. Claims.
    state = sp.symbols("s", positive=True)
    sp.symbols("B_s", positive=True)
    wire = {n: Draw(1e3, 3e5, "tokens"), kappa: Draw(1e3, 1e5, "bytes/tokens"),
            state: Draw(1e6, 1e9, "bytes"), Bl: Draw(5e9, 6e10, "bytes/s")}  # fmt: skip
    where = "capmodel.service.transfer:"
    yield Claim(
        text="seconds to load",
        formula=(n * kappa + state) / Bl,
        unit="s",
        domain=wire,
        implements=(where + "Transfer.load_s",),
        rises=(n, kappa, state),
        falls=(Bl,),
        code=lambda t, k, s, b: link(k, s, b).load_s(t),
        limits=(Limit(n, 0.0, 0),),
    )
    yield Claim(text="seconds to store", formula=(n * kappa + state) / Bl, unit="s", domain=wire,
                implements=(where + "Transfer.store_s",), limits=(Limit(n, 0.0, 0),),
                code=lambda t, k, s, b: link(k, s, 1e9, b).store_s(t))  # fmt: skip
    yield Claim(text="seconds to load one token", formula=kappa / Bl, unit="s/tokens",
                domain={kappa: wire[kappa], Bl: wire[Bl]}, falls=(Bl,),
                implements=(where + "Transfer.load_s_per_token",),
                code=lambda k, b: link(k, 0.0, b).load_s_per_token)  # fmt: skip
    yield Claim(text="seconds to store one token", formula=kappa / Bl, unit="s/tokens",
                domain={kappa: wire[kappa], Bl: wire[Bl]}, rises=(kappa,),
                implements=(where + "Transfer.store_s_per_token",),
                code=lambda k, b: link(k, 0.0, 1e9, b).store_s_per_token)  # fmt: skip

    # 7. The code's break-even context is n*, with chunks of one size and no overhead.
    model = {P: Draw(3e10, 1e11), F: Draw(1e15, 4e15), a: Draw(1e6, 5e6), kappa: Draw(1e4, 3e5),
             Bl: Draw(5e8, 5e9)}  # fmt: skip
    yield Claim(text="shortest context that is quicker to load", formula=2 * edge, domain=model,
                implements=(where + "break_even_tokens",), rises=(kappa, F), falls=(P, Bl),
                where=lambda q, g, k, b, r: 50 < 2 * (b * g / r - 2 * q) / k < 9e5,
                code=lambda q, g, k, b, r: transfer.break_even_tokens(
                    dense_law(q, 0.0, g, 1e30, k, 0.0, 0.0), link(b, 0.0, r)) or -1.0)  # fmt: skip
    slow = model | {kappa: Draw(1e6, 2e6), Bl: Draw(1e6, 2e6)}
    yield Claim(
        text="no context is quicker to load over a slow link",
        formula=sp.Integer(-1) + 0 * P,
        domain=slow,
        implements=(where + "break_even_tokens",),
        code=lambda q, g, k, b, r: (
            transfer.break_even_tokens(dense_law(q, 0.0, g, 1e30, k, 0.0, 0.0), link(b, 0.0, r))
            or -1.0
        ),
    )
    quick = model | {kappa: Draw(10.0, 20.0), Bl: Draw(1e10, 2e10)}
    yield Claim(
        text="every context is quicker to load over a fast link",
        formula=sp.Integer(1) + 0 * P,
        domain=quick,
        implements=(where + "break_even_tokens",),
        code=lambda q, g, k, b, r: (
            transfer.break_even_tokens(dense_law(q, 0.0, g, 1e30, k, 0.0, 0.0), link(b, 0.0, r))
            or -1.0
        ),
    )
    m = sp.symbols("m", positive=True)
    resumed = model | {state: Draw(1e6, 1e8), n: Draw(1e4, 1e5), m: Draw(100.0, 9e3),
                       o: Draw(0.1, 1.0), f: Draw(0.01, 0.2)}  # fmt: skip
    prefill = (2 * P * m + a * m * (n + m / 2)) / F
    loading = (n * kappa + state) / Bl
    yield Claim(
        text="first token of a resumed prompt",
        implements=(where + "resumed_prefill_s",),
        formula=prefill + loading - o * sp.Min(prefill, (1 - f) * loading),
        domain=resumed,
        code=lambda q, g, k, b, r, s, t, u, v, w: transfer.resumed_prefill_s(
            dense_law(q, 0.0, g, 1e30, k, 0.0, 0.0), link(b, s, r, 1e9, v, w), u, t
        ),
    )
    yield Claim(
        text="first token of a prompt with a short load",
        unit="1",
        domain=resumed | {kappa: Draw(10.0, 50.0), state: Draw(10.0, 20.0)},
        implements=(where + "resumed_prefill_s",),
        formula=prefill + loading - o * sp.Min(prefill, (1 - f) * loading),
        code=lambda q, g, k, b, r, s, t, u, v, w: transfer.resumed_prefill_s(
            dense_law(q, 0.0, g, 1e30, k, 0.0, 0.0), link(b, s, r, 1e9, v, w), u, t
        ),
    )
