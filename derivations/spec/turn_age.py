"""Turn-age by renewal-reward: how much larger the last turn of a session is than a random one."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.turn_moments import workload_of_turns
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

    # 4. Contexts grow by u + o a turn: mean and variance over turns, by the law of total variance.
    u, o, L0 = sp.symbols("u o L_0", positive=True)
    a = sp.symbols("a", positive=True)
    conditional = L0 + o + (a - 1) * (u + o)
    step.equal("9. slope of the context in the age", sp.diff(conditional, a), u + o)
    step.equal("10. sum of squared ages of one session", sp.Sum(k**2, (k, 1, n)).doit(),
               n * (n + 1) * (2 * n + 1) / 6)  # fmt: skip

    # 5. Two lengths of session, a quarter and three quarters of them.
    k1, k2, cf, cu, co, S = sp.symbols("K_1 K_2 c_f c_u c_o S", positive=True)
    domain = {L0: Draw(1e4, 3e4, "tokens"), cf: Draw(0.2, 1.0), u: Draw(1e3, 4e3, "tokens"),
              cu: Draw(0.2, 1.0), o: Draw(200.0, 900.0, "tokens"), co: Draw(0.2, 1.0),
              k1: Draw(5, 30, whole=True), k2: Draw(31, 90, whole=True),
              S: Draw(1e3, 9e3, "tokens")}  # fmt: skip

    def load(first, fv, new, nv, out, ov, few, many, shared):
        law = LognormalMixture.from_mean_cv
        turns = LognormalMixture(weights=(0.25, 0.75), medians=(float(few), float(many)),
                                 sigmas=(0.0, 0.0))  # fmt: skip
        return workload_of_turns(
            "drawn", first_tokens=law(first, fv), new_tokens=law(new, nv), turns=turns,
            output_tokens=law(out, ov), think_time=LognormalMixture.constant(10.0),
            shared_prefix_tokens=shared)  # fmt: skip

    def over(moment):
        return (moment(k1) + 3 * moment(k2)) / 4

    turns = over(lambda j: j)
    mean_age = over(lambda j: j * (j + 1) / 2) / turns
    square_age = over(lambda j: j * (j + 1) * (2 * j + 1) / 6) / turns
    held = L0 + o + (mean_age - 1) * (u + o)
    spread = ((cf * L0) ** 2 + (co * o) ** 2 + (mean_age - 1) * ((cu * u) ** 2 + (co * o) ** 2)
              + (u + o) ** 2 * (square_age - mean_age**2))  # fmt: skip
    prompt = S + L0 + (mean_age - 1) * (u + o)
    fresh = (L0 + (turns - 1) * u) / turns
    second_fresh = (L0**2 * (1 + cf**2) + (turns - 1) * u**2 * (1 + cu**2)) / turns
    for name, value, unit in (
        ("turns_mean", turns, "1"),
        ("tree_tokens_mean", held, "tokens"),
        ("request_tokens_mean", prompt, "tokens"),
        ("tree_tokens_cv", sp.sqrt(spread) / held, "1"),
        ("request_tokens_cv", sp.sqrt(spread) / prompt, "1"),
        ("theoretical_hit_rate", 1 - fresh / prompt, "1"),
        ("turns_cv", sp.sqrt(over(lambda j: j**2) / turns**2 - 1), "1"),
        ("new_tokens_cv", sp.sqrt(second_fresh / fresh**2 - 1), "1"),
        ("output_tokens_cv", co, "1"),
    ):
        yield Claim(text=f"workload of growing sessions: {name}", formula=value, unit=unit,
                    domain=domain, implements=("capmodel.spec.turn_moments:workload_of_turns",),
                    code=lambda *v, f=name: getattr(load(*v), f), tolerance=1e-8)  # fmt: skip

    # 6. A longest context ends sessions early: at most floor((W - S - L0)/(u + o)) turns.
    W = sp.symbols("W", positive=True)

    def cut(first, new, out, shared, longest):
        law = LognormalMixture.constant
        found = workload_of_turns(
            "drawn",
            first_tokens=law(first),
            new_tokens=law(new),
            output_tokens=law(out),
            turns=law(400.0),
            think_time=law(10.0),
            shared_prefix_tokens=shared,
            max_context_tokens=longest,
        )
        return found.turns_mean

    yield Claim(
        text="turns under a longest context",
        formula=sp.floor((W - S - L0) / (u + o)),
        domain={L0: domain[L0], u: domain[u], o: domain[o], S: domain[S],
                W: Draw(1e5, 3e5, "tokens")},
        implements=("capmodel.spec.turn_moments:workload_of_turns",),
        code=cut,
    )  # fmt: skip

    # 7. Spread turns: the strata have the law's mean, but for rounding to whole turns.
    def spread_turns(mean_turns, variation):
        law = LognormalMixture.from_mean_cv
        found = workload_of_turns(
            "drawn",
            first_tokens=law(1e4, 0.5),
            new_tokens=law(1e3, 0.5),
            output_tokens=law(400.0, 0.5),
            turns=law(mean_turns, variation),
            think_time=law(10.0, 1.0),
        )
        return found.turns_mean

    yield Claim(
        text="mean of spread turns",
        formula=mean,
        domain={mean: Draw(60.0, 300.0), cv: Draw(0.2, 0.6)},
        implements=("capmodel.spec.turn_moments:workload_of_turns",),
        tolerance=2e-3,
        rises=(mean,),
        code=spread_turns,
    )
