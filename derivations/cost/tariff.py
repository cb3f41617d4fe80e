"""Break-even, and a trap: who bills actual hits earns more per turn when the cache fails."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from capmodel.cost import breakeven, rental, statement, tokens
from capmodel.spec.distributions import LognormalMixture
from capmodel.spec.prices import Tariff
from capmodel.spec.workload import Workload
from derivations.claim import Claim, Draw
from derivations.proof import Steps, derivation

PRICE = Draw(0.05, 20.0, "usd/mtok")


def tariff(fresh: float, cached: float, output: float) -> Tariff:
    """Return a tariff of these prices."""
    return Tariff(input_usd_per_mtok=fresh, cached_input_usd_per_mtok=cached,
                  output_usd_per_mtok=output)  # fmt: skip


@derivation(
    statement=(
        r"R = p_i (n - h) + p_c h + p_o o, \qquad \frac{dR}{dh} = -(p_i - p_c), \qquad "
        r"X_{be} = \frac{c}{3600\,R}, \qquad \text{margin} = 1 - \frac{X_{be}}{X}"
    ),
    assumptions=(
        "c dollars per hour buy the replica whatever it does; every request is sold.",
        "h of n prompt tokens are sold at the cached price.",
    ),
)
def proof(step: Steps) -> Iterator[Claim]:
    pi, pc, po, n, h, o = sp.symbols("p_i p_c p_o n h o", positive=True)
    c, X, H, top = sp.symbols("c X H H_max", positive=True)
    dp, dx = sp.symbols("d x", positive=True)
    hour, million = 3600, 10**6

    # 1. Revenue of a request, and the trap: it falls with the hits that are billed.
    R = pi * (n - h) + pc * h + po * o
    step.equal("1. slope in the billed hits", sp.diff(R, h), -(pi - pc))
    step.negative("2. negative where cached input is cheaper", sp.diff(R, h).subs(pi, pc + dp))
    step.equal("3. no discount, no trap", sp.diff(R.subs(pc, pi), h), 0)

    # 2. Per hour it is X R that counts; hits pay where they raise X by more than they lower R.
    rate = sp.Function("X")(h)
    hourly = rate * R
    elastic = sp.diff(rate, h) * h / rate
    step.equal(
        "4. elasticity of hourly revenue: that of the rate less the discount's share",
        sp.simplify(sp.diff(hourly, h) * h / hourly),
        elastic - (pi - pc) * h / R,
    )

    # 3. Break-even rate and margin.
    even = c / (hour * R)
    step.solves("5. the rate that pays the hour", X * hour * R - c, X, even)
    margin = (X * hour * R - c) / (X * hour * R)
    step.equal("6. margin by the rates", margin, 1 - even / X)
    step.equal("7. no margin at the break-even rate", margin.subs(X, even), 0)
    step.rises("8. it rises with the rate", 1 - dx / X, X)
    step.limit("9. towards one", 1 - dx / X, X, sp.oo, 1)

    # 4. A tariff scaled by the break-even multiple earns the cost; so do that share of hours.
    multiple = c / (X * hour * R)
    scaled = multiple * X * hour * R
    step.equal("10. scaled tariff", scaled, c)
    step.equal("11. margin by the multiple", margin, 1 - multiple)

    # 5. Cost per token: all cost on the tokens counted; per turn and per session.
    t = sp.symbols("t", positive=True)
    each = c / (t * hour)
    step.equal("12. cost per token times tokens per hour is the cost", each * t * hour, c)
    step.equal("13. twice the rate, half the cost per token", each.subs(t, 2 * t) / each,
               sp.Rational(1, 2))  # fmt: skip

    money, per_s = Draw(1.0, 100.0, "usd/h"), Draw(10.0, 1e5, "tokens/s")
    # An hour is 3600 s: a cost in usd/h scales as one in usd/s, so the factor stays a pure number.
    where = "capmodel.cost.tokens:"
    yield Claim(text="cost per million tokens", formula=c / (t * hour) * million, unit="usd/mtok",
                domain={c: money, t: per_s}, implements=(where + "usd_per_mtok",), rises=(c,),
                falls=(t,), code=tokens.usd_per_mtok)  # fmt: skip
    bill = {pi: PRICE, pc: PRICE, po: PRICE, n: Draw(1e4, 2e5, "tokens"),
            h: Draw(1e3, 9e3, "tokens"), o: Draw(100.0, 1e3, "tokens")}  # fmt: skip
    yield Claim(
        text="revenue of a request",
        formula=R / million,
        unit="usd",
        domain=bill,
        implements=(where + "revenue_per_request_usd",),
        rises=(pi, pc, po, n, o),
        code=lambda a, b, d, x, y, z: tokens.revenue_per_request_usd(tariff(a, b, d), x, y, z),
    )
    yield Claim(
        text="revenue falls with the hits that are billed",
        formula=-(pi - pc) * h / million,
        unit="usd",
        domain=bill,
        implements=(where + "revenue_per_request_usd",),
        code=lambda a, b, d, x, y, z: (
            tokens.revenue_per_request_usd(tariff(a, b, d), x, y, z)
            - tokens.revenue_per_request_usd(tariff(a, b, d), x, 0.0, z)
        ),
        tolerance=1e-7,
    )
    shares = {n: bill[n], H: Draw(0.1, 0.5), top: Draw(0.6, 0.97)}
    for rule, value in (("eligible", top * n), ("actual", H * n), ("none", 0 * n)):
        yield Claim(
            text=f"tokens billed as cached, {rule}",
            formula=value,
            unit="tokens",
            domain=shares,
            implements=(where + "billed_cached_tokens",),
            code=lambda a, b, d, r=rule: tokens.billed_cached_tokens(r, a, b, d),
        )
    where = "capmodel.cost.breakeven:"
    earn = {X: Draw(5.0, 300.0, "usd/h"), c: money}
    yield Claim(text="margin", formula=(X - c) / X, domain=earn, implements=(where + "margin",),
                rises=(X,), falls=(c,), code=breakeven.margin)  # fmt: skip
    for name in ("breakeven_multiple", "breakeven_occupancy"):
        yield Claim(text=name.replace("_", " "), formula=c / X, domain=earn, falls=(X,), rises=(c,),
                    implements=(where + name,), code=getattr(breakeven, name))  # fmt: skip
    yield Claim(text="break-even request rate", formula=c / hour / X, unit="1/s", falls=(X,),
                domain={c: money, X: Draw(1e-3, 1.0, "usd")},
                implements=(where + "breakeven_requests_per_s",), rises=(c,),
                code=breakeven.breakeven_requests_per_s)  # fmt: skip
    g, p, B, q = sp.symbols("g p B q", positive=True)
    yield Claim(text="rent of a replica", formula=g * p + B / 10**9 * q, unit="usd/h",
                domain={g: Draw(1, 16, whole=True), p: Draw(1.0, 6.0, "usd/h"),
                        B: Draw(1e11, 4e12, "bytes"), q: Draw(1e-4, 1e-2, "usd/h/bytes")},
                implements=("capmodel.cost.rental:usd_per_hour",), rises=(g, p, B, q),
                code=rental.usd_per_hour)  # fmt: skip

    # 6. The statement composes them: what is optimised is what is reported.
    K = sp.symbols("K", positive=True)
    whole = {
        c: money,
        pi: PRICE,
        pc: PRICE,
        po: PRICE,
        n: Draw(1e5, 2e5, "tokens"),
        o: Draw(100.0, 1e3, "tokens"),
        K: Draw(20.0, 90.0),
        X: Draw(0.05, 2.0, "1/s"),
        H: shares[H],
        top: shares[top],
    }

    def stated(money_, a, b, d, prompt, output, turns, rate_, hits, ceiling, rule="actual"):
        load = Workload(
            name="drawn", request_tokens_mean=prompt, request_tokens_cv=0.5,
            tree_tokens_mean=prompt, tree_tokens_cv=0.5, output_tokens_mean=output,
            output_tokens_cv=1.0, turns_mean=turns, theoretical_hit_rate=ceiling,
            think_time=LognormalMixture.constant(10.0))  # fmt: skip
        return statement.cost_statement(
            usd_per_hour=money_, price_basis="drawn", tariff=tariff(a, b, d), tariff_basis="drawn",
            bill_cached=rule, workload=load, requests_per_s=rate_, hit_rate=hits)  # fmt: skip

    names = ("capmodel.cost.statement:cost_statement",)
    turn = c / hour / X
    for name, value, unit in (
        ("usd_per_turn", turn, "usd"),
        ("usd_per_session", turn * K, "usd"),
        ("usd_per_mtok_output", turn / o * million, "usd/mtok"),
        ("usd_per_mtok_total", turn / (n + o) * million, "usd/mtok"),
    ):
        yield Claim(
            text=f"statement: {name}",
            formula=value,
            domain=whole,
            implements=names,
            unit=unit,
            rises=(c,),
            falls=(X,),
            code=lambda *v, k=name: getattr(stated(*v), k),
        )
    for rule, share in (("actual", H), ("eligible", top), ("none", 0 * H)):
        revenue = X * hour * (pi * n * (1 - share) + pc * n * share + po * o) / million
        yield Claim(text=f"statement: revenue per hour, {rule}", formula=revenue, domain=whole,
                    unit="usd/h", implements=names, rises=(X, pi, po),
                    code=lambda *v, r=rule: stated(*v).revenue_usd_per_hour[r])  # fmt: skip
        yield Claim(text=f"statement: margin, {rule}", formula=1 - c / revenue, domain=whole,
                    implements=names, tolerance=1e-8,
                    code=lambda *v, r=rule: stated(*v).margin[r])  # fmt: skip
        for name in ("breakeven_multiple", "breakeven_occupancy"):
            yield Claim(text=f"statement: {name}, {rule}", formula=c / revenue, domain=whole,
                        implements=names,
                        code=lambda *v, r=rule, k=name: getattr(stated(*v, rule=r), k))  # fmt: skip
    scale = c / (X * hour * (pi * n * (1 - H) + pc * n * H + po * o) / million)
    for kind, price in (("input", pi), ("cached_input", pc), ("output", po)):
        yield Claim(
            text=f"statement: break-even price of {kind}",
            formula=price * scale,
            domain=whole,
            implements=("capmodel.cost.statement:Cost.to_dict",),
            unit="usd/mtok",
            code=lambda *v, k=kind: stated(*v).to_dict()[f"breakeven_usd_per_mtok_{k}"],
        )
