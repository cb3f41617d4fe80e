"""``capmodel estimate``: one operating point."""

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


@click.command("estimate")
@model_and_node
@click.option("-c", "--concurrency", type=int, required=True, help="Live sessions.")
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@json_option
def command(concurrency: int, level: str, as_json: bool, **given: Any) -> None:
    """One operating point: sessions, hits, output, latency, cost and margin.

    \b
    capmodel estimate kimi-k3 --on 8xB300 -c 8
    capmodel estimate kimi-k3 --on 8xB300 -c 16 --offload dram:1889GB
    """
    from ..answer import estimate

    emit(estimate(scenario_from_options(**given), concurrency, level=level), as_json=as_json)
