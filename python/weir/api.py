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

from weir import _native, runner, trust
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
"""Where results go unless told otherwise: a folder of the working directory."""

_WARMUP_SHARE = 10

_DUMBBELL = """
name = "compare"
[topology]
kind = "dumbbell"
[[flow]]
stack = "reno"
"""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class How(TypedDict, total=False):
    """How a plan is carried out; none of it has any influence on the numbers."""

    out: str | Path
    jobs: int | None
    resume: bool
    executor: Executor | None
    dask: str | None
    """The address of a Dask scheduler, or the file in which it has left that."""
    show_progress: bool
    pcap: str | Path | None
    """A folder for the packets of each run, which the worlds `sim` and `kernel` record."""


def carry_out(plan: Plan, run_one: runner.Execute | None = None, **how: Unpack[How]) -> Results:
    """Runs what `plan` asks for and is not on disk yet, and loads everything.

    `run_one` replaces the simulator where runs are something else, as real transfers are.

    Raises:
        WeirError: every run failed, the disk refused, or someone pressed Ctrl-C.
    """
    is_watched = plan.is_real_time and run_one is None
    control = _native.RunControl() if is_watched else None
    show = how.get("show_progress", True)
    pcap = how.get("pcap")
    with (
        _executor(plan, run_one, how) as executor,
        bar(plan.name, len(plan.runs), show=show, control=control) as watch,
    ):
        path = runner.carry_out(
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
    plan: Plan, run_one: runner.Execute | None, how: How
) -> AbstractContextManager[Executor | None]:
    """What carries the runs out, if it is not this process."""
    where = how.get("dask")
    if where is None:
        return nullcontext(how.get("executor"))
    worlds = {case.world for case in plan.cases}
    if run_one is not None or worlds != {SIM}:
        told = "real transfers" if run_one else f"world {next(iter(worlds - {SIM}))}"
        raise InputError(f"--dask {where}: only simulated runs can go to a cluster, not {told}")
    for other in ("jobs", "executor"):
        if how.get(other) is not None:
            raise InputError(f"--{other} means nothing with --dask, whose workers decide")
    from weir.cluster import connected  # who stays at home needs no Dask

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

    def plan(self) -> Plan:
        """Every run of the comparison.

        Raises:
            InputError, ScenarioError: something in it is not valid; the message says what.
        """
        if not self.stacks:
            raise InputError("name at least one stack, as in: weir compare reno cubic bbr")
        for stack in self.stacks:
            if list(self.stacks).count(stack) > 1:
                raise InputError(f"{stack} is given twice")
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
        overrides = {
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
            overrides |= {"flow.0.workload.kind": "file", "flow.0.workload.size": self.size}
        told = (*overrides.items(), *self._told_by_tc(), *self.sets)
        return Source(_DUMBBELL, "command line", told).in_world(self.world)

    def _told_by_tc(self) -> Overrides:
        """What `tc` says, which no option may have said otherwise."""
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
                raise InputError(f"--{option} {mine_is}: --tc says {value}; one says it all")
        return keys

    def _warmup(self) -> str:
        if self.warmup is not None:
            return self.warmup
        if self.size is not None:
            return "0s"
        try:
            seconds = _native.parse_quantity("time", self.duration)
        except ValueError as error:
            raise InputError(f"measure.duration={self.duration}: {error}") from None
        return f"{round(seconds * 1000 / _WARMUP_SHARE)}ms"


def compare(
    *stacks: str,
    rate: str = Comparison.rate,
    rtt: str = Comparison.rtt,
    queue: str = Comparison.queue,
    loss: str = Comparison.loss,
    duration: str = Comparison.duration,
    warmup: str | None = Comparison.warmup,
    flows: int = Comparison.flows,
    size: str | None = Comparison.size,
    repeat: int = Comparison.repeat,
    seed: int = Comparison.seed,
    tc: str | None = None,
    reverse_tc: str | None = None,
    sets: Mapping[str, str] = _NOTHING,
    sweep: Mapping[str, Sequence[str]] = _NOTHING,
    world: str = SIM,
    **how: Unpack[How],
) -> Results:
    """Runs `stacks` on one bottleneck, with the same seeds, and returns what happened.

    >>> results = compare("reno", "cubic", rate="10mbit", rtt="40ms", repeat=5)  # doctest: +SKIP
    >>> results.estimate("cubic", "goodput_mbps")  # doctest: +SKIP

    Raises:
        WeirError, ScenarioError: what is asked for is not valid, or nothing could be run.
    """
    comparison = Comparison(
        stacks=stacks,
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        duration=duration,
        warmup=warmup,
        flows=flows,
        size=size,
        repeat=repeat,
        seed=seed,
        tc=tc,
        reverse_tc=reverse_tc,
        sets=tuple(sets.items()),
        sweep=_swept(sweep),
        world=world,
    )
    return carry_out(comparison.plan(), **how)


def run(
    scenario: str | Path,
    *,
    repeat: int | None = None,
    seed: int | None = None,
    sets: Mapping[str, str] = _NOTHING,
    sweep: Mapping[str, Sequence[str]] = _NOTHING,
    world: str = SIM,
    trust_controllers: bool = False,
    **how: Unpack[How],
) -> Results:
    """Runs a scenario: the path of a file, or its TOML text when it has more than one line.

    With `trust_controllers` the programs that it holds or names may run: controllers in Python.

    Raises:
        WeirError, ScenarioError: the scenario is not valid, or nothing could be run.
    """
    overrides = tuple(sets.items())
    if isinstance(scenario, str) and "\n" in scenario:
        source = Source(scenario, "scenario", overrides)
    else:
        source = read(scenario, overrides)
    source = source.in_world(world)
    with trust.deciding(trust.everything if trust_controllers else None):
        plan = scenario_plan(source, _swept(sweep), repeat=repeat, seed=seed)
    return carry_out(plan, **how)


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
    name = source.effective().name
    return plan(name, shlex.join(words), {name: source}, sweep)


def _swept(sweep: Mapping[str, Sequence[str]]) -> Sweep:
    return {key: tuple(values) for key, values in sweep.items()}


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
