"""The first screen of an estimate: the answer, its interval, what binds, trust, and what next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..units import GB, GIB, format_count, format_seconds

if TYPE_CHECKING:
    from ..results import Estimate

BINDS = {
    "hbm_kv_tokens": "HBM KV",
    "running_requests": "running requests",
    "prefill_compute": "prefill",
    "decode_steps": "decode steps",
    "think_time": "the sessions' own think time",
}
INPUTS = {
    "tree_tokens_mean": "working set per session",
    "request_tokens_mean": "prompt per request",
    "output_tokens_mean": "output per request",
}
ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM", "atom": "ATOM"}


def first_screen(answer: Estimate) -> str:
    """Return the estimate as a dozen aligned lines."""
    lines = [headline(answer)]
    lines += [f"{name:<9} {text}" for name, text in screen_rows(answer)]
    return "\n".join(lines)


def screen_rows(answer: Estimate) -> list[tuple[str, str]]:
    """Return the lines of the first screen as (name, text), empty ones left out."""
    rows = [
        ("SAFE" if answer.session_cap is not None else "LOAD", _safe(answer)),
        ("binds", _binds(answer)),
        ("hits", _hits(answer)),
        ("output", _output(answer)),
        ("hour", _hour(answer)),
        ("latency", _latency(answer)),
        ("cost", _cost(answer)),
        ("revenue", _revenue(answer)),
        ("margin", _margin(answer)),
        ("trust", _trust(answer)),
        ("decides", _decides(answer)),
        ("next", _next(answer)),
    ]
    rows += [("note", warning) for warning in answer.warnings]
    return [(name, text) for name, text in rows if text]


def headline(answer: Estimate) -> str:
    """Return what was asked: model, node, build, formats, tier, workload and concurrency."""
    scenario = answer.run.scenario
    deployment, node = scenario.deployment, scenario.node
    layout = "".join(
        f" {name.upper()}{getattr(deployment, name)}"
        for name in ("tp", "pp", "dp", "ep", "dcp")
        if name == "tp" or getattr(deployment, name) > 1
    )
    nodes = f"{node.nodes} x " if node.nodes > 1 else ""
    dtype = "bf16" if deployment.kv_dtype == "auto" else deployment.kv_dtype
    offload = deployment.offload
    tier = "no offload" if offload is None else f"{offload.tier} {offload.bytes / GB:.0f} GB"
    cap = scenario.workload.think_time.cap
    gaps = "gaps uncapped" if cap == float("inf") else f"gaps <= {cap:g} s"
    build = f"{ENGINES[deployment.engine]} {deployment.engine_version}".strip()
    return (
        f"{scenario.model.name} | {nodes}{node.name}{layout} | {build} | {dtype} KV | {tier} | "
        f"{scenario.workload.name}, {gaps} | C = {answer.concurrency}"
    )


def _span(answer: Estimate, name: str, scale: float = 1.0, form: str = "{:.0f}") -> str:
    span = answer.intervals.get(name)
    if span is None:
        return ""
    return f" ({form.format(span[0] * scale)}-{form.format(span[1] * scale)})"


def _safe(answer: Estimate) -> str:
    if answer.session_cap is None:
        return f"{answer.concurrency} requests at a time; nothing is reused, so there is no cliff"
    cliff = answer.cliff
    if cliff.concurrency is None:
        return "no cliff up to a million sessions"
    edge = f"cliff at {cliff.concurrency}"
    if (cliff.low, cliff.high) != (cliff.concurrency, cliff.concurrency):
        edge += f" ({cliff.low}-{cliff.high or '>1M'})"
    state = {"before": "before", "at": "on", "past": "past"}.get(answer.regime, "before")
    count = "session" if answer.session_cap == 1 else "sessions"
    return f"{answer.session_cap} live {count}; {edge}; {answer.concurrency} is {state} it"


def _binds(answer: Estimate) -> str:
    point = answer.run.point
    live = answer.run.scenario.workload.tree_tokens_mean * answer.concurrency
    usable = answer.run.budget.usable_kv_tokens
    text = (
        f"{BINDS[answer.bottleneck]}; {format_count(live)} live tokens in "
        f"{format_count(usable)} usable of {format_count(answer.run.budget.kv_tokens)} logged"
    )
    if answer.tier_tokens:
        text += f", tier {format_count(answer.tier_tokens)}"
    if point.overflow > 5e-4:
        text += f"; over {point.overflow:.0%} of the time"
    return text


def _hits(answer: Estimate) -> str:
    hits = answer.hit_rate
    text = f"{hits.overall:.1%} of prompt tokens"
    text += _span(answer, "hit_rate.overall", 100.0)
    if hits.offload > 0:
        text += f", {hits.hbm:.0%} in HBM and {hits.offload:.0%} from the tier"
    return text + f"; ceiling {hits.theoretical:.1%}"


def _output(answer: Estimate) -> str:
    per_gpu = answer.total_tokens_per_s / answer.run.scenario.node.total_gpus
    return (
        f"{answer.output_tokens_per_s:.1f} tok/s"
        f"{_span(answer, 'throughput.output_tokens_per_s')} | "
        f"{format_count(per_gpu)} total tok/s/GPU | {answer.requests_per_s:.3g} turns/s"
    )


def _hour(answer: Estimate) -> str:
    workload = answer.run.scenario.workload
    out = workload.output_tokens_mean * answer.run.ranks
    rate = answer.hour.quantiles(answer.hour.requests_per_s * out)
    hits = answer.hour.quantiles(answer.hour.hit_rate)
    risk = answer.hour.collapsed(workload.theoretical_hit_rate)
    if rate["p95"] - rate["p5"] < 0.01 * rate["p50"]:
        return ""
    return (
        f"a benchmark hour shows {rate['p5']:.0f}/{rate['p50']:.0f}/{rate['p95']:.0f} tok/s "
        f"(p5/p50/p95), median hits {hits['p50']:.0%}; {risk:.0%} of hours collapse"
    )


def _latency(answer: Estimate) -> str:
    ttft, tpot = answer.latency.ttft_s, answer.latency.tpot_s
    return (
        f"TTFT p50 {format_seconds(ttft.p50)}  p90 {format_seconds(ttft.p90)}  "
        f"p99 {format_seconds(ttft.p99)} | {1 / tpot.p50:.0f} tok/s/user p50, "
        f"{1 / tpot.p90:.0f} p90"
    )


def _cost(answer: Estimate) -> str:
    cost = answer.run.cost
    if cost.usd_per_hour is None:
        return "no price for this accelerator; give --gpu-hour-usd"
    return (
        f"${cost.usd_per_hour:.2f}/h ({cost.price_basis}) = ${cost.usd_per_session:.2f}/session | "
        f"${cost.usd_per_turn:.3f}/turn | ${cost.usd_per_mtok_total:.3f}/M total"
        f"{_span(answer, 'cost.usd_per_mtok_total', 1.0, '{:.3f}')} | "
        f"${cost.usd_per_mtok_output:.1f}/M output"
    )


def _revenue(answer: Estimate) -> str:
    cost = answer.run.cost
    if cost.tariff is None:
        return "no tariff for this model; give --price in=,cached=,out="
    tariff = cost.tariff
    prices = (
        f"${tariff.input_usd_per_mtok:g}/${tariff.cached_input_usd_per_mtok:g}/"
        f"${tariff.output_usd_per_mtok:g} ({cost.tariff_basis})"
    )
    return (
        f"${cost.revenue_usd_per_hour['eligible']:.0f}/h with every eligible hit sold as cached | "
        f"${cost.revenue_usd_per_hour['actual']:.0f}/h on actual hits | "
        f"${cost.revenue_usd_per_hour['none']:.0f}/h without a cached price; {prices}"
    )


def _margin(answer: Estimate) -> str:
    cost = answer.run.cost
    if not cost.margin or cost.breakeven_occupancy is None or cost.breakeven_multiple is None:
        return ""
    return (
        f"{cost.margin['eligible']:.0%} eligible | {cost.margin['actual']:.0%} actual | "
        f"{cost.margin['none']:.0%} without; zero at {cost.breakeven_occupancy:.0%} occupancy "
        f"or {cost.breakeven_multiple:.2f} x these prices ({cost.bill_cached})"
    )


def _trust(answer: Estimate) -> str:
    text = f"uncalibrated hindcast, memory {answer.run.budget.evidence}"
    case = answer.nearest
    if case is None:
        return text + "; no measured case of this model on this node"
    unit = "tok/s" if case.metric == "output_tokens_per_s" else "total tok/s/GPU"
    return (
        f"{text}; nearest measured ({case.description}): {case.measured:.4g} {unit}, "
        f"model {case.predicted:.4g} ({case.relative_error:+.0%})"
    )


def _decides(answer: Estimate) -> str:
    if not answer.spread_shares:
        return ""
    name, share = max(answer.spread_shares.items(), key=lambda item: item[1])
    low, high = answer.run.scenario.workload.intervals[name]
    return (
        f"{INPUTS[name]} {format_count(low)}-{format_count(high)} tokens: "
        f"{share:.0%} of the output's interval"
    )


def _next(answer: Estimate) -> str:
    scenario = answer.run.scenario
    where = f"{scenario.model.name} --on {scenario.node.name}"
    if scenario.node.nodes > 1:
        where += f" --nodes {scenario.node.nodes}"
    if scenario.deployment.offload is None and scenario.node.host_dram_bytes > 0:
        room = 0.63 * scenario.node.host_dram_bytes / GIB
        return (
            f"capmodel sweep {where} -c 1-32 | capmodel estimate {where} "
            f"-c {answer.concurrency} --offload dram:{room:.0f}GiB | capmodel optimize {where}"
        )
    held = where
    if scenario.deployment.offload is not None:
        held += f" --offload dram:{scenario.deployment.offload.bytes / 1e9:.0f}GB"
    return (
        f"capmodel sweep {held} -c 1-32 | capmodel optimize {where} | "
        f"capmodel explain {held} -c {answer.concurrency}"
    )
