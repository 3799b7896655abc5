"""Functions that run what the verbs of the command line run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

from weir.api.results import Results
from weir.base import options
from weir.base.options import documented
from weir.cells.protocol import Settings, StudyResult
from weir.controllers import trust
from weir.running.execution import RESULTS, Execution, RunOptions, run_plan
from weir.scenario import arguments
from weir.scenario.arguments import suggesting
from weir.scenario.plans import Comparison, scenario_plan
from weir.scenario.source import SIM, Source, read
from weir.studies import catalogue

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class CompareOptions(RunOptions, total=False):
    """The keywords of [`compare`][weir.compare]: those of `Comparison`, and of `Execution`."""

    rate: str
    rtt: str
    queue: str
    loss: str
    duration: str
    warmup: str | None
    start_jitter: str
    flows: int
    size: str | None
    repeat: int
    seed: int
    tc: str | None
    reverse_tc: str | None
    sets: Mapping[str, object]
    sweep: Mapping[str, Sequence[object]]
    world: str


@suggesting
@documented(CompareOptions, Comparison, Execution)
def compare(*stacks: str, **given: Unpack[CompareOptions]) -> Results:
    """Runs `stacks` on one bottleneck, with the same seeds, and returns what happened.

    >>> results = compare("reno", "cubic", rate="10mbit", rtt="40ms", duration="20s", repeat=3)
    >>> goodput = results.estimate("cubic", "goodput_mbps")
    >>> (goodput.n, 9 < goodput.mean < 10)
    (3, True)

    Quantities are text with a unit, as on the command line.

    Args:
        stacks: What to compare: `recovery/controller`, or a controller alone, which means `rack/`;
            `FILE.py:CLASS` is a controller of your own. Differences are taken to the first.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError, ScenarioError: an argument is not valid, or nothing could be run.
    """
    arguments.stacks(stacks)
    arguments.quantities(options.of(Comparison), given)
    chosen: dict[str, Any] = {n: v for n, v in given.items() if n in options.of(Comparison)}
    chosen["sets"] = arguments.overrides(given.get("sets", _NOTHING))
    chosen["sweep"] = arguments.swept(given.get("sweep", _NOTHING))
    how: RunOptions = {n: v for n, v in given.items() if n not in chosen}  # type: ignore[assignment]
    return Results.of(run_plan(Comparison(stacks, **chosen).plan(), **how))


@suggesting
@documented(RunOptions, Execution)
def run(
    scenario: str | Path,
    *,
    repeat: int | None = None,
    seed: int | None = None,
    sets: Mapping[str, object] = _NOTHING,
    sweep: Mapping[str, Sequence[object]] = _NOTHING,
    world: str = SIM,
    trust_controllers: bool = False,
    **how: Unpack[RunOptions],
) -> Results:
    """Runs a scenario: every point of its sweep, every repeat.

    >>> queues = {"topology.queue": ["0.5bdp", "2bdp"]}
    >>> results = run("two-flows", sweep=queues, sets={"measure.duration": "30s"}, repeat=2)
    >>> [case["label"] for case in results.cases]
    ['two-flows, topology.queue=0.5bdp', 'two-flows, topology.queue=2bdp']

    Args:
        scenario: The path of a file, the name of a scenario that comes with Weir, or TOML text of
            more than one line.
        repeat: Runs per case; the scenario's own number by default.
        seed: Seed of the first repeat; the scenario's own by default.
        sets: Keys of the scenario to change, as in `{"topology.rate": "20mbit"}`.
        sweep: Keys with the values to run, as in `{"topology.queue": ["1bdp", "4bdp"]}`.
        world: `sim`, `udp` (real transfers over loopback) or `kernel` (the kernel's TCP).
        trust_controllers: Whether programs that it holds or names may run: controllers in Python.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError, ScenarioError: the scenario is not valid, or nothing could be run.
    """
    keys = arguments.overrides(sets)
    if isinstance(scenario, str) and "\n" in scenario:
        source = Source(scenario, "scenario", keys)
    else:
        source = read(scenario, keys)
    source = source.in_world(world)
    with trust.deciding(trust.trust_all if trust_controllers else None):
        plan = scenario_plan(source, arguments.swept(sweep), repeat=repeat, seed=seed)
    return Results.of(run_plan(plan, **how))


@suggesting
def study(
    name: str,
    *,
    size: str = Settings.size,
    repeat: int | None = Settings.repeat,
    seed: int = Settings.seed,
    world: str | None = None,
    out: str | Path = RESULTS,
    jobs: int | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    dask: str | None = None,
    show_progress: bool = True,
) -> StudyResult:
    """Runs a study and writes its cells next to the results, in `study.json`.

    Args:
        name: The study; `weir list studies` names them.
        size: `small` or `full`.
        repeat: Runs per cell; the study's own number by default.
        seed: Seed of the first repeat.
        world: One that the study runs in, in place of its first: most run in `sim` only.
        out: Where result directories are made.
        jobs: Runs at a time; one per core by default, in real time one.
        resume: Go on with an interrupted call of the same arguments.
        executor: What runs the simulations, in place of threads of this process.
        dask: The address of a Dask scheduler, or the file in which it has left that.
        show_progress: Whether to show a bar on a terminal or in a notebook.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError: there is no such study, size or world, or nothing could be run.
    """
    if world is None:
        world, *_ = catalogue.possible_worlds(catalogue.find(name))
    how = RunOptions(
        out=out,
        jobs=jobs,
        resume=resume,
        executor=executor,
        dask=dask,
        show_progress=show_progress,
    )
    result = catalogue.run(name, Settings(size, repeat, seed, how, world))
    return replace(result, results=Results.of(result.results))
