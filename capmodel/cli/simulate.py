"""``capmodel simulate``: the discrete-event reference for one operating point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click

from .options import (
    FiniteRange,
    deployment_options,
    emit,
    json_option,
    model_and_node,
    offload_options,
    positive,
    scenario_from_options,
    workload_options,
)


def _progress(stack: ExitStack) -> Callable[[float], None]:
    """Return a callback whose bar appears at its first call, so that errors come without it."""
    bars: list[Any] = []

    def show(share: float) -> None:
        if not bars:
            bar = click.progressbar(length=1000, label="simulating", file=sys.stderr)
            bars.append(stack.enter_context(bar))
        bars[0].update(round(1000 * share) - bars[0].pos)

    return show


@click.command("simulate")
@model_and_node
@click.option("-c", "--concurrency", type=int, required=True, help="Live sessions.")
@deployment_options
@offload_options
@workload_options
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="Turns counted per seed.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=4, show_default=True, help="Independent runs."
)
@click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Number of the first run.",
)
@click.option(
    "--start",
    type=click.Choice(["warm", "cold", "fresh"]),
    default="warm",
    show_default=True,
    help="Cache full, cache empty, or all sessions at turn one.",
)
@click.option(
    "--tree",
    type=click.Choice(["whole", "branches"]),
    default="whole",
    show_default=True,
    help="A turn uses its whole session tree, or one branch of it.",
)
@click.option(
    "--warm-up",
    type=FiniteRange(min=0),
    default=0.1,
    show_default=True,
    help="Turns run first and not counted, as a share of --turns.",
)
@click.option(
    "--window-s",
    type=positive,
    default=3600.0,
    show_default=True,
    help="Length of a benchmark window [s].",
)
@click.option(
    "--time-limit-s",
    type=positive,
    default=60.0,
    show_default=True,
    help="Real time after which the run ends with what it has [s].",
)
@json_option
def command(
    concurrency: int,
    turns: int,
    seeds: int,
    first_seed: int,
    start: Any,
    tree: Any,
    warm_up: float,
    window_s: float,
    time_limit_s: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Discrete-event reference: sessions, blocks and steps one by one, with 95% half-widths.

    \b
    capmodel simulate kimi-k3 --on 8xB300 -c 8
    capmodel simulate kimi-k3 --on 8xB300 -c 16 --offload dram:1889GB --turns 50000
    """
    from ..simulate import simulate
    from ..simulate.answer import SimulationAnswer
    from ..simulate.scenario_case import scenario_case

    resolved = scenario_from_options(**given).resolve()
    described = scenario_case(resolved, concurrency, tree=tree)
    with ExitStack() as stack:
        result = simulate(
            described.case,
            turns=turns,
            seeds=seeds,
            first_seed=first_seed,
            start=start,
            warm_up=warm_up,
            window_s=window_s,
            time_limit_s=time_limit_s,
            progress=_progress(stack),
        )
    answer = SimulationAnswer(
        scenario_case=described,
        result=result,
        request_tokens_mean=resolved.workload.request_tokens_mean,
    )
    emit(answer, as_json=as_json)
