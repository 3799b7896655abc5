"""The Python interface. The command line calls the same functions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from weir import _native, arguments, runner, trust
from weir.arguments import spelled, suggesting
from weir.errors import InputError
from weir.progress import bar
from weir.results import Results, load
from weir.scenario import (
    GUESTS,
    KERNEL,
    NETEM,
    SIM,
    Overrides,
    Source,
    Sweep,
    read,
)
from weir.sweep import Plan, plan
from weir.tc import keys as tc_keys

RESULTS = "results"
"""Default results folder, relative to the working directory."""

_WARMUP_SHARE = 10

_DUMBBELL = """
name = "compare"
[topology]
kind = "dumbbell"
[[flow]]
stack = "reno"
"""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class RunOptions(TypedDict, total=False):
    """Execution options of a plan; they have no effect on results."""

    out: str | Path
    jobs: int | None
    resume: bool
    executor: Executor | None
    dask: str | None
    """Address of a Dask scheduler, or its scheduler file."""
    show_progress: bool
    pcap: str | Path | None
    """A folder for the packets of each run, which the worlds `sim` and `kernel` record."""


def run_plan(
    plan: Plan, run_one: runner.Execute | None = None, **how: Unpack[RunOptions]
) -> Results:
    """Runs what `plan` requests and is not on disk yet, and loads everything.

    `run_one` replaces the simulator, for example for real transfers.

    Raises:
        WeirError: every run failed, results could not be written, or Ctrl-C.
    """
    is_watched = plan.is_real_time and run_one is None
    control = _native.RunControl() if is_watched else None
    show = how.get("show_progress", True)
    pcap = how.get("pcap")
    with (
        _executor(plan, run_one, how) as executor,
        bar(plan.name, len(plan.runs), show=show, control=control) as watch,
    ):
        path = runner.run_plan(
            plan,
            Path(how.get("out", RESULTS)),
            jobs=how.get("jobs"),
            resume=how.get("resume", False),
            executor=executor,
            watch=watch,
            control=control,
            run_one=run_one,
            pcap=None if pcap is None else Path(pcap),
        )
    return load(path)


def _executor(
    plan: Plan, run_one: runner.Execute | None, how: RunOptions
) -> AbstractContextManager[Executor | None]:
    """Returns what executes the runs, if it is not this process."""
    where = how.get("dask")
    if where is None:
        return nullcontext(how.get("executor"))
    worlds = {case.world for case in plan.cases}
    if run_one is not None or worlds != {SIM}:
        what = "real transfers" if run_one else f"world {next(iter(worlds - {SIM}))}"
        raise InputError(f"--dask {where}: only simulated runs can go to a cluster, not {what}")
    for other in ("jobs", "executor"):
        if how.get(other) is not None:
            raise InputError(f"--{other} has no effect with --dask")
    from weir.cluster import connected  # Dask is imported only if used

    return connected(where)


@dataclass(frozen=True)
class Comparison:
    """Stacks that are to run, one after the other, on the same dumbbell with the same seeds."""

    stacks: Sequence[str]
    rate: str = "10mbit"
    rtt: str = "40ms"
    queue: str = "1bdp"
    loss: str = "0%"
    duration: str = "60s"
    warmup: str | None = None
    """Left out of the measurement; a tenth of `duration` by default, nothing with `size`."""
    start_jitter: str = "100ms"
    flows: int = 1
    size: str | None = None
    repeat: int = 10
    seed: int = 1
    tc: str | None = None
    """The bottleneck in the words of `tc`, in place of `rate`, `rtt`, `queue` and `loss`."""
    reverse_tc: str | None = None
    sets: Overrides = ()
    sweep: Sweep = field(default_factory=dict)
    world: str = SIM

    def plan(self, form: str = "{name}='{value}'") -> Plan:
        """Every run of the comparison; `form` is how errors spell an argument and its value.

        Raises:
            InputError, ScenarioError: something in it is not valid; the message says what.
        """
        if not self.stacks:
            raise InputError("name at least one stack, as in: weir compare reno cubic bbr")
        for stack in self.stacks:
            if list(self.stacks).count(stack) > 1:
                raise InputError(f"{stack} is given twice")
        with spelled(form, self._keys(""), self.stacks):
            return self._plan()

    def _plan(self) -> Plan:
        sources = {stack: self._source(stack) for stack in self.stacks}
        return plan("compare", self.command(), sources, self.sweep)

    def command(self) -> str:
        """The command line that repeats this comparison exactly."""
        options: dict[str, object] = {
            "rate": self.rate,
            "rtt": self.rtt,
            "queue": self.queue,
            "loss": self.loss,
            "duration": self.duration,
            "warmup": self._warmup(),
            "start-jitter": self.start_jitter,
            "flows": self.flows,
            "size": self.size,
            "repeat": self.repeat,
            "seed": self.seed,
            "tc": self.tc,
            "reverse-tc": self.reverse_tc,
        }
        words = ["weir", "compare", *self.stacks]
        for option, value in options.items():
            if value is not None:
                words += [f"--{option}", str(value)]
        return shlex.join([*words, *_key_words(self.sets, self.sweep), *_world_words(self.world)])

    def _source(self, stack: str) -> Source:
        """Options become overrides, so that an error names the key and the value as given."""
        keys = (*self._keys(stack).items(), *self._keys_of_tc(), *self.sets)
        return Source(_DUMBBELL, "command line", keys).in_world(self.world)

    def _keys(self, stack: str) -> dict[str, str]:
        keys = {
            "flow.0.stack": stack,
            "flow.0.count": str(self.flows),
            "flow.0.start_jitter": self.start_jitter,
            "topology.rate": self.rate,
            "topology.rtt": self.rtt,
            "topology.queue": self.queue,
            "topology.forward.loss": self.loss,
            "measure.duration": self.duration,
            "measure.warmup": self._warmup(),
            "measure.repeat": str(self.repeat),
            "measure.seed": str(self.seed),
        }
        if self.size is not None:
            keys |= {"flow.0.workload.kind": "file", "flow.0.workload.size": self.size}
        return keys

    def _keys_of_tc(self) -> Overrides:
        """Returns the keys that `tc` sets; no other option may set them differently."""
        keys = tc_keys(self.tc, self.reverse_tc)
        options = {
            "topology.rate": "rate",
            "topology.rtt": "rtt",
            "topology.queue": "queue",
            "topology.forward.loss": "loss",
        }
        for key, value in keys:
            option = options.get(key)
            if option is not None and getattr(self, option) != getattr(Comparison, option):
                mine_is = getattr(self, option)
                raise InputError(f"--{option} {mine_is}: --tc sets {value}; give only one of them")
        return keys

    def _warmup(self) -> str:
        if self.warmup is not None:
            return self.warmup
        if self.size is not None:
            return "0s"
        try:
            seconds = _native.parse_quantity("time", self.duration)
        except ValueError:
            return "0s"  # which does not matter, as the duration is refused
        return f"{round(seconds * 1000 / _WARMUP_SHARE)}ms"


@suggesting
def compare(
    *stacks: str,
    rate: str = Comparison.rate,
    rtt: str = Comparison.rtt,
    queue: str = Comparison.queue,
    loss: str = Comparison.loss,
    duration: str = Comparison.duration,
    warmup: str | None = Comparison.warmup,
    start_jitter: str = Comparison.start_jitter,
    flows: int = Comparison.flows,
    size: str | None = Comparison.size,
    repeat: int = Comparison.repeat,
    seed: int = Comparison.seed,
    tc: str | None = None,
    reverse_tc: str | None = None,
    sets: Mapping[str, object] = _NOTHING,
    sweep: Mapping[str, Sequence[object]] = _NOTHING,
    world: str = SIM,
    out: str | Path = RESULTS,
    jobs: int | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    dask: str | None = None,
    show_progress: bool = True,
    pcap: str | Path | None = None,
) -> Results:
    """Runs `stacks` on one bottleneck, with the same seeds, and returns what happened.

    >>> results = compare("reno", "cubic", rate="10mbit", rtt="40ms", duration="20s", repeat=3)
    >>> goodput = results.estimate("cubic", "goodput_mbps")
    >>> (goodput.n, 9 < goodput.mean < 10)
    (3, True)

    Quantities are text with a unit, as on the command line.

    Args:
        stacks: What to compare: `recovery/controller`, or a controller alone, which means `rack/`;
            `FILE.py:CLASS` is a controller of your own. Differences are taken to the first.
        rate: Rate of the bottleneck, as in `10mbit`.
        rtt: Round-trip time without queueing, as in `40ms`.
        queue: Space in the queue: `1bdp`, `64p`, `100ms`, `64kb`.
        loss: Share of data packets lost at random, as in `1%`.
        duration: Length of a run; with `size`, the longest that it may take.
        warmup: Left out of the measurement; by default a tenth of `duration`, nothing with `size`.
        start_jitter: Each flow starts at a random time up to this.
        flows: Flows of the same stack.
        size: Send a file of this size instead of sending all the time.
        repeat: Runs per stack, each with its own seed.
        seed: Seed of the first repeat; the next has the next.
        tc: The bottleneck as `tc` writes it, in place of `rate`, `rtt`, `queue` and `loss`.
        reverse_tc: The same for the way back.
        sets: Further keys of the scenario, as in `{"flow.0.mss": "1000"}`.
        sweep: Keys with the values to run, as in `{"topology.queue": ["1bdp", "4bdp"]}`.
        world: `sim`, `udp` (real transfers over loopback) or `kernel` (the kernel's TCP).
        out: Where result directories are made.
        jobs: Runs at a time; one per core by default, in real time one.
        resume: Go on with an interrupted comparison of the same arguments.
        executor: What runs the simulations, in place of threads of this process.
        dask: The address of a Dask scheduler, or the file in which it has left that.
        show_progress: Whether to show a bar on a terminal or in a notebook.
        pcap: A folder for the packets of each run, which `sim` and `kernel` record.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError, ScenarioError: an argument is not valid, or nothing could be run.
    """
    arguments.stacks(stacks)
    arguments.quantities(
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        duration=duration,
        warmup=warmup,
        start_jitter=start_jitter,
        size=size,
    )
    comparison = Comparison(
        stacks=stacks,
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        duration=duration,
        warmup=warmup,
        start_jitter=start_jitter,
        flows=flows,
        size=size,
        repeat=repeat,
        seed=seed,
        tc=tc,
        reverse_tc=reverse_tc,
        sets=arguments.overrides(sets),
        sweep=arguments.swept(sweep),
        world=world,
    )
    return run_plan(
        comparison.plan(),
        out=out,
        jobs=jobs,
        resume=resume,
        executor=executor,
        dask=dask,
        show_progress=show_progress,
        pcap=pcap,
    )


@suggesting
def run(
    scenario: str | Path,
    *,
    repeat: int | None = None,
    seed: int | None = None,
    sets: Mapping[str, object] = _NOTHING,
    sweep: Mapping[str, Sequence[object]] = _NOTHING,
    world: str = SIM,
    trust_controllers: bool = False,
    out: str | Path = RESULTS,
    jobs: int | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    dask: str | None = None,
    show_progress: bool = True,
    pcap: str | Path | None = None,
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
        out: Where result directories are made.
        jobs: Runs at a time; one per core by default, in real time one.
        resume: Go on with an interrupted call of the same arguments.
        executor: What runs the simulations, in place of threads of this process.
        dask: The address of a Dask scheduler, or the file in which it has left that.
        show_progress: Whether to show a bar on a terminal or in a notebook.
        pcap: A folder for the packets of each run, which `sim` and `kernel` record.

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
    with trust.deciding(trust.everything if trust_controllers else None):
        plan = scenario_plan(source, arguments.swept(sweep), repeat=repeat, seed=seed)
    return run_plan(
        plan,
        out=out,
        jobs=jobs,
        resume=resume,
        executor=executor,
        dask=dask,
        show_progress=show_progress,
        pcap=pcap,
    )


def scenario_plan(
    source: Source, sweep: Sweep, *, repeat: int | None = None, seed: int | None = None
) -> Plan:
    """Every run of one scenario; its `[measure]` decides where `repeat` or `seed` is None."""
    if repeat is not None:
        source = source.with_override("measure.repeat", str(repeat))
    if seed is not None:
        source = source.with_override("measure.seed", str(seed))
    keys = _key_words(source.overrides, sweep)
    words = ["weir", "run", source.origin, *keys, *_world_words(source.world)]
    base = source.effective()
    name = base.name
    return plan(name, shlex.join(words), {name: source}, sweep, {name: base})


def _world_words(world: str) -> list[str]:
    if world == SIM:
        return []
    if world not in GUESTS:
        return ["--world", world]
    return ["--world", KERNEL, "--virtual", *(["--router", "netem"] if world == NETEM else [])]


def _key_words(sets: Overrides, sweep: Sweep) -> list[str]:
    words = [word for key, value in sets for word in ("--set", f"{key}={value}")]
    for key, values in sweep.items():
        words += ["--sweep", f"{key}={','.join(values)}"]
    return words
