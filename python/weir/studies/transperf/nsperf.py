"""nsperf's five tests: what they vary and what they ask.

Their own durations and flows belong to the full size; the small one takes the tests of 1 Gbit/s at
100 Mbit/s, so that a few seconds are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weir.studies.schemes import KINDS, present

_TOPOLOGY = """
name = "transperf"

[topology]
rate = "{rate}"
rtt = "{rtt}"
queue = {queue}
{forward}"""

_FLOWS = """
[[flow]]
name = "{name}"
stack = "{stack}"
count = {count}
start = "{start:g}s"
stagger = "{stagger:g}s"
start_jitter = "{wait}"
{more}"""

_MEASURE = """
[measure]
duration = "{seconds:g}s"
warmup = "{warmup:g}s"
sample_interval = "0s"
repeat = {repeat}
seed = {seed}
"""

CUBIC, OWN = "cubic beside", "own"
"""The flows of a test: those that it is about are `own`."""

MARKING = ("reno", "cubic", "dctcp", "bbr3", "prague")
"""Controls that heed marks, for the test of many flows over a marking queue."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of the part of nsperf that runs."""

    gigabit: str
    """What stands for its 1 Gbit/s."""
    seconds: dict[str, float]
    values: dict[str, tuple[float, ...]]


COEXIST, RANDOM_LOSS, SHALLOW = "coexist", "random_loss", "shallow"
BUFFERBLOAT, ECN_BULK = "bufferbloat", "ecn_bulk"

SIZES = {
    "small": Size(
        "100mbit",
        {COEXIST: 45, RANDOM_LOSS: 15, SHALLOW: 15, BUFFERBLOAT: 45, ECN_BULK: 5},
        {
            COEXIST: (0.1, 1, 4, 16),
            RANDOM_LOSS: (0.001, 0.1, 1, 10),
            SHALLOW: (1, 10),
            BUFFERBLOAT: (1, 10, 100),
            ECN_BULK: (1, 10, 40),
        },
    ),
    "full": Size(
        "1gbit",
        {COEXIST: 180, RANDOM_LOSS: 60, SHALLOW: 60, BUFFERBLOAT: 120, ECN_BULK: 10},
        {
            COEXIST: (0.1, 1, 2, 4, 8, 16),
            RANDOM_LOSS: (1e-5, 1e-4, 0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 3, 10, 15, 20),
            SHALLOW: (1, 10, 30, 60, 100),
            BUFFERBLOAT: (1, 10, 50, 100),
            ECN_BULK: (1, 4, 10, 40, 100),
        },
    ),
}
"""`shallow` lasts 300 s there; a fifth of it says the same of the share that is sent again."""


def label(test: str, stack: str, value: float) -> str:
    """The name of a case."""
    return f"nsperf {test}, {stack}, {value:g}"


def column(test: str, value: float) -> str:
    """The heading of a value that a test varies."""
    if test in (COEXIST, BUFFERBLOAT):
        return f"{value:g} BDP"
    if test == RANDOM_LOSS:
        return f"{value:g}%"
    return "1 flow" if value == 1 else f"{value:g} flows"


def stacks_of(test: str) -> tuple[str, ...]:
    """The controls that a test takes."""
    if test == ECN_BULK:
        return present(MARKING)
    own = present(KINDS)
    return tuple(name for name in own if name != "cubic") if test == COEXIST else own


def cases(size: Size, repeat: int, seed: int) -> Iterator[tuple[str, str]]:
    """Label and scenario of every run."""
    for test, values in size.values.items():
        for stack in stacks_of(test):
            for value in values:
                head, flows = _SCENARIOS[test](size, stack, value)
                seconds = size.seconds[test]
                measure = _MEASURE.format(
                    seconds=seconds, warmup=seconds / 5, repeat=repeat, seed=seed
                )
                yield label(test, stack, value), head + flows + measure


def _coexist(_: Size, stack: str, buffer: float) -> tuple[str, str]:
    head = _TOPOLOGY.format(rate="50mbit", rtt="30ms", queue=f'"{buffer:g}bdp"', forward="")
    return head, _flows(CUBIC, "cubic", 1) + _flows(OWN, stack, 1, start=2)


def _random_loss(size: Size, stack: str, percent: float) -> tuple[str, str]:
    forward = f'\n[topology.forward]\nloss = "{percent:.7g}%"\n'
    if "e" in f"{percent:.7g}":
        forward = f"\n[topology.forward]\nloss = {percent / 100:.9f}\n"
    head = _TOPOLOGY.format(rate=size.gigabit, rtt="100ms", queue='"1bdp"', forward=forward)
    return head, _flows(OWN, stack, 1)


def _shallow(size: Size, stack: str, count: float) -> tuple[str, str]:
    head = _TOPOLOGY.format(rate=size.gigabit, rtt="100ms", queue='"0.02bdp"', forward="")
    stagger = min(0.139, size.seconds[SHALLOW] / 10 / count)
    return head, _flows(OWN, stack, int(count), stagger=stagger)


def _bufferbloat(_: Size, stack: str, buffer: float) -> tuple[str, str]:
    head = _TOPOLOGY.format(rate="50mbit", rtt="30ms", queue=f'"{buffer:g}bdp"', forward="")
    return head, _flows(OWN, stack, 2, stagger=2)


def _ecn_bulk(size: Size, stack: str, count: float) -> tuple[str, str]:
    queue = '{ kind = "codel", limit = "1000p", ecn = true, ce_threshold = "242us" }'
    head = _TOPOLOGY.format(rate=size.gigabit, rtt="1ms", queue=queue, forward="")
    return head, _flows(OWN, stack, int(count), stagger=0.005, wait="1ms", more="ecn = true\n")


def _flows(
    name: str,
    stack: str,
    count: int,
    *,
    start: float = 0,
    stagger: float = 0,
    wait: str = "100ms",
    more: str = "",
) -> str:
    return _FLOWS.format(
        name=name, stack=stack, count=count, start=start, stagger=stagger, wait=wait, more=more
    )


_SCENARIOS = {
    COEXIST: _coexist,
    RANDOM_LOSS: _random_loss,
    SHALLOW: _shallow,
    BUFFERBLOAT: _bufferbloat,
    ECN_BULK: _ecn_bulk,
}
