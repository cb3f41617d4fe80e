"""``capmodel optimize``: the cheapest plan within the SLOs, with its certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .options import (
    OutputFile,
    deployment_options,
    emit,
    json_option,
    level_option,
    offload_options,
    plot_option,
    price_options,
    save_plot,
    scenario_from_options,
    workload_options,
    write_text,
)


@click.command("optimize")
@click.argument("model", required=False)
@click.option(
    "--on",
    "on",
    multiple=True,
    metavar="NODE",
    help="Node, such as 8xB300; repeat to choose between several.",
)
@click.option("--nodes", type=int, help="Nodes of one engine replica.  [1]")
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(),
    metavar="FILE",
    help="YAML, TOML or JSON scenario; flags win.",
)
@click.option("--slo", multiple=True, metavar="KEY=LIMIT", help="ttft_p90=5; repeats.")
@click.option(
    "--objective",
    type=click.Choice(["cost", "margin", "throughput"]),
    default="cost",
    show_default=True,
    help="Per token; over revenue; rate of a replica.",
)
@click.option(
    "--search",
    "search_axes",
    multiple=True,
    metavar="layout|speculation|kv_dtype",
    help="What else to choose; repeats.",
)
@click.option("--demand-sessions-per-hour", type=float, help="Traffic to carry.")
@click.option("--demand-turns-per-s", type=float, help="Traffic to carry, as requests.")
@click.option("--headroom", type=float, help="Share of a replica's rate to plan on.  [0.9]")
@click.option("--spare-replicas", type=int, default=0, help="Replicas beyond the demand.  [0]")
@click.option("--budget-usd-per-hour", type=float, help="Most that all replicas may cost.")
@click.option(
    "--cliff-margin",
    type=float,
    default=0.0,
    help="Keep the hits with C/(1 - margin) sessions too.  [0]",
)
@click.option("--allow-past-cliff", is_flag=True, help="Let the plan lose its cache.")
@click.option(
    "--certificate",
    "certificate_file",
    type=OutputFile(),
    metavar="FILE",
    help="Write the certificate.",
)
@click.option(
    "--check",
    "check_file",
    type=click.Path(),
    metavar="CERT.json",
    help="Check a certificate instead of searching.",
)
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@plot_option
@json_option
def command(
    on: tuple[str, ...],
    plot_file: str | None,
    certificate_file: str | None,
    check_file: str | None,
    as_json: bool,
    slo: tuple[str, ...],
    search_axes: tuple[str, ...],
    objective: str,
    demand_sessions_per_hour: float | None,
    demand_turns_per_s: float | None,
    headroom: float | None,
    spare_replicas: int,
    budget_usd_per_hour: float | None,
    cliff_margin: float,
    allow_past_cliff: bool,
    level: str,
    **given: Any,
) -> None:
    """The plan of least cost per token that keeps its cache and meets the SLOs, with a proof.

    DRAM is part of the choice: --offload none rules it out, --offload dram:BYTES limits it.

    \b
    capmodel optimize kimi-k3 --on 8xB300 --slo ttft_p90=5
    capmodel optimize kimi-k3 --on 8xB300 --on 8xMI355X --demand-sessions-per-hour 200
    capmodel optimize --check CERT.json
    """
    if check_file is not None:
        _check(check_file, as_json)
        return
    from ..optimize.planner import optimize

    scenario = scenario_from_options(node=on[0] if on else None, **given)
    plan = optimize(
        scenario,
        on=on[1:],
        slo=slo,
        objective=objective,
        search_axes=search_axes,
        demand_sessions_per_hour=demand_sessions_per_hour,
        demand_turns_per_s=demand_turns_per_s,
        headroom=headroom,
        spare_replicas=spare_replicas,
        budget_usd_per_hour=budget_usd_per_hour,
        cliff_margin=cliff_margin,
        level=level,
        allow_past_cliff=allow_past_cliff,
    )
    # Printed first: the plan took long to find, and a full disk must not lose it.
    emit(plan, as_json=as_json)
    if certificate_file is not None:
        body = json.dumps(plan.certificate.to_dict(), indent=1, allow_nan=False)
        write_text(certificate_file, body)
    if plot_file is not None:
        from ..report.plan_figure import plan_figure

        save_plot(plan, plot_file, plan_figure)


def _check(path: str, as_json: bool) -> None:
    from ..catalog import read_mapping
    from ..optimize.check import check

    report = check(read_mapping(Path(path)))
    emit(report, as_json=as_json)
    if not report.ok:
        raise SystemExit(2)
