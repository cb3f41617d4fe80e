"""How many experts a step reads: all of them soon, and each further token fewer new ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.service.step_law import StepLaw, raw_step_law, term
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation


@derivation(
    statement=r"\text{covered share} = 1 - \Bigl(1 - \frac{k}{E}\Bigr)^n",
    assumptions=("Each token picks k of E experts uniformly, independently of other tokens.",),
)
def proof(step: Steps) -> Iterator[Claim]:
    n, k, rest = sp.symbols("n k r", positive=True)
    E = k + rest

    # 1. A given expert is missed by one token with 1 - k/E, by n with its power; means add up.
    missed = 1 - k / E
    covered = 1 - missed**n
    step.equal("1. missed by one token: (E - k)/E", missed, rest / (k + rest))
    step.equal("2. one token covers k/E", covered.subs(n, 1), k / E)
    step.equal("3. none covers nothing", covered.subs(n, 0), 0)
    step.equal("4. each token reaches the share that was missing",
               covered.subs(n, n + 1) - covered, k / E * missed**n)  # fmt: skip

    # 2. It rises and is concave: ln(r/(k + r)) < 0.
    slope = sp.diff(covered, n)
    step.equal("5. slope", slope, -sp.log(missed) * missed**n)
    step.positive("6. rising", sp.log(1 + k / rest) * missed**n)
    step.equal("7. since -ln(1 - k/E) = ln(1 + k/r)", (1 + k / rest) * missed, 1)
    step.equal("8. curvature", sp.diff(covered, n, 2), -(sp.log(missed) ** 2) * missed**n)
    step.limit("9. all experts in the end", 1 - (1 + k / rest) ** (-n), n, sp.oo, 1)
    # 3. For few tokens it is linear: bytes per token of the experts do not depend on the batch.
    small = sp.symbols("q", positive=True)
    step.equal("10. first order in the share of one token",
               sp.series(1 - (1 - small) ** n, small, 0, 2).removeO(), n * small)  # fmt: skip

    experts = sp.symbols("E", positive=True)
    domain = {n: Draw(1, 60, whole=True), k: Draw(2, 8, whole=True),
              experts: Draw(64, 512, whole=True)}  # fmt: skip
    share = 1 - (1 - k / experts) ** n
    names = ("capmodel.service.step_law:StepLaw.coverage",)

    def law(chosen, total):
        return StepLaw(terms=(), experts=total, experts_per_token=chosen)

    yield Claim(text="covered share of experts", formula=share, domain=domain, implements=names,
                code=lambda m, c, e: law(c, e).coverage(m), rises=(k,), falls=(experts,),
                limits=(Limit(n, 1e9, 1), Limit(n, 0.0, 0)))  # fmt: skip
    yield Claim(
        text="a dense model has no experts to cover",
        formula=sp.Integer(0) * n,
        domain={n: domain[n]},
        implements=names,
        code=lambda m: law(0, 0).coverage(m),
    )

    # 4. In a step: W_exp bytes are read in the covered share.
    W, BW = sp.symbols("W beta", positive=True)

    def step_s(tokens, chosen, total, weights, rate, scalar):
        raw = raw_step_law(
            active_params=1.0, fixed_weight_bytes=0.0, expert_weight_bytes=weights, experts=total,
            experts_per_token=chosen, flop_per_s=1e30, bytes_per_s=rate, prefill_pair_flop=0.0,
            decode_pair_flop=0.0, kv_read_bytes_per_token=0.0, step_overhead_s=0.0,
            max_batched_tokens=8192,
        )  # fmt: skip
        given = float(tokens) if scalar else np.asarray([float(tokens)])
        return float(np.sum(raw.step_s(0.0, 0.0, given)))

    for scalar in (True, False):
        yield Claim(text=f"expert reads of a step, {'scalar' if scalar else 'vector'} path",
                    formula=W * share / BW, unit="s", rises=(W,), falls=(BW,),
                    domain=domain | {W: Draw(1e11, 2e12, "bytes"), BW: Draw(1e13, 6e13, "bytes/s")},
                    implements=(*names,
                                "capmodel.service.step_law:raw_step_law"),
                    code=lambda *v, s=scalar: step_s(*v, s))  # fmt: skip

    # 5. Popular experts are hit again: with gamma popularity g (mean 1, squared variation a) an
    #    expert is missed with E[exp(-g x)], x = -n ln(1 - k/E).
    a, x, g = sp.symbols("a x g", positive=True)
    law_of_g = (g / a) ** (1 / a - 1) * sp.exp(-g / a) / (a * sp.gamma(1 / a))
    missing = sp.integrate(law_of_g * sp.exp(-g * x), (g, 0, sp.oo), conds="none")
    popular = 1 - (1 + a * x) ** (-1 / a)
    step.equal("11. a gamma law of popularity", sp.simplify(missing), (1 + a * x) ** (-1 / a))
    step.limit("12. equal popularity is uniform routing", popular, a, 0, 1 - sp.exp(-x))
    step.rises("13. more tokens, more experts", popular, x)
    mixed = popular.subs(x, -n * sp.log(1 - k / experts))
    spread = domain | {a: Draw(0.2, 2.0)}

    def dispersed(chosen, total, dispersion):
        return StepLaw(
            terms=(term("experts", memory={"coverage": 1.0}),),
            experts=total,
            experts_per_token=chosen,
            expert_dispersion=dispersion,
        )

    for text, code in (
        ("covered share", lambda m, c, e, v: dispersed(c, e, v).coverage(m)),
        ("scalar step", lambda m, c, e, v: dispersed(c, e, v).step_s(0.0, 0.0, float(m))),
        ("vector step", lambda m, c, e, v: dispersed(c, e, v).step_s(0.0, 0.0, np.asarray([m]))[0]),
    ):
        yield Claim(
            text=f"experts of uneven popularity, {text}",
            implements=(*names, "capmodel.service.step_law:StepLaw.step_s"),
            formula=mixed,
            domain=spread,
            code=code,
            rises=(n, k),
            falls=(a,),
        )
