"""A step is as long as its slower roof: where decodes, attention and weights change places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.service import prefill
from capmodel.service.step_law import StepLaw, raw_step_law, term
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation

# Ranges of a node of eight accelerators.
RATES = {"F": Draw(1e15, 8e15, "flop/s"), "BW": Draw(1e13, 6e13, "bytes/s")}


def dense_law(
    params: float,
    weights: float,
    flop: float,
    rate: float,
    pair: float,
    kv: float,
    overhead: float,
    budget: int = 10**9,
) -> StepLaw:
    """Return a single-roof law without experts."""
    return raw_step_law(
        active_params=params, fixed_weight_bytes=weights, expert_weight_bytes=0.0, experts=1,
        experts_per_token=1, flop_per_s=flop, bytes_per_s=rate, prefill_pair_flop=pair,
        decode_pair_flop=pair, kv_read_bytes_per_token=kv, step_overhead_s=overhead,
        max_batched_tokens=budget,
    )  # fmt: skip


@derivation(
    statement=(
        r"\tau = \max\Bigl(\frac{2Pt + a_d\sum c + a_p x(p + x/2)}{F}, "
        r"\frac{W + \kappa(\sum c + p + x)}{\beta}\Bigr) + t_0, \qquad "
        r"n^* = \frac{W}{a\beta/F - \kappa}, \qquad c^* = \frac{2P}{a_d}"
    ),
    assumptions=(
        "One kernel class; its two sides are linear in the work and the slower one decides.",
        "a and kappa are the FLOP and bytes of one more sequence; W is read once per step.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    P, W, F, BW, a, kappa, n, c, t0 = sp.symbols("P W F beta a kappa n c t_0", positive=True)
    pair, x, p = sp.symbols("a_p x p", positive=True)
    d = sp.symbols("d", positive=True)

    # 1. Compute a n/F meets memory (W + kappa n)/beta at n*, if compute grows faster.
    compute, memory = a * n / F, (W + kappa * n) / BW
    knee = W / (a * BW / F - kappa)
    step.solves("1. the knee between memory and compute", compute - memory, n, knee)
    faster = {a: F / BW * (kappa + d)}
    step.positive("2. it exists if a beta/F > kappa", knee.subs(faster))
    step.negative("3. below it memory binds",
                  (compute - memory).subs(faster).subs(n, W / d / (1 + x)))  # fmt: skip
    # 2. Throughput n/tau rises while memory-bound, and is flat on the compute roof.
    step.rises("4. a memory-bound batch gains from every sequence", n / (memory + t0), n)
    step.equal("5. a compute-bound one does not", sp.diff(n / compute, n), 0)
    step.limit("6. with a long context reads alone bind: beta/kappa sequences per second",
               n / memory, n, sp.oo, BW / kappa)  # fmt: skip

    # 3. Attention equals the linear layers at c* = 2P/a_d; a whole prompt from zero at twice that.
    step.solves("7. context at which a decoded token's attention equals its linear layers",
                pair * c - 2 * P, c, 2 * P / pair)  # fmt: skip
    step.solves("8. prompt at which a whole prefill's does", pair * x**2 / 2 - 2 * P * x, x,
                4 * P / pair)  # fmt: skip
    # 4. Tokens that a prefill chunk needs to leave the memory roof.
    step.solves("9. ridge chunk of a prefill without attention", 2 * P * x / F - W / BW, x,
                W * F / (2 * P * BW))  # fmt: skip

    model = {P: Draw(3e10, 1e11, "flop/tokens"), W: Draw(3e10, 2e11, "bytes"),
             F: RATES["F"], BW: RATES["BW"], pair: Draw(5e5, 5e6, "flop/tokens^2"),
             kappa: Draw(1e4, 3e5, "bytes/tokens"), t0: Draw(1e-3, 6e-3, "s")}  # fmt: skip
    names = ("capmodel.service.step_law:StepLaw.step_s", "capmodel.service.step_law:raw_step_law")
    decode = sp.Max((2 * P * n + pair * n * c) / F, (W + kappa * n * c) / BW) + t0
    {n: Draw(2, 200, "tokens", whole=True), c: Draw(1e3, 2e5, "tokens")}
    # A decode computes one token per sequence: n counts both, c is in tokens per sequence.
    alone = {n: Draw(2, 200, whole=True), c: Draw(1e3, 2e5)}
    free = {s: Draw(r.low, r.high) for s, r in model.items()}
    for name, scalar in (("scalar", True), ("vector", False)):
        shape = float if scalar else (lambda v: np.asarray([float(v)]))
        yield Claim(text=f"decode step, {name} path", formula=decode, domain=free | alone,
                    implements=(*names, "capmodel.service.prefill:decode_step_s",
                                "capmodel.service.step_law:StepLaw.features",
                                "capmodel.service.step_law:StepLaw.seconds_of"),
                    rises=(n, t0), falls=(),
                    code=lambda *v, s=shape: float(np.sum(prefill.decode_step_s(
                        dense_law(*v[:7]), s(v[7]), s(v[8])))))  # fmt: skip
    chunk = sp.Max((2 * P * x + pair * x * (p + x / 2)) / F, (W + kappa * (p + x)) / BW) + t0
    work = {x: Draw(10.0, 2e4, "tokens"), p: Draw(0.0, 2e5, "tokens")}
    for name, scalar in (("scalar", True), ("vector", False)):
        shape = float if scalar else (lambda v: np.asarray([float(v)]))
        yield Claim(text=f"prefill step, {name} path", formula=chunk, unit="s",
                    domain=model | work,
                    implements=(*names, "capmodel.service.step_law:StepLaw.features",
                                "capmodel.service.step_law:StepLaw.seconds_of"),
                    rises=(x, t0), code=lambda *v, s=shape: float(np.sum(
                        dense_law(*v[:7]).step_s(s(v[7]), s(v[8])))))  # fmt: skip

    # 5. Mixed step: the chunk's work and the decodes' add up on each side before the roof decides.
    mixed = sp.Max((2 * P * (x + n) + pair * (n * c + x * (p + x / 2))) / F,
                   (W + kappa * (n * c + p + x)) / BW) + t0  # fmt: skip
    for name, scalar in (("scalar", True), ("vector", False)):
        shape = float if scalar else (lambda v: np.asarray([float(v)]))
        yield Claim(text=f"mixed step, {name} path", formula=mixed, implements=names,
                    domain=free | {x: Draw(10.0, 2e4), p: Draw(0.0, 2e5)} | alone,
                    code=lambda *v, s=shape: float(np.sum(dense_law(*v[:7]).step_s(
                        s(v[7]), s(v[8]), s(v[9]), s(v[10])))))  # fmt: skip

    # 6. Terms run one after the other: their slower sides add up, and each names what binds.
    u, v, f, g = sp.symbols("u v f g", positive=True)

    def two_terms(first, second, third, fourth, tokens):
        return StepLaw(
            terms=(
                term("one", compute={"tokens": first}, memory={"step": second}),
                term("two", compute={"tokens": third}, memory={"step": fourth}),
            )
        )

    pieces = {u: Draw(1e-6, 1e-4, "s/tokens"), v: Draw(1e-3, 1e-1, "s"),
              f: Draw(1e-6, 1e-4, "s/tokens"), g: Draw(1e-3, 1e-1, "s"),
              x: Draw(10.0, 1e4, "tokens")}  # fmt: skip
    roofs = sp.Max(u * x, v) + sp.Max(f * x, g)
    yield Claim(text="kernel classes add up", formula=roofs, unit="s", domain=pieces,
                implements=("capmodel.service.step_law:StepLaw.step_s",
                            "capmodel.service.step_law:term"),
                code=lambda *w: two_terms(*w).step_s(w[4]))  # fmt: skip
    yield Claim(text="the breakdown has the same parts", formula=sp.Max(f * x, g), unit="s",
                domain=pieces, implements=("capmodel.service.step_law:StepLaw.breakdown",),
                code=lambda *w: two_terms(*w).breakdown(w[4])["two"]["seconds"])  # fmt: skip
    yield Claim(
        text="compute binds above the ridge",
        formula=sp.Heaviside(u * x - v, 1),
        domain=pieces,
        implements=("capmodel.service.step_law:StepLaw.breakdown",),
        code=lambda *w: two_terms(*w).breakdown(w[4])["one"]["bound"] == "compute",
    )
    accepted = sp.symbols("A", positive=True)
    yield Claim(
        text="seconds per output token",
        formula=(sp.Max(u * n, v) + sp.Max(f * n, g)) / accepted,
        domain={k: Draw(q.low, q.high) for k, q in pieces.items() if k != x}
        | {n: alone[n], accepted: Draw(1.0, 4.0)},
        falls=(accepted,),
        implements=("capmodel.service.prefill:output_token_s",),
        code=lambda *w: prefill.output_token_s(
            StepLaw(terms=two_terms(*w[:5]).terms, accepted_tokens=w[5]), float(w[4]), 0.0
        ),
    )

    # 7. Verifying v positions per sequence multiplies its tokens and its attention by v.
    v_ = sp.symbols("v_s", positive=True)

    def verified(params, flop, attention, sequences, context, depth):
        law = raw_step_law(
            active_params=params,
            fixed_weight_bytes=0.0,
            expert_weight_bytes=0.0,
            experts=1,
            experts_per_token=1,
            flop_per_s=flop,
            bytes_per_s=1e30,
            prefill_pair_flop=0.0,
            decode_pair_flop=attention,
            kv_read_bytes_per_token=0.0,
            step_overhead_s=0.0,
            max_batched_tokens=10**9,
            verify_tokens=depth,
        )
        return law.step_s(0.0, 0.0, float(sequences), context)

    yield Claim(
        text="decode step with drafts to verify",
        formula=v_ * n * (2 * P + pair * c) / F,
        implements=names,
        domain={P: free[P], F: free[F], pair: free[pair], n: alone[n], c: alone[c],
                v_: Draw(2, 6, whole=True)},
        rises=(v_, n),
        code=verified,
    )  # fmt: skip
