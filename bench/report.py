"""What it costs to write a report, and to open it in headless Chromium.

The report is that of `weir compare reno cubic bbr` with five repeats of 30 s. It is open when its
first figure over time is drawn. CPU time to open is that of the page's main thread.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bench import browser, command
from weir import load
from weir.api import reports
from weir.api.verbs import compare
from weir.base.grid import Grid
from weir.cli import output, screen

_GOAL_S = 1.0
_FIRST_FIGURE = "#figure-goodput"


def bench(
    rounds: Annotated[int, typer.Option(min=1, help="How often.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures the time to write a report and to open it."""
    with TemporaryDirectory(prefix="weir-bench-") as folder:
        path = compare(
            "reno", "cubic", "bbr", rate="10mbit", rtt="40ms", duration="30s", repeat=5, out=folder
        ).path
        rows = [{"round": number, **_measure(path)} for number in range(1, rounds + 1)]
    if json:
        output.print_json("bench-report", rows)
        return
    cells = [(str(row["round"]), *(f"{row[name]:.2f}" for name in _COLUMNS)) for row in rows]
    worst = max(row[name] for row in rows for name in _COLUMNS)
    verdict = "holds" if worst < _GOAL_S else "missed"
    note = f"Goal: each less than {_GOAL_S:g} s ({verdict})."
    screen.show(Grid("A report of 15 runs of 30 s", _HEADERS, cells, note=note).rich())


def _measure(results: Path) -> dict[str, float]:
    begun = time.process_time()
    path = reports.write(load(results))
    written = time.process_time() - begun
    with browser.tab() as page:
        session: Any = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        page.locator(_FIRST_FIGURE).scroll_into_view_if_needed()
        page.locator(f"{_FIRST_FIGURE} .u-over").first.wait_for()
        opened_ms = page.evaluate("performance.now()")
        metrics = session.send("Performance.getMetrics")["metrics"]
    (thread,) = (metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    return {"write_cpu_s": written, "open_s": opened_ms / 1000, "open_cpu_s": thread}


_COLUMNS = ("write_cpu_s", "open_s", "open_cpu_s")
_HEADERS = ("round", "write, CPU s", "open, s", "open, CPU s")


if __name__ == "__main__":
    command.run(bench, "bench.report")
