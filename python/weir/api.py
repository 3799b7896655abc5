"""The Python interface. The command line calls the same functions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from weir import _native
from weir.base import options
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, NETWORK, OUTPUT, TRAFFIC, collection, documented, option
from weir.controllers import trust
from weir.results.results import Results, load
from weir.running import runner
from weir.running.progress import bar
from weir.scenario import arguments
from weir.scenario.arguments import spelled, suggesting
from weir.scenario.source import GUESTS, HOSTS, KERNEL, NETEM, SIM, Overrides, Source, Sweep, read
from weir.scenario.sweep import Plan, plan
from weir.scenario.tc import keys as tc_keys

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


@dataclass(frozen=True)
class Execution:
    """How a plan is executed: no effect on results."""

    out: str | Path = option(
        RESULTS, "Parent of the new result directory.", group=OUTPUT, form="DIR", short="-o"
    )
    jobs: int | None = option(
        None,
        "Number of runs in parallel.",
        group=MEASUREMENT,
        otherwise="one per core; 1 in real time",
        short="-j",
        least=1,
    )
    resume: bool = option(
        False, "Continue an interrupted call with the same arguments.", group=MEASUREMENT
    )
    executor: Executor | None = option(
        None, "What runs the simulations, in place of threads of this process.", python_only=True
    )
    dask: str | None = option(
        None,
        "Send the runs to a Dask cluster: its scheduler's address, or its scheduler file.",
        group=MEASUREMENT,
        form="ADDRESS|FILE",
    )
    show_progress: bool = option(
        True, "Whether to show a bar on a terminal or in a notebook.", python_only=True
    )
    pcap: str | Path | None = option(
        None,
        "Record the packets at both ends of the bottleneck, one pcapng file per run, in the "
        "worlds `sim` and `kernel`.",
        group=OUTPUT,
        form="DIR",
    )


class RunOptions(TypedDict, total=False):
    """The keywords of [`Execution`][weir.api.Execution]."""

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
        _executor(plan, run_one, chosen) as executor,
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


def _executor(
    plan: Plan, run_one: runner.Execute | None, how: Execution
) -> AbstractContextManager[Executor | None]:
    """Returns what executes the runs, if it is not this process."""
    where = how.dask
    if where is None:
        return nullcontext(how.executor)
    worlds = {case.world for case in plan.cases}
    if run_one is not None or worlds != {SIM}:
        what = "real transfers" if run_one else f"world {next(iter(worlds - {SIM}))}"
        raise InputError(f"--dask {where}: only simulated runs can go to a cluster, not {what}")
    for other in ("jobs", "executor"):
        if getattr(how, other) is not None:
            raise InputError(f"--{other} has no effect with --dask")
    from weir.running.cluster import connected  # Dask is imported only if used

    return connected(where)


@dataclass(frozen=True)
class Comparison:
    """Stacks that are to run, one after the other, on the same dumbbell with the same seeds."""

    stacks: Sequence[str]
    rate: str = option(
        "10mbit",
        "Rate of the bottleneck, as in `10mbit`.",
        group=NETWORK,
        form="RATE",
        key="topology.rate",
        example="10mbit",
    )
    rtt: str = option(
        "40ms",
        "Round-trip time without queueing, as in `40ms`.",
        group=NETWORK,
        form="TIME",
        key="topology.rtt",
        example="40ms",
    )
    queue: str = option(
        "1bdp",
        "Queue capacity: `1bdp`, `64p`, `100ms`, `64kb`.",
        group=NETWORK,
        form="SIZE",
        key="topology.queue",
        example="1bdp",
    )
    loss: str = option(
        "0%",
        "Share of data packets lost at random, as in `1%`.",
        group=NETWORK,
        form="SHARE",
        key="topology.forward.loss",
        example="1%",
    )
    duration: str = option(
        "60s",
        "Duration of a run, as in `60s`; with {size}, its limit.",
        group=MEASUREMENT,
        form="TIME",
        key="measure.duration",
        example="60s",
    )
    warmup: str | None = option(
        None,
        "Time at the start that is not measured.",
        group=MEASUREMENT,
        form="TIME",
        key="measure.warmup",
        example="5s",
        otherwise="a tenth of {duration}; 0 with {size}",
    )
    start_jitter: str = option(
        "100ms",
        "Each flow starts at a random time up to this.",
        group=TRAFFIC,
        form="TIME",
        key="flow.0.start_jitter",
        example="100ms",
    )
    flows: int = option(
        1,
        "Number of flows, all of the same stack.",
        group=TRAFFIC,
        key="flow.0.count",
        least=1,
    )
    size: str | None = option(
        None,
        "Send a file of this size instead of sending continuously.",
        group=TRAFFIC,
        form="SIZE",
        key="flow.0.workload.size",
        example="10mb",
    )
    repeat: int = option(
        10,
        "Runs per stack, each with its own seed.",
        group=MEASUREMENT,
        key="measure.repeat",
        short="-n",
        least=1,
    )
    seed: int = option(
        1,
        "Random seed of the first repeat; each next repeat adds 1.",
        group=MEASUREMENT,
        key="measure.seed",
        least=0,
    )
    tc: str | None = option(
        None,
        "Bottleneck in tc syntax: 'netem delay 20ms loss 1%', 'tbf rate 10mbit burst 32kbit "
        "latency 50ms'.",
        group=NETWORK,
        form="TEXT",
    )
    reverse_tc: str | None = option(
        None,
        "The same for the reverse direction; the RTT is the sum of both delays.",
        group=NETWORK,
        form="TEXT",
    )
    sets: Overrides = option(
        (),
        'Further keys of the scenario, as in `{"flow.0.mss": "1000"}`.',
        python_only=True,
    )
    sweep: Sweep = collection(
        dict,
        'Keys with the values to run, as in `{"topology.queue": ["1bdp", "4bdp"]}`.',
        python_only=True,
    )
    world: str = option(
        SIM,
        "Simulator (`sim`), real UDP over loopback (`udp`), or the Linux kernel's TCP over "
        "emulated links (`kernel`).",
        group=MEASUREMENT,
    )

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
        names = options.names_of_keys(Comparison)
        with spelled(form, names, self._keys(""), self.stacks):
            return self._plan()

    def _plan(self) -> Plan:
        sources = {stack: self._source(stack) for stack in self.stacks}
        return plan("compare", self.command(), sources, self.sweep)

    def command(self) -> str:
        """The command line that repeats this comparison exactly."""
        words = ["weir", "compare", *self.stacks]
        for name in options.of(Comparison):
            value = self._warmup() if name == "warmup" else getattr(self, name)
            if value is not None and name not in ("sets", "sweep", "world"):
                words += [options.flag(name), str(value)]
        return shlex.join([*words, *_key_words(self.sets, self.sweep), *world_words(self.world)])

    def _source(self, stack: str) -> Source:
        """Options become overrides, so that an error names the key and the value as given."""
        keys = (*self._keys(stack).items(), *self._keys_of_tc(), *self.sets)
        return Source(_DUMBBELL, "command line", keys).in_world(self.world)

    def _keys(self, stack: str) -> dict[str, str]:
        keys = {"flow.0.stack": stack}
        if self.size is not None:
            keys["flow.0.workload.kind"] = "file"
        for key, name in options.names_of_keys(Comparison).items():
            value = self._warmup() if name == "warmup" else getattr(self, name)
            if value is not None:
                keys[key] = str(value)
        return keys

    def _keys_of_tc(self) -> Overrides:
        """Returns the keys that `tc` sets; no other option may set them differently."""
        keys = tc_keys(self.tc, self.reverse_tc)
        names = options.names_of_keys(Comparison)
        for key, value in keys:
            name = names.get(key)
            if name is not None and getattr(self, name) != getattr(Comparison, name):
                own = f"{options.flag(name)} {getattr(self, name)}"
                raise InputError(f"{own}: --tc sets {value}; give only one of them")
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
    return run_plan(Comparison(stacks, **chosen).plan(), **how)


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
    with trust.deciding(trust.everything if trust_controllers else None):
        plan = scenario_plan(source, arguments.swept(sweep), repeat=repeat, seed=seed)
    return run_plan(plan, **how)


def scenario_plan(
    source: Source,
    sweep: Sweep,
    *,
    repeat: int | None = None,
    seed: int | None = None,
    words: Sequence[str] = (),
) -> Plan:
    """Every run of one scenario; its `[measure]` decides where `repeat` or `seed` is None.

    `words` are further ones of the command line, for the manifest.
    """
    if repeat is not None:
        source = source.with_override("measure.repeat", str(repeat))
    if seed is not None:
        source = source.with_override("measure.seed", str(seed))
    keys = _key_words(source.overrides, sweep)
    command = ["weir", "run", source.origin, *keys, *world_words(source.world), *words]
    base = source.effective()
    name = base.name
    return plan(name, shlex.join(command), {name: source}, sweep, {name: base})


def world_words(world: str) -> list[str]:
    """The words of a command line that select a world."""
    if world == SIM:
        return []
    if world == HOSTS:
        return []  # the caller adds `--hosts`
    if world not in GUESTS:
        return ["--world", world]
    return ["--world", KERNEL, "--virtual", *(["--router", "netem"] if world == NETEM else [])]


def _key_words(sets: Overrides, sweep: Sweep) -> list[str]:
    words = [word for key, value in sets for word in ("--set", f"{key}={value}")]
    for key, values in sweep.items():
        words += ["--sweep", f"{key}={','.join(values)}"]
    return words
