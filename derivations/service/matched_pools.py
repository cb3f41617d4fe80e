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

    # 4. The same with everything switched on: overlap, a front end, drafts, decodes that read their
    #    context (so d grows with the batch of each replica), and several decode replicas.
    A, o_, f, front, slope, Nd, w = sp.symbols("A o_v f r g N_d w", positive=True)
    hidden = L - o_ * sp.Min(P + front, (1 - f) * L)
    steps_ = (out - 1) / A
    read = slope * (w + out / 2)
    # n/N_d sequences on each replica: n/(D d) with d = g (w + o/2) n/N_d is N_d/(D g (w + o/2)).
    paced = Nd / (steps_ * read)
    waiting = P + front + hidden
    step.solves("8. decodes that read bring a fixed rate, whatever the batch",
                X * steps_ * read * n / Nd - n, X, paced)  # fmt: skip
    full = {P: Draw(0.1, 0.3), L: Draw(0.1, 1.0), out: Draw(50.0, 500.0), C: Draw(900.0, 1500.0),
            A: Draw(1.2, 3.0), o_: Draw(0.2, 1.0), f: Draw(0.02, 0.2), front: Draw(0.01, 0.1),
            slope: Draw(1e-6, 3e-6), Nd: Draw(2, 5, whole=True)}  # fmt: skip

    def rich(prefill, load, output, clients, accepted, over, first, request, gain, replicas, field):
        busy = StepLaw(terms=(term("step", memory={"step": prefill}),), request_s=request,
                       max_batched_tokens=int(tokens))  # fmt: skip
        reading = StepLaw(terms=(term("read", memory={"decode_context": gain}),),
                          accepted_tokens=accepted, max_sequences=4096)  # fmt: skip
        found = disaggregation.disaggregated_point(
            busy, reading, link(load, 0.0, tokens, 1e9, over, first), tokens, output, clients,
            prefill_replicas=10**6, decode_replicas=replicas,
        )  # fmt: skip
        return getattr(found, field)

    fixed = paced.subs(w, sp.Float(tokens))
    for field, value in (
        ("decoding", C - fixed * waiting),
        ("output_tokens_per_s", fixed * out),
        ("ttft_s", waiting),
    ):
        yield Claim(
            text=f"two pools with everything on: {field}",
            formula=value,
            domain=full,
            implements=names,
            tolerance=1e-7,
            where=lambda *v: v[3] > 5 * v[9] + v[9] * v[4] / (49 * v[8] * 1025) * 2.0,
            code=lambda *v, k=field: rich(*v, k),
        )

    def matched(prefill, gain, output, sequences, accepted):
        busy = StepLaw(terms=(term("step", memory={"step": prefill}),),
                       max_batched_tokens=int(tokens))  # fmt: skip
        reading = StepLaw(terms=(term("read", memory={"decode_context": gain}),),
                          accepted_tokens=accepted)  # fmt: skip
        return disaggregation.matched_prefill_replicas(busy, reading, tokens, output, sequences)

    yield Claim(
        text="matched replicas of decodes that read their context",
        formula=P / (steps_ * read.subs(w, sp.Float(tokens))),
        domain={P: full[P], slope: full[slope], out: full[out], n: Draw(2.0, 200.0), A: full[A]},
        implements=("capmodel.service.disaggregation:matched_prefill_replicas",),
        rises=(P, A),
        falls=(slope, out),
        code=matched,
    )
