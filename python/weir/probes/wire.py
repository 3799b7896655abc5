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
from typing import Any, NamedTuple

VERSION = 4
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

_RCVBUFFORCE, _TIMESTAMPNS = 33, 35
"""Options `SO_…` of Linux, which Python does not name."""
_IP_RECVTOS = 13
_BUFFER_BYTES = 4 << 20
_IPV6_RECVTCLASS, _IPV6_TCLASS, _IP_MTU, _IPV6_MTU = 66, 67, 14, 24
_TIMESPEC = struct.Struct("@qq")
_ANCILLARY_BYTES = 128
_INT = struct.Struct("@i")
_TOS = (socket.IPPROTO_IP, socket.IP_TOS)
_TCLASS = (socket.IPPROTO_IPV6, _IPV6_TCLASS)


def load_line(token: bytes, flow: int) -> bytes:
    """The first line of the connection of a flow."""
    return b"%s %s %d\n" % (LOAD, token.hex().encode(), flow)


def echo_line(token: bytes) -> bytes:
    """The first line of a connection that is answered by one byte."""
    return b"%s %s\n" % (ECHO, token.hex().encode())


# Kinds of datagrams: all but data are answered by their copy with times filled in.
PROBE, OPEN, DATA, MARK = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Datagram:
    """The head of every datagram; the rest is zeros.

    Times are nanoseconds of a monotonic clock: when the client sent it, when the server received
    it, and when the server sent the answer. A datagram of a load has the first only. `mark` is the
    traffic class that a datagram was sent with, DSCP and ECN, and `seen` the one that arrived at
    the server. An answer is sent with the same mark.
    """

    token: bytes
    kind: int
    number: int
    sent: int
    received: int = 0
    answered: int = 0
    mark: int = 0
    seen: int = 0

    _FORM = struct.Struct("!16sBIQQQBB")

    @classmethod
    def read(cls, data: bytes) -> Datagram | None:
        """None if it is none of ours."""
        if len(data) < cls._FORM.size:
            return None
        return cls(*cls._FORM.unpack_from(data))

    def bytes(self, length: int) -> bytes:
        """With zeros up to this length."""
        head = self._FORM.pack(
            self.token,
            self.kind,
            self.number,
            self.sent,
            self.received,
            self.answered,
            self.mark,
            self.seen,
        )
        return head.ljust(length, b"\0")


PROBE_BYTES = 64
"""UDP payload of a probe and of its answer, which are equally long."""


def udp_socket(address: Address, *, bind: bool) -> socket.socket:
    """A UDP socket that stamps what it receives: bound to an address, or connected to it.

    Further sockets of this user may have the address of one that is bound.
    """
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        made.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVTCLASS, 1)
        try:
            made.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:  # then up to net.core.rmem_max
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        if bind:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            made.bind(address)
        else:
            made.connect(address)
    except OSError:
        made.close()
        raise
    return made


class Arrival(NamedTuple):
    """A datagram that arrived."""

    data: bytes
    source: Address
    time_ns: int
    """When the kernel received it, on the monotonic clock."""
    mark: int
    """Its traffic class: DSCP and ECN."""


def receive(udp: socket.socket, size: int) -> Arrival:
    """Receives a datagram.

    The kernel stamps with the wall clock: what has passed since then is taken off the monotonic
    clock, so that a process that was late has no effect.

    Raises:
        OSError: there is none.
    """
    data, ancillary, _, source = udp.recvmsg(size, _ANCILLARY_BYTES)
    wall, now = time.time_ns(), time.monotonic_ns()
    mark = 0
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack_from(value)
            now -= max(0, wall - (seconds * 1_000_000_000 + nanoseconds))
        elif (level, kind) in (_TOS, _TCLASS):
            mark = value[0] if len(value) < _INT.size else _INT.unpack_from(value)[0] & 0xFF
    return Arrival(data, source, now, mark)


def send(udp: socket.socket, datagram: Datagram, length: int, to: Address | None = None) -> None:
    """Sends a datagram with its mark, to an address if the socket is not connected.

    Raises:
        OSError: it could not be sent.
    """
    ancillary = []
    if datagram.mark:
        peer = to or udp.getpeername()
        is_ipv6 = len(peer) == 4 and not str(peer[0]).startswith("::ffff:")
        level, kind = _TCLASS if is_ipv6 else _TOS
        ancillary.append((level, kind, _INT.pack(datagram.mark)))
    parts = [datagram.bytes(length)]
    if to is None:
        udp.sendmsg(parts, ancillary)
    else:
        udp.sendmsg(parts, ancillary, 0, to)


def path_mtu(udp: socket.socket) -> int:
    """The largest packet that the path of a connected socket takes, as far as the kernel knows."""
    if udp.family == socket.AF_INET6:
        return udp.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)
    return udp.getsockopt(socket.IPPROTO_IP, _IP_MTU)


def as_text(address: Address) -> str:
    """`HOST:PORT` of a socket's address, with the number of a link's interface."""
    host, port = str(address[0]).partition("%")[0], address[1]
    if len(address) == 2:
        return f"{host}:{port}"
    scope = f"%{address[3]}" if address[3] else ""
    return f"[{host}{scope}]:{port}"


def host_of(address: Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The host of a socket's address; an IPv4 address that IPv6 maps is one of IPv4."""
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
