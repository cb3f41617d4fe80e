"""``capmodel compare``: one measured run, or a live engine, against the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import IngestError
from .options import (
    deployment_options,
    emit,
    json_option,
    level_option,
    offload_options,
    positive,
    scenario_from_options,
    workload_options,
)


@click.command("compare")
@click.argument("run", nargs=-1, required=True, metavar="RUN")
@click.option("--model", metavar="NAME", help="Model that was served.")
@click.option("--on", "node", metavar="NODE", help="Node, such as 8xB300.")
@click.option("--nodes", type=int, help="Nodes of one engine replica.  [1]")
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(),
    metavar="FILE",
    help="YAML, TOML or JSON scenario; flags win.",
)
@click.option("-c", "--concurrency", type=int, help="Live sessions, where the run does not say.")
@click.option("--seconds", type=positive, help="Time between two scrapes [s].")
@click.option(
    "--window-s", type=positive, default=3600.0, show_default=True, help="Length of the run [s]."
)
@click.option("--accepted-tokens", type=positive, help="Accepted length of the draft.")
@deployment_options
@offload_options
@workload_options
@level_option
@json_option
def command(
    run: tuple[str, ...],
    concurrency: int | None,
    seconds: float | None,
    window_s: float,
    accepted_tokens: float | None,
    level: str,
    as_json: bool,
    **given: Any,
) -> None:
    """A run (CSV or benchmark JSON of one point) or two scrapes of /metrics against the model.

    Two scrapes also say where the deployment stands: budget, working set, cliff, cap.

    \b
    capmodel compare agg_16.json --model kimi-k3 --on 8xB300
    capmodel compare before.prom after.prom --seconds 300 --model kimi-k3 --on 8xB300
    """
    from ..calibrate.comparison import compare
    from ..calibrate.live_check import live_check
    from ..calibrate.point_files import is_scrape, read_points, read_window

    resolved = scenario_from_options(**given).resolve()
    files = [Path(name) for name in run]
    live = None
    if all(is_scrape(file) for file in files):
        found = read_window(files, seconds)
        live, resolved, point = live_check(resolved, found, concurrency=concurrency)
        window_s = found.seconds
    else:
        points = read_points(files, gpus=resolved.node.total_gpus, concurrency=concurrency)
        if len(points) != 1:
            raise IngestError(
                f"{len(points)} points: compare takes one run; `capmodel calibrate` takes many.",
                file=", ".join(run),
            )
        point = points[0]
    result = compare(
        resolved, point, window_s=window_s, accepted_tokens=accepted_tokens, level=level, live=live
    )
    emit(result, as_json=as_json)
