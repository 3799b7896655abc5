"""How far a plan has come, on stderr, so that stdout carries results only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weir.runner import Watcher


@contextmanager
def bar(title: str, total: int, *, show: bool = True) -> Iterator[Watcher]:
    """A bar with the time left; nothing at all where stderr is neither terminal nor notebook."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs,"),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    visible = show and (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, disable=not visible, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda runs: progress.advance(task, runs)
