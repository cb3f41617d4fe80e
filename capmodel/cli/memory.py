"""``capmodel memory``: does it fit, and how many KV tokens are left?"""

from __future__ import annotations

import json
from typing import Any

import click

from .options import (
    PictureFile,
    deployment_options,
    json_option,
    model_and_node,
    save_plot,
    scenario_from_options,
)


@click.command("memory")
@model_and_node
@deployment_options
@click.option("-c", "--concurrency", type=click.IntRange(min=1), help="Live sessions.  [1]")
@click.option("--tokens", type=click.IntRange(min=1), help="Also: GiB for so many KV tokens.")
@click.option("--inverse", is_flag=True, help="Also: lowest utilization, longest context, node.")
@click.option(
    "--plot", type=PictureFile(), metavar="FILE", help="Bar picture of one GPU (png, svg, pdf)."
)
@json_option
def command(
    concurrency: int | None,
    tokens: int | None,
    inverse: bool,
    plot: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Does the model fit, and where does every GiB go?

    \b
    capmodel memory kimi-k3 --on 8xB300
    capmodel memory llama-3.1-70b --on 4xH100-80GB --kv-dtype fp8 -c 32
    capmodel memory kimi-k3 --on 8xB300 --tokens 4000000 --inverse
    """
    from ..memory.budget import kv_budget
    from ..memory.inverse import pool_for_tokens, reach, shortage

    resolved = scenario_from_options(**given).resolve()
    model, node, deployment = resolved.model, resolved.node, resolved.deployment
    budget = kv_budget(model, node, deployment, concurrency=concurrency)
    if plot is not None:
        save_plot(budget, plot)
    if not budget.fits:
        error = shortage(model, node, deployment, budget)
        if as_json:
            click.echo(json.dumps({**budget.to_dict(), "error": error.to_dict()}, allow_nan=False))
        else:
            click.echo(str(budget))
        click.echo(f"capmodel: {error}", err=True)
        raise SystemExit(error.exit_code)
    extra: dict[str, Any] = {}
    if tokens is not None:
        extra["pool_for_tokens"] = pool_for_tokens(model, node, deployment, tokens)
    if inverse:
        extra["inverse"] = reach(model, node, deployment)
    if as_json:
        answers = {key: answer.to_dict() for key, answer in extra.items()}
        click.echo(json.dumps({**budget.to_dict(), **answers}, allow_nan=False))
    else:
        click.echo("\n".join(map(str, [budget, *extra.values()])))
