"""How a kernel sizes the window that its receivers offer: this machine's, or a guest's."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from weir.kernel import cache, recipe

_BUFFER_BYTES = 200_000
"""Enough for a window beyond 64 KB, and less than `net.core.rmem_max` is anywhere."""

GROWING: Mapping[str, str] = {"recv_buffer": "4mib", "max_recv_buffer": "16mib"}
"""Half of `tcp_rmem`, 8 and 32 MiB: what windows may take of it before Linux 6.5."""

_ALL_AT_FIRST = {**GROWING, "initial_recv_window": "4mib", "recv_buffer": "5mib"}
_SINCE = (6, 11)

_RCV_SSTHRESH = 8 + 14 * 4
"""Where `struct tcp_info` has `tcpi_rcv_ssthresh`, the largest window to offer now."""


def here() -> Mapping[str, str]:
    """The keys of a flow whose receiver offers what this kernel's does in world `kernel`.

    Its buffer begins with 8 MiB and may grow to 32. Since Linux 6.11 half of the first is offered
    at once, and 5 MiB when `tcp_measure_rcv_mss` has seen how much memory a segment of 1448 bytes
    takes.
    """
    return _ALL_AT_FIRST if offers_all_at_first() else GROWING


def of_guest() -> Mapping[str, str]:
    """The same of the guest kernel that runs use."""
    kernel = cache.default()
    is_newer = kernel is not None and recipe.version_key(kernel.version) >= _SINCE
    return _ALL_AT_FIRST if is_newer else GROWING


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
