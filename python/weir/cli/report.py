"""`weir report`: draw the report of old results again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.cli import plans
from weir.results import load, understood

_HELP = """Draw the report of a result directory again, and export its figures."""

_EXAMPLES = """[bold]Examples[/bold]

  weir report results/compare/latest

  weir report results/compare/latest --open

  weir report results/compare/latest --svg --pdf"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(report)


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A result directory.")],
    png: Annotated[bool, typer.Option("--png", help="Also write each figure as PNG.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Also write each figure as SVG.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also write each figure as PDF.")] = False,
    relevant: plans.Relevant = plans.RELEVANT,
    opened: plans.Open = False,
) -> None:
    """Draws the report and prints its path."""
    from weir.report import write  # importing the plotting libraries would slow down `--help`

    results = load(directory)
    wanted = {"png": png, "svg": svg, "pdf": pdf}
    formats = [name for name, is_wanted in wanted.items() if is_wanted]
    with understood(directory):
        path = write(results.path, formats, relevant=plans.relevant_share(relevant))
    typer.echo(path)
    if opened:
        plans.open_page(path, quiet=False)
