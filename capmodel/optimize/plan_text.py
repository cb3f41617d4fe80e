"""A plan as the lines a person reads first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..units import GB
from .configuration import planning_limit
from .price_floor import price_floor

if TYPE_CHECKING:
    from .plan import Plan

# Beyond this error of the nearest measured case a plan needs a measurement first.
CONTRADICTED = 0.5


def plan_text(plan: Plan) -> str:
    """Return the answer, its proof, what binds, what more would be worth, and the settings."""
    from ..report.engine_flags import engine_flags

    best = plan.best
    flags = engine_flags(best, session_cap=plan.concurrency)
    lines = [
        ("PLAN", _headline(plan)),
        ("money", _money(plan)),
        ("proof", _proof(plan)),
        ("binds", plan.binding.text),
        ("dram", _dram(plan)),
        ("worth", _worth(plan)),
        ("holds", _holds(plan)),
        ("second", _second(plan)),
        ("settings", f"session cap {plan.concurrency} per replica at the gateway; engine running "
         f"limit {best.running_limit}; alert on {flags['alert_on']}"),
        ("flags", f"{flags['command']}  [{flags['checked_against']}]"),
        ("beware", _beware(plan)),
        ("note", _note(plan)),
        ("", str(best)),
    ]  # fmt: skip
    return "\n".join(f"{name:9s} {text}".strip() for name, text in lines if text)


def _headline(plan: Plan) -> str:
    dram = f"DRAM {plan.dram_bytes / GB:.0f} GB per node" if plan.dram_bytes else "no offload"
    count = f"{plan.replicas} x " if plan.replicas > 1 else ""
    return (
        f"{count}{plan.configuration}, C = {plan.concurrency} each, {dram}: "
        f"${plan.objective_usd_per_mtok:.4f} per M tokens"
    )


def _money(plan: Plan) -> str:
    cost, scenario = plan.run.cost, plan.run.scenario
    text = f"${plan.usd_per_hour:.2f}/h ({scenario.gpu_hour_basis})"
    if cost.margin:
        parts = [f"{value:.1%} {rule}" for rule, value in cost.margin.items()]
        text += f"; margin by what is billed as cached: {', '.join(parts)}"
    if scenario.tariff is not None:
        floor = price_floor(plan)
        prices = floor.tariff
        text += (
            f"; floor ${prices.input_usd_per_mtok:.2g}/${prices.cached_input_usd_per_mtok:.2g}/"
            f"${prices.output_usd_per_mtok:.3g} ({floor.multiple:.0%} of the tariff)"
        )
    return text


def _proof(plan: Plan) -> str:
    certificate = plan.certificate
    text = f"gap {certificate.relative_gap:.2%}; {certificate.method}"
    if certificate.accepted_loss > 0:
        text += f"; {certificate.accepted_loss:.2%} given up for less DRAM"
    case = plan.best.nearest
    error = "no measured case" if case is None else f"{case.relative_error:+.0%} on {case.source}"
    return f"{text} | model: {error}"


def _dram(plan: Plan) -> str:
    worth = plan.dram_worth
    if worth is None:
        return ""
    if worth.usd_per_node_hour is None:
        return "without it no plan keeps the rules"
    profit = worth.profit_usd_per_node_hour
    sold = "" if profit is None else f"; ${profit:.0f} more profit if all is sold"
    return (
        f"worth ${worth.usd_per_node_hour:.2f} per node-hour at the same cost per token (priced at "
        f"${worth.price_usd_per_node_hour:.2f}){sold}; without it C = {worth.without_concurrency} "
        f"at ${worth.without_usd_per_mtok:.4f} per M"
    )


def _worth(plan: Plan) -> str:
    parts = [
        f"one more {item['unit']} ${item['usd_per_node_hour']:.2f}"
        for name, item in plan.sensitivity.shadow_prices.items()
        if name in ("hbm_bytes", "dram_bytes", "hbm_bytes_per_s", "flop_per_s")
    ]
    hbm = plan.sensitivity.shadow_prices.get("hbm_bytes", {})
    again = hbm.get("reoptimized_usd_per_node_hour")
    if again is not None:
        parts.append(f"HBM with the plan moved along ${again:.2f}")
    return f"per node-hour: {', '.join(parts)}; bottleneck {plan.sensitivity.bottleneck}"


def _holds(plan: Plan) -> str:
    found = plan.robustness
    if not found.inputs:
        return ""
    span = ""
    if found.value is not None and plan.question.objective.kind == "cost":
        span = f"; cost ${found.value[0]:.4f}-{found.value[2]:.4f} per M"
    why = "".join(f", {name} breaks in {share:.0%}" for name, share in found.breaks.items())
    return f"in {found.holds:.0%} of draws from the workload's evidence intervals{why}{span}"


def _beware(plan: Plan) -> str:
    """What the solver's gap says nothing about: a model that the nearest case contradicts."""
    case = plan.best.nearest
    if case is None or abs(case.relative_error) <= CONTRADICTED:
        return ""
    return (
        f"the nearest measured case ({case.description}) had {case.measured:.4g} {case.metric}, "
        f"the model {case.predicted:.4g}: measure this configuration before relying on the plan"
    )


def _note(plan: Plan) -> str:
    """A warning where no latency was asked for and the cheapest plan is not an online one."""
    ttft, online = plan.best.latency.ttft_s.p90, planning_limit("online_ttft_p90_s")
    if plan.question.rules.slos or ttft <= online:
        return ""
    return (
        f"no SLO was asked for, and TTFT p90 is {ttft:.0f} s; for online use add "
        f"--slo ttft_p90={online:g}"
    )


def _second(plan: Plan) -> str:
    if plan.runner_up is None:
        return "no other decision keeps the rules"
    configuration, point, value = plan.runner_up
    regret = value / plan.found.value - 1.0
    return f"C = {point.concurrency} on {configuration} at {regret:+.2%}"
