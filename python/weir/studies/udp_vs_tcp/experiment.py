"""What is run: each transport with each packet length and file in each setting, some times over."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from weir.scenario.source import Effective
from weir.scenario.sweep import Case, Plan
from weir.studies.udp_vs_tcp.published import Source, Transport, load
from weir.transfer.model import JUMBO, LOCAL, LONGEST_MSS, Network, Transfer

NAME = "udp-vs-tcp"

SIZES = {"1B": 1, "28KB": 28_000, "2.8MB": 2_800_000, "14MB": 14_000_000, "110MB": 110_000_000}

_DELAY_MS = 50.0
_LOSS_PERCENT = 25.0

SETTINGS: dict[str, Network] = {
    "local": LOCAL,
    "two hosts": Network(),
    "50 ms delay": Network(delay_ms=_DELAY_MS),
    "25 ms each way": Network(delay_ms=_DELAY_MS / 2),
    "25 % loss": Network(loss_percent=_LOSS_PERCENT, loses="acks"),
    "25 % loss of data": Network(loss_percent=_LOSS_PERCENT, loses="data"),
    "25 % loss both ways": Network(loss_percent=_LOSS_PERCENT),
}
"""The source names no direction of its losses, so there are three readings. Its table is next to
the one in which TCP delivers as printed: acknowledgements are lost, as by netem at the receiver.
Nor does it say whether its delay is that of each direction or of both together."""

READINGS = ("25 % loss", "25 % loss of data", "25 % loss both ways")
"""The table's own first."""

ASIDE = (*READINGS[1:], "25 ms each way")
"""Settings without a table of the source."""

_HEADERS = 20 + 8 + 32
"""IPv4, UDP, and the header of a segment with timestamps, as all of ours are."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet length of the source, and what it is for each transport.

    TCP is given that number of bytes with each write, and chooses segments itself. Of ours it is
    the data of a segment (`--mss`), with two exceptions. 1500B, which the source calls the MTU, is
    the whole packet. 64KB is the most that a datagram holds. A link's MTU is such that no datagram
    is cut.
    """

    name: str
    write_bytes: int
    mss: int
    mtu: int = 1500

    @property
    def packet_bytes(self) -> int:
        """A full packet of ours with all headers."""
        return self.mss + _HEADERS


PACKETS = {
    packet.name: packet
    for packet in (
        Packet("64B", 64, 64),
        Packet("1500B", 1500, 1500 - _HEADERS),
        Packet("10KB", 10_000, 10_000, 10_000 + _HEADERS),
        Packet("64KB", 65_536, LONGEST_MSS, JUMBO),
    )
}

STACK = "rack/bbr"
"""Of the reliable transport over UDP; docs/studies/udp-vs-tcp.md has what decided for it."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A kind of row: one of the source's transports as we run it, or one beside them.

    With `has_source_limits` the sender gives up as the source's does: after MAX RETRANSMITS
    timeouts in a row, or MAX WAIT seconds without progress.
    """

    name: str
    transport: Transport | None
    protocol: str
    stack: str
    sizes: tuple[str, ...] = tuple(SIZES)
    packets: tuple[str, ...] = tuple(PACKETS)
    has_source_limits: bool = False
    settings: tuple[str, ...] = tuple(SETTINGS)

    @property
    def is_tcp(self) -> bool:
        """Whether the kernel's TCP carries it."""
        return self.protocol in ("tcp", "tcp-dialogue")

    def row(self, packet: str) -> str:
        """What the source calls such a row."""
        return f"{self.name} ({packet})"


CONTENDERS = (
    Contender("TCP", "TCP", "tcp", "cubic"),
    Contender("TCP bbr", None, "tcp", "bbr"),
    Contender(
        "TCP dialogue",
        None,
        "tcp-dialogue",
        "cubic",
        ("1B", "28KB", "2.8MB"),
        settings=("local", "two hosts", "50 ms delay", "25 ms each way"),
    ),
    Contender("UDP", "UDP", "weir", "udp"),
    Contender("UDPR", "UDPR", "weir", STACK),
    Contender("UDPR cubic", None, "weir", "rack/cubic", ("28KB", "2.8MB"), ("1500B",)),
    Contender("UDPR window", None, "weir", "rack/none(64)", ("28KB", "2.8MB"), ("1500B",)),
    Contender("UDPR max 10", None, "weir", STACK, ("28KB", "2.8MB"), ("1500B",), True),
    Contender(
        "stop-and-wait", None, "weir", "stop-and-wait/none", ("1B", "28KB"), ("1500B", "10KB")
    ),
    Contender(
        "stop-and-wait max 10",
        None,
        "weir",
        "stop-and-wait/none",
        ("28KB",),
        ("64B", "1500B"),
        True,
    ),
)


_LONGER = 2.0
"""A transfer may take this much longer than the mean of the source's."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of it is run, and how long one transfer may take."""

    settings: tuple[str, ...]
    packets: tuple[str, ...]
    sizes: tuple[str, ...]
    contenders: tuple[Contender, ...]
    repeat: int
    limit_s: float
    """How long a transfer may take, before what its packets need."""
    repeats: Mapping[str, int] = field(default_factory=dict)
    """Of some files: fewer of what takes long."""
    aside: tuple[str, ...] = ()
    """Files of the readings that the source's table is not next to; all by default."""
    aside_repeat: int = 0
    """How often those are repeated, and rows that are not the source's; 0 for as often."""
    packet_limit_us: float = 40.0
    """Additional time per packet of a file: a link of ours takes 7 to 20 µs for one."""

    def on_one_machine(self) -> Extent:
        """What is left of it where no namespaces can be made."""
        alone = tuple(name for name in self.settings if SETTINGS[name].kind == "loopback")
        return replace(self, settings=alone)

    def trials(self) -> Iterator[Trial]:
        """Every cell that is measured, in the order of the tables."""
        for setting in self.settings:
            for packet in self.packets:
                for contender in self.contenders:
                    if packet in contender.packets and setting in contender.settings:
                        for size in self._sizes(setting):
                            if size in contender.sizes:
                                yield Trial(setting, contender, PACKETS[packet], size)

    def _sizes(self, setting: str) -> tuple[str, ...]:
        return (self.aside or self.sizes) if setting in ASIDE else self.sizes

    def repeats_of(self, trial: Trial, repeat: int | None) -> int:
        """How often a transfer is repeated, if a command says nothing else."""
        is_aside = trial.setting in ASIDE or trial.contender.transport is None
        own = self.repeats.get(trial.size, self.repeat)
        return repeat or (min(own, self.aside_repeat) if is_aside and self.aside_repeat else own)

    def limit_of(self, trial: Trial, printed_s: float | None = None) -> float:
        """How many seconds a transfer may take: more than what the source prints, if it does."""
        packets = SIZES[trial.size] / trial.packet.mss
        own = self.limit_s + packets * self.packet_limit_us / 1e6
        return max(own, _LONGER * (printed_s or 0.0))


@dataclass(frozen=True, slots=True)
class Trial:
    """A cell that is measured."""

    setting: str
    contender: Contender
    packet: Packet
    size: str

    @property
    def label(self) -> str:
        """Its place: setting, row, column."""
        return ", ".join((self.setting, self.row, self.size))

    @property
    def row(self) -> str:
        """The row of its table."""
        return self.contender.row(self.packet.name)

    def printed_s(self, source: Source) -> float | None:
        """The time that the source prints for it, whichever direction loses packets."""
        transport = self.contender.transport
        setting = READINGS[0] if self.setting in READINGS else self.setting
        row = source.table(setting).row(transport, self.packet.name) if transport else None
        return None if row is None else row.cells[self.size].seconds

    @property
    def network(self) -> Network:
        """What the file goes through."""
        network = SETTINGS[self.setting]
        if network.kind == "loopback":
            return network
        return replace(network, mtu=self.packet.mtu)

    def transfer(self, source: Source) -> Transfer:
        """The file, and how it is carried."""
        contender = self.contender
        if contender.is_tcp:
            options: dict[str, Any] = {"write_size": self.packet.write_bytes}
        else:
            options = {"mss": self.packet.mss}
        if contender.has_source_limits:
            options["max_retransmits"] = source.max_retransmits
            options["max_wait_s"] = float(source.max_wait)
        return Transfer(contender.protocol, contender.stack, SIZES[self.size], options)


def study_plan(extent: Extent, size: str, repeat: int | None, seed: int) -> Plan:
    """All runs of the study: each is one transfer."""
    times, source = repeat or max(extent.repeat, *extent.repeats.values(), 0), load()
    cases = tuple(
        Case(
            trial.label,
            trial.contender.stack,
            {},
            _scenario(trial, source, extent, extent.repeats_of(trial, repeat), seed),
            "kernel" if trial.contender.is_tcp else "udp",
        )
        for trial in extent.trials()
    )
    words = ["weir", "study", NAME, "--size", size, "--seed", str(seed)]
    if repeat is not None:
        words += ["--repeat", str(repeat)]
    return Plan(NAME, shlex.join(words), cases, times, seed)


def _scenario(trial: Trial, source: Source, extent: Extent, repeat: int, seed: int) -> Effective:
    """What a transfer is, in the form in which plans and manifests have scenarios."""
    limit_s = extent.limit_of(trial, trial.printed_s(source))
    fields = {
        "name": NAME,
        "transfer": asdict(trial.transfer(source)),
        "network": asdict(trial.network),
        "limit_s": limit_s,
        "row": [trial.setting, trial.row],
        "measure": {"repeat": repeat, "seed": seed},
    }
    return Effective(fields)


_ALL = tuple(SETTINGS)
_FEW = tuple(contender for contender in CONTENDERS if contender.name != "TCP bbr")

EXTENTS = {
    "small": Extent(
        _ALL,
        tuple(PACKETS),
        tuple(SIZES),
        _FEW,
        repeat=5,
        limit_s=8.0,
        repeats={"1B": 4, "28KB": 4, "2.8MB": 3, "14MB": 1, "110MB": 1},
        aside=("1B", "28KB", "2.8MB"),
        aside_repeat=1,
    ),
    "full": Extent(_ALL, tuple(PACKETS), tuple(SIZES), CONTENDERS, repeat=5, limit_s=60.0),
}
"""Both carry every file that the source does; the full one as often."""
