"""`weir explain`: which unstated settings reproduce published numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.errors import InputError
from weir.base.grid import Grid, listed, number
from weir.base.options import chosen
from weir.cli import complete, options, output, plans, screen, table
from weir.cli.help import Verb
from weir.running.execution import Execution
from weir.scenario.plans import World
from weir.scenario.source import SIM, parse_assignments, read
from weir.search import published
from weir.search import space as spaces
from weir.search.explain import Explained, ExplainOptions, as_json
from weir.search.explain import explain as explained

_HELP = (
    "The table is a CSV file. A column with a dot in its name is a key of the scenario, any other "
    "column a metric or an expression. The search sees three quarters of the cells; the rest judge "
    "what it found. See docs/search/README.md."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir explain scenario.toml --published table.csv --space unknowns.toml

  weir explain scenario.toml --published table.csv --space unknowns.toml --budget 20min --json"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(explain)


@table.with_options_of(ExplainOptions, Execution, without=["pcap"])
def explain(
    scenario: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario with all that the paper states.",
            autocompletion=complete.scenarios,
        ),
    ],
    *,
    sets: options.Sets = None,
    world: World = SIM,
    virtual: options.Virtual = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Searches, and prints which settings fit."""
    tried = ExplainOptions(**chosen(ExplainOptions, given))
    if tried.published is None or tried.space is None:
        raise InputError("give --published TABLE.csv and --space UNKNOWNS.toml")
    how = Execution(**plans.execution(given, quiet=quiet))
    cells = published.read(tried.published, tried.seed)
    unknowns = spaces.space(spaces.read(tried.space))
    source = read(scenario, parse_assignments(sets or [], "--set"))
    source = source.in_world(plans.world_of(world, virtual=virtual))
    note = partial(output.note, quiet=quiet)
    found = explained(source, cells, unknowns, tried, how, note)
    if json:
        document = as_json(found)
        output.print_json("explain", document.pop("rows"), **document)
    else:
        screen.show(Group(*(Text(line) for line in _sentences(found)), _grid(found).rich()))
    if not quiet:
        from weir.search import pictures  # drawing libraries load slowly

        note(pictures.drawn(Path(found.journal), partial(pictures.residuals, found)))


def _sentences(found: Explained) -> list[str]:
    lines = [f"{fit.words}." for fit in found.fits]
    for name, (good, count) in found.fitting.items():
        lines.append(f"Within two errors: {good} of {count} cells {name.replace('_', ' ')}.")
    if found.unfit:
        names = listed([found.table.name(cell) for cell in found.unfit])
        lines.append(f"No setting fits {len(found.unfit)}: {names}.")
    lines.append(
        f"{found.equal} settings are not worse than the best; {found.tried} tried in "
        f"{found.runs} runs."
    )
    return lines


def _grid(found: Explained) -> Grid:
    rows = [
        (
            found.table.name(cell),
            number(row["published"], 4),
            number(row["measured"], 4),
            f"{row['residual']:+.1f}",
            "held out" if row["held_out"] else "",
            "" if row["fitted_by_some"] else "no setting fits",
        )
        for cell, row in zip(found.table.cells, as_json(found)["rows"], strict=True)
    ]
    headers = ("cell", "published", "measured", "errors", "", "")
    return Grid("The best setting", headers, rows, notes=2)
