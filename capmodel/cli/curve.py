"""``capmodel curve``: the hit-rate surface of a workload, a session table or a trace."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from ..errors import MissingExtraError, SpecError
from ..units import parse_quantity
from .options import emit, finite, integer_list, json_option, plot_option, save_plot, tokens

# Numbers of one's own that replace those of a workload.
OVERRIDES = (
    "context_tokens_mean", "tree_tokens_mean", "output_tokens_mean", "think_time_mean_s",
)  # fmt: skip


def _capacities(text: str) -> list[float]:
    return [parse_quantity(part.strip(), "tokens", "capacity_tokens") for part in text.split(",")]


def _executor(scheduler: str | None, workers: int, stack: ExitStack) -> Any:
    """Return the executor that the flags ask for, closed with the stack; None for in line."""
    if scheduler is not None:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingExtraError("distributed", "dask") from error
        try:
            client = stack.enter_context(Client(scheduler, timeout="10s"))
        except (OSError, ValueError) as error:
            raise SpecError(
                f"no Dask scheduler answers at {scheduler!r}: {error}.", field="scheduler"
            ) from error
        return stack.enter_context(client.get_executor())
    if workers > 1:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        return stack.enter_context(ProcessPoolExecutor(workers, mp_context=get_context("spawn")))
    return None


@click.command("curve")
@click.argument("workload_or_trace")
@click.option("-c", "--concurrency", required=True, metavar="LIST", help="8,16 or 1-32.")
@click.option("--capacity-tokens", required=True, metavar="LIST", help="1e6,3.25e6 or 1M,3.25M.")
@click.option(
    "--method",
    default="finite-population",
    show_default=True,
    metavar="exact|finite-population|mean-field|moments|fluid",
)
@click.option(
    "--service",
    default="none",
    show_default=True,
    metavar="none|recorded|prefill:RATE",
    help="Rate of the prefill server [tokens/s].",
)
@click.option(
    "--think-time-cap-s", type=float, help="Cap on gaps [s].  [60 for traces, the workload's own]"
)
@click.option(
    "--gaps",
    default="benchmark",
    show_default=True,
    metavar="benchmark|production",
    help="Capped gaps, or uncapped ones with idle sessions ended.",
)
@click.option(
    "--idle-limit-s",
    type=float,
    default=3600.0,
    show_default=True,
    help="Gap that ends a session under --gaps production [s].",
)
@click.option("--shared-prefix-tokens", type=tokens, help="Prefix that all sessions share.")
@click.option("--context-tokens-mean", type=tokens, help="Mean prompt, for a workload.")
@click.option("--tree-tokens-mean", type=tokens, help="Mean live tokens, for a workload.")
@click.option("--output-tokens-mean", type=tokens, help="Mean output, for a workload.")
@click.option("--think-time-mean-s", type=finite, help="Mean gap under the cap [s].")
@click.option("--service-mean-s", type=finite, default=0.0, help="Mean service of a workload [s].")
@click.option("--sensitivity", is_flag=True, help="How much the answer depends on each input.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=4,
    show_default=True,
    help="Replays per concurrency for exact.",
)
@click.option(
    "--requests",
    type=click.IntRange(100),
    default=100_000,
    show_default=True,
    help="Requests per replay for exact.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Processes for exact.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    help="Parts that a block trace is split into by session.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler for exact.")
@plot_option
@click.option("--over", metavar="METHOD", help="Second method, drawn over the first as dots.")
@json_option
def command(
    workload_or_trace: str, concurrency: str, capacity_tokens: str, method: str,
    plot_file: str | None, over: str | None, workers: int, shards: int, scheduler: str | None,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Share of prompt tokens found in cache over concurrency and capacity.

    \b
    capmodel curve agentic-coding -c 8,16 --capacity-tokens 1M,3.25M
    capmodel curve trace.csv.gz -c 16 --capacity-tokens 2M --method exact --service prefill:15000
    """
    from ..reuse.curve import hit_rate_curve

    given["overrides"] = {name: given.pop(name) for name in OVERRIDES}
    lanes = integer_list(concurrency, "concurrency")
    rooms = _capacities(capacity_tokens)
    with ExitStack() as stack:
        executor = _executor(scheduler, workers, stack)
        parts = max(shards, workers) if executor is not None else shards
        results = [
            hit_rate_curve(
                workload_or_trace, lanes, rooms, name, executor=executor, shards=parts, **given
            )
            for name in (method, *([over] if over and plot_file else []))
        ]
    if plot_file is not None:
        second = results[1] if len(results) > 1 else None
        save_plot(results[0], plot_file, lambda first: first.plot(over=second))
    emit(results[0], as_json=as_json)
