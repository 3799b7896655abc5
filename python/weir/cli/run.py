"""`weir run`: a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.api import carry_out, scenario_plan
from weir.cli import complete, options, output, plans, rows
from weir.scenario import SIM, parse_assignments, parse_sweep, read
from weir.tables import cases_table

_HELP = (
    "Run a scenario file: every point of its sweep, every repeat.\n\n"
    "Results go to results/NAME/TIME-HASH, NAME being the scenario's. "
    "[bold]weir list scenarios[/bold] names those that come with Weir."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir run two-flows

  weir run mine.toml --set topology.rate=50mbit --repeat 20 --jobs 4

  weir run mine.toml --sweep topology.queue=0.5bdp,1bdp --sweep topology.rtt=10ms,100ms

  weir run lab-router --world udp

  weir run two-flows --world kernel --pcap captures

  weir run mine.toml --dry-run

  weir run mine.toml --resume"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(run)


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A scenario file, or the name of one that comes with Weir.",
            autocompletion=complete.scenarios,
        ),
    ],
    sets: plans.Set = None,
    sweep: plans.SweepOption = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat", "-n", min=1, help="Runs per case.", show_default="the scenario's own"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the first repeat.", show_default="the scenario's own"),
    ] = None,
    world: plans.World = SIM,
    virtual: plans.Virtual = False,
    router: plans.Router = plans.OURS,
    pcap: plans.Pcap = None,
    jobs: plans.Jobs = None,
    out: plans.Out = plans.OutDefault,
    resume: plans.Resume = False,
    dry_run: plans.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs the file, prints tables or JSON, draws the report."""
    source = read(file, parse_assignments(sets or [], "--set"))
    source = source.in_world(plans.world_of(world, virtual=virtual, router=router))
    plan = scenario_plan(source, parse_sweep(sweep or []), repeat=repeat, seed=seed)
    if dry_run:
        plans.list_plan("run", plan, as_json=json)
        return
    results = carry_out(plan, **plans.how(out, jobs, resume=resume, quiet=quiet, pcap=pcap))
    if json:
        flows = rows.flow_rows(results)
        cases = rows.case_rows(results)
        output.print_json("run", [{**row, "flows": flows.get(row["label"], [])} for row in cases])
    else:
        output.show(cases_table(results))
    plans.finish(results, quiet=quiet)
