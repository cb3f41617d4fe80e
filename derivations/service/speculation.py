"""Drafting pays while the accepted length exceeds what a longer step costs."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.service import speculation
from capmodel.service.step_law import StepLaw, term
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"A = \sum_{i=0}^{K} \alpha^i = \frac{1 - \alpha^{K+1}}{1 - \alpha}, \qquad "
        r"S = \frac{A}{r}, \qquad r = \frac{\tau(1+K)}{\tau(1)}"
    ),
    assumptions=(
        "Each drafted token is accepted with probability alpha given that all before it were.",
        "Same batch with and without drafts; nothing else runs.",
    ),
    depends_on=("roofline",),
)
def proof(step: Steps) -> Iterator[Claim]:
    alpha, W, u, n, d, A = sp.symbols("alpha W u n d A", positive=True)
    K = sp.symbols("K", positive=True, integer=True)
    sp.symbols("i", integer=True)

    # 1. Tokens of a step: the bonus token, and each draft that survives with alpha^i.
    length = (1 - alpha ** (K + 1)) / (1 - alpha)
    step.equal("1. geometric sum, by its own recursion", length, 1 + alpha * length.subs(K, K - 1))
    step.equal("2. no draft gains one token", length.subs(K, 0), 1)
    for depth in (1, 2, 5):
        step.limit(f"3.{depth} certain acceptance gains K + 1 = {depth + 1}",
                   length.subs(K, depth), alpha, 1, depth + 1)  # fmt: skip
    step.equal("4. each further draft adds alpha^(K+1)", length.subs(K, K + 1) - length,
               alpha ** (K + 1))  # fmt: skip

    # 2. Memory-bound: r = 1, every accepted token is gain. Compute-bound: r = 1 + K, none is.
    _memory, compute = W, u * n * (1 + K)
    step.equal("5. on the memory roof the step does not grow", sp.Max(W, 0) / W, 1)
    step.equal("6. on the compute roof it grows as 1 + K", compute / (u * n), 1 + K)
    sure = length.subs(alpha, 1 / (1 + d))
    step.positive("7. A < 1 + K for K = 2, so a saturated engine only loses",
                  3 - sure.subs(K, 2))  # fmt: skip
    step.positive("8. the same for K = 4", 5 - sure.subs(K, 4))

    # 3. Break-even batch, drafts on the compute roof and plain steps on the memory roof.
    batch = A * W / (u * (1 + K))
    step.solves("9. drafting stops paying at", A * W - u * n * (1 + K), n, batch)
    step.falls("10. deeper drafts of one length stop paying earlier", A * W / (u * (1 + d)), d)

    def law(weights, per_token, depth, accepted, limit=4096):
        return StepLaw(
            terms=(term("roof", compute={"tokens": per_token}, memory={"step": weights}),),
            verify_tokens=1 + depth,
            accepted_tokens=accepted,
            max_sequences=limit,
        )

    domain = {W: Draw(5e-3, 4e-2, "s"), u: Draw(1e-5, 1e-4, "s"), K: Draw(1, 6, whole=True),
              A: Draw(1.1, 4.0), n: Draw(1, 4000, whole=True)}  # fmt: skip
    gain = A * sp.Max(u * n, W) / sp.Max(u * n * (1 + K), W)
    yield Claim(text="speculation gain", formula=gain, domain=domain, rises=(A,),
                implements=("capmodel.service.speculation:speculation_gain",),
                code=lambda w, t, k, a, b: speculation.speculation_gain(
                    law(w, t, 0, 1.0), law(w, t, k, a), float(b), 0.0))  # fmt: skip
    plain = sp.symbols("A_0", positive=True)
    yield Claim(text="gain over another draft", formula=gain / plain, falls=(plain,),
                domain=domain | {plain: Draw(1.0, 2.0)},
                implements=("capmodel.service.speculation:speculation_gain",),
                code=lambda w, t, k, a, b, p: speculation.speculation_gain(
                    law(w, t, 0, p), law(w, t, k, a), float(b), 0.0))  # fmt: skip

    # 4. The code's break-even is the batch of step 9, bisected to half a sequence.
    def break_even(weights, per_token, depth, accepted):
        found = speculation.break_even_sequences(
            law(weights, per_token, 0, 1.0), law(weights, per_token, depth, accepted), 0.0
        )
        return -1.0 if found is None else found

    small = {s_: domain[s_] for s_ in (W, u, K, A)}
    yield Claim(text="batch at which drafting stops paying", formula=batch, domain=small,
                implements=("capmodel.service.speculation:break_even_sequences",), tolerance=6e-3,
                where=lambda w, t, k, a: a < 0.9 * (1 + k) and 100 < a * w / (t * (1 + k)) < 4000
                and a * w / (t * (1 + k)) < w / t,
                code=break_even)  # fmt: skip
    yield Claim(text="a draft that is never accepted never pays", formula=sp.Integer(1) + 0 * W,
                domain={W: domain[W], u: domain[u], K: domain[K]},
                implements=("capmodel.service.speculation:break_even_sequences",),
                code=lambda w, t, k: break_even(w, t, k, 0.99))  # fmt: skip
    yield Claim(text="a free draft always pays", formula=sp.Integer(-1) + 0 * W,
                domain={W: Draw(1.0, 2.0, "s"), u: domain[u], K: domain[K]},
                implements=("capmodel.service.speculation:break_even_sequences",),
                where=lambda w, t, k: t * 4096 * (1 + k) < w,
                code=lambda w, t, k: break_even(w, t, k, 1.01))  # fmt: skip
