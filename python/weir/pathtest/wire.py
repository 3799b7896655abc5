"""What the two ends of a path test send each other, apart from the control connection.

A connection begins with a line that says what it is for. The server answers only a line that it
knows, so that it sends nothing to an unknown peer.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

VERSION = 1
"""Rises when the two ends of different versions no longer understand each other."""
PORT = 9077
"""Default port of a server, for TCP and UDP."""

TOKEN_BYTES = 16
LINE_BYTES = 64
"""Longest first line of a connection."""
CONTROL_LINE = b"weir-test %d\n" % VERSION
LOAD, ECHO = b"weir-load", b"weir-echo"
"""First word of the line of a loaded connection, and of one that measures its own handshake."""

Address = tuple[Any, ...]

_RCVBUFFORCE, _TIMESTAMPNS, _RXQ_OVFL = 33, 35, 40
"""Options `SO_…` of Linux, which Python does not name."""
_BUFFER_BYTES = 4 << 20
_COUNT = struct.Struct("@I")
_TIMESPEC = struct.Struct("@qq")
_ANCILLARY_BYTES = 64


def load_line(token: bytes, flow: int) -> bytes:
    """The first line of the connection of a flow."""
    return b"%s %s %d\n" % (LOAD, token.hex().encode(), flow)


def echo_line(token: bytes) -> bytes:
    """The first line of a connection that is answered by one byte."""
    return b"%s %s\n" % (ECHO, token.hex().encode())


# Kinds of datagrams: the first two are answered by their copy with times filled in.
PROBE, OPEN, DATA = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Datagram:
    """The head of every datagram; the rest is zeros.

    Times are nanoseconds of a monotonic clock: when the client sent it, when the server received
    it, and when the server sent the answer. A datagram of a load has the first only.
    """

    token: bytes
    kind: int
    number: int
    sent: int
    received: int = 0
    answered: int = 0

    _FORM = struct.Struct("!16sBIQQQ")

    @classmethod
    def read(cls, data: bytes) -> Datagram | None:
        """None if it is none of ours."""
        if len(data) < cls._FORM.size:
            return None
        return cls(*cls._FORM.unpack_from(data))

    def bytes(self, length: int) -> bytes:
        """With zeros up to this length."""
        fields = (self.token, self.kind, self.number, self.sent, self.received, self.answered)
        return self._FORM.pack(*fields).ljust(length, b"\0")


PROBE_BYTES = 64
"""UDP payload of a probe and of its answer, which are equally long."""


def udp_socket(address: Address, *, bind: bool) -> socket.socket:
    """A UDP socket that stamps what it receives: bound to an address, or connected to it."""
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        made.setsockopt(socket.SOL_SOCKET, _RXQ_OVFL, 1)
        try:
            made.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:  # then up to net.core.rmem_max
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        if bind:
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            made.bind(address)
        else:
            made.connect(address)
    except OSError:
        made.close()
        raise
    return made


def receive(udp: socket.socket, size: int) -> tuple[bytes, Address, int, int]:
    """A datagram, its source, when the kernel received it, and what the socket has dropped so far.

    The time is nanoseconds of the monotonic clock. Dropped are datagrams for which the receive
    buffer had no space: this machine lost them, and not the path.

    The kernel stamps with the wall clock: what has passed since then is taken off the monotonic
    clock, so that a process that was late has no effect.
    """
    data, ancillary, _, source = udp.recvmsg(size, _ANCILLARY_BYTES)
    wall, now = time.time_ns(), time.monotonic_ns()
    dropped = 0
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack_from(value)
            now -= max(0, wall - (seconds * 1_000_000_000 + nanoseconds))
        elif (level, kind) == (socket.SOL_SOCKET, _RXQ_OVFL):
            (dropped,) = _COUNT.unpack_from(value)
    return data, source, now, dropped


def host_of(address: Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The host of a socket's address; an IPv4 address that IPv6 maps is one of IPv4."""
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
