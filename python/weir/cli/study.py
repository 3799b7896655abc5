"""`weir study`: a published experiment, reproduced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Group

from weir.api import studies
from weir.base.errors import InputError
from weir.base.grid import Grid, cautioned
from weir.base.options import Option
from weir.cells import claims
from weir.cells.cells import Cells, count_text, decimals, digits, spread_text
from weir.cells.protocol import PUBLISHED, Cell, sources
from weir.cli import complete, options, output, plans, screen, table
from weir.cli.help import Verb
from weir.scenario.source import SIM
from weir.studies import catalogue
from weir.studies.published import summaries

_WIDEST = 12
"""Most columns of a printed table; wider ones are in the report and in `--json`."""

_DECIMALS = 3
_LARGE = 100.0
"""Values from here on have no decimals."""

_HELP = """[bold]weir list studies[/bold] lists them."""

_EXAMPLES = """[bold]Examples[/bold]

  weir study lab-udp

  weir study lab-udp --world udp

  weir study book --world kernel --virtual

  weir study lab-udp --size full --repeat 10 --json > lab-udp.json

  weir study --published"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(study)


_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="Name of the study.", autocompletion=complete.study_names
    ),
]

_Published = Annotated[
    bool,
    Option(
        "Write one page of all numbers and claims of the five sources, next to ours. Studies "
        "without results are run; others are taken from the results folder.",
    ),
]
_WITH_PUBLISHED = ("size", "out", "jobs")
"""Options of a study that `--published` takes."""


@table.with_options_of(studies.study)
def study(
    name: _Name = None,
    *,
    published: _Published = False,
    virtual: options.Virtual = False,
    kernel: options.Kernel = None,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the study, prints its cells and findings, draws the report."""
    if published:
        _published(name, given, opened=opened, json=json, quiet=quiet)
        return
    if name is None:
        raise InputError("NAME is missing: the name of a study, or --published for all sources")
    report = plans.reporting(no_report=no_report, opened=opened)
    plans.choose_kernel(kernel, virtual=virtual, dask=given["dask"])
    world = given.pop("world")
    if world is not None or virtual:
        world = plans.world_of(world or SIM, virtual=virtual)
    result = studies.study(name, **given, world=world, show_progress=not quiet)
    if json:
        caution = result.results.caution
        output.print_json("study", result.rows, **({"health": caution} if caution else {}))
    else:
        grids = (
            replace(grid, title=cautioned(grid.title, result.results.caution)).rich()
            for grid in _tables(name, result.rows)
        )
        screen.show(Group(*grids, *screen.points(result.findings)))
    plans.finish(result.results, report, quiet=quiet)


def _published(
    name: str | None, given: Mapping[str, Any], *, opened: bool, json: bool, quiet: bool
) -> None:
    """Writes the page, prints how often each verdict occurs."""
    if name is not None:
        raise InputError(f"NAME {name!r}: --published is about all sources; leave the name out")
    own = {key: value for key, value in given.items() if key in _WITH_PUBLISHED}
    others = {key: value for key, value in given.items() if key not in own}
    for changed in table.changed_options(studies.study, others):
        allowed = ", ".join(f"--{key}" for key in _WITH_PUBLISHED)
        raise InputError(f"{changed}: --published takes {allowed}; a study by its name takes more")
    found = studies.published(**own, show_progress=not quiet)
    if json:
        rows = [entry.as_json() for entry in found.entries]
        described = [own.as_json() for own in found.items]
        output.print_json("study", rows, items=described, warnings=list(found.warnings))
    else:
        grids = (
            Grid(table["title"], tuple(table["headers"]), table["rows"]).rich()
            for table in summaries(found.entries, found.items)
        )
        screen.show(Group(*grids, *screen.points(found.warnings)))
    output.note(f"Page: {found.path}", quiet=quiet)
    if opened:
        plans.open_page(found.path, quiet=quiet)


def _tables(study: str, cells: Sequence[Cell]) -> Iterator[Grid]:
    """Yields one grid per table: for each row, first published and then measured values."""
    wide = []
    for name in dict.fromkeys(cell["table"] for cell in cells):
        own = [cell for cell in cells if cell["table"] == name]
        columns = list(dict.fromkeys(cell["column"] for cell in own))
        title = catalogue.title(study, name)
        if name == claims.TABLE:
            yield _claims(title, own)
        elif len(columns) > _WIDEST:
            wide.append((title, name, str(len(columns))))
        else:
            yield _grid(title, columns, own)
    if wide:
        yield Grid("In the report and in --json only", ("table", "in --json", "columns"), wide)


def _claims(title: str, cells: Sequence[Cell]) -> Grid:
    """Each claim with what is printed, ours, and the verdict."""
    rows = [
        (
            found["row"],
            "–" if found[PUBLISHED] is None else digits(found[PUBLISHED]),
            f"{found['measured']} {Cells([found]).text(found['row'], claims.COLUMN)}",
            found["note"],
        )
        for found in cells
    ]
    headers = ("claim", "published", "ours (95 % interval)", "verdict")
    return Grid(title, headers, rows)


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
