"""Two pools match where prefills come as fast as decodes end; otherwise one of them waits."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.service import disaggregation
from capmodel.service.step_law import StepLaw, term
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation
from derivations.service.offload_break_even import link


@derivation(
    statement=(
        r"X = \min\Bigl(\frac{N_p}{P}, \frac{C}{P + L + D d}\Bigr), \qquad n = X D d, \qquad "
        r"\frac{N_p}{P} = \frac{n}{D\,d(n)}"
    ),
    assumptions=("C clients, equal prompts; a decode step takes d whatever the batch.",),
    depends_on=("offload_break_even", "asymptotes"),
)
def proof(step: Steps) -> Iterator[Claim]:
    C, P, L, D, d, Np, n, X = sp.symbols("C P L D d N_p n X", positive=True)
    slack = sp.symbols("x", positive=True)

    # 1. Nobody waits: clients are in prefill, on the link, or in decode.
    free = C / (P + L + D * d)
    step.solves("1. rate without waiting", X * D * d + X * (P + L) - C, X, free)
    step.equal("2. decoding share of the clients", free * D * d / C, D * d / (P + L + D * d))
    # 2. Saturated prefill: N_p/P, everybody else waits, and Little's law gives the first token.
    cap = Np / P
    step.equal("3. clients out of decode at saturation", C - cap * D * d, C - Np * D * d / P)
    crossing = Np * (P + L + D * d) / P
    step.solves("4. clients at which the prefill pool saturates", free - cap, C, crossing)
    step.negative("5. below it the free rate binds", (free - cap).subs(C, crossing / (1 + slack)))
    # 3. Matched pools.
    step.solves("6. prefill replicas per decode replica", Np / P - n / (D * d), Np, P * n / (D * d))
    step.rises("7. more sequences in decode want more prefill", P * n / (D * d), n)

    def law(seconds: float, sequences: int = 4096) -> StepLaw:
        return StepLaw(terms=(term("step", memory={"step": seconds}),), max_batched_tokens=10**6,
                       max_sequences=sequences)  # fmt: skip

    tokens, out = 1000.0, sp.symbols("o", positive=True)
    domain = {P: Draw(0.1, 2.0, "s"), L: Draw(0.05, 1.0, "s"), d: Draw(0.01, 0.05, "s"),
              out: Draw(50.0, 500.0), C: Draw(2.0, 90.0), Np: Draw(1, 6, whole=True)}  # fmt: skip

    def point(prefill, load, step_s, output, clients, replicas, field):
        # One prompt of the budget's length fills a step, so the pool serves one per P.
        busy = StepLaw(
            terms=(term("step", memory={"step": prefill}),), max_batched_tokens=int(tokens)
        )
        found = disaggregation.disaggregated_point(
            busy, law(step_s), link(load, 0.0, tokens), tokens, output, clients,
            prefill_replicas=replicas)  # fmt: skip
        return getattr(found, field)

    decode = (out - 1) * d
    rate = sp.Min(Np / P, C / (P + L + decode))
    names = ("capmodel.service.disaggregation:disaggregated_point",)
    for field, value, unit in (
        ("decoding", rate * decode, "1"),
        ("tpot_s", d, "s"),
        ("ttft_s", C / rate - decode, "s"),
        ("output_tokens_per_s", rate * out, "1/s"),
        ("prefill_utilization", rate * P / Np, "1"),
    ):
        yield Claim(text=f"two pools: {field}", formula=value, unit=unit, domain=domain,
                    implements=names, tolerance=1e-8,
                    code=lambda *v, f=field: point(*v, f))  # fmt: skip
    yield Claim(
        text="matched prefill replicas",
        formula=P * n / decode,
        rises=(P, n),
        falls=(d, out),
        implements=("capmodel.service.disaggregation:matched_prefill_replicas",),
        domain={P: domain[P], d: domain[d], out: domain[out], n: Draw(2.0, 200.0)},
        code=lambda p, s, o, j: disaggregation.matched_prefill_replicas(
            StepLaw(terms=(term("step", memory={"step": p}),), max_batched_tokens=int(tokens)),
            law(s),
            tokens,
            o,
            j,
        ),
    )
