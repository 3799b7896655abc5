"""Runs a plan: on all cores of this machine, or on a given executor."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import polars as pl

from weir import _native
from weir.base import version
from weir.base.errors import ClusterError, RunError, RunInterruptedError, StoreError
from weir.controllers import trust
from weir.kernel import cache
from weir.results.manifest import SCHEMA
from weir.results.parts import Ended
from weir.results.store import RunDirectory
from weir.scenario import capture
from weir.scenario.source import GUESTS, KERNEL, NETEM, SIM, Effective
from weir.scenario.sweep import Plan, Run

Watcher = Callable[[int], None]
"""Progress callback: number of further finished runs."""

Execute = Callable[[Effective, int, str, _native.RunControl | None], Mapping[str, pl.DataFrame]]
"""Runs a scenario with a seed in a world, as `execute` does, and returns its tables."""


@runtime_checkable
class BoundedExecutor(Protocol):
    """An executor that says itself how many runs it should have at a time."""

    @property
    def wanted(self) -> int:
        """Runs submitted and not yet taken in."""
        ...


_QUEUED_PER_WORKER = 2
_MOST_WARNINGS = 10
_LOOK_S = 0.2
_KEEP_S = 0.25
"""Runs that end within this time are written together: that costs about as much as one alone."""


def execute(
    scenario: Effective,
    seed: int,
    world: str = SIM,
    control: _native.RunControl | None = None,
    pcap: Path | None = None,
) -> dict[str, pl.DataFrame]:
    """One run: in the simulator a pure function of its arguments, so it may happen anywhere.

    The native call holds no lock of the interpreter, so threads are enough to use every core.
    `control` watches a run in real time, or in a guest, and can break it off. The packets are
    recorded in `pcap`, if the world has any.
    """
    if scenario.contenders:
        from weir.running import programs as running

        return running.run(scenario, seed, world, control, pcap)
    if world in GUESTS:
        from weir.guest.world import run  # runs elsewhere have no use for it

        inner, draws = NETEM if world == NETEM else KERNEL, scenario.checked.lone_draws(seed)
        return run(scenario.text, seed, inner, control, pcap, draws=draws)
    with contextlib.nullcontext() if world == SIM else _punctual():
        result = scenario.checked.run(seed, world, control, pcap)
    return {name: pl.DataFrame(result.table(name)) for name in result.tables}


@contextlib.contextmanager
def _punctual() -> Iterator[None]:
    """Lets this thread wake ahead of all ordinary ones, where the system has and allows that.

    Otherwise whatever else a busy machine does makes a run in real time late, by milliseconds.
    """
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(
            0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        )
    except (AttributeError, OSError):
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def run_plan(
    plan: Plan,
    root: Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    watch: Watcher | None = None,
    control: _native.RunControl | None = None,
    run_one: Execute | None = None,
    pcap: Path | None = None,
) -> Path:
    """Runs everything in `plan` that is not on disk yet and returns the result directory.

    The packets of each run are recorded in the folder `pcap`, if there is one.

    Raises:
        ClusterError: the executor is a cluster that can do no more; the finished runs are kept.
        InputError: a world of the plan records no packets.
        KernelError: runs need a guest kernel, and there is none.
        RunError: every run failed. When only some did, they are in the table `runs`.
        RunInterruptedError: Ctrl-C; the finished runs are kept.
        StoreError: the directory, or `pcap`, cannot be written.
    """
    captures = {} if pcap is None else capture.files(pcap, plan)
    if plan.needs_guests and executor is None:
        _ = cache.needed()
    directory = RunDirectory.reopen(root, plan) if resume else RunDirectory.create(root, plan)
    started = time.monotonic()
    try:
        # Looked up now, so that a test may replace it.
        work = _Work(run_one or execute, captures)
        _run_all(plan, directory, jobs or _own_jobs(plan), executor, watch, control, work)
        manifest = _manifest(plan, directory, time.monotonic() - started)
        path = directory.publish({**manifest, **_recorded(captures)})
    except KeyboardInterrupt:
        raise _interrupted(plan, directory, started) from None
    except ClusterError as error:
        raise _left_alone(plan, directory, started, error) from None
    except StoreError as error:
        raise _unwritable(plan, directory, error) from None
    if directory.done == 0:
        raise RunError(failure_text(directory.failures, len(plan.runs)))
    return path


def default_jobs() -> int:
    """As many as this process may use cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _own_jobs(plan: Plan) -> int:
    """What runs in real time disturb each other."""
    return 1 if plan.is_real_time else default_jobs()


@dataclass(frozen=True)
class _Work:
    """How a run is begun."""

    run_one: Execute
    captures: Mapping[int, Path]

    def begin(
        self, pool: Executor, run: Run, control: _native.RunControl | None
    ) -> Future[Mapping[str, pl.DataFrame]]:
        case = run.case
        words = (case.scenario, run.seed, case.world, control)
        programs = trust.trusted_in(case.scenario.controllers)
        if run.index in self.captures:
            return pool.submit(_trusting, programs, execute, *words, self.captures[run.index])
        return pool.submit(_trusting, programs, self.run_one, *words)


def _trusting(
    programs: frozenset[str], run_one: Callable[..., Mapping[str, pl.DataFrame]], *words: Any
) -> Mapping[str, pl.DataFrame]:
    """A run that may execute, on any worker, what is trusted where it was planned."""
    trust.trust(programs)
    return run_one(*words)


def _run_all(
    plan: Plan,
    directory: RunDirectory,
    jobs: int,
    executor: Executor | None,
    watch: Watcher | None,
    control: _native.RunControl | None,
    work: _Work,
) -> None:
    pending = directory.pending
    if watch:
        watch(len(plan.runs) - len(pending))
    pool = executor or ThreadPoolExecutor(jobs, thread_name_prefix="weir")
    # Other processes cannot be watched from here.
    control = None if executor else control or _native.RunControl()
    unkept: list[Ended] = []
    due = time.monotonic() + _KEEP_S
    try:
        for futures in _as_completed(pool, iter(pending), jobs * _QUEUED_PER_WORKER, control, work):
            for run, future in futures:
                unkept.append(_ended(run, future))
                if watch:
                    watch(1)
            if unkept and time.monotonic() >= due:
                directory.keep(unkept)
                unkept, due = [], time.monotonic() + _KEEP_S
    finally:
        if control is not None:
            control.stop()
        if pool is not executor:
            pool.shutdown(wait=False, cancel_futures=True)
        if unkept:
            directory.keep(unkept)


def _ended(run: Run, future: Future[Mapping[str, pl.DataFrame]]) -> Ended:
    error = future.exception()
    if isinstance(error, ClusterError):
        raise error
    if error is not None:
        return Ended(run, {}, str(error) or type(error).__name__)
    return Ended(run, future.result())


def each(
    runs: Iterable[Run], pool: Executor, jobs: int, control: _native.RunControl | None = None
) -> Iterator[Ended]:
    """Each run when it ends, with its tables in memory: for callers that keep a few numbers.

    Raises:
        ClusterError: the executor is a cluster that can do no more.
    """
    in_flight = jobs * _QUEUED_PER_WORKER
    ended = _as_completed(pool, iter(runs), in_flight, control, _Work(execute, {}))
    return itertools.starmap(_ended, itertools.chain.from_iterable(ended))


def _as_completed(
    pool: Executor,
    runs: Iterator[Run],
    in_flight: int,
    control: _native.RunControl | None,
    work: _Work,
) -> Iterator[list[tuple[Run, Future[Mapping[str, pl.DataFrame]]]]]:
    """The runs that have just ended, again and again, or none after a while.

    Few are submitted ahead, so that tables do not pile up in memory.
    """
    waiting: dict[Future[Mapping[str, pl.DataFrame]], Run] = {}
    while True:
        wanted = pool.wanted if isinstance(pool, BoundedExecutor) else in_flight
        for run in itertools.islice(runs, max(0, wanted - len(waiting))):
            waiting[work.begin(pool, run, control)] = run
        if not waiting:
            return
        # A wait without end may not notice Ctrl-C before it is over.
        ended, _ = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        yield [(waiting.pop(future), future) for future in ended]


def _manifest(plan: Plan, directory: RunDirectory, wall_s: float) -> dict[str, Any]:
    failures = directory.failures
    return {
        "schema": SCHEMA,
        "name": plan.name,
        "command": plan.command,
        "created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "version": _native.version(),
        "build": version.build(),
        "complete": directory.done == len(plan.runs),
        "runs": {"planned": len(plan.runs), "ok": directory.done, "failed": failures},
        "repeat": plan.repeat,
        "seeds": list(plan.seeds),
        "sweep": list(plan.swept),
        "cases": [
            {
                "label": case.label,
                "series": case.series,
                "stack": case.stack,
                "world": case.world,
                "point": dict(case.point),
                "scenario": case.scenario.fields,
                **({"labels": dict(case.labels)} if case.labels else {}),
            }
            for case in plan.cases
        ],
        "health": {**_health(plan, directory), "wall_s": round(wall_s, 3)},
        "host": host(),
        **_guest(plan),
        **_controllers(plan),
        **_contenders(plan),
        **_hosts(plan),
    }


def _recorded(captures: Mapping[int, Path]) -> dict[str, Any]:
    """The captures of runs. Their sizes show whether a file is still what a run wrote."""
    found = [
        {"run": run, "file": str(file), "bytes": file.stat().st_size}
        for run, file in captures.items()
        if file.is_file()
    ]
    return {"captures": found} if found else {}


def _hosts(plan: Plan) -> dict[str, Any]:
    """Between which hosts the flows ran."""
    texts = [case.hosts for case in plan.cases if case.hosts]
    return json.loads(texts[0]) if texts else {}


def _controllers(plan: Plan) -> dict[str, Any]:
    """Which files controllers in Python came from; their text is in the scenarios."""
    texts = {
        (case.scenario.folder, file): text
        for case in plan.cases
        for file, text in case.scenario.controllers.items()
    }
    files = {
        file: {
            "path": str(Path(folder, file).absolute()),
            "sha256": trust.sha256(text),
        }
        for (folder, file), text in texts.items()
    }
    return {"controllers": files} if files else {}


def _contenders(plan: Plan) -> dict[str, Any]:
    """Which programs ran, and how they were started."""
    stacks = dict.fromkeys(stack for case in plan.cases for stack in case.scenario.contenders)
    if not stacks:
        return {}
    from weir.contenders import catalogue

    found = {stack: catalogue.of(stack) for stack in stacks}
    return {
        "contenders": {
            stack: {"version": catalogue.version(c), "definition": c.definition.text}
            for stack, c in found.items()
            if c is not None
        }
    }


def _health(plan: Plan, directory: RunDirectory) -> dict[str, Any]:
    """Returns whether the runs are valid; in real time, how punctual they were."""
    if directory.failures:
        return {"verdict": "bad"}
    if not plan.is_real_time:
        return {"verdict": "good"}
    judged = [row for row in directory.summaries if row.get("health") is not None]
    strained = [row["health"] for row in judged if row["health"] != "good"]
    worst = {
        key: max((row[key] for row in judged if row[key] is not None), default=None)
        for key in ("late_ms_p99", "late_ms_max", "unasked_drops", "cpu_ratio")
    }
    verdict = f"strained in {len(strained)} of {len(judged)} runs" if strained else "good"
    return {"verdict": verdict, "warnings": strained[:_MOST_WARNINGS], "worst": worst}


def _guest(plan: Plan) -> dict[str, Any]:
    """Which kernel the guests ran, where there were any."""
    kernel = cache.default() if plan.needs_guests else None
    return {"guest_kernel": {"version": kernel.version, "recipe": kernel.recipe}} if kernel else {}


def host() -> dict[str, Any]:
    """What about this machine a reader of the results may ask."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cores": default_jobs(),
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
    }


def _interrupted(plan: Plan, directory: RunDirectory, started: float) -> RunInterruptedError:
    done = directory.done
    if done == 0:
        directory.discard()
        return RunInterruptedError(None, 0, len(plan.runs))
    path = directory.publish(_manifest(plan, directory, time.monotonic() - started))
    return RunInterruptedError(path, done, len(plan.runs))


def _left_alone(
    plan: Plan, directory: RunDirectory, started: float, error: ClusterError
) -> ClusterError:
    done = directory.done
    if done == 0:
        directory.discard()
        return ClusterError(f"the cluster can do no more: {error}; nothing was written")
    path = directory.publish(_manifest(plan, directory, time.monotonic() - started))
    return ClusterError(
        f"the cluster can do no more: {error}; {done} of {len(plan.runs)} runs are kept in {path}, "
        "give the same command with --resume to go on"
    )


def _unwritable(plan: Plan, directory: RunDirectory, error: StoreError) -> StoreError:
    if directory.done == 0:
        directory.discard()
        return error
    hint = f"{directory.done} of {len(plan.runs)} runs are kept; free some space and add --resume"
    return StoreError(f"{error} ({hint})")


def failure_text(failures: Mapping[str, str], total: int) -> str:
    """One line about the runs that failed."""
    label, reason = next(iter(failures.items()))
    return f"{len(failures)} of {total} runs failed, the first ({label}): {reason}"
