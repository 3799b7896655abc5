"""How fast `weir read` reads a large capture: `python -m bench.read`.

The capture is made first, by a simulation of CUBIC flows, and deleted afterwards. `weir read` then
runs in a process of its own on one core, once per round. Seconds and CPU time include its start.
Where tcptrace and editcap are installed, both programs read the capture as pcap, in turns: tcptrace
reads no packets without a link header from pcapng.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bench import command
from weir.base.errors import RunError
from weir.base.grid import Grid
from weir.cli import output, screen
from weir.running.runner import execute
from weir.scenario.source import Source

_GOAL_TIMES = 1.2
"""Of tcptrace's time, at most."""
_GOAL_MIB = 100
_PROGRAMS = ("weir read", "tcptrace")
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

_TIMED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""
"""Runs a command, and prints its CPU seconds and its peak memory in KiB last. The memory of a small
program is that of the Python which starts it, 11 MiB."""

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
        programs = list(_PROGRAMS[:1])
        if all(map(shutil.which, ("tcptrace", "editcap"))):
            programs = list(_PROGRAMS)
            capture = _as_pcap(capture)
        size = capture.stat().st_size
        rows = [
            {"program": name, "bytes": size, "flows": flows, **_once(name, capture)}
            for _ in range(rounds)
            for name in programs
        ]
    if json:
        output.print_json("bench-read", rows)
    else:
        screen.show(_grid(rows).rich())


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


def _as_pcap(capture: Path) -> Path:
    """The same capture as pcap, in its place."""
    path = capture.with_suffix(".pcap")
    command = ["editcap", "-F", "pcap", str(capture), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    capture.unlink()
    return path


def _once(program: str, capture: Path) -> Row:
    """One process that reads it on one core."""
    weir = [sys.executable, "-m", "weir", "read", str(capture), "--json", "--quiet"]
    command = weir if program == _PROGRAMS[0] else [program, str(capture)]
    core = max(os.sched_getaffinity(0))
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", _TIMED, *command],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    seconds = time.monotonic() - began
    last = ended.stderr.strip().splitlines()[-1:]
    if ended.returncode or not last:
        raise RunError(f"{program}: {' '.join(last) or f'exit code {ended.returncode}'}")
    cpu, kibibytes = last[0].split()
    return {"seconds": seconds, "cpu_seconds": float(cpu), "peak_mib": int(kibibytes) / 1024}


def _grid(rows: list[Row]) -> Grid:
    size = rows[0]["bytes"]
    cells = list(_cells(rows))
    title = f"A capture of {size / 1e6:.0f} MB, {rows[0]['flows']} connections, read on one core"
    columns = ("program", "seconds", "CPU s", "MB/s", "peak MiB")
    return Grid(title, columns, cells, note=_verdict(rows))


def _verdict(rows: Sequence[Row]) -> str:
    """The goals, and whether they hold for the medians."""
    own, theirs = ([row for row in rows if row["program"] == name] for name in _PROGRAMS)
    peak = max(row["peak_mib"] for row in own)
    memory = f"Goal: {_GOAL_MIB} MiB at most ({'holds' if peak <= _GOAL_MIB else 'missed'})."
    if not theirs:
        return f"{memory} There is no tcptrace or no editcap here to compare the time with."
    median = (statistics.median(row["cpu_seconds"] for row in group) for group in (own, theirs))
    times = next(median) / next(median)
    verdict = "holds" if times <= _GOAL_TIMES else "missed"
    return f"CPU time is {times:.2f} times tcptrace's; goal: {_GOAL_TIMES} ({verdict}). {memory}"


def _cells(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield (
            row["program"],
            f"{row['seconds']:.1f}",
            f"{row['cpu_seconds']:.1f}",
            f"{row['bytes'] / row['seconds'] / 1e6:.0f}",
            f"{row['peak_mib']:.0f}",
        )


if __name__ == "__main__":
    command.run(bench, "bench.read")
