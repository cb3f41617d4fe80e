"""Ring collectives: an all-reduce moves each byte twice but for one rank's share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy as sp

from capmodel import catalog
from capmodel.service import collectives
from capmodel.service.collectives import Collective
from capmodel.spec.node import Node
from derivations.claim import Claim, Draw, Limit
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"t_{AR} = \ell + \frac{2(n-1)}{n}\frac{S}{\beta}, \qquad "
        r"t_{AG} = t_{RS} = \ell + \frac{n-1}{n}\frac{S}{\beta}"
    ),
    assumptions=(
        "A ring of n ranks with link rate beta; S is the whole tensor; l a floor per call.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    n, S, beta, floor = sp.symbols("n S beta l", positive=True)
    steps = sp.symbols("k", integer=True, positive=True)

    # 1. n-1 steps, each rank passing on 1/n of the tensor: reduce-scatter, and again all-gather.
    once = sp.summation(S / n / beta, (steps, 1, n - 1))
    step.equal("1. one pass around the ring", once, (n - 1) / n * S / beta)
    step.equal("2. an all-reduce is two passes", 2 * once, 2 * (n - 1) / n * S / beta)
    step.limit("3. large rings approach two tensors per link", 2 * once, n, sp.oo, 2 * S / beta)
    step.equal("4. a group of one moves nothing", once.subs(n, 1), 0)
    algorithm = S / (2 * once)
    step.equal("5. bus to algorithm bandwidth", algorithm, beta * n / (2 * (n - 1)))
    step.falls("6. it falls with the group", algorithm.subs(n, 1 + floor), floor)
    # 2. Messages below floor beta are latency: the size at which both parts are equal.
    step.solves("7. half-bandwidth message", floor - S / beta, S, floor * beta)

    message = {
        floor: Draw(1e-6, 3e-5, "s"),
        S: Draw(1e4, 1e9, "bytes"),
        beta: Draw(1e10, 9e11, "bytes/s"),
    }
    yield Claim(
        text="seconds of a collective",
        formula=floor + S / beta,
        unit="s",
        domain=message,
        implements=("capmodel.service.collectives:Collective.seconds",),
        rises=(floor, S),
        falls=(beta,),
        limits=(Limit(S, 0.0, floor),),
        code=lambda a, s, b: Collective(latency_s=a, bytes_per_s=b, kind="given").seconds(s),
    )

    # 3. Where nothing was measured, the link's share over the ring factor.
    ranks = sp.symbols("n", positive=True)
    part = catalog.accelerator("B300")
    links = catalog.efficiencies("defaults")["links"]

    def node_of(rate, nic=5e10, host=5e10):
        made = replace(part, name="unmeasured part", scale_up_bytes_per_s=rate, scale_up_domain=8,
                       nic_bytes_per_s=nic, host_bytes_per_s=host)  # fmt: skip
        return Node(accelerator=made, gpus=8, nodes=4)

    inside = {ranks: Draw(2, 8, whole=True), beta: Draw(3e11, 9e11, "bytes/s")}
    names = ("capmodel.service.collectives:collective",)
    for kind, times in (
        ("all_reduce", 2),
        ("all_gather", 1),
        ("reduce_scatter", 1),
        ("all_to_all", 1),
    ):
        share = sp.Rational(str(links[kind][0]))
        yield Claim(
            text=f"rate of an unmeasured {kind}",
            unit="bytes/s",
            domain=inside,
            formula=share * beta * ranks / (times * (ranks - 1)),
            implements=names,
            falls=(ranks,),
            rises=(beta,),
            code=lambda k, b, op=kind: collectives.collective(op, k, node_of(b)).bytes_per_s,
        )
        network = sp.Rational(str(links["network_share"][0]))
        nic = sp.symbols("beta_n", positive=True)
        yield Claim(text=f"rate of an {kind} across nodes", unit="bytes/s", implements=names,
                    formula=network * nic * ranks / (times * (ranks - 1)),
                    domain={ranks: Draw(9, 32, whole=True), nic: Draw(2e10, 1e11, "bytes/s")},
                    code=lambda k, b, op=kind: collectives.collective(
                        op, k, node_of(5e11, b)).bytes_per_s)  # fmt: skip
        yield Claim(text=f"rate of an {kind} across nodes without a network part", unit="bytes/s",
                    formula=sp.Rational(str(links["network_share"][1])) * nic * ranks
                    / (times * (ranks - 1)), implements=names,
                    domain={ranks: Draw(9, 32, whole=True), nic: Draw(2e10, 1e11, "bytes/s")},
                    code=lambda k, b, op=kind: collectives.collective(
                        op, k, node_of(5e11, 0.0, b)).bytes_per_s)  # fmt: skip
