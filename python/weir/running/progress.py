"""How far a plan has come, on stderr, so that stdout carries results only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from weir._native import RunControl
from weir.base.plain import plain
from weir.running.runner import Watcher


class _RealTime(ProgressColumn):
    """How far the run at hand has come."""

    def __init__(self, control: RunControl) -> None:
        super().__init__()
        self._control = control

    def render(self, _task: Task) -> Text:
        """The time of the run."""
        return Text(f"(in real time: {self._control.elapsed_s:.1f} s into a run)")


@contextmanager
def bar(
    title: str, total: int, *, show: bool = True, control: RunControl | None = None
) -> Iterator[Watcher]:
    """A bar with the time left; nothing at all where stderr is neither terminal nor notebook.

    With the `control` of runs in real time it says how long the present one has lasted.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs,"),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        *([_RealTime(control)] if control else []),
    )
    visible = show and (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, disable=not visible, transient=True) as progress:
        task = progress.add_task(plain(title), total=total)
        yield lambda runs: progress.advance(task, runs)
