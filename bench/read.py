"""How fast `weir read` reads a large capture: `python -m bench.read`.

The capture is made first, by a simulation of CUBIC flows, and deleted afterwards. `weir read` then
runs in a process of its own on one core, once per round. Seconds and CPU time include its start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bench import command
from weir.base.errors import RunError
from weir.base.grid import Grid
from weir.cli import output
from weir.running.runner import execute
from weir.scenario.source import Source

_GOAL_S_PER_GB = 60.0
_BYTES_PER_S = 45e6
"""About what the capture of a second at 1 Gbit/s takes; it is made longer until it is enough."""
_MOST_TRIES = 4

_SCENARIO = """
[topology]
rate = "1gbit"
rtt = "20ms"
queue = "1bdp"
[[flow]]
stack = "rack/cubic"
count = {flows}
[measure]
duration = "{seconds:.2f}s"
sample_interval = "1s"
"""

_READ = """
import resource, sys
from weir.cli import main
try:
    main()
finally:
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(own.ru_utime + own.ru_stime, own.ru_maxrss, file=sys.stderr)
"""

Row = dict[str, Any]


def bench(
    megabytes: Annotated[int, typer.Option(min=1, help="Size of the capture.")] = 1000,
    flows: Annotated[int, typer.Option(min=1, help="Connections in it.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="How often it is read.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures how fast a large capture is read on one core."""
    with TemporaryDirectory(prefix="weir-bench-read-") as folder:
        capture = _capture(Path(folder), megabytes * 10**6, flows)
        size = capture.stat().st_size
        rows = [{"bytes": size, "flows": flows, **_once(capture)} for _ in range(rounds)]
    if json:
        output.print_json("bench-read", rows)
    else:
        output.show(_grid(rows).rich())


def _capture(folder: Path, wanted: int, flows: int) -> Path:
    """A capture of at least `wanted` bytes."""
    path = folder / "capture.pcapng"
    seconds = max(wanted / _BYTES_PER_S, 0.1)
    for _ in range(_MOST_TRIES):
        source = Source(_SCENARIO.format(flows=flows, seconds=seconds), "bench", ())
        execute(source.at({}), 1, pcap=path)
        size = path.stat().st_size
        if size >= wanted:
            return path
        seconds *= 1.1 * wanted / max(size, 1)
    raise RunError(f"the capture has {size} bytes, not {wanted}")


def _once(capture: Path) -> Row:
    """One process that reads it on one core."""
    command = [sys.executable, "-c", _READ, "read", str(capture), "--json", "--quiet"]
    core = max(os.sched_getaffinity(0))
    began = time.monotonic()
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    seconds = time.monotonic() - began
    last = ended.stderr.strip().splitlines()[-1:]
    if ended.returncode or not last:
        raise RunError(f"weir read: {' '.join(last) or f'exit code {ended.returncode}'}")
    cpu, kibibytes = last[0].split()
    return {"seconds": seconds, "cpu_seconds": float(cpu), "peak_mib": int(kibibytes) / 1024}


def _grid(rows: list[Row]) -> Grid:
    size = rows[0]["bytes"]
    cells = list(_cells(rows))
    worst = max(row["seconds"] for row in rows) / (size / 1e9)
    verdict = "holds" if worst < _GOAL_S_PER_GB else "missed"
    title = f"A capture of {size / 1e6:.0f} MB, {rows[0]['flows']} connections, read on one core"
    note = f"Goal: less than {_GOAL_S_PER_GB:g} s per GB ({verdict})."
    return Grid(title, ("round", "seconds", "CPU s", "MB/s", "peak MiB"), cells, note=note)


def _cells(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    for number, row in enumerate(rows, 1):
        yield (
            str(number),
            f"{row['seconds']:.1f}",
            f"{row['cpu_seconds']:.1f}",
            f"{row['bytes'] / row['seconds'] / 1e6:.0f}",
            f"{row['peak_mib']:.0f}",
        )


if __name__ == "__main__":
    command.run(bench, "bench.read")
