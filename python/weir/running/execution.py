"""How a plan is executed, and its results."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from weir import _native
from weir.base.errors import InputError
from weir.kernel import cache
from weir.results.results import Results, load
from weir.running import runner
from weir.running.options import RESULTS, Dask, Jobs, Out, Pcap, Resume, RunsOn, ShowProgress
from weir.running.progress import bar
from weir.scenario.source import GUESTS, SIM
from weir.scenario.sweep import Plan


@dataclass(frozen=True)
class Execution:
    """How a plan is executed: no effect on results."""

    out: Out = RESULTS
    jobs: Jobs = None
    resume: Resume = False
    executor: RunsOn = None
    dask: Dask = None
    show_progress: ShowProgress = True
    pcap: Pcap = None


class RunOptions(TypedDict, total=False):
    """The keywords of [`Execution`][weir.running.execution.Execution]."""

    out: str | Path
    jobs: int | None
    resume: bool
    executor: Executor | None
    dask: str | None
    show_progress: bool
    pcap: str | Path | None


def run_plan(
    plan: Plan, run_one: runner.Execute | None = None, **how: Unpack[RunOptions]
) -> Results:
    """Runs what `plan` requests and is not on disk yet, and loads everything.

    `run_one` replaces the simulator, for example for real transfers.

    Raises:
        WeirError: every run failed, results could not be written, or Ctrl-C.
    """
    chosen = Execution(**how)
    is_watched = plan.is_real_time and run_one is None
    control = _native.RunControl() if is_watched else None
    with (
        _executor({case.world for case in plan.cases}, run_one, chosen) as executor,
        bar(plan.name, len(plan.runs), show=chosen.show_progress, control=control) as watch,
    ):
        path = runner.run_plan(
            plan,
            Path(chosen.out),
            jobs=chosen.jobs,
            resume=chosen.resume,
            executor=executor,
            watch=watch,
            control=control,
            run_one=run_one,
            pcap=None if chosen.pcap is None else Path(chosen.pcap),
        )
    return load(path)


@contextmanager
def workers(worlds: AbstractSet[str], how: Execution) -> Iterator[tuple[Executor, int]]:
    """An executor for many small plans one after the other, and how many of its runs are parallel.

    Raises:
        InputError: `--dask` has no cluster, or these worlds cannot run there.
        KernelError: runs need a guest kernel, and there is none.
    """
    if worlds & set(GUESTS) and how.executor is None:
        _ = cache.needed()
    is_real_time = bool(worlds - {SIM, *GUESTS})
    jobs = how.jobs or (1 if is_real_time else runner.default_jobs())
    with _executor(worlds, None, how) as executor:
        pool = executor or ThreadPoolExecutor(jobs, thread_name_prefix="weir")
        try:
            yield pool, jobs
        finally:
            if pool is not executor:
                pool.shutdown(wait=False, cancel_futures=True)


def _executor(
    worlds: AbstractSet[str], run_one: runner.Execute | None, how: Execution
) -> AbstractContextManager[Executor | None]:
    """Returns what executes the runs, if it is not this process."""
    where = how.dask
    if where is None:
        return nullcontext(how.executor)
    if run_one is not None or worlds != {SIM}:
        what = "real transfers" if run_one else f"world {next(iter(worlds - {SIM}))}"
        raise InputError(f"--dask {where}: only simulated runs can go to a cluster, not {what}")
    for other in ("jobs", "executor"):
        if getattr(how, other) is not None:
            raise InputError(f"--{other} has no effect with --dask")
    from weir.running.cluster import connected  # Dask is imported only if used

    return connected(where)
