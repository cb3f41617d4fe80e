"""Steps of a decode: the first token comes with the prefill, the last step gains what is left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import service_demand
from capmodel.service.step_law import StepLaw, term
from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.workload import Workload
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


def workload(
    prompt: float,
    output: float,
    ceiling: float,
    shared: float = 0.0,
    cv: float = 0.0,
    think: float = 10.0,
) -> Workload:
    """Return a workload of equal prompts."""
    return Workload(
        name="drawn", request_tokens_mean=prompt, request_tokens_cv=cv, tree_tokens_mean=prompt,
        tree_tokens_cv=cv, output_tokens_mean=output, output_tokens_cv=0.0, turns_mean=50.0,
        theoretical_hit_rate=ceiling, think_time=LognormalMixture.constant(think), new_tokens_cv=cv,
        shared_prefix_tokens=shared)  # fmt: skip


@derivation(
    statement=r"N = \frac{o - 1}{A} + \frac{1}{2}\Bigl(1 - \frac{1}{A}\Bigr)",
    assumptions=(
        "A tokens are accepted per step; o - 1 are left after the prefill's own token.",
        "The last step is as likely to need 1, 2, ... A of its tokens.",
    ),
    depends_on=("speculation",),
)
def proof(step: Steps) -> Iterator[Claim]:
    o, A = sp.symbols("o A", positive=True)
    a, i, k = sp.symbols("a i k", integer=True, positive=True)

    # 1. ceil((o-1)/a) averaged over the remainders of o - 1 modulo a: k a + i, i = 1 ... a.
    mean = sp.summation(k + 1, (i, 1, a)) / a
    tokens_left = sp.summation(k * a + i, (i, 1, a)) / a
    step.equal("1. mean tokens of these outputs", sp.simplify(tokens_left), k * a + (a + 1) / 2)
    formula = tokens_left / a + (1 - sp.Integer(1) / a) / 2
    step.equal("2. mean steps", sp.simplify(formula - mean), 0)
    N = (o - 1) / A + (1 - 1 / A) / 2
    step.equal("3. no draft, one step per token", N.subs(A, 1), o - 1)
    step.rises("4. longer outputs take more steps", N, o)
    step.equal("5. elasticity in the accepted length for long outputs", sp.limit(
        sp.diff(N, A) * A / N, o, sp.oo), -1)  # fmt: skip

    def demand(output, accepted, prompt=1e4, ceiling=0.5, think=10.0, shared=0.0, sessions=8):
        law = StepLaw(terms=(term("tokens", compute={"tokens": 1e-6}, memory={"step": 0.0}),),
                      accepted_tokens=accepted, max_batched_tokens=10**9)  # fmt: skip
        return service_demand.service_demand(
            law, workload(prompt, output, ceiling, shared, think=think), sessions
        )

    names = ("capmodel.network.service_demand:service_demand",)
    yield Claim(
        text="decode steps of a request",
        formula=N,
        implements=names,
        rises=(o,),
        falls=(A,),
        domain={o: Draw(50.0, 2e3), A: Draw(1.0, 4.0)},
        code=lambda x, y: demand(x, y).decode_steps,
    )
    # 2. Hits compute what an infinite cache would not find; misses all but the shared prefix.
    w, H, S = sp.symbols("w H S", positive=True)
    work = {w: Draw(1e4, 9e4), H: Draw(0.5, 0.95), S: Draw(100.0, 4e3)}
    yield Claim(text="prefill of a hit", formula=w * (1 - H) / 10**6, implements=names, domain=work,
                falls=(H,), rises=(w,),
                code=lambda p, h, s: demand(100.0, 1.0, p, h, shared=s).hit.seconds[0])  # fmt: skip
    yield Claim(
        text="prefill of a miss",
        formula=(w - S) / 10**6,
        implements=names,
        domain=work,
        falls=(S,),
        rises=(w,),
        code=lambda p, h, s: demand(100.0, 1.0, p, h, shared=s).miss.seconds[0],
    )
    # 3. A pure decode step at every batch of the grid, at least one sequence.
    n = sp.symbols("n", positive=True)
    yield Claim(text="decode step on the batch grid", formula=n / 10**6, implements=names,
                domain={n: Draw(1, 8, whole=True)}, rises=(n,),
                code=lambda j: demand(100.0, 1.0).decode_step_s[j])  # fmt: skip
    z = sp.symbols("z", positive=True)
    yield Claim(text="mean gap of the demand", formula=z, implements=names, unit="s",
                domain={z: Draw(1.0, 60.0, "s")}, rises=(z,),
                code=lambda g: demand(100.0, 1.0, think=g).think_mean_s)  # fmt: skip
    # 4. The grid holds every batch up to 32, then a geometric series up to its limit.
    for limit in (5, 300):
        yield Claim(text=f"batch grid up to {limit}", formula=n, domain={n: Draw(0, 5, whole=True)},
                    implements=("capmodel.network.service_demand:batch_grid",),
                    code=lambda j, m=limit: service_demand.batch_grid(m)[j])  # fmt: skip
    yield Claim(text="last batch of the grid", formula=n, domain={n: Draw(40, 900, whole=True)},
                implements=("capmodel.network.service_demand:batch_grid",),
                code=lambda m: np.max(service_demand.batch_grid(m)))  # fmt: skip

    # 5. Decodes read their context, half their own output on average.
    out, prompt = sp.symbols("o_m w_m", positive=True)

    def reading(length, output, part):
        law = StepLaw(
            terms=(term("read", memory={"decode_context": 1.0}),), max_batched_tokens=10**9
        )
        found = service_demand.service_demand(law, workload(length, output, 0.5), 4)
        return found.decode_step_s[2] if part == "step" else found.hit.seconds[2]

    context = {prompt: Draw(1e3, 9e3), out: Draw(100.0, 900.0)}
    for part in ("step", "prefill"):
        yield Claim(
            text=f"context that two decodes read beside a {part}",
            formula=2 * (prompt + out / 2),
            implements=names,
            domain=context,
            rises=(prompt, out),
            code=lambda *v, p=part: reading(*v, p),
        )
    # 6. Nodes cut at a cap keep the mean, and the ratio of the cap to the least node.
    sigma, edge = sp.symbols("sigma c", positive=True)
    least = float(np.polynomial.hermite_e.hermegauss(5)[0][0])

    def capped(mean, width, share):
        nodes, _ = service_demand.lognormal_nodes(
            mean, float(np.sqrt(np.expm1(width**2))), 5, share * mean
        )
        return nodes[-1] / nodes[0]

    yield Claim(
        text="ratio of the cap to the least node",
        formula=edge / sp.exp(sigma * sp.Float(least, 17) - sigma**2 / 2),
        implements=("capmodel.network.service_demand:lognormal_nodes",),
        domain={prompt: Draw(1e3, 1e5, "tokens"), sigma: Draw(0.3, 1.0), edge: Draw(1.0, 1.1)},
        code=capped,
        rises=(sigma, edge),
    )
