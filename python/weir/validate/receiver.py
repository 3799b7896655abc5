"""How this machine's kernel sizes the window that its receivers offer."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

_BUFFER_BYTES = 200_000
"""Enough for a window beyond 64 KB, and less than `net.core.rmem_max` is anywhere."""

_RCV_SSTHRESH = 8 + 14 * 4
"""Where `struct tcp_info` has `tcpi_rcv_ssthresh`, the largest window to offer now."""


def here() -> Mapping[str, str]:
    """The keys of a flow whose receiver offers what this kernel's does in world `kernel`.

    Its buffer begins with 8 MiB. Since Linux 6.11 half of that is offered at first, and 5 MiB when
    `tcp_measure_rcv_mss` has seen how much memory a segment of 1448 bytes takes.
    """
    if offers_all_at_first():
        return {"initial_recv_window": "4mib", "recv_buffer": "5mib"}
    return {}


def offers_all_at_first() -> bool:
    """Whether a receiver offers all that it has (Linux 6.11 and later), or 64 KB at first.

    A connection over loopback tells. Systems without Linux's `TCP_INFO` are said to have 64 KB.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        with socket.create_connection(server.getsockname()):
            accepted, _ = server.accept()
            with accepted:
                try:
                    info = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                except (AttributeError, OSError):
                    return False
    (first,) = struct.unpack_from("=I", info, _RCV_SSTHRESH)
    return bool(first > 0xFFFF)
