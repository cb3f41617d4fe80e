"""``capmodel calibrate``: measured points → factors with intervals."""

from __future__ import annotations

from typing import Any

import click

from ..errors import SpecError, nearest_names
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


@click.command("calibrate")
@click.argument("points", nargs=-1, required=True, metavar="POINTS...")
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
@click.option("-c", "--concurrency", type=int, help="Live sessions, where a file does not say.")
@click.option("--seconds", type=positive, help="Time between two scrapes [s].")
@click.option("--fit", "names", metavar="LIST", help="Factors to fit, commas.  [all]")
@click.option("--rate-noise", type=float, help="Relative scatter of measured rates.  [0.05]")
@click.option("--accepted-tokens", type=positive, help="Accepted length of the draft.")
@deployment_options
@offload_options
@workload_options
@level_option
@json_option
def command(
    points: tuple[str, ...],
    concurrency: int | None,
    seconds: float | None,
    names: str | None,
    rate_noise: float | None,
    accepted_tokens: float | None,
    level: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Factors that your own points imply: CSV, benchmark JSON, or two scrapes of /metrics.

    \b
    capmodel calibrate points.csv --model kimi-k3 --on 8xB300
    capmodel calibrate agg_8.json agg_16.json --scenario ours.yaml --fit working_set
    """
    from ..calibrate.adjustment import PARAMETERS
    from ..calibrate.calibration import calibrate
    from ..calibrate.point_files import read_points

    fitted = PARAMETERS if names is None else tuple(part.strip() for part in names.split(","))
    for name in fitted:
        if name not in PARAMETERS:
            raise SpecError(
                f"--fit: no factor called {name!r}; one of {', '.join(PARAMETERS)}.",
                field="fit",
                nearest=nearest_names(name, PARAMETERS),
            )
    if rate_noise is not None and not 0 < rate_noise < 1:
        raise SpecError("--rate-noise must be between 0 and 1.", field="rate_noise")
    resolved = scenario_from_options(**given).resolve()
    found = read_points(
        points, gpus=resolved.node.total_gpus, concurrency=concurrency, seconds=seconds
    )
    result = calibrate(
        resolved, found, names=fitted, rate_noise=rate_noise, accepted_tokens=accepted_tokens,
        level=level,
    )  # fmt: skip
    emit(result, as_json=as_json)
