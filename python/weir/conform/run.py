"""Runs suites, judges them, and keeps the rows next to the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.conform import outcome
from weir.conform.cases.plans import Planned, Request, planned
from weir.results import manifest
from weir.results.results import Results
from weir.running.execution import run_plan
from weir.running.options import RESULTS
from weir.scenario.arguments import suggesting
from weir.scenario.source import SIM


@dataclass(frozen=True)
class Conformance:
    """The rows of a call, and the runs behind them; no results if nothing could run."""

    rows: Sequence[outcome.Row]
    results: Results | None


@suggesting
def conform(
    *suites: str,
    stacks: Sequence[str] = (),
    cases: Sequence[str] = (),
    world: str = SIM,
    repeat: int | None = None,
    seed: int = 1,
    out: str | Path = RESULTS,
    jobs: int | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    show_progress: bool = True,
) -> Conformance:
    """Judges stacks by suites of cases and writes the rows next to the results, in `conform.json`.

    Args:
        suites: Names of suites; all if there are none. `weir list suites` names them.
        stacks: What to judge; by default the stacks of each suite.
        cases: Patterns of case ids, as in `B1*`.
        world: `sim`, `udp` or `kernel`.
        repeat: Runs per case; the case's own number by default.
        seed: Seed of the first run.
        out: Where result directories are made.
        jobs: Runs at a time; one per core by default, in real time one.
        resume: Go on with an interrupted call of the same arguments.
        executor: What runs the simulations, in place of threads of this process.
        show_progress: Whether to show a bar on a terminal or in a notebook.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError, ScenarioError: an argument is not valid, or nothing could be run.
    """
    if isinstance(stacks, str) or isinstance(cases, str):
        raise InputError("stacks and cases are lists, as in stacks=['bbr3']")
    request = Request(suites, stacks, cases, world, repeat, seed)
    found = planned(request)
    return judged(
        found,
        None
        if found.plan is None
        else run_plan(
            found.plan,
            out=out,
            jobs=jobs,
            resume=resume,
            executor=executor,
            show_progress=show_progress,
        ),
    )


def judged(found: Planned, results: Results | None) -> Conformance:
    """The rows of a plan that has run; they are kept next to its results."""
    rows = outcome.rows(found, results)
    if results is not None:
        kept = {"rows": rows, "pictures": outcome.pictures(found.subjects)}
        write_text(results.path / manifest.CONFORM, json.dumps(kept, indent=2, ensure_ascii=False))
    return Conformance(rows, results)
