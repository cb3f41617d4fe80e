"""``capmodel estimate``: one operating point."""

from __future__ import annotations

from typing import Any

import click

from .options import (
    deployment_options,
    emit,
    html_option,
    json_option,
    level_option,
    model_and_node,
    offload_options,
    plot_option,
    price_options,
    save_plot,
    scenario_from_options,
    workload_options,
    write_text,
)


@click.command("estimate")
@model_and_node
@click.option("-c", "--concurrency", type=int, required=True, help="Live sessions.")
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@plot_option
@html_option
@json_option
def command(
    concurrency: int,
    level: str,
    plot_file: str | None,
    html_file: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """One operating point: sessions, hits, output, latency, cost and margin.

    \b
    capmodel estimate kimi-k3 --on 8xB300 -c 8
    capmodel estimate kimi-k3 --on 8xB300 -c 16 --offload dram:1889GB
    capmodel estimate kimi-k3 --on 8xB300 -c 8 --html report.html
    """
    from ..answer import estimate

    scenario = scenario_from_options(**given)
    answer = estimate(scenario, concurrency, level=level)
    if plot_file is not None:
        save_plot(answer, plot_file)
    if html_file is not None:
        from ..report.command_line import command_line
        from ..report.html_page import estimate_page
        from ..scenario import given_values

        asked = command_line("estimate", {**given, "concurrency": concurrency, "level": level})
        write_text(html_file, estimate_page(answer, command=asked, scenario=given_values(scenario)))
        if html_file == "-":
            return
    emit(answer, as_json=as_json)
