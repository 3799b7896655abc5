"""`weir compare`: several stacks on the same network."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.options import chosen
from weir.cli import complete, options, output, plans, rows, screen, table
from weir.cli.help import Verb
from weir.comparison.contrasts import RELEVANT_SHARE, Relevant, caution, contrasts
from weir.comparison.neighbour import neighbours, neighbours_grid
from weir.comparison.neighbour import sentences as neighbours_in_words
from weir.comparison.tables import cases_table, contrasts_grid
from weir.comparison.verdicts import verdicts
from weir.results.results import Results
from weir.running.execution import Execution
from weir.scenario.plans import Comparison
from weir.scenario.source import parse_assignments, parse_sweep

_HELP = (
    "A stack is RECOVERY/CONTROLLER, as in [bold]rack/cubic[/bold], [bold]newreno/reno[/bold] or "
    "[bold]go-back-n(30)/none[/bold]; a controller alone means rack/, as in Linux. "
    "[bold]weir list[/bold] names them all, and FILE.py:CLASS is a controller of your own.\n\n"
    "The network is one bottleneck between two routers. Each stack runs alone, once per repeat. "
    "With --flows it runs as that number of equal flows. Repeat n has the same seed for all "
    "stacks."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir compare reno cubic bbr --rate 10mbit --rtt 40ms --queue 1bdp

  weir compare cubic bbr --loss 1% --duration 30s --repeat 20

  weir compare reno cubic --sweep topology.queue=0.5bdp,1bdp,2bdp,4bdp

  weir compare stop-and-wait/none 'go-back-n(10)/none' rack/cubic --size 1mb --loss 2%

  weir compare reno cubic --tc 'netem delay 40ms loss 0.1% rate 10mbit'

  weir compare reno mine.py:Mine --repeat 5

  weir compare mine.py:Mine --against cubic

  weir compare reno cubic bbr --world kernel --repeat 5

  weir compare reno vegas --flows 4 --json > result.json"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(compare)


@table.with_options_of(Comparison, Execution)
def compare(
    stacks: Annotated[
        list[str],
        typer.Argument(
            metavar="STACK...", help="Stacks to compare.", autocompletion=complete.stacks
        ),
    ],
    *,
    relevant: Relevant = RELEVANT_SHARE,
    sets: options.Sets = None,
    sweep: options.Sweep = None,
    virtual: options.Virtual = False,
    kernel: options.Kernel = None,
    router: options.Router = options.OURS,
    dry_run: options.DryRun = False,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the stacks, prints tables or JSON, draws the report."""
    share = plans.relevant_share(relevant)
    report = plans.reporting(no_report=no_report, opened=opened)
    plans.choose_kernel(kernel, virtual=virtual, dask=given.get("dask"))
    how = plans.execution(given, quiet=quiet)
    world = plans.world_of(given.pop("world"), virtual=virtual, router=router)
    comparison = Comparison(
        stacks=stacks,
        sets=parse_assignments(sets or [], "--set"),
        sweep=parse_sweep(sweep or []),
        world=world,
        **chosen(Comparison, given),
    )
    plan = comparison.plan("--{name} {value}")
    if dry_run:
        plans.list_plan("compare", plan, as_json=json)
        return
    results = plans.run_plan(plan, report, **how)
    _print(results, share, as_json=json)
    plans.finish(results, report, quiet=quiet, relevant=share)


def _print(results: Results, relevant: float, *, as_json: bool) -> None:
    found = contrasts(results, relevant)
    if as_json:
        output.print_json("compare", rows.comparison_rows(results, found))
        return
    next_to = neighbours(results, relevant)
    said = neighbours_in_words(next_to) if next_to else verdicts(found)
    grids = [
        neighbours_grid(results, next_to),
        contrasts_grid(found, caution(found), results.caution) if found else None,
    ]
    parts = (grid.rich() for grid in grids if grid is not None)
    screen.show(Group(*(Text(text, style="bold") for text in said), cases_table(results), *parts))
