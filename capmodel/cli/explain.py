"""``capmodel explain``: the chain of numbers behind an answer."""

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
    plot_option,
    price_options,
    save_plot,
    scenario_from_options,
    workload_options,
)


@click.command("explain")
@model_and_node
@click.option("-c", "--concurrency", type=int, default=8, show_default=True, help="Live sessions.")
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@plot_option
@json_option
def command(
    concurrency: int, level: str, plot_file: str | None, as_json: bool, **given: Any
) -> None:
    """The chain of numbers behind an answer, with unit, formula, source and kind.

    \b
    capmodel explain kimi-k3 --on 8xB300 -c 8
    """
    from ..pipeline import run
    from ..report.explain import explain

    solved = run(scenario_from_options(**given), concurrency=concurrency, level=level)
    chain = explain(solved)
    if plot_file is not None:
        save_plot(chain, plot_file)
    emit(chain, as_json=as_json)
