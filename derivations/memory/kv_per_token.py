"""Bytes of a cached token: heads divide until each rank has one, latents are copied."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.memory import kv_layout
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
from capmodel.spec.deployment import Deployment, Speculation
from capmodel.spec.model import LayerGroup
from derivations.claim import Claim, Draw
from derivations.plain_model import plain_model
from derivations.proof import Steps, derivation

WIDE = Draw(32, 256, whole=True)
LAYOUT = "capmodel.memory.kv_layout:"


@derivation(
    statement=(
        r"b_{GQA} = 2\lceil n_{kv}/t \rceil d\,e, \qquad b_{MLA} = (r + d_r)\,e, \qquad "
        r"\text{copies} = \frac{t \sum b}{\sum b\,t/\text{copies}}"
    ),
    assumptions=(
        "t tensor-parallel ranks, e bytes per element, one layer, one rank.",
        "Powers of two: ranks divide heads or heads divide ranks.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    n, t, d, e, r, dr, L, c, W = sp.symbols("n t d e r d_r L c W", positive=True, integer=True)
    m = sp.symbols("m", positive=True, integer=True)

    # 1. m t heads over t ranks: m each, every value once.
    heads = sp.ceiling(n / t)
    step.equal("1. ranks divide heads", heads.subs(n, m * t), m)
    step.equal("2. then the ranks together hold each value once",
               t * 2 * heads.subs(n, m * t) * d * e, 2 * m * t * d * e)  # fmt: skip
    # 2. n heads over m n ranks: one each, m copies.
    copies = t / n
    step.equal("3. heads divide ranks: copies", copies.subs(t, m * n), m)
    step.equal("4. stored over unique bytes is the number of copies",
               t * 2 * d * e / (2 * n * d * e), copies)  # fmt: skip
    # 3. A latent is one vector for all heads.
    step.equal("5. a latent over t ranks is held t times", t * (r + dr) * e / ((r + dr) * e), t)
    step.equal("6. context parallelism over all ranks undoes it",
               t * ((r + dr) * e / t) / ((r + dr) * e), 1)  # fmt: skip
    # 4. Against grouped-query attention the latent saves where 2 n d > r + d_r.
    step.solves(
        "7. heads at which both cache the same", 2 * n * d - (r + dr), n, (r + dr) / (2 * d)
    )

    def deployed(ranks, dtype="bf16", dcp=1, **more):
        return Deployment(tp=ranks * dcp, dcp=dcp, kv_dtype=dtype, **more)

    def parts(mixer, deployment):
        return kv_layout.cache_parts(mixer, plain_model(()), deployment)

    # -- grouped-query
    powers = Draw(0, 4, whole=True)
    a, b = sp.symbols("a b", positive=True, integer=True)
    grid = {a: powers, b: powers, d: WIDE}

    def grouped(x, y, width, dtype="bf16", **more):
        mixer = GroupedQueryAttention(query_heads=64, kv_heads=2**x, head_dim=width, **more)
        return parts(mixer, deployed(2**y, dtype))

    part_names = (LAYOUT + "cache_parts", LAYOUT + "kv_element_bytes")
    for dtype, size in (("bf16", 2), ("fp8", 1)):
        yield Claim(
            text=f"grouped-query bytes of a token, {dtype}",
            rises=(d,),
            formula=2 * sp.ceiling(2**a / 2**b) * d * size,
            domain=grid,
            implements=part_names,
            code=lambda *v, k=dtype: grouped(*v, k)[0].bytes_per_token,
        )
    yield Claim(text="copies of grouped-query heads", formula=sp.Max(1, 2 ** (b - a)), domain=grid,
                implements=part_names, code=lambda *v: grouped(*v,)[0].copies)  # fmt: skip
    iw = sp.symbols("d_i", positive=True, integer=True)
    index = {iw: WIDE}

    def indexer(width):
        return SparseIndexer(heads=8, head_dim=width, top_k=64)

    yield Claim(
        text="index keys beside grouped-query heads",
        formula=2 * iw,
        domain=grid | index,
        implements=part_names,
        code=lambda x, y, z, w: grouped(x, y, z, indexer=indexer(w))[1].bytes_per_token,
    )
    yield Claim(
        text="a windowed layer keeps its window",
        formula=W,
        domain=grid | {W: Draw(128, 4096, whole=True)},
        implements=part_names,
        code=lambda x, y, z, w: grouped(x, y, z, window_tokens=w)[0].bound_tokens,
    )

    # -- latent
    mla = {r: Draw(128, 512, whole=True), dr: Draw(16, 64, whole=True), b: powers}

    def latent(rank, rope, y, dtype="bf16", engine="vllm", **more):
        mixer = LatentAttention(
            query_heads=64,
            q_lora_rank=None,
            kv_lora_rank=rank,
            qk_nope_head_dim=128,
            qk_rope_head_dim=rope,
            v_head_dim=128,
            **more,
        )
        return parts(mixer, deployed(2**y, dtype, engine=engine))

    names = (LAYOUT + "cache_parts",)
    for dtype, size in (("bf16", 2), ("fp8", 1)):
        yield Claim(
            text=f"latent bytes of a token, {dtype}",
            formula=(r + dr) * size,
            domain=mla,
            implements=names,
            code=lambda *v, k=dtype: latent(*v, k)[0].bytes_per_token,
        )
    yield Claim(text="copies of a latent", formula=2**b, domain=mla, implements=names,
                code=lambda *v: latent(*v,)[0].copies)  # fmt: skip
    yield Claim(
        text="record of a sparse fp8 latent: values, four scales, rope in bf16",
        formula=r + 16 + 2 * dr,
        domain=mla,
        implements=names,
        code=lambda *v: latent(*v, "fp8", indexer=indexer(128))[0].bytes_per_token,
    )
    yield Claim(
        text="fp8 index key with its scale",
        formula=iw + 4,
        domain=mla | index,
        implements=(*names,),
        code=lambda x, y, z, w: latent(x, y, z, indexer=indexer(w))[1].bytes_per_token,
    )

    # -- compressed
    ratio, rope = sp.symbols("m_c d_p", positive=True, integer=True)
    squeezed = {
        d: Draw(256, 512, whole=True),
        rope: Draw(16, 64, whole=True),
        ratio: Draw(2, 128, whole=True),
        iw: WIDE,
    }

    def compressed(width, rope_, squeeze, key, dtype="fp8", has=True):
        mixer = CompressedAttention(
            query_heads=64, head_dim=width, rope_head_dim=rope_, q_lora_rank=1024, output_groups=8,
            output_lora_rank=1024, window_tokens=128, ratio=squeeze,
            indexer=indexer(key) if has else None)  # fmt: skip
        return parts(mixer, deployed(8, dtype))

    entry = d + rope + 8  # d - d_p plain bytes, 2 d_p of rope, one scale byte per 64 values of 512
    names = (LAYOUT + "cache_parts", LAYOUT + "compressed_entry_bytes")
    for text, formula, at, dtype in (
        ("window of fp8 entries", entry, 0, "fp8"),
        ("compressed fp8 entries", entry / ratio, 1, "fp8"),
        ("compressed index keys", (iw + 4) / ratio, 2, "fp8"),
        ("window of bf16 entries", 2 * d, 0, "bf16"),
    ):
        yield Claim(
            text=text,
            formula=formula,
            domain=squeezed,
            implements=names,
            code=lambda *v, k=dtype, i=at: compressed(*v, k)[i].bytes_per_token,
        )
    yield Claim(
        text="every rank holds a compressed vector whole",
        formula=8 + 0 * d,
        domain=squeezed,
        implements=names,
        code=lambda *v: (
            compressed(
                *v,
            )[1].copies
        ),
    )

    # -- states
    h, dk, dv, nk, N, G, K, draft = sp.symbols("h d_k d_v n_k N G K s", positive=True, integer=True)
    heads_, conv, drafts = Draw(8, 64, whole=True), Draw(2, 4, whole=True), Draw(1, 4, whole=True)
    shared = {b: Draw(0, 3, whole=True), draft: drafts}
    recurrent = (
        (
            "kimi delta",
            h * d**2,
            3 * h * d,
            {h: heads_, d: WIDE, K: conv},
            lambda p, q, k: KimiDeltaAttention(
                heads=p, head_dim=q, conv_kernel=k, full_rank_gate=True
            ),
        ),
        (
            "gated delta",
            h * dv * dk,
            2 * nk * dk + h * dv,
            {nk: heads_, dk: WIDE, h: heads_, dv: WIDE, K: conv},
            lambda p, q, u, v, k: GatedDeltaNet(
                key_heads=p, key_head_dim=q, value_heads=u, value_head_dim=v, conv_kernel=k
            ),
        ),
        (
            "mamba-2",
            h * d * N,
            h * d + 2 * sp.Max(G, 2**b) * N,
            {h: heads_, d: WIDE, G: Draw(1, 8, whole=True), N: WIDE, K: conv},
            lambda p, q, u, v, k: Mamba2(
                heads=p, head_dim=q, groups=u, state_size=v, conv_kernel=k
            ),
        ),
    )
    names = (LAYOUT + "cache_parts",)
    for name, elements, channels, dims, mixer in recurrent:
        for fmt, size in (("fp32", 4), ("bf16", 2)):

            def state(*v, mk=mixer, f=fmt):
                deployment = deployed(2 ** v[-2], speculation=Speculation(
                    name="mtp", draft_tokens=v[-1]))  # fmt: skip
                return kv_layout.cache_parts(
                    mk(*v[:-2]), plain_model((), state_format=f), deployment
                )[0].state_bytes

            yield Claim(
                text=f"{name} state of one sequence, {fmt}, with drafts",
                domain=dims | shared,
                formula=(elements * size + channels * (K - 1 + draft) * 2) / 2**b,
                implements=names,
                code=state,
            )
    for engine, size in (("vllm", 2), ("sglang", 4)):
        yield Claim(
            text=f"lightning state of one sequence, {engine}",
            formula=h * d**2 * size / 2**b,
            domain={h: heads_, d: WIDE, b: shared[b]},
            implements=names,
            rises=(h, d),
            code=lambda p, q, y, g=engine: (
                parts(LightningAttention(heads=p, head_dim=q), deployed(2**y, engine=g))[
                    0
                ].state_bytes
            ),
        )

    # -- the whole stack
    stack = {L: Draw(2, 60, whole=True), m: Draw(2, 60, whole=True), r: mla[r], dr: mla[dr],
             d: WIDE, b: Draw(0, 3, whole=True), W: Draw(128, 1024, whole=True),
             c: Draw(1, 2, whole=True)}  # fmt: skip

    def model(full, other, rank, rope_, width, window):
        mla_mixer = LatentAttention(
            query_heads=64,
            q_lora_rank=None,
            kv_lora_rank=rank,
            qk_nope_head_dim=128,
            qk_rope_head_dim=rope_,
            v_head_dim=128,
        )
        gqa_mixer = GroupedQueryAttention(query_heads=64, kv_heads=16, head_dim=width,
                                          window_tokens=window)  # fmt: skip
        wide = GroupedQueryAttention(query_heads=64, kv_heads=16, head_dim=width)
        return plain_model((
            LayerGroup(count=full, mixer=mla_mixer, feed_forward=None),
            LayerGroup(count=other, mixer=gqa_mixer, feed_forward=None),
            LayerGroup(count=1, mixer=wide, feed_forward=None),
            LayerGroup(count=other, mixer=LightningAttention(heads=16, head_dim=width),
                       feed_forward=None)), state_format="fp32")  # fmt: skip

    def whole(function):
        def value(full, other, rank, rope_, width, y, window, split):
            deployment = Deployment(tp=2**y * split, dcp=split, kv_dtype="bf16")
            return function(model(full, other, rank, rope_, width, window), deployment)

        return value

    t_all = 2**b * c
    token = 2 * (L * (r + dr) + 2 * sp.ceiling(16 / t_all) * d) / c
    yield Claim(text="bytes of a further token on one rank", formula=token, domain=stack,
                implements=(LAYOUT + "kv_bytes_per_token",), rises=(L, r),
                code=whole(kv_layout.kv_bytes_per_token))  # fmt: skip
    once = 2 * (L * (r + dr) + 2 * 16 * d)
    yield Claim(text="bytes of a token, every value once", formula=once, domain=stack,
                implements=(LAYOUT + "unique_kv_bytes_per_token",),
                code=whole(kv_layout.unique_kv_bytes_per_token))  # fmt: skip
    yield Claim(text="fixed bytes of a sequence", domain=stack, rises=(m, W),
                formula=m * (16 * d**2 * 4 / t_all + 4 * sp.ceiling(16 / t_all) * d * W),
                implements=(LAYOUT + "state_bytes_per_sequence",),
                code=whole(kv_layout.state_bytes_per_sequence))  # fmt: skip
    yield Claim(
        text="copies of a token over the ranks",
        formula=token * t_all / once,
        domain=stack,
        implements=(LAYOUT + "kv_replication",),
        code=whole(kv_layout.kv_replication),
    )
