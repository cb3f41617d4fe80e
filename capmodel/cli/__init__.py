"""The command line: lazy commands, one message per error, JSON on request."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any, NoReturn

import click

from .._version import __version__
from ..errors import CapmodelError, nearest_names

# command -> (module, one line of help); modules are imported only when their command runs.
COMMANDS = {
    "memory": ("memory", "Does the model fit, and how many KV tokens are left?"),
    "curve": ("curve", "Hit-rate surface of a workload, a session table or a trace."),
    "estimate": ("estimate", "One operating point: sessions, hits, latency, cost, margin."),
    "sweep": ("sweep", "The same over concurrency (and any other flag given as a list)."),
    "optimize": ("optimize", "The cheapest plan within the SLOs, with its certificate."),
    "simulate": ("simulate", "Discrete-event reference for one operating point."),
    "explain": ("explain", "The chain of numbers behind an answer, with sources."),
    "compare": ("compare", "One measured run, or a live engine, against the model."),
    "calibrate": ("calibrate", "Factors that your own points imply, with intervals."),
    "validate": ("validate", "Measured cases against the model, misses included."),
    "derive": ("derive", "Derivations, re-proved now."),
    "serve": ("serve", "The planner page on this machine (extra web)."),
    "list": ("catalog", "The catalog: models, accelerators, nodes, workloads, prices."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when it is asked for, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[cmd_name][0]}", __package__)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = nearest_names(args[0], COMMANDS)
            hint = f" Nearest: {', '.join(close)}." if close else ""
            raise click.UsageError(f"no such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="capmodel")
def group() -> None:
    """How many sessions may this node hold, how much KV goes to DRAM, and what does a token cost?

    \b
    capmodel estimate kimi-k3 --on 8xB300 -c 8
    capmodel sweep kimi-k3 --on 8xB300 -c 1,2,4,8,16,24
    capmodel memory llama-3.1-70b --on 4xH100-80GB --kv-dtype fp8
    """


def _fail(error: CapmodelError | click.ClickException, as_json: bool) -> NoReturn:
    if isinstance(error, CapmodelError):
        code, message, body = error.exit_code, str(error), error.to_dict()
    else:
        code, message = 2, error.format_message()
        body = {"type": type(error).__name__, "message": message}
    if as_json:
        print(json.dumps({"error": body}, allow_nan=False))
    line = " ".join(part.strip() for part in message.splitlines() if part.strip())
    print(f"capmodel: {line}", file=sys.stderr)
    raise SystemExit(code)


def main(args: list[str] | None = None) -> Any:
    """Run the command line; errors become one message and exit code 2 or 3."""
    arguments = sys.argv[1:] if args is None else args
    try:
        return group.main(args=arguments, prog_name="capmodel", standalone_mode=False)
    except (CapmodelError, click.ClickException) as error:
        _fail(error, "--json" in arguments)
    except click.Abort:
        print("capmodel: stopped", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
