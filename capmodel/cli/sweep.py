"""``capmodel sweep``: operating points over concurrency."""

from __future__ import annotations

from typing import Any

import click

from .options import (
    OutputFile,
    deployment_options,
    emit,
    html_option,
    integer_list,
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


@click.command("sweep")
@model_and_node
@click.option("-c", "--concurrency", required=True, metavar="LIST", help="1,2,4,8 or 1-32.")
@deployment_options
@offload_options
@workload_options
@price_options
@level_option
@plot_option
@html_option
@click.option("--csv", "csv_file", type=OutputFile(), metavar="FILE", help="Rows; - is stdout.")
@json_option
def command(
    concurrency: str,
    level: str,
    plot_file: str | None,
    html_file: str | None,
    csv_file: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Operating points over concurrency, the best one and the cliff.

    \b
    capmodel sweep kimi-k3 --on 8xB300 -c 1,2,4,8,16,24
    capmodel sweep kimi-k3 --on 8xB300 -c 1-32 --csv sweep.csv --plot sweep.svg
    """
    from ..answer import sweep

    scenario = scenario_from_options(**given)
    result = sweep(scenario, integer_list(concurrency, "concurrency"), level=level)
    if plot_file is not None:
        save_plot(result, plot_file)
    if html_file is not None:
        from ..report.command_line import command_line
        from ..report.html_page import sweep_page
        from ..scenario import given_values

        asked = command_line("sweep", {**given, "concurrency": concurrency, "level": level})
        write_text(html_file, sweep_page(result, command=asked, scenario=given_values(scenario)))
    if csv_file is not None:
        from ..report.sweep_csv import sweep_csv

        write_text(csv_file, sweep_csv(result))
    if "-" not in (html_file, csv_file):
        emit(result, as_json=as_json)
