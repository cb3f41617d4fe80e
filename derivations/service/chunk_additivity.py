"""Cutting a prefill into chunks leaves its attention work as it was."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import service_demand
from capmodel.network.service_demand import prefill_moments
from capmodel.service import prefill
from capmodel.service.step_law import StepLaw, term
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation
from derivations.service.roofline import dense_law


@derivation(
    statement=(
        r"\Phi(u, p) = 2Pu + a\Bigl(pu + \frac{u^2}{2}\Bigr), \qquad "
        r"\Phi(u_1 + u_2, p) = \Phi(u_1, p) + \Phi(u_2, p + u_1)"
    ),
    assumptions=("Causal attention: token i of a chunk at position p sees p + i tokens.",),
    depends_on=("roofline",),
)
def proof(step: Steps) -> Iterator[Claim]:
    P, a, u1, u2, p, F = sp.symbols("P a u_1 u_2 p F", positive=True)
    i, u = sp.symbols("i u", positive=True, integer=True)
    x = sp.symbols("x", positive=True)

    def work(new, start):
        return 2 * P * new + a * (start * new + new**2 / 2)

    # 1. Sum over tokens, then the continuous form: half a pair per token apart.
    pairs = sp.summation(p + i, (i, 1, u))
    step.equal("1. pairs of a chunk", pairs, p * u + u * (u + 1) / 2)
    step.equal("2. the integral form", sp.integrate(p + x, (x, 0, u1)), p * u1 + u1**2 / 2)
    step.equal("3. work is additive over chunks", work(u1 + u2, p),
               work(u1, p) + work(u2, p + u1))  # fmt: skip
    step.rises("4. a later start costs more", work(u1, p), p)

    # 2. Three-point Gauss quadrature is exact for the mean chunk, since work is a cubic at most.
    nodes = [(1 - sp.sqrt(sp.Rational(3, 5))) / 2, sp.Rational(1, 2),
             (1 + sp.sqrt(sp.Rational(3, 5))) / 2]  # fmt: skip
    weights = [sp.Rational(5, 18), sp.Rational(4, 9), sp.Rational(5, 18)]
    for power in range(6):
        step.equal(f"5.{power} quadrature of the power {power}",
                   sum(w * q**power for w, q in zip(weights, nodes, strict=True)),
                   sp.Rational(1, power + 1))  # fmt: skip
    # 3. n equal chunks from p: mean chunk work by the integral over starts, p ... p + u - u/n.
    n = sp.symbols("n", positive=True, integer=True)
    chunk = u1 / n
    total = sp.summation(a * chunk * (p + (i - 1) * chunk + chunk / 2), (i, 1, n))
    step.equal("6. equal chunks add up to the whole", total, a * (p * u1 + u1**2 / 2))
    step.equal("7. so does the mean over evenly spread starts",
               n * a * chunk * sp.integrate(p + x * (u1 - chunk) + chunk / 2, (x, 0, 1)),
               a * (p * u1 + u1**2 / 2))  # fmt: skip

    # 4. Compute-bound, the code's chunks take the seconds of the whole; overhead once per chunk.
    t0 = sp.symbols("t_0", positive=True)
    m = sp.symbols("m", positive=True)
    domain = {P: Draw(3e10, 1e11, "flop/tokens"), F: Draw(1e15, 8e15, "flop/s"),
              a: Draw(5e5, 5e6, "flop/tokens^2"), t0: Draw(1e-3, 6e-3, "s"),
              u1: Draw(3e3, 9e4, "tokens"), p: Draw(0.0, 2e5, "tokens"),
              m: Draw(512, 8192, "tokens", whole=True)}  # fmt: skip
    seconds = work(u1, p) / F + t0 * sp.ceiling(u1 / m)

    def law(params, flop, pair, overhead, budget):
        return dense_law(params, 0.0, flop, 1e30, pair, 0.0, overhead, budget)

    names = ("capmodel.service.prefill:prefill_s", "capmodel.service.prefill:chunk_budget_tokens")
    yield Claim(text="prefill of a chunked prompt", formula=seconds, unit="s", domain=domain,
                implements=names, rises=(P, a, p, t0), falls=(F,),
                code=lambda q, f, k, o, new, start, b: prefill.prefill_s(
                    law(q, f, k, o, b), new, start))  # fmt: skip
    j, v = sp.symbols("j v", positive=True)
    beside = {
        u1: Draw(3e3, 9e4),
        p: Draw(0.0, 2e5),
        j: Draw(5, 60, whole=True),
        v: Draw(1, 4, whole=True),
        m: Draw(512, 8192, whole=True),
    }
    # Beside j decodes each verifying v tokens a step has room for m - v j.
    yield Claim(
        text="room beside decodes",
        formula=m - v * j,
        implements=("capmodel.service.prefill:chunk_budget_tokens",),
        rises=(m,),
        domain={j: beside[j], v: beside[v], m: beside[m]},
        falls=(j, v),
        code=lambda seq, ver, b: prefill.chunk_budget_tokens(
            StepLaw(terms=(), verify_tokens=ver, max_batched_tokens=b), seq
        ),
    )

    def stepwise(new, start, sequences, verify, budget, mixed=True, stages=1):
        counted = StepLaw(
            terms=(term("step", compute={"step": 1.0}),),
            verify_tokens=verify,
            max_batched_tokens=budget,
            mixed_steps=mixed,
            pipeline_stages=stages,
        )
        return prefill.prefill_s(counted, new, start, sequences, 1.0)

    yield Claim(text="steps of a prefill beside decodes", formula=sp.ceiling(u1 / (m - v * j)),
                domain=beside, implements=names, code=stepwise)  # fmt: skip
    yield Claim(
        text="a prefill alone has the whole budget",
        formula=sp.ceiling(u1 / m),
        domain=beside,
        implements=names,
        code=lambda *w: stepwise(*w, mixed=False),
    )
    stages = sp.symbols("S", positive=True)
    yield Claim(text="a pipeline drains its last chunk",
                formula=(sp.ceiling(u1 / (m - v * j)) + stages - 1) / stages,
                domain=beside | {stages: Draw(2, 8, whole=True)}, implements=names,
                code=lambda *w: stepwise(*w[:5], stages=w[5]))  # fmt: skip

    def piped(new, start, budget, depth, feature):
        rates = StepLaw(terms=(term("one", compute={feature: 1.0}),), max_batched_tokens=budget,
                        pipeline_stages=depth)  # fmt: skip
        return prefill.prefill_s(rates, new, start)

    # A stage time is a cycle over S: a chunk in every stage, so the sum over chunks is S/S = 1.
    last = u1 - m * (sp.ceiling(u1 / m) - 1)
    spot = p + u1 - last
    grid = {
        u1: Draw(3e3, 9e4),
        p: Draw(1.0, 2e5),
        m: Draw(512, 8192, whole=True),
        stages: Draw(2, 8, whole=True),
    }
    for feature, whole, end in (
        ("tokens", u1, last),
        ("prefill_pairs", u1 * (p + u1 / 2), last * (spot + last / 2)),
        ("prefill_chunks", sp.ceiling(u1 / m), sp.Integer(1)),
    ):
        yield Claim(text=f"{feature.replace('_', ' ')} of a pipelined prefill",
                    formula=whole + (stages - 1) * end, domain=grid, implements=names,
                    code=lambda *w, f=feature: piped(*w, f))  # fmt: skip

    # 5. The network's moments: the same seconds where the roof is compute, whole chunks aside.
    def moments(params, flop, pair, overhead, new, start, budget, part):
        found = prefill_moments(
            law(params, flop, pair, overhead, budget),
            np.asarray([new]),
            np.asarray([new + start]),
            np.ones(1),
            np.zeros(1),
            1.0,
        )
        return getattr(found, part)[0]

    smooth = work(u1, p) / F + t0 * u1 / m
    moment = ("capmodel.network.service_demand:prefill_moments",)
    yield Claim(text="mean prefill of the network", formula=smooth, unit="s", domain=domain,
                implements=moment, where=lambda *w: w[4] > 1.1 * w[6], falls=(F,), rises=(P, p),
                code=lambda *w: moments(*w, "seconds"))  # fmt: skip
    yield Claim(text="second moment of the network's prefill", formula=smooth**2, unit="s^2",
                domain=domain, implements=moment, where=lambda *w: w[4] > 1.1 * w[6],
                code=lambda *w: moments(*w, "seconds_squared"))  # fmt: skip
    yield Claim(text="steps of the network's prefill", formula=sp.Max(u1 / m, 1), domain=domain,
                implements=moment, code=lambda *w: moments(*w, "steps"))  # fmt: skip
    short = domain | {u1: Draw(50.0, 400.0, "tokens")}
    yield Claim(
        text="a prefill of one chunk",
        formula=work(u1, p) / F + t0,
        unit="s",
        domain=short,
        implements=moment,
        code=lambda *w: moments(*w, "seconds"),
    )

    def busy(new, start, sequences, verify, budget):
        counted = StepLaw(terms=(term("step", compute={"step": 1.0}),), verify_tokens=verify,
                          max_batched_tokens=budget)  # fmt: skip
        found = service_demand.prefill_moments(
            counted,
            np.asarray([new]),
            np.asarray([new + start]),
            np.ones(1),
            np.asarray([float(sequences)]),
            1.0,
        )
        return found.steps[0]

    yield Claim(text="steps of the network's prefill beside decodes", rises=(j, v),
                formula=u1 / (m - v * j), domain=beside, implements=moment, code=busy,
                where=lambda *w: w[0] > 1.1 * w[4])  # fmt: skip

    # 6. Decodes beside a pipelined prefill add v j tokens to a cycle, once.
    def piped_beside(new, sequences, verify, budget, depth):
        rates = StepLaw(
            terms=(term("one", compute={"tokens": 1.0}),),
            max_batched_tokens=budget,
            verify_tokens=verify,
            pipeline_stages=depth,
        )
        return prefill.prefill_s(rates, new, 0.0, sequences, 1.0)

    room = m - v * j
    chunks = sp.ceiling(u1 / room)
    end = u1 - room * (chunks - 1)
    ridden = v * j / stages
    yield Claim(
        text="tokens of a pipelined prefill beside decodes",
        formula=u1 + chunks * ridden + (stages - 1) * (end + ridden),
        domain={u1: beside[u1], j: beside[j], v: beside[v], m: beside[m],
                stages: Draw(2, 8, whole=True)},
        implements=names,
        code=piped_beside,
    )  # fmt: skip
