"""Quantities, progress, tables and errors of `weir send` and `weir recv`."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from weir.base.grid import Grid, number
from weir.base.plain import plain
from weir.cli import output

Row = Mapping[str, Any]


def restore_interrupts() -> None:
    """Lets SIGINT end this server where it was started with that signal ignored.

    A shell without job control starts background processes so (POSIX, Shell Command Language,
    2.11). A script could then end it by SIGTERM only, without its summary.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def warn_of_exposed(key_file: Path | None, *, quiet: bool) -> None:
    """Warns if other users may read the key. An unreadable key is reported where it is read."""
    with suppress(OSError):
        if key_file is not None and key_file.stat().st_mode & 0o077:
            output.note(f"other users may read the key in {key_file}: chmod 600 it", quiet=quiet)


class Bar:
    """Progress line on stderr."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, more="")
        self._of = ""

    def show(self, facts: Mapping[str, Any]) -> None:
        """Draws the facts of a progress report."""
        if not facts["peers"] and not facts["hashing"]:
            description = "waiting"
        else:
            what = "reading" if facts["hashing"] else f"{facts['files_done']}/{facts['files']}"
            description = f"{what} {_short(facts['name'])}"
        # Hashing and sending have separate totals.
        if facts["hashing"] != (self._of == "hashing"):
            self._of = "hashing" if facts["hashing"] else ""
            self._progress.reset(self._task, total=facts["bytes"] or None)
        self._progress.update(
            self._task,
            description=description,
            total=facts["bytes"] or None,
            completed=facts["bytes_done"],
            more=_more(facts),
        )

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Removes the line while something else is printed."""
        if self._progress.disable:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def write(self, text: str) -> None:
        """Prints a line above it."""
        self._progress.console.print(plain(text), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bar(*, show: bool) -> Iterator[Bar]:
    """Yields a progress line, which is shown only at a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[more]}", markup=False),
    )
    hidden = not (show and console.is_terminal)
    with Progress(*columns, console=console, disable=hidden, transient=True) as progress:
        yield Bar(progress)


def table(title: str, rows: Sequence[Row], note: str = "") -> Grid:
    """Returns the files of a session and the result of each."""
    headers = ("file", "", "as", "size", "resumed from", "time, s", "goodput, Mbit/s")
    cells = [
        (
            plain(row["file"]),
            _VERDICTS[row["verdict"]],
            row["saved_as"] or row["reason"] or "",
            decimal(row["size_bytes"]),
            decimal(row["resumed_from_bytes"]) if row["resumed_from_bytes"] else "",
            "" if row["time_s"] is None else f"{row['time_s']:.3f}",
            _goodput(row),
        )
        for row in rows
    ]
    return Grid(title, headers, cells, names=3, note=note)


def with_goodput(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Returns the rows of `--json`."""
    return [{**row, "goodput_mbps": _goodput_mbps(row)} for row in rows]


def _goodput_mbps(row: Row) -> float | None:
    """Returns the bytes transferred in this session over its time."""
    if not row["time_s"] or row["verdict"] not in {"kept", "mismatch"}:
        return None
    moved = row["size_bytes"] - (row["resumed_from_bytes"] or 0)
    return float(moved) * 8e-6 / float(row["time_s"])


def counted(rows: Sequence[Row]) -> str:
    """`1 file`, `3 files, 2 folders, 1 link`."""
    kinds = Counter(row["kind"] for row in rows)
    parts = [
        f"{kinds[kind]} {kind}" + ("s" if kinds[kind] > 1 else "")
        for kind in ("file", "folder", "link")
        if kinds[kind]
    ]
    return ", ".join(parts) or "0 files"


def shortened(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Returns the rows of a table, those that did not arrive first, and a note of the others."""
    if len(rows) <= _MOST_IN_TABLE:
        return list(rows), ""
    there = {"kept", "already"}
    ordered = sorted(rows, key=lambda row: (row["verdict"] in there, row["kind"] != "file"))
    rest = Counter(row["verdict"] for row in ordered[_MOST_IN_TABLE:])
    return ordered[:_MOST_IN_TABLE], not_shown(rest)


def not_shown(verdicts: Mapping[str, int]) -> str:
    """Counts the files that a table leaves out, by result."""
    parts = [f"{number} {_VERDICTS[verdict]}" for verdict, number in verdicts.items() if number]
    return f"Not shown: {', '.join(parts)}." if parts else ""


_MOST_IN_TABLE = 40
"""Rows of a sender's table: what fits a screen or two. `--json` has all."""
_VERDICTS = {
    "kept": "arrived",
    "already": "already there",
    "mismatch": "wrong hash",
    "refused": "refused",
    "incomplete": "incomplete",
}


def _goodput(row: Row) -> str:
    value = _goodput_mbps(row)
    return "" if value is None else number(value)


def _more(facts: Mapping[str, Any]) -> str:
    parts = []
    if facts["cwnd_bytes"] is not None:
        parts.append(f"cwnd {decimal(facts['cwnd_bytes'])}")
    if facts["srtt_ms"] is not None:
        parts.append(f"RTT {facts['srtt_ms']:.1f} ms")
    if facts["segments"]:
        parts.append(f"retransmitted {100 * facts['retransmits'] / facts['segments']:.1f} %")
    if facts["peers"] > 1:
        parts.append(f"{facts['peers']} senders")
    if facts["reconnects"]:
        parts.append(f"reconnected {facts['reconnects']}x")
    return ", ".join(parts)


def _short(name: str, width: int = 28) -> str:
    shown = plain(name)
    return shown if len(shown) <= width else f"…{shown[1 - width :]}"
