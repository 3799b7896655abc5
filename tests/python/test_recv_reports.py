"""What `weir recv` keeps of sessions until it is printed: little, whatever peers announce."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from weir.cli import recv, transfer

VERDICTS = ("already", "refused", "mismatch", "incomplete")


def row(verdict: str, name: str = "f") -> dict[str, Any]:
    times = {"time_s": 1.0, "resumed_from_bytes": 0, "size_bytes": 1_000}
    return {"file": name, "verdict": verdict, "saved_as": None, "reason": "why", **times}


def ended(rows: list[dict[str, Any]], **omitted: int) -> dict[str, Any]:
    session = {"sender": "127.0.0.1:1", "key": None, "failure": None}
    return {**session, "rows": rows, "omitted": omitted}


class Stuck(transfer.Bar):
    """A terminal that takes nothing for as long as the test likes."""

    def __init__(self) -> None:
        super().__init__(Progress(console=Console(stderr=True), disable=True))
        self.taken, self.goes_on = threading.Event(), threading.Event()

    def show(self, _facts: Any) -> None:
        self.taken.set()
        self.goes_on.wait(20)


def test_sessions_that_wait_for_a_terminal_have_a_bounded_number_of_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stuck = Stuck()
    printer = recv._Printer(stuck, tables=True, quiet=False)
    printer.start()
    printer.put("progress", {"peers": 0})
    assert stuck.taken.wait(20)
    for _ in range(300):
        printer.put("ended", ended([row(verdict) for verdict in VERDICTS for _ in range(250)]))
    for _ in range(300):
        printer.put("ended", ended([row("kept") for _ in range(1_000)]))
    waiting = sum(len(facts["rows"]) for _, facts in printer._waiting)
    assert 0 < waiting <= 2_000
    stuck.goes_on.set()
    printer.close()
    shown = capsys.readouterr()
    assert "Not shown: 230 already there, 250 refused, 250 wrong hash, 250 incomplete." in shown.out
    assert "more sessions ended" in shown.err


def test_every_file_that_arrived_is_in_the_table_before_what_attackers_announce(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = recv._Printer(transfer.Bar(Progress(disable=True)), tables=True, quiet=False)
    printer.start()
    rows = [row("refused", f"no-{n}") for n in range(500)] + [row("kept", "yes")]
    printer.put("ended", ended(rows, already=3))
    printer.close()
    shown = capsys.readouterr().out
    assert "504 files from 127.0.0.1:1" in shown
    assert "yes" in shown
    assert "no-19" in shown
    assert "no-20" not in shown
    assert "Not shown: 3 already there, 480 refused." in shown
