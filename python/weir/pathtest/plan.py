"""Which runs a path test consists of: every load in every direction, some times over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir.base.errors import InputError, unknown
from weir.pathtest.client import Client
from weir.pathtest.options import PathTest
from weir.probes import tcp_info
from weir.probes.own import MOST_MSS, OwnSpec
from weir.probes.record import DIRECTIONS, Direction, Order
from weir.scenario.labels import Named, each_once, labels_of
from weir.scenario.source import REAL_PATH, Effective
from weir.scenario.sweep import Case, Plan

NAME = "test"
ALL = "all"


def chosen_controls(text: str | None, client: Client, directions: Sequence[Direction]) -> list[str]:
    """The congestion controls that the user named.

    Each must be there at the ends that send. Without names it is the client's default, if the
    server has that too.

    Raises:
        InputError: one is not there.
    """
    ends = []
    if any(direction != "down" for direction in directions):
        ends.append(("this machine", client.controls))
    if any(direction != "up" for direction in directions):
        ends.append(("the server", client.server_controls))
    common = [name for name in ends[0][1] if all(name in known for _, known in ends)]
    if not common:
        raise InputError("--cc: the two ends have no congestion control in common")
    if text is None:
        return common[:1]
    if text == ALL:
        return common
    names = _named(text)
    for name in names:
        for end, known in ends:
            _refuse_unknown(text, name, end, known)
    return names


def _named(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def _refuse_unknown(text: str, name: str, end: str, known: Sequence[str]) -> None:
    if name not in known:
        raise InputError(f"--cc {text}: {end}: {unknown('control', name, known)}")


def chosen_stacks(given: Sequence[str]) -> list[Named]:
    """The stacks of our transport that the user named, perhaps with labels.

    Raises:
        InputError: there is no such stack, or a label is not valid or given twice.
    """
    try:
        chosen = each_once(dict.fromkeys(given))
    except InputError as error:
        raise InputError(f"--stack: {error}") from None
    for one in chosen:
        try:
            OwnSpec(one.stack, MOST_MSS, 1, 0, 1.0).scenario(None)
        except InputError as error:
            raise InputError(f"--{error}") from None
    return chosen


def chosen_directions(text: str) -> list[Direction]:
    """The directions that the user named.

    Raises:
        InputError: there is no such direction.
    """
    names = _named(text)
    found = [direction for name in names for direction in DIRECTIONS if direction == name]
    if len(found) != len(names):
        allowed = ", ".join(DIRECTIONS)
        raise InputError(f"--direction {text}: name one or more of {allowed}, as in up,down")
    return found


def check(wanted: PathTest) -> None:
    """Refuses what no server can do, before one is reached.

    Raises:
        InputError: a quantity, a direction, a stack or a congestion control of this machine is not
            valid, or two options exclude each other.
    """
    wanted.check()
    directions, stacks = chosen_directions(wanted.direction), chosen_stacks(wanted.stack)
    if wanted.cc is None or wanted.cc == ALL:
        return
    names = _named(wanted.cc)
    if any(direction != "down" for direction in directions):
        known = tcp_info.controls()
        for name in names:
            _refuse_unknown(wanted.cc, name, "this machine", known)
    _refuse_same(stacks, names)


def orders(wanted: PathTest, client: Client) -> list[Order]:
    """The runs of a test: each load in each direction.

    Raises:
        InputError: the server does not allow a load, or an end does not have it.
    """
    duration_s, warmup_s = wanted.times_s()
    directions = chosen_directions(wanted.direction)
    longest, fastest = client.limits["time_s"], client.limits["rate_bps"]
    if duration_s > longest:
        raise InputError(f"--duration: the server allows at most {longest:g} s (--max-time)")
    udp_bps, streams = wanted.udp_bps(), wanted.streams
    if udp_bps is not None and fastest is not None and udp_bps > fastest:
        raise InputError(f"--udp: the server allows at most {fastest / 1e6:g} Mbit/s (--max-rate)")
    if udp_bps is not None:
        return [Order("", one, 1, duration_s, warmup_s, udp_bps) for one in directions]
    stacks = chosen_stacks(wanted.stack)
    names = []
    if not stacks or wanted.cc is not None:
        names = chosen_controls(wanted.cc, client, directions)
    _refuse_same(stacks, names)
    return [
        order
        for direction in directions
        for order in (
            *(Order(name, direction, streams, duration_s, warmup_s) for name in names),
            *(
                Order("", direction, streams, duration_s, warmup_s, stack=one.stack, label=one.name)
                for one in stacks
            ),
        )
    ]


def _refuse_same(stacks: Sequence[Named], names: Sequence[str]) -> None:
    for one in stacks:
        if one.name in names:
            raise InputError(f"--stack {one.written}: {one.name} is a congestion control of --cc")


def test_plan(command: str, host: str, orders: Sequence[Order], repeat: int) -> Plan:
    """The plan of a test; its seeds only number the repeats, for time and path are real."""
    cases = tuple(_case(host, order, repeat) for order in orders)
    return Plan(NAME, command, cases, repeat, 1)


def order_of(scenario: Effective) -> Order:
    """The order that a case of such a plan was made from."""
    return Order(**scenario.fields["test"]["order"])


def series_of(order: Order) -> str:
    """The name of a load, without its direction."""
    if order.udp_bps is not None:
        return f"udp {order.udp_bps / 1e6:g}mbit"
    name = order.label or order.stack_name
    return name if order.streams == 1 else f"{name} x{order.streams}"


def _case(host: str, order: Order, repeat: int) -> Case:
    stack = order.stack_name
    fields: dict[str, Any] = {
        "name": NAME,
        "description": f"A test of the path to {host}",
        "test": {"host": host, "order": _as_fields(order)},
        "flow": [
            {"name": f"{direction}{number}", "stack": stack, "workload": {"kind": "bulk"}}
            for direction, count in zip(("up", "down"), order.flows, strict=True)
            for number in range(count)
        ],
        "measure": {
            "duration": f"{order.duration_s:g}s",
            "warmup": f"{order.warmup_s:g}s",
            "repeat": repeat,
            "seed": 1,
        },
    }
    point = {"direction": order.direction}
    labels = labels_of([Named(order.label or stack, stack)])
    return Case(series_of(order), stack, point, Effective(fields), REAL_PATH, labels=labels)


def _as_fields(order: Order) -> dict[str, Any]:
    return {
        "control": order.control,
        "direction": order.direction,
        "streams": order.streams,
        "duration_s": order.duration_s,
        "warmup_s": order.warmup_s,
        "udp_bps": order.udp_bps,
        "stack": order.stack,
        "label": order.label,
    }
