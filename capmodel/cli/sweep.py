"""``capmodel sweep``: operating points over concurrency."""

from __future__ import annotations

from typing import Any

import click

from .options import (
    deployment_options,
    emit,
    integer_list,
    json_option,
    level_option,
    model_and_node,
    offload_options,
    price_options,
    save_plot,
    scenario_from_options,
    workload_options,
)


@click.command("sweep")
@model_and_node
@click.option("-c", "--concurrency", required=True, metavar="LIST", help="1,2,4,8 or 1-32.")
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@click.option("--plot", "plot_file", type=click.Path(), metavar="FILE", help="Draw the picture.")
@json_option
def command(
    concurrency: str, level: str, plot_file: str | None, as_json: bool, **given: Any
) -> None:
    """Operating points over concurrency, the best one and the cliff.

    \b
    capmodel sweep kimi-k3 --on 8xB300 -c 1,2,4,8,16,24
    """
    from ..answer import sweep

    sessions = integer_list(concurrency, "concurrency")
    result = sweep(scenario_from_options(**given), sessions, level=level)
    if plot_file is not None:
        save_plot(result, plot_file)
    emit(result, as_json=as_json)
