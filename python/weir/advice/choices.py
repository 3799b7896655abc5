"""What may be tried on a path: controllers, windows, queues, segment sizes, connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weir import _native
from weir.base.errors import InputError
from weir.modelling.measured import Flow
from weir.scenario.labels import Named, named

KERNEL = ("cubic", "reno", "bbr", "vegas", "veno", "westwood", "illinois", "htcp")
"""Controllers of Linux that are simulated by default."""
OURS = ("bbr3", "copa")
"""Controllers that only Weir and its adapters have."""
LIMITED_BY_WINDOW = ("receiver-window", "send-buffer")
"""Limits of `weir read` that a larger window lifts."""
MOST = 200
"""Most options of one advice."""


@dataclass(frozen=True)
class Setting:
    """What differs from the measured transfer."""

    name: str
    keys: Mapping[str, str] = field(default_factory=dict)
    streams: int = 1
    is_window_free: bool = False
    """Whether the window or buffer that limited the measured flow is left out."""
    commands: tuple[str, ...] = ()
    """How to set it."""


def _buffers(most: int) -> tuple[str, ...]:
    return (
        f"sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 {most}'   # at the receiver",
        f"sudo sysctl -w net.ipv4.tcp_wmem='4096 65536 {most}'    # at the sender",
    )


AS_MEASURED = Setting("")
LARGER_WINDOW = Setting(
    "larger window",
    is_window_free=True,
    commands=_buffers(33_554_432),
)


@dataclass(frozen=True)
class Option:
    """A controller, perhaps with other settings than the measured flow."""

    stack: str
    flow_keys: Mapping[str, str]
    """What limits the sender or its receiver, as measured."""
    setting: Setting = AS_MEASURED
    label: str = ""
    """Its name in place of the stack."""

    @property
    def name(self) -> str:
        """As it is listed."""
        own = self.label or self.stack
        return f"{own}, {self.setting.name}" if self.setting.name else own

    def keys(self) -> dict[str, str]:
        """Keys of the scenario in place of those of the measured flow."""
        own = self.flow_keys
        if self.setting.is_window_free:
            own = {key: value for key, value in own.items() if key not in _WINDOWS}
        return {**own, **self.setting_keys()}

    def setting_keys(self) -> dict[str, str]:
        """The same without what limits the sender or its receiver."""
        streams = {"flow.0.count": str(self.setting.streams)} if self.setting.streams > 1 else {}
        return {**self.setting.keys, **streams, "flow.0.stack": self.stack}


def options(flow: Flow, stacks: Sequence[str], settings: Sequence[Setting] = ()) -> list[Option]:
    """The measured controller, then the others, perhaps with labels; each with each setting too.

    A flow that a window limited is tried with a larger one.

    Raises:
        InputError: these are too many.
    """
    own = flow.stack.removeprefix("rack/")
    names = {own: Named(own, own)}
    for one in map(named, stacks):
        names.setdefault(one.stack, one)
    larger = [LARGER_WINDOW] if flow.limit in LIMITED_BY_WINDOW else []
    tried = [AS_MEASURED, *larger, *settings]
    if len(names) * len(tried) > MOST:
        raise InputError(
            f"{len(names)} controllers with {len(tried)} settings are {len(names) * len(tried)} "
            f"options; use at most {MOST}, as with --stacks cubic,bbr"
        )
    return [
        Option(one.stack, flow.source_keys, setting, one.name)
        for setting in tried
        for one in names.values()
    ]


def queues(values: Sequence[str]) -> Iterator[Setting]:
    """Other queues of the bottleneck: the name of a discipline, or the size of a drop-tail queue.

    A discipline has the measured size as its limit.

    Raises:
        InputError: there is no such discipline, and it is no size.
    """
    kinds = [queue["name"] for queue in _native.catalogue()["queues"]]
    for value in values:
        is_kind = value in kinds
        if not is_kind and not value[:1].isdigit() and value != "infinite":
            allowed = f"a size, as in 2bdp or 100p, or one of {', '.join(kinds)}"
            raise InputError(f"--queues {value}: use {allowed}")
        key = "topology.queue.kind" if is_kind else "topology.queue"
        refuse("--queues", value, key)
        where = "# at the sender of the bottleneck"
        command = f"sudo tc qdisc replace dev DEVICE root {_TC.get(value, 'QDISC')}   {where}"
        if value not in _TC:
            command = f"# the queue at the sender of the bottleneck: {value}"
        yield Setting(f"queue {value}", {key: value}, commands=(command,))


def windows(values: Sequence[str]) -> Iterator[Setting]:
    """Other windows: the most of it that the receiver offers.

    Raises:
        InputError: a value is no size that a receive buffer may have.
    """
    for value in values:
        refuse("--windows", value, _WINDOWS[0])
        # Linux offers half of its buffer (tcp(7), tcp_adv_win_scale).
        commands = _buffers(2 * round(_native.parse_quantity("size", value)))
        yield Setting(f"window {value}", {_WINDOWS[0]: value}, 1, True, commands)


def segments(values: Sequence[str]) -> Iterator[Setting]:
    """Other largest segments.

    Raises:
        InputError: a value is no number of bytes that a segment may have.
    """
    for value in values:
        refuse("--mss", value, "flow.0.mss")
        command = f"sudo ip route change ROUTE advmss {value}   # at the receiver"
        yield Setting(f"segments of {value}", {"flow.0.mss": value}, commands=(command,))


def streams(values: Sequence[str], flow: Flow, size: str | None) -> Iterator[Setting]:
    """Several connections at once, which share the bytes to transfer.

    Raises:
        InputError: a value is no such number, or the measured sender has its own rate.
    """
    for value in values:
        number = int(value) if value.isascii() and value.isdigit() else 0
        if not 2 <= number <= _MOST_STREAMS:
            raise InputError(
                f"--streams {value}: use a whole number of connections from 2 to {_MOST_STREAMS}"
            )
        if "flow.0.workload" in flow.source_keys and size is None:
            raise InputError(
                f"--streams {value}: the application limited the measured sender, so more "
                "connections carry the same; give the bytes to transfer with --size"
            )
        command = f"aria2c -x {number} -s {number} URL   # or any program with several connections"
        yield Setting(f"{number} streams", streams=number, commands=(command,))


def refuse(option: str, value: str, key: str) -> None:
    """Refuses a value that a scenario may not have.

    Raises:
        InputError: the scenario's reason, with the option as the user typed it.
    """
    keys = [("topology.queue", "1bdp"), (key, value)]
    try:
        _native.Scenario.parse("[[flow]]", keys, "options").check("sim")
    except _native.ScenarioError as error:
        reason = str(error).removeprefix(f"{key}={value}: ")
        raise InputError(f"{option} {value}: {reason}") from None


_MOST_STREAMS = 64
_WINDOWS = ("flow.0.recv_buffer", "flow.0.window_limit")
"""Keys of what limits the window, at the receiver and at the sender."""
_TC = {
    "codel": "codel",
    "fq-codel": "fq_codel",
    "fq": "fq",
    "pie": "pie",
    "fq-pie": "fq_pie",
    "sfq": "sfq",
}
"""As `tc` names disciplines that need no parameter."""
