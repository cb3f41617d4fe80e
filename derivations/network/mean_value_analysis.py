"""Mean value analysis of think time and one server is Engset's formula."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy as sp

from capmodel.network import markov_chain
from capmodel.reuse import pinned_queue
from derivations.claim import Claim, Draw
from derivations.flat_engine import flat_demand
from derivations.proof import Steps, derivation


def erlang_b(servers: int, load: sp.Expr) -> sp.Expr:
    """Blocking of Erlang's loss formula."""
    terms = [load**k / sp.factorial(k) for k in range(servers + 1)]
    return terms[-1] / sum(terms)


def rate(sessions: int, think: sp.Expr, service: sp.Expr) -> sp.Expr:
    """Throughput by the exact recursion over the population."""
    queue = sp.Integer(0)
    found = sp.Integer(0)
    for n in range(1, sessions + 1):
        stay = service * (1 + queue)
        found = n / (think + stay)
        queue = found * stay
    return sp.cancel(found)


@derivation(
    statement=(
        r"R_n = s(1 + Q_{n-1}),\; X_n = \frac{n}{Z + R_n},\; Q_n = X_n R_n "
        r"\;\Rightarrow\; X_C\, s = 1 - B\!\left(C, \tfrac{Z}{s}\right)"
    ),
    assumptions=(
        "Exponential service, first come first served; delays (think, decode) of any law.",
        "B is Erlang's loss formula: the queue is empty as a loss system with Z/s erlangs is full.",
    ),
    depends_on=("asymptotes",),
)
def proof(step: Steps) -> Iterator[Claim]:
    Z, s, D = sp.symbols("Z s D", positive=True)
    arrivals = sp.symbols("lambda", positive=True)

    # 1. The recursion and the loss formula agree as rational functions.
    for n in range(1, 6):
        step.equal(f"1.{n} recursion for C = {n} is Engset's formula",
                   rate(n, Z, s) * s, 1 - erlang_b(n, Z / s))  # fmt: skip

    # 2. Erlang's own recursion, from which both follow for every C.
    a = sp.symbols("a", positive=True)
    for n in range(1, 5):
        before = erlang_b(n - 1, a)
        step.equal(f"2.{n} loss recursion at {n}", erlang_b(n, a), a * before / (n + a * before))

    # 3. Limits: no thinking saturates, long thinking frees, and both asymptotes are bounds.
    step.limit("3. no think time keeps the server busy", rate(4, Z, s) * s, Z, 0, 1)
    step.limit("4. long think times make a free cycle", rate(4, Z, s) * Z, Z, sp.oo, 4)
    step.positive("5. below the server's asymptote", 1 / s - rate(4, Z, s))
    step.positive("6. below the free line", 4 / (Z + s) - rate(4, Z, s))
    step.falls("7. a longer service lowers throughput", rate(3, Z, s), s)

    # 4. Many sessions, each rarely: X -> lambda, the queue of an open M/M/1. With Z = n/lambda the
    #    recursion's fixed queue obeys Q = X s (1 + Q).
    queue = sp.symbols("Q", positive=True)
    open_queue = sp.solve(sp.Eq(queue, arrivals * s * (1 + queue)), queue)[0]
    step.equal("8. the open limit is M/M/1", open_queue, arrivals * s / (1 - arrivals * s))

    # 5. Decode is a second delay, so Z + D takes the place of Z in both solvers.
    seconds = Draw(0.5, 20.0, "s")
    for n in (1, 2, 3, 5):
        formula = (1 - erlang_b(n, (Z + D) / s)) / s
        domain = {Z: seconds, D: seconds, s: seconds}

        def chain(think, decode, service, n=n):
            demand = flat_demand(think_s=think, step_s=0.01 * decode, decode_steps=100.0,
                                 hit_s=service)  # fmt: skip
            return markov_chain.solve(demand, np.full(1, 0.3), np.zeros(1), n)

        yield Claim(text=f"rate of the exact chain with {n} sessions", formula=formula, unit="1/s",
                    domain=domain, implements=("capmodel.network.markov_chain:solve",),
                    code=lambda *v, n=n, chain=chain: n / chain(*v).cycle_s[0],
                    falls=(Z, D, s))  # fmt: skip
        yield Claim(text=f"utilization of the exact chain with {n} sessions", formula=formula * s,
                    domain=domain, implements=("capmodel.network.markov_chain:solve",),
                    code=lambda *v, chain=chain: chain(*v).prefill_utilization[0])  # fmt: skip
        yield Claim(
            text=f"time at the server of the exact chain with {n} sessions",
            unit="s",
            formula=n / formula - Z - D,
            domain=domain,
            tolerance=1e-8,
            implements=("capmodel.network.markov_chain:solve",),
            code=lambda *v, chain=chain: (chain(*v).wait_s + chain(*v).prefill_s)[0],
        )

        def queue_point(think, decode, service, n=n):
            return pinned_queue.pinned_queue(n, np.full(1, service), decode, think,
                                             np.full(1, 1e3), np.zeros(1), 1e9)  # fmt: skip

        yield Claim(text=f"cycle of the reference server with {n} lanes", unit="s",
                    formula=n / formula, domain=domain, rises=(Z, D, s),
                    implements=("capmodel.reuse.pinned_queue:pinned_queue",),
                    code=lambda *v, q=queue_point: q(*v).cycle_s[0])  # fmt: skip

    # 6. Memory for one or two of three lanes: with the chance f two contexts fit. The rate with two
    #    or three present is mu_1 + f (mu_2 - mu_1), and a chain over the lanes closes the loop.
    w, sd, B = sp.symbols("w sigma B", positive=True)
    f = sp.erfc((2 * w - B) / sd / sp.sqrt(2)) / 2
    one = 1 / (D + s)
    two = 2 / (D + s * (1 + one * s))
    step.equal("9. two lanes inside, by the recursion", two, rate(2, D, s))
    second = one + f * (two - one)
    weights = [1, 3 / Z / one, 6 / Z**2 / (one * second), 6 / Z**3 / (one * second**2)]
    total = sum(weights)
    through = (weights[1] * one + (weights[2] + weights[3]) * second) / total
    pinned = (weights[1] + (weights[2] + weights[3]) * (1 + f)) / total / through
    inside = (weights[1] + 2 * weights[2] + 3 * weights[3]) / total / through
    tight = {Z: Draw(0.5, 5.0, "s"), D: seconds, s: seconds, w: Draw(1e4, 3e4, "tokens"),
             sd: Draw(3e3, 9e3, "tokens"), B: Draw(3e4, 5e4, "tokens")}  # fmt: skip

    def crowded(think, decode, service, context, spread, room):
        return pinned_queue.pinned_queue(
            3, np.full(1, service), decode, think, np.full(1, context), np.full(1, spread**2), room
        )

    def fits_two_at_most(think, decode, service, context, spread, room):
        return room < 2.9 * context and abs(room - 2 * context) < 2 * spread

    for name, value in (
        ("cycle_s", 3 / through),
        ("memory_wait_s", inside - pinned),
        ("prefill_wait_s", pinned - D - s),
    ):
        yield Claim(
            text=f"reference server in tight memory: {name}",
            formula=value,
            unit="s",
            domain=tight,
            implements=("capmodel.reuse.pinned_queue:pinned_queue",),
            where=fits_two_at_most,
            tolerance=1e-7,
            code=lambda *v, n=name: getattr(crowded(*v), n)[0],
        )

    # 7. Alone nobody waits and no prefill slows the only decode: the cycle is the sum of its parts,
    #    whatever the laws of the parts and the sizes of the losses.
    m, z, extra, load, steps = sp.symbols("m f x l S", positive=True)

    def alone(think, decode, service, more, share, size, loading, count, variation=1.0):
        demand = flat_demand(
            think_s=think,
            step_s=0.01 * decode,
            decode_steps=100.0,
            hit_s=service,
            miss_s=service + more,
            hit_steps=count,
            variation=variation,
        )
        return markov_chain.solve(
            demand, np.asarray([share * size]), np.asarray([loading]), 1, np.inf, size
        )

    single = {Z: seconds, D: seconds, s: seconds, extra: seconds, m: Draw(0.1, 0.9),
              z: Draw(0.3, 0.9), load: seconds, steps: Draw(1.0, 9.0)}  # fmt: skip
    for variation in (1.0, 0.3):
        yield Claim(
            text=f"cycle of one session on the exact chain, squared variation {variation}",
            formula=Z + D + s + m * z * extra + load,
            unit="s",
            domain=single,
            implements=("capmodel.network.markov_chain:solve",),
            tolerance=1e-8,
            rises=(Z, D, s, m, z, load),
            code=lambda *v, k=variation: alone(*v, k).cycle_s[0],
        )
        yield Claim(
            text=f"decode of one session on the exact chain, squared variation {variation}",
            formula=D,
            unit="s",
            domain=single,
            implements=("capmodel.network.markov_chain:solve",),
            tolerance=1e-8,
            code=lambda *v, k=variation: alone(*v, k).decode_s[0],
        )
