"""Options, list of runs and final messages of the verbs that run plans."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, Unpack, cast

import typer

from weir.base.errors import InputError, RunError
from weir.base.grid import Grid
from weir.base.options import MEASUREMENT, OUTPUT
from weir.base.options import of as known
from weir.base.plain import plain
from weir.cli import complete, output, table
from weir.comparison import contrasts
from weir.controllers import trust
from weir.kernel import cache
from weir.kernel.recipe import DEFAULT_SERIES
from weir.results.results import Results
from weir.running import execution as running
from weir.running import runner
from weir.running.execution import RESULTS, Execution, RunOptions
from weir.running.runner import failure_text
from weir.scenario.plans import Comparison
from weir.scenario.source import KERNEL, NETEM, VIRTUAL, worlds
from weir.scenario.sweep import Plan

OURS, GUESTS_OWN = _ROUTERS = ("weir", "netem")
"""What shapes the traffic between the hosts in a guest."""

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="List the runs without starting them.", rich_help_panel=OUTPUT),
]
Resume = Annotated[bool, table.option(Execution, "resume")]
Jobs = Annotated[int | None, table.option(Execution, "jobs")]
Dask = Annotated[str | None, table.option(Execution, "dask")]
Out = Annotated[Path, table.option(Execution, "out")]
OutDefault = Path(RESULTS)


def runs_per_case(default: str) -> Any:
    """Declares `--repeat`; help shows `default`."""
    return typer.Option(
        "--repeat",
        "-n",
        min=1,
        help="Runs per case.",
        show_default=default,
        rich_help_panel=MEASUREMENT,
    )


World = Annotated[
    str,
    table.option(Comparison, "world", metavar="|".join(worlds()), autocompletion=complete.worlds),
]
Virtual = Annotated[
    bool,
    typer.Option(
        "--virtual",
        help="With --world kernel: run in a guest in virtual time, without root. "
        "`weir kernel build` builds its kernel.",
        rich_help_panel=MEASUREMENT,
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="VERSION",
        help="With --virtual: version of the guest kernel, as in 6.12.",
        show_default=DEFAULT_SERIES,
        rich_help_panel=MEASUREMENT,
    ),
]
Router = Annotated[
    str,
    typer.Option(
        "--router",
        metavar="|".join(_ROUTERS),
        help="With --virtual: traffic shaper. netem is the guest kernel's own, to check Weir's.",
        rich_help_panel=MEASUREMENT,
    ),
]
Tc = Annotated[str | None, table.option(Comparison, "tc")]
ReverseTc = Annotated[str | None, table.option(Comparison, "reverse_tc")]
TrustControllers = Annotated[
    bool,
    typer.Option(
        "--trust-controllers",
        help="Run Python controllers that the scenario or the results contain or name. "
        "They are programs and run with your permissions.",
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
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Random seed of the first repeat.",
        show_default="the scenario's own",
        rich_help_panel=MEASUREMENT,
    ),
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=A,B,C",
        help="Run once per value of a key; several sweeps form their cross product.",
        rich_help_panel=MEASUREMENT,
    ),
]


NoReport = Annotated[
    bool, typer.Option("--no-report", help="Draw no report.", rich_help_panel=OUTPUT)
]
Open = Annotated[
    bool,
    typer.Option("--open", help="Open the report in the browser.", rich_help_panel=OUTPUT),
]
RELEVANT = f"{contrasts.RELEVANT * 100:g}%"
Relevant = Annotated[
    str,
    typer.Option(
        "--relevant",
        metavar="SHARE",
        help="Smallest relevant difference, as a share of the first stack's mean.",
        rich_help_panel=MEASUREMENT,
    ),
]


class Reporting(Enum):
    """What becomes of the report of a command."""

    NONE = "none"
    DRAWN = "drawn"
    OPENED = "opened"


def reporting(*, no_report: bool, opened: bool) -> Reporting:
    """Returns what `--no-report` and `--open` select together.

    Raises:
        InputError: they contradict each other.
    """
    if no_report and opened:
        raise InputError("--open: --no-report draws no report to open; leave one of them out")
    if no_report:
        return Reporting.NONE
    return Reporting.OPENED if opened else Reporting.DRAWN


def relevant_share(text: str) -> float:
    """Parses the value of `--relevant`.

    Raises:
        InputError: it is no share.
    """
    return contrasts.share(text, "--relevant {}")


def world_of(world: str, *, virtual: bool, router: str = OURS) -> str:
    """Returns the world that the options select together.

    Raises:
        InputError: they contradict each other.
    """
    if virtual and world != KERNEL:
        raise InputError(f"--virtual: world {world} has no guests; add --world kernel")
    if router not in _ROUTERS:
        raise InputError(f"--router {router}: unknown; allowed: {', '.join(_ROUTERS)}")
    if router == GUESTS_OWN and not virtual:
        raise InputError(f"--router {router}: only guests have it; add --world kernel --virtual")
    if router == GUESTS_OWN:
        return NETEM
    return VIRTUAL if virtual else world


def choose_kernel(version: str | None, *, virtual: bool, dask: object = None) -> None:
    """Makes a guest kernel the one of all runs.

    Raises:
        InputError: there are no guests, or they run elsewhere.
        KernelError: there is no such kernel.
    """
    if version is None:
        return
    if not virtual:
        raise InputError(f"--kernel {version}: there are no guests; add --virtual")
    if dask is not None:
        raise InputError(f"--kernel {version}: workers of --dask use their default kernel")
    cache.choose(version)


def programs(*, trusted: bool) -> AbstractContextManager[None]:
    """Decides which controllers of a scenario or of results may run; asks the user at a terminal.

    It does not ask about stacks that the user named on the command line.
    """
    if trusted:
        return trust.deciding(trust.trust_all)
    return trust.deciding(_ask if _is_interactive() else None)


def _ask(program: str) -> bool:
    question = f"{plain(program)} was not named on the command line. Run it with your permissions?"
    return typer.confirm(question, err=True)


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def of_table(table: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of the table among those given."""
    return {name: given[name] for name in known(table) if name in given}


def execution(given: Mapping[str, Any], *, quiet: bool) -> RunOptions:
    """Returns the execution settings among the options given."""
    return cast("RunOptions", {**of_table(Execution, given), "show_progress": not quiet})


def how(
    out: Path,
    jobs: int | None,
    *,
    resume: bool = False,
    quiet: bool = False,
    dask: str | None = None,
) -> RunOptions:
    """Returns the execution settings from the options."""
    return RunOptions(out=out, jobs=jobs, resume=resume, show_progress=not quiet, dask=dask)


def list_plan(command: str, plan: Plan, *, as_json: bool) -> None:
    """Prints every run of a plan, for `--dry-run`."""
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


def run_plan(
    plan: Plan,
    report: Reporting,
    run_one: runner.Execute | None = None,
    **how: Unpack[RunOptions],
) -> Results:
    """Runs a plan; meanwhile prepares what the report needs. `run_one` replaces the simulator."""
    if report is Reporting.NONE:
        return running.run_plan(plan, run_one, **how)
    thread = Thread(target=_import_report, name="weir-report")
    thread.start()
    results = running.run_plan(plan, run_one, **how)
    thread.join()
    return results


def _import_report() -> None:
    from weir.report import preload

    preload()


def finish(
    results: Results, report: Reporting, *, quiet: bool, relevant: float = contrasts.RELEVANT
) -> None:
    """Draws the report, prints its path, and fails if any run failed."""
    if report is Reporting.NONE:
        output.note(f"Results: {results.path}", quiet=quiet)
    else:
        path = draw(results, relevant)
        output.note(f"Report: {path}", quiet=quiet)
        if report is Reporting.OPENED:
            open_page(path, quiet=quiet)
    if results.failures:
        text = failure_text(results.failures, results.manifest["runs"]["planned"])
        raise RunError(f"{text}; the others are in {results.path}")


def open_page(path: Path, *, quiet: bool) -> None:
    """Opens a page in the user's browser."""
    if not webbrowser.open(path.resolve().as_uri()):
        output.note("No browser was found; open the report yourself.", quiet=quiet)


def draw(results: Results, relevant: float = contrasts.RELEVANT) -> Path:
    """Draws the report of results and returns its path."""
    from weir.api.reports import write  # importing the plotting libraries would slow down `--help`

    return write(results, relevant=relevant)
