"""`weir validate`: the same scenarios in the simulator and in the Linux kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from weir import validate as validation
from weir.cli import options, output, plans
from weir.grid import Grid
from weir.validate.words import TITLE, UNITS, findings, table

_HELP = """Repeat recorded runs of the Linux kernel's TCP in the simulator, and compare.

Prints per case and flow what we measured, its ratio to the kernel's, and whether that is near
enough. Whatever the simulator cannot carry out is listed with the reason. The report shows both
over time, one picture per case. docs/validation.md has the format, the metrics, the tolerances."""

_EXAMPLES = """[bold]Examples[/bold]

  weir validate --truth tests/truth

  weir validate --truth tests/truth --case '10m-q34-*' --json > validation.json"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(validate)


def validate(
    truth: Annotated[
        Path, typer.Option("--truth", metavar="DIR", help="Folder of recorded traces.")
    ],
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            metavar="GLOB",
            help="Only cases with such names; may be repeated.",
            show_default="all",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=2, help="Seeds per case in which anything is random.")
    ] = validation.SEEDS,
    jobs: plans.Jobs = None,
    out: plans.Out = plans.OutDefault,
    resume: plans.Resume = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Carries the cases out, prints the rows, draws the report."""
    how = plans.how(out, jobs, resume=resume, quiet=quiet)
    found = validation.validate(truth, cases=case or (), seeds=seeds, **how)
    if json:
        output.print_json("validate", found.rows, score=found.score)
    else:
        told = (Padding(Text(f"• {text}"), (0, 0, 0, 1)) for text in findings(found.rows))
        grid = Grid(TITLE, *table(found.rows), names=2, note=f"{UNITS[:1].upper()}{UNITS[1:]}.")
        output.show(Group(grid.rich(), *told))
    plans.finish(found.results, quiet=quiet)
