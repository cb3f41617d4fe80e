"""What a decoding sequence reads of its cache: heads divide over ranks, a latent does not."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.service import bytes_moved
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
from derivations.proof import Steps, derivation

TRAFFIC = ("capmodel.service.bytes_moved:cache_traffic",)
HEADS, WIDE = Draw(8, 64, whole=True), Draw(32, 256, whole=True)
RANKS = Draw(1, 8, whole=True)


@derivation(
    statement=(
        r"\kappa_{GQA} = 2\max\bigl(1, \tfrac{n_{kv}}{t}\bigr) d\,e / c, \qquad "
        r"\kappa_{MLA} = (r + d_r)\,e / c, \qquad \kappa_{state} = 2 (d_k d_v e_s + \dots)/t"
    ),
    assumptions=(
        "t ranks divide heads and states, c ranks divide the context; e bytes per element.",
        "A recurrent state is read and written once per step.",
    ),
    depends_on=("attention_work",),
)
def proof(step: Steps) -> Iterator[Claim]:
    n, q, d, r, dr, t, c, e = sp.symbols("n_kv n_q d r d_r t c e", positive=True)
    extra = sp.symbols("x", positive=True)

    # 1. Keys and values of n/t heads; with more ranks than heads each rank still reads one.
    heads = sp.Max(1, n / t)
    step.equal("1. few ranks share the heads", heads.subs(n, t * (1 + extra)), 1 + extra)
    step.equal("2. many ranks copy them", heads.subs(t, n * (1 + extra)), 1)
    all_ranks = t * 2 * d * e * heads / c
    step.equal("3. over all ranks a head is read once while they divide",
               all_ranks.subs(n, t * (1 + extra)), 2 * d * e * t * (1 + extra) / c)  # fmt: skip
    # 2. A latent is read whole by each rank: its traffic rises with t, DCP takes that back.
    latent = (r + dr) * e
    step.rises("4. every rank reads the whole latent", t * latent, t)
    step.equal("5. context parallelism over the same ranks undoes it", t * latent / t, latent)
    # 3. Intensity of grouped-query decode: 4 n_q d FLOP on 2 n d e bytes, so g = n_q/n queries per
    #    head give 2 g/e FLOP per byte.
    g = sp.symbols("g", positive=True)
    step.equal("6. arithmetic intensity of grouped-query decode",
               (4 * q * d / (2 * n * d * e)).subs(q, g * n), 2 * g / e)  # fmt: skip
    # 4. A window stops growing: reads stay at W entries.
    W, T = sp.symbols("W T", positive=True)
    step.equal("7. reads of a window beyond its length", sp.Min(T, W).subs(T, W + extra), W)

    element = Draw(1, 2, whole=True)
    gqa = {n: HEADS, d: WIDE, t: RANKS, c: RANKS, e: element}

    def grouped(a, b, ranks, context, size, **more):
        return bytes_moved.cache_traffic(
            GroupedQueryAttention(query_heads=64, kv_heads=a, head_dim=b, **more), tp=ranks,
            dcp=context, element_bytes=size)  # fmt: skip

    entry = 2 * heads * d * e
    for part, value in (("per_context", entry / c), ("written_per_token", entry)):
        yield Claim(
            text=f"grouped-query {part} bytes",
            formula=value,
            domain=gqa,
            implements=TRAFFIC,
            rises=(d, e),
            code=lambda *v, p=part: getattr(grouped(*v), p),
        )
    window, top, ih, idim = sp.symbols("w k h_i d_i", positive=True)
    for part, value in (("per_sequence", entry * window), ("written_per_token", entry)):
        yield Claim(
            text=f"windowed {part} bytes",
            formula=value,
            implements=TRAFFIC,
            domain=gqa | {window: Draw(128, 4096, whole=True)},
            code=lambda *v, p=part: getattr(grouped(*v[:5], window_tokens=v[5]), p),
        )
    index = {ih: Draw(4, 64, whole=True), idim: WIDE, top: Draw(256, 4096, whole=True)}

    def indexer(h, w, k, shared=False):
        return SparseIndexer(heads=h, head_dim=w, top_k=k, shared=shared)

    for part, value in (
        ("per_context", idim * e / c),
        ("per_sequence", entry * top / c),
        ("written_per_token", entry + idim * e),
    ):
        yield Claim(
            text=f"indexed grouped-query {part} bytes",
            formula=value,
            implements=TRAFFIC,
            domain=gqa | index,
            code=lambda *v, p=part: getattr(grouped(*v[:5], indexer=indexer(*v[5:])), p),
        )

    dn, dv = sp.symbols("d_n d_v", positive=True)
    mla = {
        q: HEADS,
        r: Draw(256, 512, whole=True),
        dn: WIDE,
        dr: Draw(16, 64, whole=True),
        dv: WIDE,
        t: RANKS,
        c: RANKS,
        e: element,
    }

    def latent_mixer(heads_, rank, nope, rope, value, ranks, context, size, **more):
        return bytes_moved.cache_traffic(
            LatentAttention(query_heads=heads_, q_lora_rank=None, kv_lora_rank=rank,
                            qk_nope_head_dim=nope, qk_rope_head_dim=rope, v_head_dim=value, **more),
            tp=ranks, dcp=context, element_bytes=size)  # fmt: skip

    act = bytes_moved.ACTIVATION_BYTES
    for part, value in (
        ("per_context", latent / c),
        ("written_per_token", latent),
        ("expanded_per_context", 2 * q / t * (dn + dr + dv) * act),
    ):
        yield Claim(text=f"latent {part} bytes", formula=value, domain=mla, implements=TRAFFIC,
                    code=lambda *v, p=part: getattr(latent_mixer(*v), p))  # fmt: skip
    key = idim + bytes_moved.INDEX_SCALE_BYTES
    for part, value in (
        ("per_context", key / c),
        ("per_sequence", latent * top / c),
        ("written_per_token", latent + key),
    ):
        yield Claim(text=f"indexed latent {part} bytes", formula=value, domain=mla | index,
                    implements=TRAFFIC, code=lambda *v, p=part: getattr(
                        latent_mixer(*v[:8], indexer=indexer(*v[8:])), p))  # fmt: skip
    for text, domain, code in (
        (
            "latent",
            mla | index,
            lambda *v: latent_mixer(*v[:8], indexer=indexer(*v[8:], shared=True)),
        ),
        (
            "grouped-query",
            gqa | index,
            lambda *v: grouped(*v[:5], indexer=indexer(*v[5:], shared=True)),
        ),
    ):
        yield Claim(text=f"a shared index reads nothing ({text})", formula=0 * e, domain=domain,
                    implements=TRAFFIC, code=lambda *v, f=code: f(*v).per_context)  # fmt: skip

    m = sp.symbols("m", positive=True)
    squeezed = {
        d: WIDE,
        window: Draw(64, 512, whole=True),
        m: Draw(2, 128, whole=True),
        t: RANKS,
        c: RANKS,
        e: element,
    }

    def compressed(b, w, ratio, ranks, context, size, **more):
        return bytes_moved.cache_traffic(
            CompressedAttention(
                query_heads=64,
                head_dim=b,
                rope_head_dim=64,
                q_lora_rank=1024,
                output_groups=8,
                output_lora_rank=1024,
                window_tokens=w,
                ratio=ratio,
                **more,
            ),
            tp=ranks,
            dcp=context,
            element_bytes=size,
        )

    vector = d * e
    for part, value in (
        ("per_context", vector / m / c),
        ("per_sequence", vector * window),
        ("written_per_token", vector + vector / m),
    ):
        yield Claim(
            text=f"compressed {part} bytes",
            formula=value,
            domain=squeezed,
            implements=TRAFFIC,
            code=lambda *v, p=part: getattr(compressed(*v), p),
        )
    for part, value in (
        ("per_context", key / m / c),
        ("per_sequence", vector * (window + top / c)),
        ("written_per_token", vector + vector / m + key / m),
    ):
        yield Claim(text=f"indexed compressed {part} bytes", formula=value, domain=squeezed | index,
                    implements=TRAFFIC, code=lambda *v, p=part: getattr(
                        compressed(*v[:6], indexer=indexer(*v[6:])), p))  # fmt: skip
    yield Claim(text="window-only layers read no compressed entries", formula=0 * d,
                domain={k_: v_ for k_, v_ in squeezed.items() if k_ != m}, implements=TRAFFIC,
                code=lambda b, w, ranks, context, size: compressed(
                    b, w, 0, ranks, context, size).per_context)  # fmt: skip

    # 5. States: read and written once, with the last inputs of the convolution (kernel - 1 rows).
    h, dk, N, G, kernel, s = sp.symbols("h d_k N G k_c e_s", positive=True)
    conv = Draw(2, 4, whole=True)
    state_bytes = Draw(2, 4, whole=True)
    recurrent = (
        (
            "kimi delta",
            2 * (h * d**2 * s + 3 * h * d * (kernel - 1) * act) / t,
            {h: HEADS, d: WIDE, kernel: conv},
            lambda a, b, k: KimiDeltaAttention(
                heads=a, head_dim=b, conv_kernel=k, full_rank_gate=True
            ),
        ),
        (
            "gated delta",
            2 * (h * dv * dk * s + (2 * n * dk + h * dv) * (kernel - 1) * act) / t,
            {n: HEADS, dk: WIDE, h: HEADS, dv: WIDE, kernel: conv},
            lambda a, b, c_, w, k: GatedDeltaNet(
                key_heads=a, key_head_dim=b, value_heads=c_, value_head_dim=w, conv_kernel=k
            ),
        ),
        (
            "mamba-2",
            2 * (h * d * N * s + (h * d + 2 * G * N) * (kernel - 1) * act) / t,
            {h: HEADS, d: WIDE, G: Draw(1, 8, whole=True), N: WIDE, kernel: conv},
            lambda a, b, g_, w, k: Mamba2(
                heads=a, head_dim=b, groups=g_, state_size=w, conv_kernel=k
            ),
        ),
        (
            "lightning",
            2 * h * d**2 * s / t,
            {h: HEADS, d: WIDE},
            lambda a, b: LightningAttention(heads=a, head_dim=b),
        ),
    )
    for name, value, dims, mixer in recurrent:
        yield Claim(
            text=f"{name} state bytes",
            formula=value,
            implements=TRAFFIC,
            rises=(s, h),
            domain=dims | {t: RANKS, s: state_bytes},
            falls=(t,),
            code=lambda *v, mk=mixer: (
                bytes_moved.cache_traffic(
                    mk(*v[:-2]), tp=v[-2], dcp=1, element_bytes=1.0, state_bytes=v[-1]
                ).per_sequence
            ),
        )
    yield Claim(
        text="states are kept in four bytes unless said otherwise",
        formula=8 * h * d**2,
        domain={h: HEADS, d: WIDE},
        implements=TRAFFIC,
        code=lambda a, b: (
            bytes_moved.cache_traffic(
                LightningAttention(heads=a, head_dim=b), tp=1, dcp=1, element_bytes=1.0
            ).per_sequence
        ),
    )

    # 6. Activations: passes over the residual stream per block, and over the k copies of a token.
    H, k, R, a1, a2, small = sp.symbols("H k R a_1 a_2 l", positive=True)
    mixer = GroupedQueryAttention(query_heads=8, kv_heads=2, head_dim=64)

    def traffic(width, chosen, ranks, norms, copies, latent_width, routed=True, both=True):
        block = (MixtureOfExperts(experts=64, experts_per_token=chosen, intermediate_size=512,
                                  latent_size=latent_width) if routed
                 else DenseFeedForward(intermediate_size=512))  # fmt: skip
        return bytes_moved.activation_traffic(
            LayerGroup(count=1, mixer=mixer if both else None, feed_forward=block), width,
            expert_ranks=ranks, norm_passes=norms, permute_passes=copies)  # fmt: skip

    layer = {
        H: Draw(1024, 8192, whole=True),
        k: Draw(2, 16, whole=True),
        R: RANKS,
        a1: Draw(2.0, 9.0),
        a2: Draw(2.0, 9.0),
    }
    name = ("capmodel.service.bytes_moved:activation_traffic",)
    yield Claim(text="activations of a routed layer", implements=name, domain=layer, falls=(R,),
                formula=(2 * a1 * H + a2 * k / R * H) * act, rises=(H, k, a1, a2),
                code=lambda *v: traffic(*v, None))  # fmt: skip
    yield Claim(text="activations of a latent routed layer", implements=name,
                formula=(2 * a1 * H + a2 * k / R * small) * act,
                domain=layer | {small: Draw(256, 1024, whole=True)}, code=traffic)  # fmt: skip
    yield Claim(
        text="activations of a dense block alone",
        implements=name,
        formula=a1 * H * act,
        domain=layer,
        code=lambda *v: traffic(*v, None, routed=False, both=False),
    )
