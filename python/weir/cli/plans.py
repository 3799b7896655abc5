"""What the verbs share that run plans: their worlds, lists of runs and final messages."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from threading import Thread
from typing import Any, Unpack, cast

import typer

from weir.base.errors import InputError, RunError
from weir.base.grid import Grid, counted
from weir.base.options import chosen
from weir.base.plain import plain
from weir.cli import output, screen
from weir.cli.options import GUESTS_OWN, OURS, ROUTERS
from weir.comparison import contrasts
from weir.controllers import trust
from weir.kernel import cache
from weir.results.results import Results
from weir.running import execution as running
from weir.running import runner
from weir.running.execution import Execution, RunOptions
from weir.running.runner import failure_text
from weir.scenario.source import KERNEL, NETEM, VIRTUAL
from weir.scenario.sweep import Plan
from weir.validation import agreement


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
    if router not in ROUTERS:
        raise InputError(f"--router {router}: unknown; allowed: {', '.join(ROUTERS)}")
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


def execution(given: Mapping[str, Any], *, quiet: bool) -> RunOptions:
    """Returns the execution settings among the options given."""
    return cast("RunOptions", {**chosen(Execution, given), "show_progress": not quiet})


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
    title = f"{plan.name}: {counted(len(cells), 'run')}"
    screen.show(Grid(title, ("run", "case", "stack", "repeat", "seed"), cells, names=3).rich())


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
    """Draws the report, prints its path and cautions, and fails if any run failed."""
    for caution in agreement.cautions(results):
        output.note(caution, quiet=quiet)
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
