"""How many replicas a demand needs, and why sessions assigned at random need more room."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.network import critical
from capmodel.optimize import affinity
from capmodel.optimize.objective import Objective
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation


@derivation(
    statement=(
        r"N = \Bigl\lceil \frac{\lambda}{\theta X} \Bigr\rceil + k, \qquad "
        r"\mathrm{Var}\,Y = C(\sigma^2 + \mu^2) \;\text{(random)} \ge C\sigma^2 \;\text{(balanced)}"
    ),
    assumptions=(
        "Sessions stay on their node; each replica carries theta X.",
        "Random assignment makes the sessions of a node Poisson with mean C.",
    ),
    depends_on=("critical_concurrency", "interval_bound"),
)
def proof(step: Steps) -> Iterator[Claim]:
    lam, theta, X, C, mu, kappa, N, B, z = sp.symbols(
        "lambda theta X C mu kappa N B zeta", positive=True
    )
    M = sp.symbols("M", positive=True, integer=True)

    # 1. Binomial(M, 1/N) sessions on a node: mean C = M/N, variance C (1 - 1/N).
    p = 1 / N
    variance = M * p * (1 - p)
    step.equal("1. variance of the sessions on a node", variance.subs(M, C * N), C * (1 - 1 / N))
    step.limit("2. Poisson for many nodes", C * (1 - 1 / N), N, sp.oo, C)
    # 2. Total variance: E[count] Var f + Var[count] mu^2.
    sigma = kappa * mu
    total = C * sigma**2 + C * mu**2
    step.equal("3. compound variance", total, C * mu**2 * (kappa**2 + 1))
    widening = sp.sqrt(total / (C * sigma**2))
    step.equal("4. the margin widens by", widening, sp.sqrt(1 + 1 / kappa**2))
    step.falls("5. least for the most varied sessions", sp.sqrt(1 + 1 / kappa), kappa)
    # 3. Square-root staffing: N servers of a shared queue keep a margin that grows as sqrt(N), so
    #    per server it shrinks as 1/sqrt(N).
    beta, load = sp.symbols("beta A", positive=True)
    staffed = load + beta * sp.sqrt(load)
    step.limit("6. pooled margin per unit of load vanishes", staffed / load, load, sp.oo, 1)
    # 4. The ceiling: a demand between N-1 and N replicas' worth takes N.
    share = sp.symbols("s", positive=True)
    step.equal(
        "7. utilisation of N replicas at a demand of (N - s) of them",
        (N - share) * X / (N * X),
        1 - share / N,
    )

    demand = {lam: Draw(5.0, 50.0, "1/s"), theta: Draw(0.5, 1.0), X: Draw(0.05, 3.0, "1/s")}
    spare = sp.symbols("k", positive=True)
    yield Claim(text="replicas that carry a demand", formula=sp.ceiling(lam / (theta * X)) + spare,
                domain=demand | {spare: Draw(0, 3, whole=True)}, rises=(spare,),
                implements=("capmodel.optimize.objective:Objective.replicas",),
                code=lambda d, h, x, s: Objective(
                    demand_requests_per_s=d, headroom=h, spare_replicas=s).replicas(x))  # fmt: skip
    yield Claim(text="one replica and its spares without a demand", formula=1 + spare,
                domain={spare: Draw(0, 3, whole=True)}, rises=(spare,),
                implements=("capmodel.optimize.objective:Objective.replicas",),
                code=lambda s: Objective(spare_replicas=s).replicas(0.5))  # fmt: skip
    # 5. Over budget exactly where N p exceeds it.
    p_, budget = sp.symbols("p b", positive=True)
    yield Claim(
        text="over budget",
        domain=demand | {p_: Draw(5.0, 100.0, "usd/h"), budget: Draw(200.0, 2000.0, "usd/h")},
        formula=sp.Heaviside(sp.ceiling(lam / (theta * X)) * p_ - budget, 0),
        implements=("capmodel.optimize.objective:Objective.over_budget",),
        code=lambda d, h, x, c, b: Objective(
            demand_requests_per_s=d, headroom=h, budget_usd_per_hour=b
        ).over_budget(c, x),
    )
    # 6. Random assignment in the rule of thumb: kappa becomes sqrt(1 + kappa^2).
    b_ = B / mu
    half = z * sp.sqrt(1 + kappa**2) / 2
    yield Claim(
        text="critical concurrency under random assignment",
        falls=(kappa, z, mu),
        rises=(B,),
        formula=(sp.sqrt(b_ + half**2) - half) ** 2,
        domain={
            B: Draw(1e6, 1e7, "tokens"),
            mu: Draw(5e4, 3e5, "tokens"),
            kappa: Draw(0.2, 1.2),
            z: Draw(1.0, 3.5),
        },
        implements=("capmodel.network.critical:critical_concurrency",),
        code=lambda cap, m, k, s: critical.critical_concurrency(
            cap, m, (1 + k * k) ** 0.5, score=s
        ),
    )

    # 7. The same with a score z: equal chances of overflow, a quadratic in the root of M.
    safe, k, score, pooled = sp.symbols("C_s k z N_p", positive=True)
    half = score * sp.sqrt(1 + k**2) / 2
    level = safe + score * k * sp.sqrt(safe)
    root = sp.sqrt(level + half**2) - half
    y = sp.symbols("y", positive=True)
    step.solves("8. sessions under random assignment", y**2 + 2 * half * y - level, y, root)
    draws = {safe: Draw(3.0, 60.0), k: Draw(0.2, 1.2), score: Draw(0.5, 3.0)}
    yield Claim(text="sessions that random assignment allows", formula=root**2, domain=draws,
                implements=("capmodel.optimize.affinity:randomly_assigned_sessions",),
                code=affinity.randomly_assigned_sessions, rises=(safe,))  # fmt: skip
    gain = score * k * sp.sqrt(safe) * (pooled - sp.sqrt(pooled))
    step.equal("9. head-room of N private caches and of one shared cache",
               sp.expand(pooled * score * k * sp.sqrt(safe)
                         - score * k * sp.sqrt(pooled * safe)), sp.expand(gain))  # fmt: skip
    yield Claim(text="sessions that pooling gains", formula=gain,
                domain={safe: draws[safe], k: draws[k], pooled: Draw(2, 32, whole=True),
                        score: draws[score]},
                implements=("capmodel.optimize.affinity:pooling_gain_sessions",),
                code=affinity.pooling_gain_sessions, rises=(safe, k, pooled, score))  # fmt: skip
