"""Turn-age by renewal-reward: how much larger the last turn of a session is than a random one."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.workload import Workload
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


def _workload(tree: float, cv: float) -> Workload:
    return Workload(
        name="drawn", request_tokens_mean=1e5, request_tokens_cv=0.5, tree_tokens_mean=tree,
        tree_tokens_cv=0.5, output_tokens_mean=400.0, output_tokens_cv=1.0, turns_mean=50.0,
        theoretical_hit_rate=0.95, think_time=LognormalMixture.constant(10.0), turns_cv=cv,
    )  # fmt: skip


@derivation(
    statement=(
        r"P(\text{age} = k) = \frac{P(K \ge k)}{E[K]}, \quad E[\text{age}] = "
        r"\frac{1}{2}\Bigl(\frac{E[K^2]}{E[K]} + 1\Bigr), \quad "
        r"\frac{E[K]}{E[\text{age}]} \to \frac{2}{1 + c_K^2}"
    ),
    assumptions=(
        "A session has K turns and its context grows by the same amount in each.",
        "Turns are sampled at random; many turns per session for the last line.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    k, n = sp.symbols("k n", positive=True, integer=True)
    q, mean, cv, tree = sp.symbols("q K c Y", positive=True)

    # 1. sum_k k P(K >= k) = E[K(K+1)/2], because each session adds 1 + 2 + ... + K.
    total = sp.Sum(k, (k, 1, n)).doit()
    step.equal("1. ages of one session", total, n * (n + 1) / 2)
    second = mean**2 * (1 + cv**2)
    age = (second + mean) / 2 / mean
    step.equal("2. mean age", age, (second / mean + 1) / 2)

    # 2. Deterministic K: (K+1)/2. Geometric K, with c^2 = 1 - 1/E[K]: E[K], the law forgets.
    step.equal("3. sessions of equal length", age.subs(cv, 0), (mean + 1) / 2)
    step.equal("4. a geometric law forgets: P(K >= k) falls by (1 - q) q^(k-1)",
               q ** (k - 1) - q**k, (1 - q) * q ** (k - 1))  # fmt: skip
    step.equal("5. geometric sessions have a mean age of E[K]",
               age.subs(cv, sp.sqrt(1 - 1 / mean)), mean)  # fmt: skip

    # 3. The last turn has age K; the ratio of the two for long sessions.
    ratio = sp.limit(mean / age, mean, sp.oo)
    step.equal("6. last turn over a random one", ratio, 2 / (1 + cv**2))
    step.equal("7. it is one for geometric sessions", ratio.subs(cv, 1), 1)
    step.falls("8. it falls with the variation of the length", ratio, cv)

    yield Claim(text="tokens that an ended session leaves behind", unit="tokens",
                implements=("capmodel.spec.workload:Workload.ended_tokens_mean",),
                formula=tree * ratio, domain={tree: Draw(1e5, 5e5, "tokens"), cv: Draw(0.2, 2.0)},
                code=lambda y, c: _workload(y, c).ended_tokens_mean, rises=(tree,),
                falls=(cv,))  # fmt: skip
