"""`weir compare`: several stacks on the same network."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from weir.api import Comparison
from weir.cli import complete, options, output, plans, rows
from weir.cli.help import MEASUREMENT, NETWORK, TRAFFIC
from weir.comparison import caution, contrasts
from weir.results import Results
from weir.scenario import SIM, parse_assignments, parse_sweep
from weir.tables import cases_table, contrasts_grid
from weir.verdicts import verdicts

_HELP = (
    "Run several stacks on the same network with the same seeds, and compare them.\n\n"
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

  weir compare reno cubic bbr --world kernel --repeat 5

  weir compare reno vegas --flows 4 --json > result.json"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(compare)


def compare(
    stacks: Annotated[
        list[str],
        typer.Argument(
            metavar="STACK...", help="Stacks to compare.", autocompletion=complete.stacks
        ),
    ],
    rate: Annotated[
        str,
        typer.Option(
            metavar="RATE", help="Rate of the bottleneck, as in 10mbit.", rich_help_panel=NETWORK
        ),
    ] = Comparison.rate,
    rtt: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Round-trip time without queueing, as in 40ms.",
            rich_help_panel=NETWORK,
        ),
    ] = Comparison.rtt,
    queue: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Queue capacity: 1bdp, 64p, 100ms, 64kb.",
            rich_help_panel=NETWORK,
        ),
    ] = Comparison.queue,
    loss: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Share of data packets lost at random, as in 1%.",
            rich_help_panel=NETWORK,
        ),
    ] = Comparison.loss,
    duration: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Duration of a run, as in 60s; with --size, its limit.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = Comparison.duration,
    warmup: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time at the start that is not measured.",
            show_default="a tenth of --duration; 0 with --size",
            rich_help_panel=MEASUREMENT,
        ),
    ] = None,
    start_jitter: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Each flow starts at a random time up to this.",
            rich_help_panel=TRAFFIC,
        ),
    ] = Comparison.start_jitter,
    flows: Annotated[
        int,
        typer.Option(
            min=1, help="Number of flows, all of the same stack.", rich_help_panel=TRAFFIC
        ),
    ] = Comparison.flows,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Send a file of this size instead of sending continuously.",
            rich_help_panel=TRAFFIC,
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat",
            "-n",
            min=1,
            help="Runs per stack, each with its own seed.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = Comparison.repeat,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="Random seed of the first repeat; each next repeat adds 1.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = Comparison.seed,
    relevant: plans.Relevant = plans.RELEVANT,
    tc: plans.Tc = None,
    reverse_tc: plans.ReverseTc = None,
    sets: plans.Set = None,
    sweep: plans.SweepOption = None,
    world: plans.World = SIM,
    virtual: plans.Virtual = False,
    router: plans.Router = plans.OURS,
    pcap: plans.Pcap = None,
    jobs: plans.Jobs = None,
    dask: plans.Dask = None,
    out: plans.Out = plans.OutDefault,
    resume: plans.Resume = False,
    dry_run: plans.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs the stacks, prints tables or JSON, draws the report."""
    share = plans.relevant_share(relevant)
    comparison = Comparison(
        stacks=stacks,
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        duration=duration,
        warmup=warmup,
        start_jitter=start_jitter,
        flows=flows,
        size=size,
        repeat=repeat,
        seed=seed,
        tc=tc,
        reverse_tc=reverse_tc,
        sets=parse_assignments(sets or [], "--set"),
        sweep=parse_sweep(sweep or []),
        world=plans.world_of(world, virtual=virtual, router=router),
    )
    plan = comparison.plan("--{name} {value}")
    if dry_run:
        plans.list_plan("compare", plan, as_json=json)
        return
    how = plans.how(out, jobs, resume=resume, quiet=quiet, pcap=pcap, dask=dask)
    results = plans.run_plan(plan, **how)
    _print(results, share, as_json=json)
    plans.finish(results, quiet=quiet, relevant=share)


def _print(results: Results, relevant: float, *, as_json: bool) -> None:
    found = contrasts(results, relevant)
    if as_json:
        output.print_json("compare", rows.comparison_rows(results, found))
    elif found:
        grid = contrasts_grid(found, caution(found), results.caution)
        sentences = (Text(text, style="bold") for text in verdicts(found))
        output.show(Group(*sentences, cases_table(results), grid.rich()))
    else:
        output.show(cases_table(results))
