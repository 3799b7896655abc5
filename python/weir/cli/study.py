"""`weir study`: a published experiment, reproduced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Group

from weir.api import verbs
from weir.base.grid import Grid, cautioned
from weir.base.options import MEASUREMENT
from weir.cells.cells import count_text, decimals, spread_text
from weir.cells.protocol import SIZES, Cell, Settings, sources
from weir.cli import complete, options, output, plans
from weir.cli.table import option
from weir.scenario.plans import Comparison
from weir.scenario.source import SIM, worlds
from weir.studies import catalogue

_WIDEST = 12
"""Most columns of a printed table; wider ones are in the report and in `--json`."""

_DECIMALS = 3
_LARGE = 100.0
"""Values from here on have no decimals."""

_HELP = """Reproduce a published experiment and print published and measured values.

[bold]weir list studies[/bold] lists them."""

_EXAMPLES = """[bold]Examples[/bold]

  weir study lab-udp

  weir study lab-udp --world udp

  weir study book --world kernel --virtual

  weir study lab-udp --size full --repeat 10 --json > lab-udp.json"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(study)


_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the study.", autocompletion=complete.study_names),
]
_Size = Annotated[
    str,
    typer.Option(
        metavar="|".join(SIZES),
        help="Number of cases and length of runs.",
        rich_help_panel=MEASUREMENT,
    ),
]
_Repeat = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        "-n",
        min=1,
        help="Runs per cell.",
        show_default="the study's own",
        rich_help_panel=MEASUREMENT,
    ),
]
_Seed = Annotated[
    int,
    typer.Option(min=0, help="Random seed of the first repeat.", rich_help_panel=MEASUREMENT),
]
_World = Annotated[
    str | None,
    option(
        Comparison,
        "world",
        metavar="|".join(worlds()),
        autocompletion=complete.worlds,
        show_default="the study's first, mostly sim",
    ),
]


def study(
    name: _Name,
    size: _Size = Settings.size,
    repeat: _Repeat = None,
    seed: _Seed = Settings.seed,
    world: _World = None,
    virtual: plans.Virtual = False,
    kernel: plans.Kernel = None,
    jobs: plans.Jobs = None,
    dask: plans.Dask = None,
    out: plans.Out = plans.OutDefault,
    resume: plans.Resume = False,
    no_report: plans.NoReport = False,
    opened: plans.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs the study, prints its cells and findings, draws the report."""
    report = plans.reporting(no_report=no_report, opened=opened)
    own_world = world is None and not virtual
    plans.choose_kernel(kernel, virtual=virtual, dask=dask)
    result = verbs.study(
        name,
        size=size,
        repeat=repeat,
        seed=seed,
        world=None if own_world else plans.world_of(world or SIM, virtual=virtual),
        out=out,
        jobs=jobs,
        resume=resume,
        dask=dask,
        show_progress=not quiet,
    )
    if json:
        caution = result.results.caution
        output.print_json("study", result.rows, **({"health": caution} if caution else {}))
    else:
        grids = (
            replace(grid, title=cautioned(grid.title, result.results.caution)).rich()
            for grid in _tables(name, result.rows)
        )
        output.show(Group(*grids, *output.points(result.findings)))
    plans.finish(result.results, report, quiet=quiet)


def _tables(study: str, cells: Sequence[Cell]) -> Iterator[Grid]:
    """Yields one grid per table: for each row, first published and then measured values."""
    wide = []
    for table in dict.fromkeys(cell["table"] for cell in cells):
        own = [cell for cell in cells if cell["table"] == table]
        columns = list(dict.fromkeys(cell["column"] for cell in own))
        title = catalogue.title(study, table)
        if len(columns) > _WIDEST:
            wide.append((title, table, str(len(columns))))
        else:
            yield _grid(title, columns, own)
    if wide:
        yield Grid("In the report and in --json only", ("table", "in --json", "columns"), wide)


def _grid(title: str, columns: Sequence[str], cells: Sequence[Cell]) -> Grid:
    rows = []
    for row in dict.fromkeys(cell["row"] for cell in cells):
        by_column = {cell["column"]: cell for cell in cells if cell["row"] == row}
        for number, series in enumerate(sources(cells)):
            texts = (_text(by_column.get(column, {}), series) for column in columns)
            rows.append((row if number == 0 else "", series, *texts))
    units = {cell["unit"] for cell in cells if cell["unit"]}
    what = [*units, "mean ± 95 % interval"] if len(units) == 1 else ["mean ± 95 % interval"]
    return Grid(f"{title} ({', '.join(what)})", ("row", "column", *columns), rows, names=2)


def _text(cell: Cell, series: str) -> str:
    value, count = cell.get(series), count_text(cell, series)
    if not isinstance(value, dict):
        return "–" if value is None else f"{value}{count}"
    mean = value.get("mean")
    if mean is None:
        return f"–{count}"
    digits = max(decimals(mean), _DECIMALS if abs(mean) < _LARGE else 0)
    spread = spread_text(mean, value.get("lo"), value.get("hi"), digits)
    return f"{mean:.{digits}f}{spread}{count}"
