"""What the verbs that carry out plans share: their options, the list of runs, the way they end."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import Annotated, Unpack

import typer

from weir import api, comparison, trust
from weir.api import RESULTS, How
from weir.cli import complete, output
from weir.cli.help import MEASUREMENT, NETWORK, OUTPUT
from weir.errors import InputError, RunError
from weir.grid import Grid
from weir.plain import plain
from weir.results import Results
from weir.runner import failure_text
from weir.scenario import KERNEL, NETEM, VIRTUAL, worlds
from weir.sweep import Plan

OURS, GUESTS_OWN = _ROUTERS = ("weir", "netem")
"""Who stands between the ends in a guest."""

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="List every run and start none.", rich_help_panel=OUTPUT),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with an interrupted command, given once more.",
        rich_help_panel=MEASUREMENT,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        help="Runs at a time.",
        show_default="one per core; in real time one",
        rich_help_panel=MEASUREMENT,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|FILE",
        help="Send the runs to a Dask cluster: its scheduler's address, or its scheduler file.",
        show_default=False,
        rich_help_panel=MEASUREMENT,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Where result directories are made.",
        rich_help_panel=OUTPUT,
    ),
]
OutDefault = Path(RESULTS)
World = Annotated[
    str,
    typer.Option(
        "--world",
        metavar="|".join(worlds()),
        help="The simulator, real transfers over loopback, or the kernel's TCP behind the links.",
        autocompletion=complete.worlds,
        rich_help_panel=MEASUREMENT,
    ),
]
Virtual = Annotated[
    bool,
    typer.Option(
        "--virtual",
        help="With --world kernel: in a guest whose time is virtual, which needs no root. "
        "`weir kernel build` makes its kernel.",
        rich_help_panel=MEASUREMENT,
    ),
]
Router = Annotated[
    str,
    typer.Option(
        "--router",
        metavar="|".join(_ROUTERS),
        help="With --virtual: who shapes the traffic. The guest's own netem checks our links.",
        rich_help_panel=MEASUREMENT,
    ),
]
Pcap = Annotated[
    Path | None,
    typer.Option(
        "--pcap",
        metavar="DIR",
        help="Record the packets at both ends of the bottleneck, one pcapng file per run, "
        "in the worlds sim and kernel.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Tc = Annotated[
    str | None,
    typer.Option(
        "--tc",
        metavar="TEXT",
        help="The bottleneck in tc's words: 'netem delay 20ms loss 1%', 'tbf rate 10mbit burst "
        "32kbit latency 50ms'.",
        show_default=False,
        rich_help_panel=NETWORK,
    ),
]
ReverseTc = Annotated[
    str | None,
    typer.Option(
        "--reverse-tc",
        metavar="TEXT",
        help="The same for the way back; its delay and that of --tc make the round trip.",
        show_default=False,
        rich_help_panel=NETWORK,
    ),
]
TrustControllers = Annotated[
    bool,
    typer.Option(
        "--trust-controllers",
        help="Let the controllers in Python run that the scenario or the results hold or name. "
        "They are programs, and have your rights.",
        rich_help_panel=MEASUREMENT,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key of the scenario; may be repeated.",
        rich_help_panel=MEASUREMENT,
    ),
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=A,B,C",
        help="Run once per value of a key; several sweeps make their cross product.",
        rich_help_panel=MEASUREMENT,
    ),
]


RELEVANT = f"{comparison.RELEVANT * 100:g}%"
Relevant = Annotated[
    str,
    typer.Option(
        "--relevant",
        metavar="SHARE",
        help="From which share of the first stack's mean on a difference is of practical interest.",
        rich_help_panel=MEASUREMENT,
    ),
]


def relevant_share(text: str) -> float:
    """The value of `--relevant`.

    Raises:
        InputError: it is no share.
    """
    return comparison.share(text, "--relevant {}")


def world_of(world: str, *, virtual: bool, router: str = OURS) -> str:
    """The world that the options mean together.

    Raises:
        InputError: they do not fit each other.
    """
    if virtual and world != KERNEL:
        raise InputError(f"--virtual: world {world} has no guests; add --world kernel")
    if router not in _ROUTERS:
        raise InputError(f"--router {router}: there is none; there are {', '.join(_ROUTERS)}")
    if router == GUESTS_OWN and not virtual:
        raise InputError(f"--router {router}: guests have it; add --world kernel --virtual")
    if router == GUESTS_OWN:
        return NETEM
    return VIRTUAL if virtual else world


def programs(*, trusted: bool) -> AbstractContextManager[None]:
    """Decides which controllers of a scenario or of results may run; at a terminal the user does.

    Stacks that the user has named himself are not asked about.
    """
    if trusted:
        return trust.deciding(trust.everything)
    return trust.deciding(_ask if _is_interactive() else None)


def _ask(program: str) -> bool:
    question = f"{plain(program)} is not a file that you have named. Run it with your rights?"
    return typer.confirm(question, err=True)


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def how(
    out: Path,
    jobs: int | None,
    *,
    resume: bool = False,
    quiet: bool = False,
    pcap: Path | None = None,
    dask: str | None = None,
) -> How:
    """The execution settings that the options describe."""
    return How(out=out, jobs=jobs, resume=resume, show_progress=not quiet, pcap=pcap, dask=dask)


def list_plan(command: str, plan: Plan, *, as_json: bool) -> None:
    """Every run of a plan, for `--dry-run`."""
    rows = [
        {
            "run": run.index,
            "label": run.case.label,
            "stack": run.case.stack,
            **run.case.point,
            "repeat": run.repeat,
            "seed": run.seed,
            "key": run.key,
        }
        for run in plan.runs
    ]
    if as_json:
        output.print_json(command, rows)
        return
    cells = [
        (str(r.index), r.case.label, r.case.stack, str(r.repeat), str(r.seed)) for r in plan.runs
    ]
    title = f"{plan.name}: {len(cells)} runs"
    output.show(Grid(title, ("run", "case", "stack", "repeat", "seed"), cells, names=3).rich())


def carry_out(plan: Plan, **how: Unpack[How]) -> Results:
    """Runs what `plan` asks for, and meanwhile gets ready to draw the report."""
    waking = Thread(target=_wake_report, name="weir-wake")
    waking.start()
    results = api.carry_out(plan, **how)
    waking.join()
    return results


def _wake_report() -> None:
    from weir.report import wake

    wake()


def finish(results: Results, *, quiet: bool, relevant: float = comparison.RELEVANT) -> None:
    """Draws the report, says where everything is, and fails if any run did."""
    output.remark(f"Report: {draw(results.path, relevant)}", quiet=quiet)
    if results.failures:
        text = failure_text(results.failures, results.manifest["runs"]["planned"])
        raise RunError(f"{text}; the others are in {results.path}")


def draw(directory: Path, relevant: float = comparison.RELEVANT) -> Path:
    """Draws the report of a result directory and returns where it is."""
    from weir.report import write  # the drawing libraries take longer to load than `--help` may

    return write(directory, relevant=relevant)
