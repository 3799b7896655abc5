"""How smoothly the page of `weir ui` explores a run of five million packets.

Headless Chromium opens the page, and for some seconds a wheel zooms in and out and moves. The page
counts its frames (`requestAnimationFrame`), and how long each answer of the server took.
"""

from __future__ import annotations

import itertools
import math
import statistics
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import polars as pl
import typer

from bench import browser, command
from weir.api.verbs import run
from weir.base.grid import Grid
from weir.cli import output, screen
from weir.laboratory import page
from weir.laboratory.explorer import Explorer
from weir.laboratory.server import Server
from weir.results.results import Results, load

_SCENARIO = """
name = "five-million-packets"

[topology]
rate = "1gbit"
rtt = "20ms"
queue = "1bdp"

[[flow]]
name = "cubic"
stack = "cubic"

[[flow]]
name = "bbr"
stack = "bbr"

[measure]
duration = "65s"
repeat = 1
sample_interval = "1ms"
acks = 10000000
"""
_STEP_MS = 16
"""Between two turns of the wheel: a hand makes fewer."""
_COUNT = """() => {
  const seen = (window.seen = { frames: [], answers: [] });
  const frame = (now) => { seen.frames.push(now); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  const asked = window.fetch;
  window.fetch = async (...given) => {
    const begun = performance.now();
    const answer = await asked(...given);
    seen.answers.push(performance.now() - begun);
    return answer;
  };
}"""


def bench(
    results: Annotated[
        Path | None,
        typer.Argument(help="Results to explore.", show_default="a run of five million packets"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long to zoom and move.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Prints the frame rate of the page while it explores a run."""
    with TemporaryDirectory(prefix="weir-bench-") as folder:
        shown = load(results) if results else run(_SCENARIO, out=folder)
        found = explore(shown, seconds)
    if json:
        output.print_json("bench-ui", [found])
        return
    rows = [(name.replace("_", " "), f"{value:,.6g}") for name, value in found.items()]
    screen.show(Grid("weir ui in headless Chromium", ("", "value"), rows).rich())


def explore(results: Results, seconds: float) -> dict[str, float]:
    """Zooms and moves for some seconds, and counts frames.

    Raises:
        InputError: the page, Playwright or a browser is missing.
    """
    with Server(0, page.read(), Explorer(results), None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with browser.tab() as tab:
                seen = _drive(tab, server.url, seconds)
        finally:
            server.shutdown()
    return {**_size(results), **_rates(seen)}


def _drive(tab: Any, url: str, seconds: float) -> dict[str, list[float]]:
    tab.goto(url)
    tab.locator("body[data-state=done]").wait_for(timeout=120_000)
    chart = tab.locator("#charts .u-over").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.evaluate(_COUNT)
    tab.wait_for_timeout(2_000)
    idle = len(tab.evaluate("window.seen.frames"))
    for step in range(int(seconds * 1000 / _STEP_MS)):
        # Zooms in by a factor of about 500 and out again every few seconds, and moves meanwhile.
        phase = math.sin(step / 60)
        if step % 4 == 0:
            tab.mouse.wheel(15 * math.cos(step / 17), 0)
        else:
            tab.mouse.wheel(0, -60 * phase)
        tab.wait_for_timeout(_STEP_MS)
    seen: dict[str, list[float]] = tab.evaluate("window.seen")
    seen["idle"], seen["frames"] = seen["frames"][:idle], seen["frames"][idle:]
    return seen


def _size(results: Results) -> dict[str, float]:
    rows = {
        t: results.scan(t).select(pl.len()).collect().item() for t in ("samples", "queues", "acks")
    }
    return {
        "data_packets": float(results.runs["data_packets"].max()),  # type: ignore[arg-type]
        "rows_of_tables": float(sum(rows.values())),
    }


def _rates(seen: dict[str, list[float]]) -> dict[str, float]:
    times = seen["frames"]
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    idle, answers = seen["idle"], seen["answers"]
    found = {
        # What this machine draws of a page at rest, with all else that runs on it.
        "idle_frames_per_s": 1000 * (len(idle) - 1) / (idle[-1] - idle[0]),
        "frames_per_s": 1000 * len(gaps) / (times[-1] - times[0]),
        "frame_ms_p95": gaps[int(0.95 * len(gaps))],
        "frame_ms_max": gaps[-1],
        "answers": float(len(answers)),
    }
    if answers:
        found |= {"answer_ms_median": statistics.median(answers), "answer_ms_max": max(answers)}
    return found


if __name__ == "__main__":
    command.run(bench, "bench.ui")
