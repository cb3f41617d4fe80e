"""Options that commands share, and how a result reaches the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from ..errors import SpecError
from ..scenario import FIELDS, Scenario, load_scenario

PICTURES = (".svg", ".png", ".pdf")

F = TypeVar("F", bound=Callable[..., Any])


class Result(Protocol):
    """What a command prints: a text for people and a dictionary for programs."""

    def to_dict(self) -> dict[str, Any]: ...


def _stack(decorators: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


model_and_node = _stack(
    [
        click.argument("model", required=False),
        click.option("--on", "node", metavar="NODE", help="Node, such as 8xB300 or 4xMI355X."),
        click.option("--nodes", type=int, help="Nodes of one engine replica.  [1]"),
        click.option("--scenario", "scenario_file", type=click.Path(), metavar="FILE",
                     help="YAML, TOML or JSON scenario; flags win."),
    ]
)  # fmt: skip

deployment_options = _stack(
    [
        click.option("--tp", type=int, help="Tensor parallel.  [all GPUs / pp / dp]"),
        click.option("--pp", type=int, help="Pipeline parallel.  [1]"),
        click.option("--dp", type=int, help="Attention data parallel.  [1]"),
        click.option("--ep", type=int, help="Expert parallel.  [1]"),
        click.option("--dcp", type=int, help="Decode context parallel, divides tp.  [1]"),
        click.option("--engine", metavar="vllm|sglang|trtllm|atom", help="Engine.  [vllm]"),
        click.option("--engine-version", metavar="BUILD",
                     help="Build; 'architecture' ignores recorded builds."),
        click.option("--weights", metavar="FORMAT", help="auto|bf16|fp8|int4|mxfp4|nvfp4.  [auto]"),
        click.option("--kv-dtype", metavar="FORMAT", help="auto|bf16|fp8.  [auto]"),
        click.option("--gpu-memory-utilization", type=float, help="Share of HBM.  [0.90]"),
        click.option("--available-kv-gib", type=float, help="Override the KV pool per GPU [GiB]."),
        click.option("--max-model-len", type=int, help="Longest request.  [the model's own]"),
        click.option("--max-num-seqs", type=int, help="Running-request limit."),
        click.option("--max-num-batched-tokens", type=int, help="Tokens per step."),
        click.option("--prefix-caching", type=click.Choice(["on", "off"]), help="[on]"),
        click.option("--scheduling", metavar="POLICY", help="Only first-come.  [first-come]"),
        click.option("--speculate", metavar="NAME:K", help="Draft and depth, such as dspark:2."),
    ]
)  # fmt: skip

offload_options = _stack(
    [
        click.option("--offload", metavar="TIER:BYTES", help="dram:1889GB per node, or none."),
        click.option("--offload-bandwidth", metavar="RATE", help="Load rate per GPU (50GB/s)."),
    ]
)

workload_options = _stack(
    [
        click.option("--workload", metavar="NAME|FILE", help="[agentic-coding]"),
        click.option("--context-tokens-mean", type=float, help="Mean prompt of a request."),
        click.option("--tree-tokens-mean", type=float, help="Mean live tokens of a session tree."),
        click.option("--output-tokens-mean", type=float, help="Mean output of a request."),
        click.option("--turns-mean", type=float, help="Mean requests per session."),
        click.option("--think-time-cap-s", type=float, help="Longest gap a replay honours [s]."),
    ]
)

price_options = _stack(
    [
        click.option("--price", metavar="in=3,cached=0.3,out=15", help="USD per 1e6 tokens."),
        click.option("--gpu-hour-usd", type=float, help="Price per GPU-hour."),
        click.option("--dram-gb-hour-usd", type=float, help="Price of offload DRAM per GB-hour."),
        click.option("--bill-cached", metavar="eligible|actual|none",
                     help="Which input is sold at the cached price.  [eligible]"),
    ]
)  # fmt: skip

level_option = click.option(
    "--level", type=click.Choice(["closed", "fast", "exact"]), default="fast", show_default=True,
    help="Work the network stage does.",
)  # fmt: skip

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


def scenario_from_options(**given: Any) -> Scenario:
    """Return the scenario that flags (and a scenario file) describe; None means not given."""
    path = given.pop("scenario_file", None)
    caching = given.pop("prefix_caching", None)
    values = {k: v for k, v in given.items() if v is not None and k in FIELDS}
    if caching is not None:
        values["prefix_caching"] = caching == "on"
    if path is not None:
        return load_scenario(path, **values)
    for key, flag in (("model", "MODEL"), ("node", "--on NODE")):
        if key not in values:
            raise SpecError(f"give {flag} (or --scenario FILE).", field=key)
    return Scenario(**values)


def integer_list(text: str, field: str) -> list[int]:
    """Return the integers in ``1,2,4`` or ``1-8`` (inclusive), in the order given."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise SpecError(f"{field}: {part.strip()!r} is not a whole number >= 1.", field=field)
        numbers.extend(range(int(first), int(last) + 1) if dash else [int(first)])
    if not numbers or min(numbers) < 1:
        raise SpecError(f"{field}: needs whole numbers >= 1, got {text!r}.", field=field)
    return numbers


def emit(result: Result, *, as_json: bool) -> None:
    """Print a result: its text, or one JSON object."""
    if as_json:
        click.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        click.echo(str(result))


plot_option = click.option(
    "--plot", "plot_file", type=click.Path(), metavar="FILE", help="Picture (svg, png, pdf)."
)
html_option = click.option(
    "--html", "html_file", type=click.Path(), metavar="FILE", help="Report of one file, offline."
)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror}.", field="file") from error


def save_plot(result: Any, path: str, draw: Callable[[Any], Any] | None = None) -> None:
    """Draw a result's picture into a file whose suffix names the format; `draw` for its own."""
    from ..report.canvas import save

    suffix = Path(path).suffix.lower()
    if suffix not in PICTURES:
        raise SpecError(
            f"--plot {path}: the suffix names the format, one of {', '.join(PICTURES)}.",
            field="plot",
        )
    axes = result.plot() if draw is None else draw(result)
    with _writing(path):
        save(axes, path)
    click.echo(f"wrote {path}", err=True)


def write_text(path: str, text: str) -> None:
    """Write a result's text form to a file, or to stdout where the path is ``-``."""
    if path == "-":
        click.echo(text, nl=False)
        return
    with _writing(path):
        Path(path).write_text(text, encoding="utf-8")
    click.echo(f"wrote {path}", err=True)
