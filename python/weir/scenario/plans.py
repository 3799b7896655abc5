"""The runs of `weir compare` and of `weir run`, and the command lines that repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from weir import _native
from weir.base import options
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, NETWORK, TRAFFIC, Option
from weir.scenario.arguments import spelled
from weir.scenario.labels import Named, each_once, labels_of, named
from weir.scenario.source import (
    CONTENDER,
    GUESTS,
    HOSTS,
    KERNEL,
    NETEM,
    SIM,
    Overrides,
    Source,
    Sweep,
    worlds,
)
from weir.scenario.sweep import Plan, plan
from weir.scenario.tc import keys as tc_keys

_WARMUP_SHARE = 10

TESTED, NEIGHBOUR = "tested", "neighbour"
"""Names of the flows of a comparison with `against`."""
PROGRAM = "program"
"""The stack that stands for the programs of `client` and `server`."""
ALONE = "alone"
"""What the name of its last case ends with, the neighbour alone."""

_DUMBBELL = """
name = "compare"
[topology]
kind = "dumbbell"
[[flow]]
stack = "reno"
"""
_WITH_NEIGHBOUR = f"""{_DUMBBELL}
[[flow]]
stack = "reno"
"""


Tc = Annotated[
    str | None,
    Option(
        "Bottleneck in tc syntax: 'netem delay 20ms loss 1%', 'tbf rate 10mbit burst 32kbit "
        "latency 50ms'.",
        NETWORK,
        metavar="TEXT",
    ),
]
ReverseTc = Annotated[
    str | None,
    Option(
        "The same for the reverse direction; the RTT is the sum of both delays.",
        NETWORK,
        metavar="TEXT",
    ),
]
WORLD = Option(
    "Simulator (`sim`), real UDP over loopback (`udp`), or the Linux kernel's TCP over "
    "emulated links (`kernel`).",
    MEASUREMENT,
    metavar="|".join(worlds()),
)
World = Annotated[str, WORLD]
Seed = Annotated[
    int | None,
    Option(
        "Random seed of the first repeat.",
        MEASUREMENT,
        default_text="the scenario's own",
        min=0,
    ),
]


def runs_per_case(otherwise: str) -> Option:
    """Returns the option `repeat` with this default."""
    return Option("Runs per case.", MEASUREMENT, default_text=otherwise, short="-n", min=1)


Repeat = Annotated[int | None, runs_per_case("the scenario's own")]


@dataclass(frozen=True)
class Comparison:
    """Stacks that are to run, one after the other, on the same dumbbell with the same seeds."""

    stacks: Sequence[str]
    rate: Annotated[
        str,
        Option(
            "Rate of the bottleneck, as in `10mbit`.",
            group=NETWORK,
            metavar="RATE",
            key="topology.rate",
            example="10mbit",
        ),
    ] = "10mbit"
    rtt: Annotated[
        str,
        Option(
            "Round-trip time without queueing, as in `40ms`.",
            group=NETWORK,
            metavar="TIME",
            key="topology.rtt",
            example="40ms",
        ),
    ] = "40ms"
    queue: Annotated[
        str,
        Option(
            "Queue capacity: `1bdp`, `64p`, `100ms`, `64kb`.",
            group=NETWORK,
            metavar="SIZE",
            key="topology.queue",
            example="1bdp",
        ),
    ] = "1bdp"
    loss: Annotated[
        str,
        Option(
            "Share of data packets lost at random, as in `1%`.",
            group=NETWORK,
            metavar="SHARE",
            key="topology.forward.loss",
            example="1%",
        ),
    ] = "0%"
    duration: Annotated[
        str,
        Option(
            "Duration of a run, as in `60s`; with {size}, its limit.",
            group=MEASUREMENT,
            metavar="TIME",
            key="measure.duration",
            example="60s",
        ),
    ] = "60s"
    warmup: Annotated[
        str | None,
        Option(
            "Time at the start that is not measured.",
            group=MEASUREMENT,
            metavar="TIME",
            key="measure.warmup",
            example="5s",
            default_text="a tenth of {duration}; 0 with {size}",
        ),
    ] = None
    start_jitter: Annotated[
        str,
        Option(
            "Each flow starts at a random time up to this.",
            group=TRAFFIC,
            metavar="TIME",
            key="flow.0.start_jitter",
            example="100ms",
        ),
    ] = "100ms"
    flows: Annotated[
        int,
        Option("Number of flows, all of the same stack.", group=TRAFFIC, key="flow.0.count", min=1),
    ] = 1
    size: Annotated[
        str | None,
        Option(
            "Send a file of this size instead of sending continuously.",
            group=TRAFFIC,
            metavar="SIZE",
            key="flow.0.workload.size",
            example="10mb",
        ),
    ] = None
    against: Annotated[
        str | None,
        Option(
            "Share the bottleneck with one flow of this stack, which is also run next to itself "
            "and alone.",
            group=TRAFFIC,
            metavar="STACK",
            key="flow.1.stack",
        ),
    ] = None
    client: Annotated[
        str | None,
        Option(
            "Your own program that sends a file, with arguments in braces; `program` among the "
            "stacks stands for it. See docs/stacks/programs.md.",
            group=TRAFFIC,
            metavar="COMMAND",
        ),
    ] = None
    server: Annotated[
        str | None,
        Option("Your own program that receives it.", group=TRAFFIC, metavar="COMMAND"),
    ] = None
    repeat: Annotated[
        int,
        Option(
            "Runs per stack, each with its own seed.",
            group=MEASUREMENT,
            key="measure.repeat",
            short="-n",
            min=1,
        ),
    ] = 10
    seed: Annotated[
        int,
        Option(
            "Random seed of the first repeat; each next repeat adds 1.",
            group=MEASUREMENT,
            key="measure.seed",
            min=0,
        ),
    ] = 1
    tc: Tc = None
    reverse_tc: ReverseTc = None
    sets: Annotated[
        Overrides,
        Option('Further keys of the scenario, as in `{"flow.0.mss": "1000"}`.', python_only=True),
    ] = ()
    sweep: Annotated[
        Sweep,
        Option(
            'Keys with the values to run, as in `{"topology.queue": ["1bdp", "4bdp"]}`.',
            python_only=True,
        ),
    ] = field(default_factory=dict)
    world: World = SIM

    def plan(self, form: str = "{name}='{value}'") -> Plan:
        """Every run of the comparison; `form` is how errors spell an argument and its value.

        Raises:
            InputError, ScenarioError: something in it is not valid; the message says what.
        """
        if not self.stacks:
            raise InputError("name at least one stack, as in: weir compare reno cubic bbr")
        stacks = each_once(self.stacks)
        if self.against is not None:
            self._check_neighbour(form)
            stacks = _next_to(named(self.against), stacks)
        is_named = any(one.stack == PROGRAM for one in stacks)
        if is_named or self.client is not None or self.server is not None:
            stacks = self._with_programs(form, stacks)
        names = options.names_of_keys(Comparison)
        with spelled(form, names, self._keys(""), [one.stack for one in stacks]):
            return self._plan(stacks)

    def _check_neighbour(self, form: str) -> None:
        """Refuses what would make the neighbour another flow in the case of it alone."""
        written = form.format(name="against", value=self.against)
        if self.size is not None:
            raise InputError(f"{written}: compares streams; leave out the size {self.size}")
        for key in (*(key for key, _ in self.sets), *self.sweep):
            if key.startswith("flow.") and not key.startswith("flow.*."):
                every = f"flow.*.{key.split('.', 2)[-1]}"
                raise InputError(f"{written}: {key} is of one flow; set {every}, of all flows")

    def _with_programs(self, form: str, stacks: Sequence[Named]) -> list[Named]:
        """The stacks with programs in place of `program` and of what only our transport has.

        Raises:
            InputError: the programs cannot run, or a command or a stack is not valid.
        """
        from weir.contenders import own  # other comparisons have no use for it

        if self.client is None or self.server is None:
            given = {"client": self.client, "server": self.server}
            words = [form.format(name=name, value=value) for name, value in given.items() if value]
            raise InputError(f"{words[0] if words else PROGRAM}: give both --client and --server")
        written = form.format(name="client", value=self.client)
        if self.world not in (KERNEL, *GUESTS):
            raise InputError(f"{written}: only world kernel runs programs; add --world kernel")
        if self.size is None:
            raise InputError(f"{written}: programs send a file; give its --size, as in 100kb")
        if self.against is not None or self.flows != 1:
            more = "--against" if self.against is not None else "--flows"
            raise InputError(f"{written}: a program runs alone; leave out {more}")
        program = own.define(self.client, self.server)
        about = f"{self.client} with {self.server}"
        if not any(one.stack == PROGRAM for one in stacks):
            stacks = [Named(PROGRAM, PROGRAM), *stacks]
        return [_as_programs(one, program, about) for one in stacks]

    def source(self, stack: str) -> Source:
        """The scenario of one of the stacks, all options as overrides; nothing is checked."""
        return self._source(named(stack).stack)

    def _plan(self, stacks: Sequence[Named]) -> Plan:
        """The cases by name; next to a neighbour its own kind is the first, and alone the last."""
        sources = {one.name: self._source(one.stack) for one in stacks}
        if self.against is not None:
            neighbour, *_ = stacks
            alone, name = replace(self, against=None, flows=1), f"{neighbour.name} {ALONE}"
            if name in sources:
                raise InputError(f"{name}: this names the neighbour alone; choose another label")
            sources[name] = alone._source(neighbour.stack)
        return plan("compare", self.command(), sources, self.sweep, labels=labels_of(stacks))

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
        base = _DUMBBELL if self.against is None else _WITH_NEIGHBOUR
        return Source(base, "command line", keys).in_world(self.world)

    def _keys(self, stack: str) -> dict[str, str]:
        keys = {"flow.0.stack": stack}
        if self.size is not None:
            keys["flow.0.workload.kind"] = "file"
        if self.against is not None:
            keys |= {"flow.0.name": TESTED, "flow.1.name": NEIGHBOUR}
            keys["flow.1.start_jitter"] = self.start_jitter
        for key, name in options.names_of_keys(Comparison).items():
            value = self._warmup() if name == "warmup" else getattr(self, name)
            if value is not None:
                keys[key] = named(value).stack if name == "against" else str(value)
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


def _as_programs(one: Named, program: str, about: str) -> Named:
    """A stack of a comparison with programs, and what runs for it in world `kernel`."""
    from weir.contenders import own

    if one.stack == PROGRAM:
        return Named(one.name, program, about)
    if own.is_ours(one.stack):
        with spelled("", {}, {}, [one.stack]):
            Source(_DUMBBELL, "command line", (("flow.0.stack", one.stack),)).effective()
        said = f"Weir's transport over UDP, as weir send --stack {one.stack}"
        return Named(one.name, own.ours(one.stack), said)
    is_contender = one.stack.startswith(CONTENDER)
    return one if is_contender else Named(one.name, one.stack, f"the kernel's TCP with {one.stack}")


def _next_to(neighbour: Named, stacks: Sequence[Named]) -> list[Named]:
    """The neighbour's own kind, then the other stacks.

    Raises:
        InputError: another stack has its label.
    """
    own = next((one for one in stacks if one.stack == neighbour.stack), neighbour)
    first = own if neighbour.name == neighbour.stack else neighbour
    others = [one for one in stacks if one is not own]
    if any(one.name == first.name for one in others):
        raise InputError(f"{first.name} is given twice")
    return [first, *others]


def scenario_plan(
    source: Source,
    sweep: Sweep,
    *,
    repeat: Repeat = None,
    seed: Seed = None,
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
