"""``capmodel validate``: measured cases against the model."""

from __future__ import annotations

from pathlib import Path

import click

from .options import OutputFile, emit, json_option, write_text


@click.command("validate")
@click.option(
    "--set",
    "names",
    multiple=True,
    metavar="NAME",
    help="memory|service|reuse|network|agentic|hit_rate|offload_gain|calibrated; repeat.  [all]",
)
@click.option(
    "--points",
    type=click.Path(),
    metavar="FILE",
    help="Other replay points (CSV) for the agentic sets.",
)
@click.option("--html", "page", type=OutputFile(), metavar="FILE", help="Write one HTML page.")
@json_option
def command(names: tuple[str, ...], points: str | None, page: str | None, as_json: bool) -> None:
    """How wrong the model is, per set and regime, on cases measured by others.

    \b
    capmodel validate --set agentic
    capmodel validate --html errors.html
    """
    from ..validate.validation import validate

    result = validate(*names, points=None if points is None else Path(points))
    if page is not None:
        from ..validate.validation_page import validation_page

        write_text(page, validation_page(result))
    emit(result, as_json=as_json)
