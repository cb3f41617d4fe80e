"""``capmodel optimize``: the cheapest plan within the SLOs."""

from __future__ import annotations

from typing import Any

import click

from .options import (
    deployment_options,
    emit,
    json_option,
    level_option,
    model_and_node,
    offload_options,
    price_options,
    scenario_from_options,
    workload_options,
)


@click.command("optimize")
@model_and_node
@click.option("--slo", multiple=True, metavar="KEY=LIMIT", help="ttft_p90=5; repeats.")
@click.option("--allow-past-cliff", is_flag=True, help="Let the plan lose its cache.")
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@json_option
def command(
    slo: tuple[str, ...], allow_past_cliff: bool, level: str, as_json: bool, **given: Any
) -> None:
    """The concurrency of least cost per token that keeps its cache and meets the SLOs.

    \b
    capmodel optimize kimi-k3 --on 8xB300 --slo ttft_p90=5
    """
    from ..optimize.planner import optimize

    plan = optimize(
        scenario_from_options(**given), slo=slo, level=level, allow_past_cliff=allow_past_cliff
    )
    emit(plan, as_json=as_json)
