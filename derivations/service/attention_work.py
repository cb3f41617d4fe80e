"""Attention FLOPs from matrix products: grouped heads, latents, recurrences."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.service import flops
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
from capmodel.spec.model import DenseFeedForward, LayerGroup
from derivations.claim import Claim, Draw
from derivations.plain_model import plain_model
from derivations.proof import Steps, derivation

WORK = ("capmodel.service.flops:attention_flop",)


def product(rows: sp.Expr, inner: sp.Expr, columns: sp.Expr) -> sp.Expr:
    """FLOPs of a matrix product, a multiply and an add per term."""
    return 2 * rows * inner * columns


@derivation(
    statement=(
        r"a_{GQA} = 4 n_q d, \qquad a_{abs} = 2 n_q (2 r + d_r), \qquad "
        r"a_{exp} = 2 n_q (d_n + d_r + d_v), \qquad e_{exp} = 2 r n_q (d_n + d_v)"
    ),
    assumptions=(
        "Scores and their weighted sum only; projections are counted with the parameters.",
        "Work per query token and token of context, one layer; softmax is not counted.",
    ),
    depends_on=("chunk_additivity",),
)
def proof(step: Steps) -> Iterator[Claim]:
    q, d, r, dr, dn, dv, T = sp.symbols("n_q d r d_r d_n d_v T", positive=True, integer=True)

    # 1. Grouped-query: per head a score (1 x d by d x T) and a sum (1 x T by T x d).
    grouped = q * (product(1, d, T) + product(1, T, d)) / T
    step.equal("1. grouped-query heads", grouped, 4 * q * d)

    # 2. Absorbed latent: keys and values are the r-wide latent, scores also see d_r rope values.
    absorbed = q * (product(1, r + dr, T) + product(1, T, r)) / T
    step.equal("2. absorbed latent", absorbed, 2 * q * (2 * r + dr))
    # 3. Expanded: keys d_n + d_r, values d_v, and T latents made keys and values again.
    expanded = q * (product(1, dn + dr, T) + product(1, T, dv)) / T
    step.equal("3. expanded latent", expanded, 2 * q * (dn + dr + dv))
    expansion = product(T, r, q * (dn + dv)) / T
    step.equal("4. expanding one token of context", expansion, 2 * r * q * (dn + dv))

    # 4. S queries share an expansion: it pays from S* on, if heads are narrower than the latent.
    x = sp.symbols("x", positive=True)
    crossover = expansion / (absorbed - expanded)
    step.solves("5. queries per chunk from which expanding is cheaper",
                x * absorbed - (x * expanded + expansion), x, crossover)  # fmt: skip
    step.equal("6. crossover by the widths alone", crossover,
               r * (dn + dv) / (2 * r - dn - dv))  # fmt: skip

    # 5. Recurrences, per head and token: decay, k^T S, the difference, outer product (2), q^T S.
    dk = sp.symbols("d_k", positive=True, integer=True)
    delta = dk * dv + product(1, dk, dv) + product(dk, 1, dv) + product(1, dk, dv)
    step.equal("7. a delta rule touches its state seven times", delta, 7 * dk * dv)
    linear = dk * dv + product(dk, 1, dv) + product(1, dk, dv)
    step.equal("8. a plain linear attention five times", linear, 5 * dk * dv)

    # 6. Claims per mixer.
    heads, wide = Draw(4, 128, whole=True), Draw(32, 256, whole=True)
    gqa = {q: heads, d: wide}

    def grouped_mixer(a, b, **more):
        return GroupedQueryAttention(query_heads=a, kv_heads=2, head_dim=b, **more)

    for part in ("decode_per_context", "prefill_per_context"):
        yield Claim(text=f"grouped-query {part}", formula=grouped, domain=gqa, implements=WORK,
                    rises=(q, d), code=lambda a, b, p=part: getattr(
                        flops.attention_flop(grouped_mixer(a, b)), p))  # fmt: skip
    window, top, ih, idim = sp.symbols("W k h_i d_i", positive=True, integer=True)
    yield Claim(text="a window makes the work constant", formula=grouped * window, implements=WORK,
                domain=gqa | {window: Draw(128, 4096, whole=True)},
                code=lambda a, b, w: flops.attention_flop(
                    grouped_mixer(a, b, window_tokens=w)).per_token)  # fmt: skip
    index = {ih: Draw(4, 64, whole=True), idim: wide, top: Draw(512, 4096, whole=True)}

    def indexer(h, w, k, shared=False):
        return SparseIndexer(heads=h, head_dim=w, top_k=k, shared=shared)

    for part, value in (
        ("per_token", grouped * top),
        ("decode_per_context", 2 * ih * idim),
        ("prefill_per_context", 2 * ih * idim),
        ("index_per_context", 2 * ih * idim),
    ):
        yield Claim(
            text=f"indexed grouped-query {part}",
            formula=value,
            domain=gqa | index,
            implements=WORK,
            code=lambda a, b, h, w, k, p=part: getattr(
                flops.attention_flop(grouped_mixer(a, b, indexer=indexer(h, w, k))), p
            ),
        )

    latent = {
        q: heads,
        r: Draw(256, 512, whole=True),
        dn: wide,
        dr: Draw(16, 64, whole=True),
        dv: wide,
    }

    def latent_mixer(a, rank, nope, rope, value, **more):
        return LatentAttention(
            query_heads=a,
            q_lora_rank=1536,
            kv_lora_rank=rank,
            qk_nope_head_dim=nope,
            qk_rope_head_dim=rope,
            v_head_dim=value,
            **more,
        )

    for part, value in (
        ("decode_per_context", absorbed),
        ("prefill_per_context", expanded),
        ("expansion_per_context", expansion),
    ):
        yield Claim(text=f"latent {part}", formula=value, domain=latent, implements=WORK,
                    rises=(q,), code=lambda *v, p=part: getattr(
                        flops.attention_flop(latent_mixer(*v,)), p))  # fmt: skip
    for part, value in (
        ("per_token", absorbed * top),
        ("decode_per_context", 2 * ih * idim),
        ("prefill_per_context", 2 * ih * idim),
        ("index_per_context", 2 * ih * idim),
    ):
        yield Claim(text=f"indexed latent {part}", formula=value, domain=latent | index,
                    implements=WORK, code=lambda *v, p=part: getattr(flops.attention_flop(
                        latent_mixer(*v[:5], indexer=indexer(*v[5:]))), p))  # fmt: skip
    yield Claim(text="a shared index costs nothing", formula=0 * q, domain=latent | index,
                implements=WORK, code=lambda *v: flops.attention_flop(latent_mixer(
                    *v[:5], indexer=indexer(*v[5:], shared=True))).decode_per_context)  # fmt: skip
    yield Claim(
        text="a shared index costs nothing in grouped-query heads",
        formula=0 * q,
        domain=gqa | index,
        implements=WORK,
        code=lambda a, b, *v: (
            flops.attention_flop(
                grouped_mixer(a, b, indexer=indexer(*v, shared=True))
            ).decode_per_context
        ),
    )

    ratio = sp.symbols("m", positive=True, integer=True)
    squeezed = gqa | {window: Draw(64, 512, whole=True), ratio: Draw(2, 128, whole=True)}

    def squeezed_mixer(a, b, w, m, **more):
        return CompressedAttention(query_heads=a, head_dim=b, rope_head_dim=64, q_lora_rank=1024,
                                   output_groups=8, output_lora_rank=1024, window_tokens=w, ratio=m,
                                   **more)  # fmt: skip

    for part, value in (
        ("per_token", grouped * window),
        ("decode_per_context", grouped / ratio),
        ("prefill_per_context", grouped / ratio),
    ):
        yield Claim(
            text=f"compressed {part}",
            formula=value,
            domain=squeezed,
            implements=WORK,
            code=lambda *v, p=part: getattr(
                flops.attention_flop(
                    squeezed_mixer(
                        *v,
                    )
                ),
                p,
            ),
        )
    for part, value in (
        ("per_token", grouped * (window + top)),
        ("decode_per_context", 2 * ih * idim / ratio),
        ("prefill_per_context", 2 * ih * idim / ratio),
        ("index_per_context", 2 * ih * idim / ratio),
    ):
        yield Claim(text=f"indexed compressed {part}", formula=value, domain=squeezed | index,
                    implements=WORK, code=lambda *v, p=part: getattr(flops.attention_flop(
                        squeezed_mixer(*v[:4], indexer=indexer(*v[4:]))), p))  # fmt: skip
    yield Claim(
        text="window-only compressed layers",
        formula=0 * q,
        domain=gqa,
        implements=WORK,
        code=lambda a, b: flops.attention_flop(squeezed_mixer(a, b, 128, 0)).decode_per_context,
    )

    # 7. Recurrent layers: state work per token, and a scan in chunks of C tokens: within the chunk
    #    2 C (2 d_k + 2 d_v), across it three products of d_k d_v.
    n, N = sp.symbols("n N", positive=True, integer=True)

    def scan(h, key, value):
        inside = product(1, key, flops.SCAN_CHUNK_TOKENS) + product(
            1, flops.SCAN_CHUNK_TOKENS, value
        )
        return h * (2 * inside + 3 * product(1, key, value))

    step.equal("9. chunked scan per token and head", scan(1, dk, dv),
               2 * flops.SCAN_CHUNK_TOKENS * (2 * dk + 2 * dv) + 6 * dk * dv)  # fmt: skip
    recurrent = (
        (
            "kimi delta",
            7 * n * d**2,
            scan(n, d, d),
            {n: heads, d: wide},
            lambda a, b: KimiDeltaAttention(
                heads=a, head_dim=b, conv_kernel=4, full_rank_gate=True
            ),
        ),
        (
            "gated delta",
            7 * n * dk * dv,
            scan(n, dk, dv),
            {n: heads, dk: wide, dv: wide},
            lambda a, b, c: GatedDeltaNet(
                key_heads=2, key_head_dim=b, value_heads=a, value_head_dim=c, conv_kernel=4
            ),
        ),
        (
            "mamba-2",
            6 * n * d * N,
            scan(n, N, d),
            {n: heads, d: wide, N: wide},
            lambda a, b, c: Mamba2(heads=a, head_dim=b, groups=1, state_size=c, conv_kernel=4),
        ),
        (
            "lightning",
            5 * n * d**2,
            scan(n, d, d),
            {n: heads, d: wide},
            lambda a, b: LightningAttention(heads=a, head_dim=b),
        ),
    )
    for name, per_token, scanned, domain, mixer in recurrent:
        yield Claim(text=f"{name} state work", formula=per_token, domain=domain, implements=WORK,
                    code=lambda *v, m=mixer: flops.attention_flop(m(*v,)).per_token)  # fmt: skip
        yield Claim(
            text=f"{name} scan",
            formula=scanned,
            domain=domain,
            implements=(*WORK,),
            code=lambda *v, m=mixer: (
                flops.attention_flop(
                    m(
                        *v,
                    )
                ).scan_per_token
            ),
        )

    # 8. A model adds its layers: L full layers and M windowed ones.
    L, M = sp.symbols("L M", positive=True, integer=True)
    stack = gqa | {
        window: Draw(128, 1024, whole=True),
        L: Draw(2, 60, whole=True),
        M: Draw(2, 60, whole=True),
    }

    def model(a, b, w, full, windowed):
        block = DenseFeedForward(matrices=3, intermediate_size=1024)
        layers = (LayerGroup(count=full, mixer=grouped_mixer(a, b), feed_forward=block),
                  LayerGroup(count=windowed, mixer=grouped_mixer(a, b, window_tokens=w),
                             feed_forward=block),
                  LayerGroup(count=1, mixer=None, feed_forward=block))  # fmt: skip
        return plain_model(layers)

    tokens = {T: Draw(1e3, 1e5), x: Draw(10.0, 5e3)}
    yield Claim(
        text="attention of a decoded token",
        implements=("capmodel.service.flops:decode_attention_flop",),
        formula=grouped * (L * T + M * window),
        domain=stack | {T: tokens[T]},
        rises=(T, L, M),
        code=lambda *v: flops.decode_attention_flop(model(*v[:5]), v[5]),
    )
    yield Claim(
        text="attention of a prefill",
        implements=("capmodel.service.flops:prefill_attention_flop",),
        formula=grouped * (L * x * (T + x / 2) + M * window * x),
        domain=stack | tokens,
        rises=(T, x),
        code=lambda *v: flops.prefill_attention_flop(model(*v[:5]), v[6], v[5]),
    )
