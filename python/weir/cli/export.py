"""`weir export`: results in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weir.cli import options, output, plans, table
from weir.cli.help import Verb
from weir.export import export as write
from weir.results.results import damage_reported, load

_HELP = (
    "Formats: [bold]csv[/bold] (every table), [bold]flent[/bold] (Flent's data file), "
    "[bold]iperf3[/bold] (as iperf3 -J), [bold]pcapng[/bold] (a capture per interface of a "
    "simulated run), [bold]qlog[/bold] (a file per flow and side).\n\n"
    "The files are in a new folder, which appears when it is complete. docs/interchange.md "
    "describes them."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir export results/compare/latest --format flent

  weir export results/compare/latest --format pcapng --case cubic --repeat 0 --out packets

  weir export results/two-flows/latest -f csv -o tables"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(export)


@table.with_options_of(write)
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A result directory.")],
    *,
    json: options.Json = False,
    **given: Any,
) -> None:
    """Writes the files and prints their paths."""
    with plans.programs(trusted=given.pop("trust_controllers")), damage_reported(directory):
        files = write(load(directory), **given)
    if json:
        rows = [{"file": str(file), "bytes": file.stat().st_size} for file in files]
        output.print_json("export", rows, format=given["wanted"])
    else:
        typer.echo("\n".join(str(file) for file in files))
