"""`weir run`: a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weir.api import verbs
from weir.base.options import MEASUREMENT, Option, chosen
from weir.cli import complete, options, output, plans, rows, screen, table
from weir.cli.help import Verb
from weir.comparison.tables import cases_table
from weir.results.results import Results
from weir.running.execution import Execution
from weir.scenario.plans import ReverseTc, Tc, scenario_plan
from weir.scenario.source import SIM, parse_assignments, parse_sweep, read
from weir.scenario.tc import keys

_HELP = (
    "Results go to results/NAME/TIME-HASH, where NAME is the scenario's name. "
    "[bold]weir list scenarios[/bold] lists the scenarios that come with Weir."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir run two-flows

  weir run mine.toml --set topology.rate=50mbit --repeat 20 --jobs 4

  weir run mine.toml --sweep topology.queue=0.5bdp,1bdp --sweep topology.rtt=10ms,100ms

  weir run lab-router --world udp

  weir run two-flows --pcap captures

  weir run two-flows --tc 'tbf rate 20mbit burst 32kbit latency 50ms'

  weir run sweep-1000 --dask tcp://head:8786

  weir run mine.toml --dry-run

  weir run mine.toml --hosts hosts.toml

  weir run mine.toml --resume"""


_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A scenario file, or the name of one that comes with Weir.",
        autocompletion=complete.scenarios,
    ),
]
_Hosts = Annotated[
    Path | None,
    Option(
        "Run the flows between the hosts of this file, over ssh. The network is the one "
        "between them.",
        MEASUREMENT,
        metavar="FILE",
    ),
]


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(run)


@table.with_options_of(verbs.run, Execution)
def run(
    file: _File,
    *,
    tc: Tc = None,
    reverse_tc: ReverseTc = None,
    sets: options.Sets = None,
    sweep: options.Sweep = None,
    virtual: options.Virtual = False,
    kernel: options.Kernel = None,
    router: options.Router = options.OURS,
    hosts: _Hosts = None,
    dry_run: options.DryRun = False,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the file, prints tables or JSON, draws the report."""
    report = plans.reporting(no_report=no_report, opened=opened)
    bed = None
    if hosts is not None:
        from weir.cli import host_runs  # other runs have no use for it

        excluded = {"--tc": tc, "--reverse-tc": reverse_tc, "--pcap": given["pcap"]}
        excluded |= {"--world": given["world"] != SIM, "--virtual": virtual, "--kernel": kernel}
        excluded |= {"--router": router != options.OURS, "--jobs": given["jobs"]}
        bed = host_runs.chosen(hosts, excluded | {"--dask": given["dask"]}, sets or [], sweep or [])
    plans.choose_kernel(kernel, virtual=virtual, dask=given.get("dask"))
    overrides = parse_assignments(sets or [], "--set")
    source = read(file, (*keys(tc, reverse_tc), *overrides))
    if bed is None:
        source = source.in_world(plans.world_of(given["world"], virtual=virtual, router=router))
    else:
        source = host_runs.source_of(source, bed)
    words = [] if hosts is None else ["--hosts", str(hosts)]
    with plans.programs(trusted=given["trust_controllers"]):
        plan = scenario_plan(
            source, parse_sweep(sweep or []), words=words, **chosen(scenario_plan, given)
        )
    if bed is not None:
        host_runs.check(plan, bed)
    if dry_run:
        plans.list_plan("run", plan, as_json=json)
        return
    how = plans.execution(given, quiet=quiet)
    if bed is None:
        results = plans.run_plan(plan, report, **how)
    else:
        results = host_runs.run_plan(plan, bed, report, quiet=quiet, **how)
    _show(results, as_json=json)
    plans.finish(results, report, quiet=quiet)


def _show(results: Results, *, as_json: bool) -> None:
    """Prints the cases, and in JSON their flows."""
    if as_json:
        flows = rows.flow_rows(results)
        cases = rows.case_rows(results)
        output.print_json("run", [{**row, "flows": flows.get(row["label"], [])} for row in cases])
    else:
        screen.show(cases_table(results))
