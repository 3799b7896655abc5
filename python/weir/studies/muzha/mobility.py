"""Nodes that move: what a sender gains that learns that its route broke.

The network is that of Holland and Vaidya (MobiCom 1999): 30 nodes on 1500 m by 300 m, random
waypoints without pause, speeds within 10 % of a mean; theirs had DSR, 1460 B and a window of 8.
All protocols meet the same movements.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha.chain import TIMES
from weir.studies.muzha.experiment import MUZHA, NEWRENO, STACKS, Radio, Sender, Watch, scenario
from weir.studies.muzha.quantities import DELAY, THROUGHPUT, TIMEOUTS, Quantity, ratio

SPEEDS = (2, 10, 20, 30)
"""Mean speeds in m/s."""

_SPREAD = 0.1
WINDOW = 8
SEEDS = 2
"""This many times as many repeats as elsewhere: patterns of movement differ more than anything "
"else."""

GAIN = "gain"
CWL, RECEIVER_CWL = "CWL", "CWL, receiver"
ROUTE_CHANGES = Quantity("route changes", "route_changes", "changes")


@dataclass(frozen=True, slots=True)
class Ground:
    """How packets find their way, and how soon a sender's timer may run out."""

    routing: str
    min_rto: str = Sender.min_rto


GROUNDS = {
    "AODV": Ground("aodv"),
    "DSR": Ground("dsr"),
    "DSR, timeouts from 1 s": Ground("dsr", "1s"),
    "ABR": Ground("abr"),
}
"""TCP-BuS needs ABR; ELFN was made for DSR, when timers waited for a second; the slides have "
"AODV."""


@dataclass(frozen=True, slots=True)
class Family:
    """A sender, and what it learns from routers."""

    stack: str
    policy: str = "none"
    notices: str = "none"
    window: int | str = WINDOW


SENDERS = {
    NEWRENO: Family(STACKS[NEWRENO]),
    MUZHA: Family(STACKS[MUZHA]),
    "TCP-F": Family(STACKS[NEWRENO], "tcp-f", "rfn"),
    "ELFN": Family(STACKS[NEWRENO], "elfn", "elfn"),
    "ATCP": Family(STACKS[NEWRENO], "atcp", "unreachable"),
    "BuS": Family(STACKS[NEWRENO], "bus", "bus"),
    "TCP-F, 1 s": Family(STACKS[NEWRENO], "tcp-f(timer=1s)", "rfn"),
    "ELFN, 0.2 s": Family(STACKS[NEWRENO], "elfn(probe=200ms)", "elfn"),
    CWL: Family(STACKS[NEWRENO], window="cwl"),
    RECEIVER_CWL: Family(STACKS[NEWRENO], window="receiver-cwl"),
}
"""TCP-F usually waits for 10 s unless it learns of a route, ELFN between two probes for 2 s.
The last two have windows that go by the length of the route."""

_TWO = ("AODV", "DSR")
_ONLY_ON = {
    "BuS": ("ABR",),
    **dict.fromkeys(("TCP-F, 1 s", "ELFN, 0.2 s", CWL, RECEIVER_CWL), _TWO),
}


def senders_on(ground: str) -> list[str]:
    """The senders that are tried there."""
    return [name for name in SENDERS if ground in _ONLY_ON.get(name, GROUNDS)]


def label(sender: str, speed: int, ground: str) -> str:
    """The name of a case."""
    return f"mobility, {sender}, {speed} m/s, {ground}"


def table(quantity: str, ground: str) -> str:
    """The name of a table of this part."""
    return f"{quantity}, moving, {ground}"


def column(speed: int) -> str:
    """A speed as a heading."""
    return f"{speed} m/s"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    watch = Watch(extent.seconds, repeat=SEEDS * extent.repeat)
    found: dict[str, str] = {}
    for ground, speed in itertools.product(GROUNDS, SPEEDS):
        for name in senders_on(ground):
            family = SENDERS[name]
            keys = {
                "nodes": "30",
                "mobility": '"waypoint"',
                "min_speed": f'"{speed * (1 - _SPREAD):g}m/s"',
                "max_speed": f'"{speed * (1 + _SPREAD):g}m/s"',
                "routing": f'"{GROUNDS[ground].routing}"',
                "notices": f'"{family.notices}"',
            }
            senders = [
                Sender(
                    family.stack,
                    family.window,
                    policy=family.policy,
                    min_rto=GROUNDS[ground].min_rto,
                )
            ]
            radio = Radio(placement="random", keys=keys)
            found[label(name, speed, ground)] = scenario(radio, senders, extent, watch)
    return found


def cells(contests: Contests) -> Iterator[Cell]:
    """What every sender got at every speed, and beside NewReno on the same movements."""
    for ground in GROUNDS:
        for quantity in (THROUGHPUT, DELAY, TIMEOUTS, ROUTE_CHANGES):
            for sender, speed in itertools.product(senders_on(ground), SPEEDS):
                ours = quantity.of(contests, label(sender, speed, ground))
                place = table(quantity.name, ground), sender, column(speed)
                yield cell(*place, quantity.unit, ours)
        for sender, speed in itertools.product(senders_on(ground), SPEEDS):
            if sender == NEWRENO:
                continue
            own, reference = (
                THROUGHPUT.by_seed(contests, label(who, speed, ground)) for who in (sender, NEWRENO)
            )
            place = table(GAIN, ground), sender, column(speed)
            yield cell(*place, TIMES, ratio(own, reference))
