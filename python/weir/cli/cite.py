"""`weir cite`: how to cite results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.bundle.citation import bibtex, citation, sentence
from weir.cli import options, output
from weir.cli.help import Verb
from weir.results.results import damage_reported, load

_HELP = (
    "Prints version, date, command, and a hash over scenarios, seeds and tables, as text and as "
    "BibTeX."
)


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP)(cite)


def cite(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A result directory.")],
    json: options.Json = False,
) -> None:
    """Prints the citation."""
    with damage_reported(directory):
        found = citation(load(directory))
    if json:
        output.print_json("cite", [found])
    else:
        typer.echo(f"{sentence(found)}\n\n{bibtex(found)}")
