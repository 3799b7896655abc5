"""Runs the plan of a path test, with a live line on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from weir import _native
from weir.pathtest import plan
from weir.pathtest.client import Client
from weir.pathtest.measuring import MeterState
from weir.pathtest.tables import tables
from weir.results.results import Results
from weir.running.execution import run_plan
from weir.scenario.source import Effective
from weir.scenario.sweep import Plan

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24


class Meter:
    """The line: which run, goodput of the last moments, the newest round trip."""

    def __init__(self, progress: Progress, runs: int) -> None:
        self._progress, self._runs = progress, runs
        self._task = progress.add_task("", total=runs, more="")
        self._done = 0
        self._history: list[float] = []

    def begin(self) -> None:
        """Begins the next run."""
        self._history.clear()

    def show(self, moment: MeterState) -> None:
        """Draws a moment."""
        self._history = [*self._history, moment.mbps][-_WIDTH:]
        order = moment.order
        rtt = "–" if moment.rtt_ms is None else f"{moment.rtt_ms:.1f}"
        most = max(*self._history, 1e-9)
        bars = "".join(_BARS[min(7, int(value / most * 8))] for value in self._history)
        self._progress.update(
            self._task,
            description=f"{plan.series_of(order)} {order.direction}",
            completed=self._done + min(1.0, moment.elapsed_s / order.duration_s),
            more=f"{moment.mbps:8.2f} Mbit/s  RTT {rtt} ms  {bars}",
        )

    def end(self) -> None:
        """Ends a run."""
        self._done += 1
        self._progress.update(self._task, completed=self._done)


@contextmanager
def shown(runs: int, *, show: bool) -> Iterator[Meter]:
    """The live line, if stderr is a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[more]}", markup=False),
    )
    is_visible = show and console.is_terminal
    with Progress(*columns, console=console, disable=not is_visible, transient=True) as progress:
        yield Meter(progress, runs)


def run(made: Plan, client: Client, live: Meter, out: Path) -> Results:
    """Runs every load of a plan, one at a time, and loads the results.

    Raises:
        WeirError: every run failed, results could not be written, or Ctrl-C.
    """

    def run_one(
        scenario: Effective, _seed: int, _world: str, control: _native.RunControl | None
    ) -> dict[str, pl.DataFrame]:
        live.begin()
        record = client.run(
            plan.order_of(scenario), live.show, lambda: control is not None and control.is_stopped
        )
        live.end()
        return tables(record)

    return run_plan(made, run_one, out=out, jobs=1, show_progress=False)
