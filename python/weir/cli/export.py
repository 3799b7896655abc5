"""`weir export`: results in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.cli import complete, options, output, plans
from weir.results.results import damage_reported, load

_HELP = (
    "Write a result directory in the format of another program.\n\n"
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


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(export)


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A result directory.")],
    wanted: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="csv|flent|iperf3|pcapng|qlog",
            help="Format to write.",
            autocompletion=complete.formats,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="The new folder.", show_default="NAME-FORMAT"
        ),
    ] = None,
    case: Annotated[
        str | None, typer.Option(metavar="LABEL", help="This case only.", show_default="all")
    ] = None,
    repeat: Annotated[
        int | None, typer.Option(min=0, help="This repeat only.", show_default="all")
    ] = None,
    trust_controllers: plans.TrustControllers = False,
    json: options.Json = False,
) -> None:
    """Writes the files and prints their paths."""
    # Imported late: slow to load, and `--help` does not need it.
    from weir.export import export as write

    with plans.programs(trusted=trust_controllers), damage_reported(directory):
        files = write(load(directory), wanted, out, case=case, repeat=repeat)
    if json:
        rows = [{"file": str(file), "bytes": file.stat().st_size} for file in files]
        output.print_json("export", rows, format=wanted)
    else:
        typer.echo("\n".join(str(file) for file in files))
