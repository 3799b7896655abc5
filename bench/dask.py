"""What a Dask cluster costs over local processes: `python -m bench.dask`.

The same runs are executed by the threads of one process, as `weir run` does, by a pool of
processes, and by a cluster of as many worker processes on this machine. They take turns, and a
ratio is taken within one round, because a machine's speed drifts; the median of the ratios counts.
Pool and workers are there and have loaded everything when the clock starts. The tables of all
must be the same bytes. With ``--kill`` there is one more round, in which a worker is killed when
half of the runs are done. With ``--namespaces`` the last worker is in a network namespace of its
own, as on another machine, and all else in a second one.
"""

from __future__ import annotations

import filecmp
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from distributed import Client

from bench import command
from bench.workers import Process, cluster, kill, wait_until
from weir.base.errors import RunError
from weir.base.grid import Grid
from weir.cli import output, screen
from weir.processes import netns
from weir.running import runner
from weir.running.cluster import connected, identity
from weir.scenario.plans import scenario_plan
from weir.scenario.source import read
from weir.scenario.sweep import Plan

_GOAL = 1.1
_INSIDE = "WEIR_BENCH_INSIDE"
"""Own address, and the command that runs another one in the other namespace."""
_THREADS, _PROCESSES, _DASK, _KILLED = "threads", "processes", "dask", "dask, one worker killed"

Row = dict[str, Any]


def bench(
    rounds: Annotated[int, typer.Option(min=1, help="How often each has its turn.")] = 5,
    workers: Annotated[int, typer.Option(min=1, help="Threads, processes, workers.")] = 2,
    scenario: Annotated[str, typer.Option(help="What is run.")] = "sweep-1000",
    repeat: Annotated[
        int | None, typer.Option(min=1, help="Runs per case.", show_default="the scenario's own")
    ] = None,
    with_kill: Annotated[
        bool, typer.Option("--kill", help="A last round in which a worker is killed.")
    ] = False,
    namespaces: Annotated[
        bool, typer.Option("--namespaces", help="Two network namespaces, as root.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures what a Dask cluster on this machine costs over local processes."""
    if namespaces and _INSIDE not in os.environ:
        raise typer.Exit(_in_namespaces())
    plan = scenario_plan(read(scenario), {}, repeat=repeat)
    with TemporaryDirectory(prefix="weir-bench-dask-") as folder:
        rows = list(_rows(plan, Path(folder), workers, rounds))
        if with_kill:
            rows.append(_with_one_killed(plan, Path(folder), workers, rows[0]["tables"]))
    for row in rows:
        del row["tables"]
    if json:
        output.print_json("bench-dask", rows)
    else:
        screen.show(_grid(rows, len(plan.runs), workers, rounds).rich())


def _in_namespaces() -> int:
    """Runs this command once more in a namespace, next to another; returns its exit code."""
    with netns.joined(offload="on") as (here, there):
        here.run(["ip", "link", "set", "lo", "up"])
        inside = {_INSIDE: shlex.join([here.address, *there.command([])])}
        again = [sys.executable, "-m", "bench.dask", *sys.argv[1:]]
        return here.run(again, env={**os.environ, **inside}).returncode


def _rows(plan: Plan, folder: Path, workers: int, rounds: int) -> Iterator[Row]:
    """One row per way to carry the plan out."""
    took: dict[str, list[float]] = {_THREADS: [], _PROCESSES: [], _DASK: []}
    tables = folder / "tables"
    with _pool(workers) as pool, _ready(folder / "cluster", workers) as (file, _):
        ways: dict[str, Callable[[Path], Path]] = {
            _THREADS: lambda out: runner.run_plan(plan, out, jobs=workers),
            _PROCESSES: lambda out: runner.run_plan(plan, out, jobs=workers, executor=pool),
            _DASK: lambda out: _on_cluster(plan, out, file),
        }
        for number in range(rounds):
            for name, run_plan in ways.items():
                output.note(f"round {number + 1}: {name}", quiet=not sys.stderr.isatty())
                began = time.monotonic()
                path = run_plan(folder / "results")
                took[name].append(time.monotonic() - began)
                _compare(path, tables, name)
    for name, seconds in took.items():
        yield {
            "how": name,
            "runs": len(plan.runs),
            "workers": workers,
            "seconds": median(seconds),
            **_ratios(seconds, took[_PROCESSES], "over_processes"),
            **_ratios(seconds, took[_THREADS], "over_threads"),
            "tables": tables,
        }


def _with_one_killed(plan: Plan, folder: Path, workers: int, tables: Path) -> Row:
    """The same on a cluster that loses a worker when half of the runs are done."""
    output.note(_KILLED, quiet=not sys.stderr.isatty())
    left = len(plan.runs) // 2
    with _ready(folder / "killed", workers) as (file, processes):

        def watch(runs: int) -> None:
            nonlocal left
            left -= runs
            if left <= 0 and processes[0].poll() is None:
                kill(processes[0])

        began = time.monotonic()
        path = _on_cluster(plan, folder / "results", file, watch)
        seconds = time.monotonic() - began
    if left > 0:
        raise RunError("no worker was killed")
    _compare(path, tables, _KILLED)
    row = {"how": _KILLED, "runs": len(plan.runs), "workers": workers, "seconds": seconds}
    return {**row, "over_processes": None, "over_threads": None, "tables": tables}


def _on_cluster(plan: Plan, out: Path, file: Path, watch: runner.Watcher | None = None) -> Path:
    with connected(str(file)) as executor:
        return runner.run_plan(plan, out, executor=executor, watch=watch)


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        # A probe takes long enough for each process to get one.
        for future in [pool.submit(identity) for _ in range(4 * workers)]:
            future.result()
        yield pool


@contextmanager
def _ready(folder: Path, workers: int) -> Iterator[tuple[Path, list[Process]]]:
    folder.mkdir()
    host, *last_inside = shlex.split(os.environ.get(_INSIDE, "127.0.0.1"))
    with cluster(folder, workers, host, last_inside) as (started, processes):
        with Client(scheduler_file=str(started.file), set_as_default=False) as client:
            wait_until(lambda: len(client.nthreads()) == workers)
            client.run(identity)
        yield started.file, processes


def _compare(path: Path, tables: Path, name: str) -> None:
    """Compares with the tables of the first that came."""
    if not tables.exists():
        tables.symlink_to(path)
    names = sorted(file.name for file in tables.glob("*.parquet"))
    same, *_ = filecmp.cmpfiles(tables, path, names, shallow=False)
    if not names or same != names or names != sorted(file.name for file in path.glob("*.parquet")):
        raise RunError(f"{name}: its tables are not those of {_THREADS}")


def _ratios(seconds: list[float], others: list[float], name: str) -> Row:
    ratios = [one / other for one, other in zip(seconds, others, strict=True)]
    return {name: median(ratios), f"{name}_min": min(ratios), f"{name}_max": max(ratios)}


def _grid(rows: list[Row], runs: int, workers: int, rounds: int) -> Grid:
    cells = [
        (
            row["how"],
            f"{row['seconds']:.1f}",
            *(_ratio(row, f"over_{w}") for w in ("threads", "processes")),
        )
        for row in rows
    ]
    (dask,) = (row["over_processes"] for row in rows if row["how"] == _DASK)
    verdict = "holds" if dask <= _GOAL else "missed"
    note = (
        f"Medians of {rounds} rounds, ratios (min..max) within a round; all tables are the same "
        f"bytes. Goal: dask at most {_GOAL:g} times processes ({verdict})."
    )
    title = f"{runs} runs on {workers} of each"
    return Grid(title, ("how", "seconds", "to threads", "to processes"), cells, note=note)


def _ratio(row: Row, name: str) -> str:
    if row[name] is None:
        return "–"
    return f"{row[name]:.3f} ({row[f'{name}_min']:.3f}..{row[f'{name}_max']:.3f})"


if __name__ == "__main__":
    command.run(bench, "bench.dask")
