"""Places for connections that have not proved yet what they are for.

They are few, and idle ones would fill them. So a newcomer always gets one: in place of the oldest
connection of the network that has most, within a network of the address that has most. A peer that
opens many connections loses its own.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import socket
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from weir.probes import wire

IN_ALL, PER_NETWORK, PER_ADDRESS = 512, 256, 128
"""More than a run has connections, which arrive at once (`session.MOST_STREAMS`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The place of a connection."""

    connection: socket.socket
    address: Hashable
    """Of IPv6 the /64, of which a host has all addresses."""
    network: Hashable
    """An IPv4 /24 or an IPv6 /48, as they are given to one site."""


class Places:
    """The places of a server; for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[int, Place] = {}
        """By number: the oldest first."""
        self._numbers = itertools.count()

    def take(self, connection: socket.socket, source: wire.Address) -> int:
        """The number of a place for a connection. Another one may be closed for it."""
        place = _place(connection, source)
        with self._lock:
            if (loser := self._loser(place)) is not None:
                _end(self._taken.pop(loser).connection)
            number = next(self._numbers)
            self._taken[number] = place
        return number

    def leave(self, number: int) -> None:
        """The connection has proved what it is for, or is over."""
        with self._lock:
            self._taken.pop(number, None)

    def _loser(self, newcomer: Place) -> int | None:
        """The number of the connection that makes space: of the narrowest limit that is reached."""
        same_address = self._of(lambda place: place.address == newcomer.address)
        if len(same_address) >= PER_ADDRESS:
            return min(same_address)
        same_network = self._of(lambda place: place.network == newcomer.network)
        if len(same_network) >= PER_NETWORK:
            return _oldest_of_largest(same_network, lambda place: place.address)
        if len(self._taken) >= IN_ALL:
            return _oldest_of_largest(self._taken, lambda place: place.network)
        return None

    def _of(self, wanted: Callable[[Place], bool]) -> dict[int, Place]:
        return {number: place for number, place in self._taken.items() if wanted(place)}


def _oldest_of_largest(places: dict[int, Place], group: Callable[[Place], Hashable]) -> int:
    counts = Counter(group(place) for place in places.values())
    largest = max(counts, key=lambda key: counts[key])
    return min(number for number, place in places.items() if group(place) == largest)


def _place(connection: socket.socket, source: wire.Address) -> Place:
    ip = ipaddress.ip_address(str(source[0]).partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return Place(connection, ("v6", int(ip) >> 64), ("v6", int(ip) >> 80))
        ip = ip.ipv4_mapped
    return Place(connection, ("v4", int(ip)), ("v4", int(ip) >> 8))


def _end(connection: socket.socket) -> None:
    """Wakes the thread that reads from a connection, which closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
