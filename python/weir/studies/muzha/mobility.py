"""Nodes that move: what a sender gains which is told that its route broke.

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
"""So many times as many repeats as elsewhere: patterns of movement differ more than anything "
"else."""

GAIN = "gain"
ROUTE_CHANGES = Quantity("route changes", "route_changes", "changes")
ROUTINGS = {"aodv": "AODV", "dsr": "DSR", "abr": "ABR"}
"""TCP-BuS needs ABR; ELFN was made for DSR; the slides have AODV."""


@dataclass(frozen=True, slots=True)
class Family:
    """A sender, and what routers tell it."""

    stack: str
    policy: str = "none"
    notices: str = "none"


SENDERS = {
    NEWRENO: Family(STACKS[NEWRENO]),
    MUZHA: Family(STACKS[MUZHA]),
    "TCP-F": Family(STACKS[NEWRENO], "tcp-f", "rfn"),
    "ELFN": Family(STACKS[NEWRENO], "elfn", "elfn"),
    "ATCP": Family(STACKS[NEWRENO], "atcp", "unreachable"),
    "BuS": Family(STACKS[NEWRENO], "bus", "bus"),
}


def senders_over(routing: str) -> list[str]:
    """The senders that are tried over a routing protocol."""
    return [name for name in SENDERS if name != "BuS" or routing == "abr"]


def label(sender: str, speed: int, routing: str) -> str:
    """The name of a case."""
    return f"mobility, {sender}, {speed} m/s, {ROUTINGS[routing]}"


def table(quantity: str, routing: str) -> str:
    """The name of a table of this part."""
    return f"{quantity}, moving, {ROUTINGS[routing]}"


def column(speed: int) -> str:
    """A speed as a heading."""
    return f"{speed} m/s"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    watch = Watch(extent.seconds, repeat=SEEDS * extent.repeat)
    found: dict[str, str] = {}
    for routing, speed in itertools.product(ROUTINGS, SPEEDS):
        for name in senders_over(routing):
            family = SENDERS[name]
            keys = {
                "nodes": "30",
                "mobility": '"waypoint"',
                "min_speed": f'"{speed * (1 - _SPREAD):g}m/s"',
                "max_speed": f'"{speed * (1 + _SPREAD):g}m/s"',
                "routing": f'"{routing}"',
                "notices": f'"{family.notices}"',
            }
            senders = [Sender(family.stack, WINDOW, policy=family.policy)]
            radio = Radio(placement="random", keys=keys)
            found[label(name, speed, routing)] = scenario(radio, senders, extent, watch)
    return found


def cells(contests: Contests) -> Iterator[Cell]:
    """What every sender got at every speed, and beside NewReno on the same movements."""
    for routing in ROUTINGS:
        for quantity in (THROUGHPUT, DELAY, TIMEOUTS, ROUTE_CHANGES):
            for sender, speed in itertools.product(senders_over(routing), SPEEDS):
                ours = quantity.of(contests, label(sender, speed, routing))
                place = table(quantity.name, routing), sender, column(speed)
                yield cell(*place, quantity.unit, ours)
        for sender, speed in itertools.product(senders_over(routing), SPEEDS):
            if sender == NEWRENO:
                continue
            own, reference = (
                THROUGHPUT.by_seed(contests, label(who, speed, routing))
                for who in (sender, NEWRENO)
            )
            place = table(GAIN, routing), sender, column(speed)
            yield cell(*place, TIMES, ratio(own, reference))
