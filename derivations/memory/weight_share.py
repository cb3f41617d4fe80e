"""What a rank holds: heads and experts divide over ranks, low-rank inputs and routers do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy as sp

from capmodel.memory import weights
from capmodel.spec.attention import GroupedQueryAttention, KimiDeltaAttention, LatentAttention
from capmodel.spec.deployment import Deployment
from capmodel.spec.model import DenseFeedForward, LayerGroup, MixtureOfExperts
from capmodel.spec.precision import WeightPrecision
from derivations.claim import Claim, Draw
from derivations.plain_model import plain_model
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"b_{rank} = \frac{P_{sharded}}{t} e + P_{whole}\, e + \frac{P_{experts}}{t\,d} e_x, "
        r"\qquad \sum_{ranks} b = P e + (t - 1) P_{whole}\, e"
    ),
    assumptions=(
        "t tensor-parallel and d data-parallel ranks; e bytes per parameter, scales included.",
        "Experts divide over all ranks, everything else over the tensor-parallel ones.",
    ),
    depends_on=("parameter_counts",),
)
def proof(step: Steps) -> Iterator[Claim]:
    t, d, S, W, X, e, ex, h, V = sp.symbols("t d S W X e e_x h V", positive=True)
    n, m = sp.symbols("n m", positive=True, integer=True)

    # 1. A rank's share, and the sum over the ranks of one data-parallel group.
    rank = S / t * e + W * e + X / (t * d) * ex
    step.equal("1. over all ranks, what is held whole counts t d times", t * d * rank,
               d * S * e + t * d * W * e + X * ex)  # fmt: skip
    step.falls("2. more ranks, fewer bytes on each", rank, t)
    step.limit("3. but never under what each holds whole", rank, t, sp.oo, W * e)
    # 2. KV projections stop dividing at one head per rank: with m n ranks, 1/n each.
    key_value = sp.symbols("k", positive=True)
    share = (S + key_value) / (m * n) + (key_value / n - key_value / (m * n))
    step.equal("4. with more ranks than heads, the KV part divides by the heads alone", share,
               S / (m * n) + key_value / n)  # fmt: skip
    # 3. Bytes per parameter of a grouped format: its bits and one scale per group.
    g, bits, scale = sp.symbols("g b s", positive=True)
    step.equal(
        "5. scale bytes spread over a group", (g * bits / 8 + scale) / g, bits / 8 + scale / g
    )

    for name, value in (("bf16", 2), ("fp8", 1 + sp.Rational(4, 128**2)),
                        ("mxfp4", sp.Rational(1, 2) + sp.Rational(1, 32)),
                        ("nvfp4", sp.Rational(1, 2) + sp.Rational(1, 16)),
                        ("int4", sp.Rational(1, 2) + sp.Rational(2, 32))):  # fmt: skip
        yield Claim(
            text=f"bytes of a {name} parameter",
            formula=value + 0 * t,
            domain={t: Draw(1, 2)},
            implements=("capmodel.memory.weights:format_bytes_per_param",),
            code=lambda _, f=name: weights.format_bytes_per_param(f),
        )

    # 4. A model with two kinds of layer, latent and grouped-query, routed and dense.
    L, E, i, si, lat, q, r = sp.symbols("L E i i_s l q r", positive=True)
    a, b = sp.symbols("a b", positive=True)
    dims = {h: Draw(512, 2048, whole=True), V: Draw(1000, 9000, whole=True),
            L: Draw(2, 40, whole=True), E: Draw(16, 64, whole=True), i: Draw(256, 1024, whole=True),
            si: Draw(256, 512, whole=True), lat: Draw(128, 256, whole=True),
            q: Draw(8, 32, whole=True), r: Draw(128, 256, whole=True), a: Draw(0, 3, whole=True),
            b: Draw(0, 2, whole=True)}  # fmt: skip
    formats = WeightPrecision(
        routed_experts="nvfp4",
        shared_experts="fp8",
        dense_feed_forward="fp8",
        attention="bf16",
        latent="fp8",
        head="bf16",
    )

    def drawn(width, table, layers, experts, inner, shared, latent, heads, rank_, y, z, tied=False):
        mla = LatentAttention(query_heads=heads, q_lora_rank=None, kv_lora_rank=rank_,
                              qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64)  # fmt: skip
        gqa = GroupedQueryAttention(query_heads=heads, kv_heads=4, head_dim=64)
        moe = MixtureOfExperts(experts=experts, experts_per_token=2, intermediate_size=inner,
                               shared_intermediate_size=shared, latent_size=latent)  # fmt: skip
        stack = (
            LayerGroup(count=layers, mixer=mla, feed_forward=moe),
            LayerGroup(count=1, mixer=gqa, feed_forward=DenseFeedForward(intermediate_size=inner)),
        )
        model = plain_model(stack, hidden_size=width, vocab_size=table, precision=formats,
                            tied_embeddings=tied, extra_params=1000)  # fmt: skip
        return model, Deployment(tp=2**y, dp=2**z)

    def held(part, **more):
        def value(*v):
            model, deployment = drawn(*v, **more)
            found = weights.rank_weights(model, deployment, model.layers, first=True, last=True)
            return getattr(found, part)

        return value

    tp, dp = 2**a, 2**b
    fp8, fp4 = 1 + sp.Rational(4, 128**2), sp.Rational(1, 2) + sp.Rational(1, 16)
    mla = (h * q * 96 + r * q * 128 + q * 64 * h) / tp + h * (r + 32)
    kv = 2 * h * 4 * 64
    gqa = (h * q * 64 * 2 + kv) / tp + sp.Max(kv / 4 - kv / tp, 0)
    small = L * (r + 2 * h) + 2 * h + 1000 + h
    parts = {
        "routed_experts": L * E * 3 * lat * i * fp4 / (tp * dp),
        "shared_experts": L * 3 * h * si * fp8 / tp,
        "dense_feed_forward": 3 * h * i * fp8 / tp,
        "attention": (L * mla + gqa) * 2,
        "latent": L * 2 * h * lat * fp8,
        "router": L * h * E * 2,
        "embedding": V * h * 2 / tp,
        "head": V * h * 2 / tp,
        "small": small * 2,
    }
    names = ("capmodel.memory.weights:rank_weights",)
    for part, value in parts.items():
        yield Claim(
            text=f"rank bytes: {part.replace('_', ' ')}",
            formula=value,
            domain=dims,
            implements=names,
            code=held(part),
            rises=(h,) if part != "routed_experts" else (lat,),
        )
    yield Claim(text="rank bytes: all classes", formula=sum(parts.values()), domain=dims,
                implements=("capmodel.memory.weights:WeightBytes.total",), code=held("total"),
                rises=(L, E))  # fmt: skip
    yield Claim(text="a tied head is the embedding", formula=sum(parts.values()) - parts["head"],
                domain=dims, implements=names, code=held("total", tied=True))  # fmt: skip

    def middle(*v):
        model, deployment = drawn(*v)
        found = weights.rank_weights(model, deployment, model.layers[:1], first=False, last=False)
        return found.total

    inner = (parts["routed_experts"] + parts["shared_experts"] + L * mla * 2 + parts["latent"]
             + parts["router"] + 2 * (L * (r + 2 * h) + 1000 * L / (L + 1)))  # fmt: skip
    yield Claim(text="rank bytes of a middle pipeline stage", formula=inner, domain=dims,
                implements=names, code=middle)  # fmt: skip
    yield Claim(text="bytes of the whole checkpoint", domain=dims,
                formula=sum(parts.values()).subs({a: 0, b: 0}),
                implements=("capmodel.memory.weights:checkpoint_bytes",),
                code=lambda *v: weights.checkpoint_bytes(drawn(*v)[0]))  # fmt: skip

    # 5. Small tensors: those of delta attention in four bytes, routing corrections with them.
    heads, d, K = sp.symbols("n d K", positive=True)
    delta = {h: dims[h], V: dims[V], E: dims[E], i: dims[i], heads: Draw(8, 32, whole=True),
             d: Draw(32, 128, whole=True), K: Draw(2, 4, whole=True)}  # fmt: skip

    def kimi(width, table, experts, inner, count, size, kernel, **more):
        mixer = KimiDeltaAttention(
            heads=count, head_dim=size, conv_kernel=kernel, full_rank_gate=True
        )
        moe = MixtureOfExperts(
            experts=experts,
            experts_per_token=2,
            intermediate_size=inner,
            router_bias=True,
            shared_gate=True,
        )
        stack = (LayerGroup(count=3, mixer=mixer, feed_forward=moe),)
        return plain_model(
            stack,
            hidden_size=width,
            vocab_size=table,
            precision=formats,
            vision_params=1000,
            **more,
        )

    def small_of(*v):
        model = kimi(*v)
        return weights.rank_weights(
            model, Deployment(tp=2), model.layers, first=True, last=True
        ).small

    tensors = 4 * (3 * heads * d * K + heads + heads * d + d) + 4 * E + 2 * h + 4 * h
    yield Claim(
        text="small tensors of delta attention",
        formula=3 * tensors + 2 * h,
        domain=delta,
        implements=names,
        code=small_of,
        rises=(heads, d, K, E),
    )
    yield Claim(
        text="a vision tower is held whole, in bf16",
        formula=2000 + 0 * h,
        domain=delta,
        implements=names,
        code=lambda *v: (
            weights.rank_weights(
                kimi(*v), Deployment(), kimi(*v).layers, first=True, last=False
            ).vision
        ),
    )
    yield Claim(
        text="the checkpoint leaves the vision tower out",
        formula=0 * h + 1,
        domain=delta,
        implements=("capmodel.memory.weights:checkpoint_bytes",),
        code=lambda *v: (
            1.0
            + weights.checkpoint_bytes(kimi(*v))
            - weights.checkpoint_bytes(replace(kimi(*v), vision_params=0))
        ),
    )

    # 6. A prediction module: its layer, the projection of two hidden states onto one, three norms.
    def module(width, heads_, inner):
        mixer = GroupedQueryAttention(query_heads=heads_, kv_heads=4, head_dim=64)
        layer = (
            LayerGroup(
                count=1, mixer=mixer, feed_forward=DenseFeedForward(intermediate_size=inner)
            ),
        )
        model = plain_model(
            layer, hidden_size=width, precision=formats, mtp_layers=1, mtp_stack=layer
        )
        found = weights.rank_weights(model, Deployment(), layer, first=True, last=True, mtp=True)
        return found.mtp

    body = 2 * (h * q * 64 * 2 + kv) + 3 * h * i * fp8 + 2 * 2 * h
    yield Claim(
        text="bytes of a prediction module",
        formula=body + 2 * h**2 * 2 + 3 * 2 * h,
        domain={h: dims[h], q: dims[q], i: dims[i]},
        implements=names,
        tolerance=1e-9,
        rises=(h, q, i),
        code=module,
    )
