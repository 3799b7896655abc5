"""How a kernel, this machine's or a guest's, sizes its buffers and its receivers' windows."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from weir import _native
from weir.kernel import cache, recipe

SEND_BUFFER: Mapping[str, str] = {"send_buffer": "8mib", "max_send_buffer": "32mib"}
"""What the kernel's senders begin with, and up to where it grows."""

_BUFFER_BYTES = 200_000
"""Enough for a window beyond 64 KB, and less than `net.core.rmem_max` is anywhere."""

GROWING: Mapping[str, str] = {"recv_buffer": "4mib", "max_recv_buffer": "16mib"}
"""Half of `tcp_rmem`, 8 and 32 MiB: what windows may take of it before Linux 6.5."""

_ALL_AT_FIRST = {**GROWING, "initial_recv_window": "4192856b", "recv_buffer": "5mib"}
"""The first window is half of the buffer less one segment (`tcp_init_buffer_space`)."""
_SINCE = (6, 11)

WINDOWS = tuple(_ALL_AT_FIRST)
"""The keys that a flow with a buffer of its own does not have: it does not grow."""

_SMALL_HEADS = {"send_overhead": "832b"}
_SMALL_HEADS_SINCE = (6, 3)
"""A segment's head of 512 bytes comes from a cache of 576 (`skbuff_small_head`)."""

_RCV_SSTHRESH = 8 + 14 * 4
"""Where `struct tcp_info` has `tcpi_rcv_ssthresh`, the largest window to offer now."""


def here() -> Mapping[str, str]:
    """The keys of a flow whose receiver offers what this kernel's does in world `kernel`.

    Its buffer begins with 8 MiB and may grow to 32. Since Linux 6.11 half of the first is offered
    at once, and 5 MiB when `tcp_measure_rcv_mss` has seen how much memory a segment of 1448 bytes
    takes.
    """
    return _ALL_AT_FIRST if offers_whole_buffer_at_first() else GROWING


def of_guest() -> Mapping[str, str]:
    """The same of the guest kernel that runs use, and what its senders charge for a segment."""
    kernel = cache.default()
    version = () if kernel is None else recipe.version_key(kernel.version)
    window = _ALL_AT_FIRST if version >= _SINCE else GROWING
    return {**window, **(_SMALL_HEADS if version >= _SMALL_HEADS_SINCE else {})}


def hosts_of_guest() -> Mapping[str, str]:
    """The keys of a flow between hosts as those of the guest."""
    return {**SEND_BUFFER, **of_guest()}


def of_guest_with_buffer(window: str) -> Mapping[str, str]:
    """The keys of a receiver whose buffer does not grow, if `recv_buffer` is `window` there.

    Such a buffer has twice as much memory. Since Linux 6.11 half of it is offered at first, and
    five eighths once `tcp_measure_rcv_mss` has seen that a segment of 1448 bytes takes 2304.
    """
    kernel = cache.default()
    if kernel is None or recipe.version_key(kernel.version) < _SINCE:
        return {}
    size = round(_native.parse_quantity("size", window))
    return {"recv_buffer": f"{size * 5 // 4}b", "initial_recv_window": f"{size}b"}


def offers_whole_buffer_at_first() -> bool:
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
