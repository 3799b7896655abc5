"""What Linux reports of a TCP connection: `TCP_INFO` (tcp(7), `struct tcp_info` of `linux/tcp.h`).

The same fields with the same meaning as in world `kernel` (`crates/kernel/src/info.rs`).
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from typing import NamedTuple

from weir.base.errors import InputError
from weir.probes.policing import Counters

_LENGTH = 248
"""Up to `tcpi_total_rto_time`, which Linux 6.7 added; older kernels return less."""
_LEAST = 232
"""Up to `tcpi_snd_wnd`, of Linux 5.4."""
_INFINITE_SSTHRESH = 0x7FFF_FFFF
_NO_PACING = 0xFFFF_FFFF_FFFF_FFFF
_TIMESTAMPS = 1
_HEADERS, _TIMESTAMP_OPTION = 20 + 20, 12
STATES = ("open", "disorder", "cwr", "recovery", "loss")


class Reading(NamedTuple):
    """One reading. Counts are since the connection began; times are microseconds."""

    acked_bytes: int
    cwnd_bytes: int
    ssthresh_bytes: int | None
    bytes_in_flight: int
    srtt_us: int
    rttvar_us: int
    rto_us: int
    pacing_bytes_per_s: int | None
    delivery_bytes_per_s: int | None
    segments: int
    sent_bytes: int
    ip_bytes: int
    retransmits: int
    spurious: int
    timeouts: int | None
    busy_us: int | None
    """Time with unacknowledged data; None for our transport, which does not measure it."""
    rwnd_limited_us: int
    sndbuf_limited_us: int | None
    """None for our transport too."""
    state: int


def read(connection: socket.socket) -> Reading:
    """Asks the kernel.

    Raises:
        OSError: the connection is gone.
    """
    return parse(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH))


def counters(connection: socket.socket) -> Counters:
    """Asks the kernel for the few counts that show a policer.

    Raises:
        OSError: the connection is gone, or the kernel is too old.
    """
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
    now = time.monotonic_ns()
    delivered, retransmits, srtt = (
        int.from_bytes(info[at : at + 4], sys.byteorder) for at in (192, 100, 68)
    )
    return Counters(now, delivered, retransmits, srtt)


def parse(info: bytes) -> Reading:
    """Reads the structure.

    Raises:
        OSError: the kernel is too old to have its fields.
    """
    if len(info) < _LEAST:
        raise OSError(f"TCP_INFO has {len(info)} bytes, and Linux 5.4 or later is needed")

    def at(form: str, place: int) -> int:
        (value,) = struct.unpack_from(f"@{form}", info, place)
        return int(value)

    mss, ssthresh, pacing = at("I", 16), at("I", 76), at("Q", 104)
    flying = at("I", 24) + at("I", 36) - at("I", 28) - at("I", 32)
    segments, sent = at("I", 156), at("Q", 200)
    option = _TIMESTAMP_OPTION if info[5] & _TIMESTAMPS else 0
    return Reading(
        acked_bytes=max(0, at("Q", 120) - 1),  # the SYN takes a number
        cwnd_bytes=at("I", 80) * mss,
        ssthresh_bytes=None if ssthresh >= _INFINITE_SSTHRESH else ssthresh * mss,
        bytes_in_flight=max(0, flying) * mss,
        srtt_us=at("I", 68),
        rttvar_us=at("I", 72),
        rto_us=at("I", 8),
        pacing_bytes_per_s=None if pacing == _NO_PACING else pacing,
        delivery_bytes_per_s=at("Q", 160) or None,
        segments=segments,
        sent_bytes=sent,
        ip_bytes=sent + segments * (_HEADERS + option),
        retransmits=at("I", 100),
        spurious=at("I", 216),
        timeouts=at("H", 240) if len(info) >= _LENGTH - 6 else None,
        busy_us=at("Q", 168),
        rwnd_limited_us=at("Q", 176),
        sndbuf_limited_us=at("Q", 184),
        state=min(info[1], len(STATES) - 1),
    )


def controls() -> list[str]:
    """The congestion controls that this process may choose, the default first.

    Raises:
        InputError: this is no Linux.
    """
    folder = "/proc/sys/net/ipv4/tcp_"
    try:
        found = []
        for name in ("congestion_control", "allowed_congestion_control"):
            with open(folder + name, encoding="ascii") as file:  # noqa: PTH123
                found += file.read().split()
        with open(f"{folder}available_congestion_control", encoding="ascii") as file:  # noqa: PTH123
            available = file.read().split()
    except OSError:
        raise InputError(
            f"path tests need Linux and its TCP_INFO; this is {sys.platform}"
        ) from None
    return list(dict.fromkeys([*found, *(available if os.geteuid() == 0 else [])]))
