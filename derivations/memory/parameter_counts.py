"""Parameters are the areas of the weight matrices, mixer by mixer."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.memory import params
from capmodel.spec.attention import (
    CompressedAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    LightningAttention,
    Mamba2,
    SparseIndexer,
)
from capmodel.spec.model import DenseFeedForward, LayerGroup, MixtureOfExperts
from derivations.claim import Claim, Draw
from derivations.plain_model import plain_model
from derivations.proof import Steps, derivation

HEADS, WIDE, HIDDEN = (
    Draw(4, 64, whole=True),
    Draw(32, 256, whole=True),
    Draw(512, 8192, whole=True),
)
MIXER = ("capmodel.memory.params:mixer_params",)


def area(*shapes: tuple[sp.Expr, sp.Expr]) -> sp.Expr:
    """Entries of matrices given as (rows, columns)."""
    return sum(rows * columns for rows, columns in shapes)


@derivation(
    statement=(
        r"P_{GQA} = 2 h d (n_q + n_{kv}), \qquad P_{MoE} = E\,m\,h\,i + m\,h\,i_s + h E, \qquad "
        r"P_{active} = P - P_{embed} - (E - k) m h i"
    ),
    assumptions=(
        "Every linear layer is one matrix without structure; vision towers are not counted.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    h, q, n, d = sp.symbols("h n_q n_kv d", positive=True)
    r, ro, dn, dr, dv = sp.symbols("r r_q d_n d_r d_v", positive=True)

    # 1. Grouped-query: query, key, value, output.
    grouped = area((h, q * d), (h, n * d), (h, n * d), (q * d, h))
    step.equal("1. grouped-query attention", grouped, 2 * h * d * (q + n))
    step.equal("2. multi-head attention is the end n = q", grouped.subs(n, q), 4 * h * q * d)
    # 2. Latent: low-rank query, shared latent with its rope part, per-head expansion, output.
    low = area((h, ro), (h, r + dr))
    per_head = area((ro, q * (dn + dr)), (r, q * (dn + dv)), (q * dv, h))
    direct = area((h, q * (dn + dr)), (r, q * (dn + dv)), (q * dv, h))
    step.equal("3. a low-rank query saves where the rank is small",
               direct - per_head - area((h, ro)),
               q * (dn + dr) * (h - ro) - h * ro)  # fmt: skip
    # 3. Feed-forward: m matrices of h x i; experts repeat them.
    E, k, m, i, si, lat = sp.symbols("E k m i i_s l", positive=True)
    expert = area(*[(h, i)] * 3)
    step.equal("4. a gated block has three", expert, 3 * h * i)
    routed, active = E * m * h * i, k * m * h * i
    step.equal("5. what a token does not visit", routed - active, (E - k) * m * h * i)
    step.equal("6. share of the experts that a token visits", active / routed, k / E)

    gqa = {h: HIDDEN, q: HEADS, n: HEADS, d: WIDE}

    def mixed(width, a, b, c, **more):
        return params.mixer_params(
            GroupedQueryAttention(query_heads=a, kv_heads=b, head_dim=c, **more), width
        )

    yield Claim(text="grouped-query matrices", formula=grouped, domain=gqa, rises=(h, q, n, d),
                implements=(*MIXER,),
                code=lambda *v: mixed(*v,).sharded)  # fmt: skip
    yield Claim(text="matrices that follow the KV heads", formula=area((h, n * d), (h, n * d)),
                domain=gqa, implements=(*MIXER,),
                code=lambda *v: mixed(*v,).key_value)  # fmt: skip
    for text, value, more in (
        ("output gate", area((h, q * d)), {"output_gate": True}),
        ("one projection for keys and values", -area((h, n * d)), {"shared_kv": True}),
        ("biases", (q + 2 * n) * d, {"bias": True}),
        ("an output bias", h, {"output_bias": True}),
        ("sinks", q, {"sinks": True}),
        ("head norms", 2 * d, {"qk_norm": "head"}),
        ("full norms", (q + n) * d, {"qk_norm": "full"}),
    ):
        yield Claim(
            text=f"grouped-query attention with {text}",
            formula=grouped + value,
            domain=gqa,
            implements=(*MIXER,),
            code=lambda *v, o=more: mixed(*v, **o).matmul + mixed(*v, **o).small,
        )
    ih, iw = sp.symbols("h_i d_i", positive=True)
    index = {ih: HEADS, iw: WIDE}

    def indexer(a, b, shared=False):
        return SparseIndexer(heads=a, head_dim=b, top_k=64, shared=shared)

    yield Claim(text="a block index: its queries, keys and norms", domain=gqa | index,
                formula=area((h, ih * iw), (h, iw)) + 2 * iw,
                implements=(*MIXER,),
                code=lambda a, b, c, e, f, g: mixed(a, b, c, e, indexer=indexer(f, g)).replicated
                + mixed(a, b, c, e, indexer=indexer(f, g)).small)  # fmt: skip

    mla = {h: HIDDEN, q: HEADS, ro: Draw(256, 1536, whole=True), r: Draw(128, 512, whole=True),
           dn: WIDE, dr: Draw(16, 64, whole=True), dv: WIDE}  # fmt: skip
    names = (*MIXER,)

    def latent(width, a, rank, kv, nope, rope, value, **more):
        return params.mixer_params(
            LatentAttention(query_heads=a, q_lora_rank=rank, kv_lora_rank=kv, qk_nope_head_dim=nope,
                            qk_rope_head_dim=rope, v_head_dim=value, **more), width)  # fmt: skip

    yield Claim(text="latent matrices by head", formula=per_head, domain=mla, implements=names,
                code=lambda *v: latent(*v,).sharded)  # fmt: skip
    yield Claim(text="latent matrices held whole", formula=low, domain=mla, implements=names,
                code=lambda *v: latent(*v,).replicated)  # fmt: skip
    yield Claim(text="latent norms", formula=ro + r, domain=mla, implements=names,
                code=lambda *v: latent(*v,).small)  # fmt: skip
    short = {s: v for s, v in mla.items() if s != ro}
    yield Claim(
        text="latent attention without a low-rank query",
        domain=short,
        implements=names,
        formula=direct + area((h, r + dr)) + r,
        code=lambda a, b, *v: latent(a, b, None, *v).matmul + latent(a, b, None, *v).small,
    )
    yield Claim(
        text="latent attention with a gate",
        formula=per_head + area((h, q * dv)),
        domain=mla,
        implements=names,
        code=lambda *v: latent(*v, output_gate=True).sharded,
    )
    yield Claim(text="latent index", implements=names, domain=mla | index,
                formula=low + area((ro, ih * iw), (h, iw), (h, ih)),
                code=lambda *v: latent(*v[:7], indexer=indexer(*v[7:])).replicated)  # fmt: skip
    yield Claim(text="latent index norms", implements=names, domain=mla | index,
                formula=ro + r + 2 * iw,
                code=lambda *v: latent(*v[:7], indexer=indexer(*v[7:])).small)  # fmt: skip
    yield Claim(text="latent index without a low-rank query", implements=names,
                domain=short | index, formula=area((h, r + dr), (h, ih * iw), (h, iw), (h, ih)),
                code=lambda a, b, c, e, f, g, x, y: latent(
                    a, b, None, c, e, f, g, indexer=indexer(x, y)).replicated)  # fmt: skip

    # 4. Recurrent mixers.
    K, G, N, nk, dk = sp.symbols("K G N n_k d_k", positive=True)
    conv = Draw(2, 4, whole=True)
    p = q * d
    kimi = {h: HIDDEN, q: HEADS, d: WIDE, K: conv}
    full = area((h, p), (h, p), (h, p), (p, h), (d, p), (h, q))
    for wide, sharded, held in ((False, full + area((d, p)), area((h, d), (h, d))),
                                (True, full + area((h, p)), area((h, d)))):  # fmt: skip

        def kimi_params(width, a, b, c, gate=wide):
            return params.mixer_params(
                KimiDeltaAttention(heads=a, head_dim=b, conv_kernel=c, full_rank_gate=gate), width
            )

        for part, value in (
            ("sharded", sharded),
            ("replicated", held),
            ("small", 3 * p * K + q + p + d),
        ):
            yield Claim(text=f"kimi delta {part}, gate of {'full' if wide else 'low'} rank",
                        formula=value, domain=kimi, implements=MIXER,
                        code=lambda *v, f=kimi_params, o=part: getattr(f(*v,), o))  # fmt: skip
    keys, values = nk * dk, q * dv
    gated = {h: HIDDEN, nk: HEADS, dk: WIDE, q: HEADS, dv: WIDE, K: conv}
    for part, value in (
        (
            "sharded",
            area((h, keys), (h, keys), (h, values), (h, values), (h, q), (h, q), (values, h)),
        ),
        ("small", (2 * keys + values) * K + 2 * q + dv),
    ):
        yield Claim(text=f"gated delta {part}", formula=value, domain=gated, implements=MIXER,
                    code=lambda w, a, b, c, e, f, o=part: getattr(params.mixer_params(GatedDeltaNet(
                        key_heads=a, key_head_dim=b, value_heads=c, value_head_dim=e,
                        conv_kernel=f), w), o))  # fmt: skip
    inner = q * d
    mamba = {h: HIDDEN, q: HEADS, d: WIDE, G: Draw(1, 8, whole=True), N: WIDE, K: conv}
    for bias in (True, False):
        for part, value in (
            ("sharded", area((h, inner), (h, inner + 2 * G * N), (h, q), (inner, h))),
            ("small", (inner + 2 * G * N) * (K + int(bias)) + 3 * q + inner),
        ):
            yield Claim(
                text=f"mamba-2 {part}, bias {bias}",
                formula=value,
                domain=mamba,
                implements=MIXER,
                code=lambda w, a, b, g, s, c, o=part, z=bias: getattr(
                    params.mixer_params(
                        Mamba2(
                            heads=a, head_dim=b, groups=g, state_size=s, conv_kernel=c, conv_bias=z
                        ),
                        w,
                    ),
                    o,
                ),
            )
    for part, value in (("sharded", area(*[(h, p)] * 5)), ("small", p)):
        yield Claim(text=f"lightning {part}", formula=value, domain={h: HIDDEN, q: HEADS, d: WIDE},
                    implements=MIXER, code=lambda w, a, b, o=part: getattr(params.mixer_params(
                        LightningAttention(heads=a, head_dim=b), w), o))  # fmt: skip
    R, g, o, ratio = sp.symbols("R g o m_c", positive=True)
    squeezed = {h: HIDDEN, q: HEADS, d: WIDE, R: Draw(256, 1024, whole=True),
                g: Draw(2, 16, whole=True), o: Draw(128, 1024, whole=True),
                ratio: Draw(2, 64, whole=True)}  # fmt: skip
    held = area((h, R), (h, d))
    for kind, more, extra, tail in (
        (
            "with an index",
            True,
            area(*[(h, d)] * 4, *[(h, iw)] * 4, (R, ih * iw), (h, ih)),
            2 * ratio * d + 2 * ratio * iw + d + iw,
        ),
        ("without an index", False, area((h, d), (h, d)), ratio * d + d),
    ):

        def squeezed_params(w, a, b, c, e, f, m_, x=None, y=None, has=more):
            return params.mixer_params(CompressedAttention(
                query_heads=a, head_dim=b, rope_head_dim=64, q_lora_rank=c, output_groups=e,
                output_lora_rank=f, window_tokens=128, ratio=m_,
                indexer=indexer(x, y) if has else None), w)  # fmt: skip

        domain = squeezed | (index if more else {})
        for part, value in (
            ("sharded", area((R, q * d), (q * d, o), (g * o, h))),
            ("replicated", held + extra),
            ("small", R + d + q + tail),
        ):
            yield Claim(text=f"compressed attention {part} {kind}", formula=value, domain=domain,
                        implements=(*MIXER,),
                        code=lambda *v, z=part, c=squeezed_params: getattr(c(*v,), z))  # fmt: skip

    # 5. Feed-forward blocks and the whole stack.
    V, L = sp.symbols("V L", positive=True)
    moe = {
        h: HIDDEN,
        E: Draw(16, 256, whole=True),
        k: Draw(1, 8, whole=True),
        m: Draw(2, 3, whole=True),
        i: Draw(256, 2048, whole=True),
        si: Draw(256, 2048, whole=True),
    }

    def block(width, experts, chosen, matrices, inner_, shared, **more):
        return params.feed_forward_params(MixtureOfExperts(
            experts=experts, experts_per_token=chosen, intermediate_size=inner_, matrices=matrices,
            shared_intermediate_size=shared, **more), width)  # fmt: skip

    names = ("capmodel.memory.params:feed_forward_params",)
    for part, value in (
        ("routed", routed),
        ("routed_active", active),
        ("shared", m * h * si),
        ("router", h * E),
    ):
        yield Claim(text=f"routed block: {part}", formula=value, domain=moe, implements=names,
                    code=lambda *v, z=part: getattr(block(*v,), z))  # fmt: skip
    yield Claim(text="routed block: total", formula=routed + m * h * si + h * E, domain=moe,
                implements=("capmodel.memory.params:FeedForwardParams.total",),
                code=lambda *v: block(*v,).total)  # fmt: skip
    yield Claim(text="routed block: active", formula=active + m * h * si + h * E, domain=moe,
                implements=("capmodel.memory.params:FeedForwardParams.matmul_active",),
                code=lambda *v: block(*v,).matmul_active)  # fmt: skip
    wide = moe | {lat: Draw(128, 512, whole=True)}
    yield Claim(
        text="latent routed block",
        formula=E * m * lat * i + m * h * si + h * E + 2 * h * lat,
        domain=wide,
        implements=names,
        code=lambda *v: block(*v[:6], latent_size=v[6]).total,
    )
    yield Claim(text="latent routed block: active", domain=wide, implements=names,
                formula=k * m * lat * i + m * h * si + h * E + 2 * h * lat,
                code=lambda *v: block(*v[:6], latent_size=v[6]).matmul_active)  # fmt: skip
    yield Claim(text="small tensors of a routed block", formula=E + h + lat, domain=wide,
                implements=names, code=lambda *v: block(
                    *v[:6], latent_size=v[6], router_bias=True, shared_gate=True,
                    latent_norm=True).small)  # fmt: skip
    yield Claim(text="a norm of full width without a latent", formula=h, domain=moe,
                implements=names, code=lambda *v: block(*v, latent_norm=True).small)  # fmt: skip
    yield Claim(text="biases of experts", formula=E * (m * h * i + 2 * i + h), domain=moe,
                implements=names, code=lambda *v: block(*v, expert_bias=True).routed)  # fmt: skip
    yield Claim(text="dense block", formula=m * h * i, domain={h: HIDDEN, m: moe[m], i: moe[i]},
                implements=names, code=lambda w, a, b: params.feed_forward_params(
                    DenseFeedForward(intermediate_size=b, matrices=a), w).total)  # fmt: skip

    stack = gqa | {
        V: Draw(1000, 9000, whole=True),
        L: Draw(2, 60, whole=True),
        i: moe[i],
        E: moe[E],
        k: moe[k],
    }

    def model(width, a, b, c, vocabulary, layers, inner_, experts, chosen, tied=False, **more):
        mixer = GroupedQueryAttention(query_heads=a, kv_heads=b, head_dim=c)
        feed = MixtureOfExperts(experts=experts, experts_per_token=chosen, intermediate_size=inner_)
        dense = DenseFeedForward(intermediate_size=inner_)
        groups = (LayerGroup(count=layers, mixer=mixer, feed_forward=feed),
                  LayerGroup(count=1, mixer=mixer, feed_forward=dense))  # fmt: skip
        return plain_model(groups, hidden_size=width, vocab_size=vocabulary, tied_embeddings=tied,
                           extra_params=17, mtp_layers=2, mtp_stack=groups[1:], **more)  # fmt: skip

    layer = grouped + 3 * E * h * i + h * E
    plain = grouped + 3 * h * i
    norms = h * (2 * (L + 1) + 1)
    body = L * layer + plain + norms + 17
    count = "capmodel.memory.params:"
    for tied, tables in ((False, 2), (True, 1)):
        yield Claim(
            text=f"all parameters, tied {tied}",
            formula=body + tables * V * h,
            domain=stack,
            implements=(count + "parameters", count + "ModelParams.total"),
            code=lambda *v, t=tied: params.parameters(model(*v, tied=t)).total,
        )
        yield Claim(
            text=f"active parameters, tied {tied}",
            domain=stack,
            formula=body + V * h - L * 3 * (E - k) * h * i,
            implements=(count + "parameters", count + "ModelParams.active"),
            code=lambda *v, t=tied: params.parameters(model(*v, tied=t)).active,
        )
        yield Claim(
            text=f"multiplied parameters, tied {tied}",
            domain=stack,
            rises=(h, L, k),
            formula=(L + 1) * grouped + L * (3 * k * h * i + h * E) + 3 * h * i + V * h,
            implements=(count + "parameters", count + "ModelParams.matmul"),
            code=lambda *v, t=tied: params.parameters(model(*v, tied=t)).matmul,
        )
    one = plain + 2 * h
    yield Claim(text="one layer", formula=one, domain=stack, implements=(count + "layer_params",),
                code=lambda *v: params.layer_params(model(*v,).layers[1], model(*v,)))  # fmt: skip
    yield Claim(
        text="prediction modules",
        formula=2 * (one + 2 * h * h + 3 * h),
        domain=stack,
        implements=(count + "mtp_params",),
        code=lambda *v: params.mtp_params(
            model(
                *v,
            )
        ),
    )
    yield Claim(text="prediction modules with embeddings", domain=stack,
                formula=2 * (one + 2 * h * h + 3 * h + 2 * V * h),
                implements=(count + "mtp_params",),
                code=lambda *v: params.mtp_params(model(*v, mtp_embeddings=True)))  # fmt: skip

    # 6. A stack with every class of tensor at once: latent and shared experts, norms in the heads.
    full = stack | {si: moe[si], lat: Draw(128, 512, whole=True)}

    def rich(width, a, b, c, vocabulary, layers, inner_, experts, chosen, shared, narrow):
        mixer = GroupedQueryAttention(query_heads=a, kv_heads=b, head_dim=c, qk_norm="head")
        feed = MixtureOfExperts(
            experts=experts,
            experts_per_token=chosen,
            intermediate_size=inner_,
            shared_intermediate_size=shared,
            latent_size=narrow,
            router_bias=True,
        )
        groups = (LayerGroup(count=layers, mixer=mixer, feed_forward=feed),)
        return plain_model(groups, hidden_size=width, vocab_size=vocabulary)

    each = grouped + 3 * h * si + h * E + 2 * h * lat
    whole_layer = each + 3 * E * lat * i + E + 2 * d + 2 * h
    yield Claim(
        text="all parameters of a stack with every class",
        formula=L * whole_layer + h + 2 * V * h,
        domain=full,
        implements=(count + "parameters", count + "ModelParams.total"),
        code=lambda *v: params.parameters(rich(*v)).total,
    )
    yield Claim(
        text="multiplied parameters of a stack with every class",
        formula=L * (each + 3 * k * lat * i) + V * h,
        domain=full,
        implements=(count + "parameters", count + "ModelParams.matmul"),
        code=lambda *v: params.parameters(rich(*v)).matmul,
    )
    yield Claim(
        text="one layer with every class",
        formula=whole_layer,
        domain=full,
        implements=(count + "layer_params", count + "FeedForwardParams.total"),
        code=lambda *v: params.layer_params(rich(*v).layers[0], rich(*v)),
    )
