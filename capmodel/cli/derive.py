"""``capmodel derive``: derivations, re-proved now."""

from __future__ import annotations

import click

from ..errors import SpecError
from .options import emit, json_option


@click.command("derive")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Write all of them as a small book.")
@click.option("--format", "book_format", type=click.Choice(["md", "html"]), default="md",
              show_default=True, help="Format of the book.")  # fmt: skip
@json_option
def command(name: str | None, everything: bool, book_format: str, as_json: bool) -> None:
    """A derivation, re-proved now; all of them without a name.

    \b
    capmodel derive                       every derivation with its checks
    capmodel derive tariff                one of them, step by step, in LaTeX
    capmodel derive --all --format html   the book, to standard output
    """
    # SymPy takes a third of a second to import, so only this command may do it.
    from derivations import book, registry
    from derivations.report import Reports, prove

    if name is not None and everything:
        raise SpecError("give a NAME or --all, not both.", field="name")
    if name is not None:
        report = prove(registry.load(name))
        emit(report, as_json=as_json)
        held = report.ok
    else:
        reports = Reports(reports=tuple(prove(item) for item in registry.in_order()))
        if everything and not as_json:
            text = book.page(reports) if book_format == "html" else book.markdown(reports)
            click.echo(text, nl=False)
        else:
            emit(reports, as_json=as_json)
        held = reports.ok
    if not held:
        raise SystemExit(1)
