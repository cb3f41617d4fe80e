"""Options that commands share, and how a result reaches the terminal."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from ..errors import SpecError
from ..scenario import FIELDS, Scenario, load_scenario
from ..scenario_fields import MOST_TOKENS, MOST_USD

PICTURES = (".svg", ".png", ".pdf")
# A list of points is answered one by one: more than this is a slip of the finger.
MOST_POINTS = 4096

F = TypeVar("F", bound=Callable[..., Any])


class Result(Protocol):
    """What a command prints: a text for people and a dictionary for programs."""

    def to_dict(self) -> dict[str, Any]: ...


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN and infinity, which `click.FloatRange` lets through."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class OutputFile(click.Path):
    """A file that can be written, checked before the work starts; ``-`` is stdout."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        where = Path(value)
        if str(value) != "-":
            if where.is_dir():
                raise SpecError(f"{value} cannot be written: it is a folder.", field="file")
            if not where.parent.is_dir():
                raise SpecError(f"{value} cannot be written: no such folder.", field="file")
            if not os.access(where if where.exists() else where.parent, os.W_OK):
                raise SpecError(f"{value} cannot be written: no permission.", field="file")
        return super().convert(value, param, ctx)


class PictureFile(OutputFile):
    """An output file whose suffix names the format of a picture."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _check_suffix(value)
        return super().convert(value, param, ctx)


class Tariff(click.types.StringParamType):
    """The text of ``--price``, with no price beyond what a ledger can add up."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        for part in str(value).split(","):
            try:
                price = float(part.partition("=")[2])
            except ValueError:
                continue  # the scenario says what is wrong with it
            if not abs(price) <= MOST_USD:
                self.fail(f"{part.strip()}: a price is at most {MOST_USD:g} USD.", param, ctx)
        return value


def _check_suffix(path: str) -> None:
    if Path(path).suffix.lower() not in PICTURES:
        raise SpecError(
            f"--plot {path}: the suffix names the format, one of {', '.join(PICTURES)}.",
            field="plot",
        )


finite = FiniteRange()
positive = FiniteRange(min=0, min_open=True)
tokens = FiniteRange(max=MOST_TOKENS)
usd = FiniteRange(max=MOST_USD)


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
        click.option("--context-tokens-mean", type=tokens, help="Mean prompt of a request."),
        click.option("--tree-tokens-mean", type=tokens, help="Mean live tokens of a session tree."),
        click.option("--output-tokens-mean", type=tokens, help="Mean output of a request."),
        click.option("--turns-mean", type=tokens, help="Mean requests per session."),
        click.option("--think-time-cap-s", type=float, help="Longest gap a replay honours [s]."),
    ]
)

price_options = _stack(
    [
        click.option("--price", type=Tariff(), metavar="in=3,cached=0.3,out=15",
                     help="USD per 1e6 tokens."),
        click.option("--gpu-hour-usd", type=usd, help="Price per GPU-hour."),
        click.option("--dram-gb-hour-usd", type=usd, help="Price of offload DRAM per GB-hour."),
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
        match = re.fullmatch(r"([0-9]{1,12})(?:-([0-9]{1,12}))?", part.strip())
        if match is None:
            raise SpecError(f"{field}: {part.strip()!r} is not a whole number >= 1.", field=field)
        first, last = int(match[1]), int(match[2] or match[1])
        if len(numbers) + last - first >= MOST_POINTS:
            raise SpecError(f"{field}: {text!r} is over {MOST_POINTS} points.", field=field)
        numbers.extend(range(first, last + 1))
    if not numbers or min(numbers) < 1:
        raise SpecError(f"{field}: needs whole numbers >= 1, got {text!r}.", field=field)
    return numbers


def _endless(value: Any, place: str = "") -> Iterator[str]:
    """Yield where a JSON-ready value holds NaN or infinity."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _endless(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _endless(item, f"{place}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield place


def emit(result: Result, *, as_json: bool) -> None:
    """Print a result: its text, or one JSON object."""
    if not as_json:
        click.echo(str(result))
        return
    body = result.to_dict()
    place = next(_endless(body), None)
    if place is not None:
        raise SpecError(f"{place} is not finite: an input is too large or too small.", field=place)
    click.echo(json.dumps(body, allow_nan=False))


plot_option = click.option(
    "--plot", "plot_file", type=PictureFile(), metavar="FILE", help="Picture (svg, png, pdf)."
)
html_option = click.option(
    "--html", "html_file", type=OutputFile(), metavar="FILE", help="Report of one file, offline."
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

    _check_suffix(path)
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
