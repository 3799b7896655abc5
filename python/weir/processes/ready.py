"""When a server is ready for its clients: the option `--ready` of `weir link`.

>>> Ready.parse("port:5201")
Ready(kind='port', value='5201')
>>> Ready.parse("delay:250ms").delay_s
0.25

What runs the server polls [`Ready.is_met`][] on a clock of its own. A guest imports this module,
so it needs little.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir._native import parse_quantity
from weir.base.errors import InputError

KINDS = ("port", "line", "delay")
POLL_S = 0.01
"""How often to look."""
GRACE_S = (1.0, 5.0)
"""A server may end by itself for so long after its client, and then after SIGTERM."""

_LISTENING, _BOUND = "0A", "07"
"""States of a socket: of TCP that listens, of UDP without a peer (`tcp_states.h` of Linux)."""
_TABLES = (("tcp", _LISTENING), ("tcp6", _LISTENING), ("udp", _BOUND), ("udp6", _BOUND))
_PORTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Ready:
    """What a server that has been started must have or do before its clients start."""

    kind: str
    """`port`: a socket of TCP or UDP is open there. `line`: the output has it. `delay`: so long."""
    value: str

    @classmethod
    def parse(cls, text: str) -> Ready:
        """Reads `port:5201`, `line:TEXT` or `delay:1s`.

        Raises:
            InputError: it is none of them.
        """
        kind, colon, value = text.partition(":")
        if not colon or kind not in KINDS or not value:
            raise InputError(f"--ready '{text}': use port:NUMBER, line:TEXT or delay:TIME")
        if kind == "port" and not (value.isascii() and value.isdigit() and 0 < int(value) < _PORTS):
            raise InputError(f"--ready '{text}': a port is a number from 1 to {_PORTS - 1}")
        if kind == "delay":
            try:
                parse_quantity("time", value)
            except ValueError as error:
                raise InputError(f"--ready '{text}': {error}") from None
        return cls(kind, value)

    @property
    def delay_s(self) -> float:
        """The time to wait, for `delay`."""
        return parse_quantity("time", self.value)

    @property
    def longest_s(self) -> float:
        """A time that it takes in any case."""
        return self.delay_s if self.kind == "delay" else 0.0

    def is_met(self, waited_s: float, pid: int, outputs: tuple[Path, ...]) -> bool:
        """Whether the server is ready, `waited_s` after it was started.

        `pid` is a process in the server's network namespace, `outputs` are files with what it has
        printed so far.
        """
        if self.kind == "delay":
            return waited_s >= self.delay_s
        if self.kind == "port":
            return int(self.value) in open_ports(pid)
        return any(self.value.encode() in _content(path) for path in outputs)

    @property
    def hint(self) -> str:
        """What to try where it is not met in time."""
        if self.kind != "line":
            return ""
        return "; many programs print late into files: try port:NUMBER or stdbuf -oL"

    def __str__(self) -> str:
        """The form of the option."""
        return f"{self.kind}:{self.value}"


DEFAULT = Ready("delay", "1s")


def open_ports(pid: int) -> set[int]:
    """The ports on which TCP listens or UDP receives, in the network namespace of a process.

    They are read from the kernel's tables: a connection to test a port would be a client.
    """
    found = set[int]()
    for table, state in _TABLES:
        found |= _ports(Path(f"/proc/{pid}/net/{table}"), state)
    return found


def _ports(table: Path, state: str) -> set[int]:
    """The local ports in a table of sockets: `sl local_address rem_address st …` (proc(5))."""
    found = set[int]()
    # A kernel without IPv6 has no such table, and a process that has ended has none.
    with suppress(OSError, ValueError, IndexError):
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == state:
                found.add(int(words[1].rpartition(":")[2], 16))
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
