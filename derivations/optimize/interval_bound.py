"""The least price and the greatest rate of an interval bound every plan inside it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import sympy as sp

from capmodel.optimize import objective
from capmodel.optimize.objective import Objective
from derivations.claim import Claim, Draw
from derivations.cost.tariff import PRICE, tariff
from derivations.proof import Steps, derivation


def scenario(
    prompt: float = 1e5,
    output: float = 400.0,
    prices: tuple[float, ...] = (3.0, 0.3, 15.0),
    rule: str = "actual",
    ceiling: float = 0.95,
    **hardware: Any,
) -> Any:
    """Return as much of a scenario as an objective reads."""
    return SimpleNamespace(
        workload=SimpleNamespace(request_tokens_mean=prompt, output_tokens_mean=output,
                                 theoretical_hit_rate=ceiling),
        tariff=tariff(*prices), bill_cached=rule, **hardware,
    )  # fmt: skip


@derivation(
    statement=(
        r"v(p, X) = \frac{p\,N(X)}{\min(X, \lambda)\dots}: \; v_p > 0,\; v_X \le 0 "
        r"\;\Rightarrow\; v(x) \ge v\bigl(p(x_1), X(x_2)\bigr) \;\; \forall x \in [x_1, x_2]"
    ),
    assumptions=(
        "The price p rises with the DRAM size x; LRU inclusion makes the rate X rise with it too.",
        "N replicas carry a demand lambda, or one replica is priced at its own rate.",
    ),
    depends_on=("tariff", "tiers"),
)
def proof(step: Steps) -> Iterator[Claim]:
    p, X, lam, theta, tok, R, k = sp.symbols("p X lambda theta t R k", positive=True)
    dp, dX = sp.symbols("d_p d_X", positive=True)
    n, o, pi, pc, po, H = sp.symbols("n o p_i p_c p_o H", positive=True)
    million, hour = 10**6, 3600

    # 1. Without a demand: dollars over tokens.
    value = p / (hour * X * tok)
    step.rises("1. a dearer hour costs more", value, p)
    step.falls("2. a faster replica costs less", value, X)
    # 2. Any price above and rate below the corner's costs more.
    step.positive("3. the corner is a lower bound",
                  (p + dp) / (hour * X * tok) - p / (hour * (X + dX) * tok))  # fmt: skip
    # 3. With a demand the number of replicas is a ceiling: N never rises with X.
    fluid = lam / (theta * X)
    step.falls("4. fewer replicas carry the demand at a higher rate", fluid, X)
    whole = sp.symbols("N", positive=True, integer=True)
    rest = sp.symbols("r", positive=True)
    step.equal("5. a ceiling is at least its argument and less than one more",
               sp.ceiling(whole - sp.Rational(1, 3)), whole)  # fmt: skip
    step.limit(
        "6. cost of a request at large demand",
        p * (lam / (theta * X) + rest) / lam,
        lam,
        sp.oo,
        p / (theta * X),
    )
    # 4. Cost over revenue is one less the margin, so least value is most margin.
    step.equal("7. cost over revenue", p / (X * hour * R), 1 - (X * hour * R - p) / (X * hour * R))
    # 5. Gap: a box of widths dp and dX is within a factor of both relative widths.
    a, b = sp.symbols("a b", positive=True)
    step.equal("8. relative gap of a box", (p * (1 + a) / X) / (p / (X * (1 + b))),
               (1 + a) * (1 + b))  # fmt: skip

    # -- claims
    where = "capmodel.optimize.objective:"
    single = {p: Draw(5.0, 100.0, "usd/h"), X: Draw(0.05, 3.0, "1/s"), n: Draw(1e5, 2e5, "tokens"),
              o: Draw(100.0, 900.0, "tokens")}  # fmt: skip
    yield Claim(text="objective: cost per million tokens", unit="usd/mtok", domain=single,
                formula=p / (hour * X * (n + o)) * million, implements=(where + "Objective.value",),
                rises=(p,), falls=(X, n, o), code=lambda a_, x, y, z: Objective().value(
                    scenario(y, z), a_, x, 0.5))  # fmt: skip
    yield Claim(
        text="objective: seconds of a request",
        unit="s",
        domain={X: single[X]},
        formula=1 / X,
        implements=(where + "Objective.value",),
        falls=(X,),
        code=lambda x: Objective(kind="throughput").value(scenario(), 1.0, x, 0.5),
    )
    money = single | {pi: PRICE, pc: PRICE, po: PRICE, H: Draw(0.1, 0.9)}
    earned = (pi * n * (1 - H) + pc * n * H + po * o) / million
    yield Claim(text="objective: cost over revenue", domain=money,
                formula=p / (hour * X) / earned, implements=(where + "Objective.value",),
                rises=(p,), falls=(X, po), code=lambda a_, x, y, z, b_, c, d, h: Objective(
                    kind="margin").value(scenario(y, z, (b_, c, d)), a_, x, h))  # fmt: skip
    yield Claim(
        text="revenue of a mean request",
        unit="usd",
        formula=earned,
        domain=money,
        implements=(where + "revenue_usd",),
        rises=(pi, po, n, o),
        code=lambda a_, x, y, z, b_, c, d, h: objective.revenue_usd(scenario(y, z, (b_, c, d)), h),
    )
    yield Claim(text="tokens of a mean request", unit="tokens", formula=n + o, rises=(n, o),
                domain={n: single[n], o: single[o]}, implements=(where + "tokens_per_request",),
                code=lambda y, z: objective.tokens_per_request(scenario(y, z)))  # fmt: skip
    demand = single | {
        lam: Draw(5.0, 50.0, "1/s"),
        theta: Draw(0.5, 1.0),
        k: Draw(0, 3, whole=True),
    }
    count = sp.ceiling(lam / (theta * X)) + k
    yield Claim(text="objective: cost per million tokens under a demand", unit="usd/mtok",
                domain=demand, formula=p * count / (hour * lam * (n + o)) * million,
                implements=(where + "Objective.value", where + "Objective.replicas"), rises=(p, k),
                code=lambda a_, x, y, z, d, h, s: Objective(
                    demand_requests_per_s=d, headroom=h, spare_replicas=s).value(
                        scenario(y, z), a_, x, 0.5))  # fmt: skip
    g, D, q, N = sp.symbols("g D q N_n", positive=True)
    rent = {g: Draw(1, 16, whole=True), p: Draw(1.0, 6.0, "usd/h"), D: Draw(1e11, 4e12, "bytes"),
            N: Draw(1, 4, whole=True), q: Draw(1e-4, 1e-2, "usd/h/bytes")}  # fmt: skip

    def hardware(gpus, price, nodes, dram):
        return scenario(node=SimpleNamespace(total_gpus=gpus, nodes=nodes), gpu_hour_usd=price,
                        dram_gb_hour_usd=dram)  # fmt: skip

    yield Claim(
        text="price of a replica with a tier",
        unit="usd/h",
        domain=rent,
        formula=g * p + D * N / 10**9 * q,
        implements=(where + "hourly_usd",),
        rises=(g, p, D, N, q),
        code=lambda a_, b_, d, e, f: objective.hourly_usd(hardware(a_, b_, e, f), d),
    )
    yield Claim(
        text="part of it that the tier takes",
        unit="usd/h",
        domain=rent,
        formula=D * N / 10**9 * q,
        implements=(where + "dram_usd_per_hour",),
        rises=(D, N, q),
        code=lambda a_, b_, d, e, f: objective.dram_usd_per_hour(hardware(a_, b_, e, f), d),
    )
