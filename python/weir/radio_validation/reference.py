"""What arithmetic, theory and published measurements say of 802.11 and of chains of nodes.

Nothing here is the simulator's: frames are bits over rates, saturated stations are a formula,
chains are tables from papers.

- *Frames*: IEEE 802.11b-1999 §18.2, long preamble. RTS, CTS and acknowledgement have 20, 14 and 14
  bytes, a data frame 28 more than its IP packet (24 and the frame check).
- *Window of one*: on each hop of a chain there is one exchange for the data and one for its
  acknowledgement; each takes DIFS, a backoff of 0 to 30 slots or what is left of it, four frames
  and three SIFS.
- *Saturation*: G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination
  Function", IEEE JSAC 18(3), 2000.
- *Datagrams over a chain*: J. Li, C. Blake, D. S. J. De Couto, H. I. Lee, R. Morris, "Capacity of
  Ad Hoc Wireless Networks", MobiCom 2001: a long chain carries a seventh of what one hop does.
- *TCP over a chain*: G. Holland, N. Vaidya, "Analysis of TCP Performance over Mobile Ad Hoc
  Networks", MobiCom 1999: mean throughput of ten runs by the number of hops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

LIGHT_M_PER_US = 299.792458
"""Metres that a signal covers in a microsecond."""

TCP_HEADERS = 40
"""Bytes of IP and TCP in front of a segment's payload, without options."""
UDP_HEADERS = 28


@dataclass(frozen=True, slots=True)
class Phy:
    """Times in microseconds, rates in Mbit/s, lengths in bytes."""

    slot: int = 20
    sifs: int = 10
    difs: int = 50
    preamble: int = 192
    basic: float = 1.0
    data: float = 2.0
    header: int = 28
    propagation: float = 1.0

    def frame(self, length: int, rate: float) -> int:
        """How long a frame takes: whole microseconds, rounded up."""
        return self.preamble + math.ceil(8 * length / rate)

    @property
    def rts(self) -> int:
        """A request to send."""
        return self.frame(20, self.basic)

    @property
    def cts(self) -> int:
        """A clear to send."""
        return self.frame(14, self.basic)

    @property
    def ack(self) -> int:
        """An acknowledgement of the MAC."""
        return self.frame(14, self.basic)

    def packet(self, length: int) -> int:
        """A data frame with an IP packet of this number of bytes."""
        return self.frame(length + self.header, self.data)

    def frames(self, length: int) -> int:
        """From the beginning of an RTS to the end of the acknowledgement, propagation left out."""
        return self.rts + self.cts + self.packet(length) + self.ack + 3 * self.sifs


DSSS = Phy()
"""802.11's direct sequence, data at 2 Mbit/s, the rest at 1 Mbit/s."""

FHSS = Phy(slot=50, sifs=28, difs=128, preamble=128, data=1.0, header=34)
"""Bianchi's table II: frequency hopping, all at 1 Mbit/s."""

FHSS_PAYLOAD = 1_023
"""Bytes: 8184 bits."""


def dsss(data: float, basic: float = 1.0) -> Phy:
    """Direct sequence with these rates."""
    return replace(DSSS, data=data, basic=basic)


_BACKOFFS = 31
"""Number of possible backoffs: 0 to 30 slots, ns-2's first contention window."""
_GAMES, _ROUNDS, _SEED = 2_000, 200, 2


def plain_kbps(phy: Phy, payload: int, hops: int) -> float:
    """Payload that a window of one segment carries over a chain, if each backoff is a mean one."""
    return _window_of_one_kbps(phy, payload, hops, 2 * hops * (_BACKOFFS - 1) / 2)


def stop_and_wait_kbps(phy: Phy, payload: int, hops: int) -> float:
    """The same with the waits that nodes really have, see `waits`."""
    return _window_of_one_kbps(phy, payload, hops, waits(hops))


def _window_of_one_kbps(phy: Phy, payload: int, hops: int, slots: float) -> float:
    data, acknowledgement = phy.frames(payload + TCP_HEADERS), phy.frames(TCP_HEADERS)
    return 8_000 * payload / (hops * (2 * phy.difs + data + acknowledgement) + slots * phy.slot)


@cache
def waits(hops: int) -> float:
    """Slots that all backoffs of a round trip take together, by a game of dice.

    After each packet a node draws the backoff of its next one, and counts it down while the medium
    around it is idle: so in the waits of nodes up to two hops away, and at once where it hears
    no other node. A node that sends again soon, as at the ends of a chain, waits for what is left.
    Without that there would be 15 slots for each of 2 h exchanges.
    """
    import numpy as np

    rng = np.random.default_rng(_SEED)
    left = np.zeros((hops + 1, _GAMES), dtype=np.int64)
    total = 0
    for _ in range(_ROUNDS):
        for sender in [*range(hops), *range(hops, 0, -1)]:
            drawn = rng.integers(0, _BACKOFFS, (2, _GAMES))
            wait = np.where(left[sender] > 0, left[sender], drawn[0])
            left -= wait
            left[[node for node in range(hops + 1) if abs(node - sender) > _HEARD]] = 0
            left[sender] = drawn[1]
            total += int(wait.sum())
    return total / (_GAMES * _ROUNDS)


_HEARD = 2
"""Hops up to which nodes of a chain sense each other."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """Bianchi's model of stations that always have a packet.

        tau = 2 / (1 + W + p W (1 + 2p + … + (2p)^(m-1)))      p = 1 - (1-tau)^(n-1)
        Ptr = 1 - (1-tau)^n                                    Ps = n tau (1-tau)^(n-1) / Ptr
        S   = Ps Ptr payload / ((1-Ptr) slot + Ptr Ps Ts + Ptr (1-Ps) Tc)

    Ts and Tc are how long the medium is taken by a frame that succeeds and by frames that collide.
    """

    phy: Phy
    payload: int
    """Bytes of each packet, the MAC header left out."""
    window: int = 32
    stages: int = 5
    has_rts: bool = True

    @property
    def success_us(self) -> float:
        """Ts."""
        phy = self.phy
        if self.has_rts:
            return phy.frames(self.payload) + 4 * phy.propagation + phy.difs
        answer = phy.sifs + phy.ack + phy.propagation
        return phy.packet(self.payload) + phy.propagation + answer + phy.difs

    @property
    def collision_us(self) -> float:
        """Tc."""
        first = self.phy.rts if self.has_rts else self.phy.packet(self.payload)
        return first + self.phy.difs + self.phy.propagation

    def attempt(self, stations: int) -> float:
        """tau: the probability that a station sends in a slot. The one solution, by bisection."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            collided = 1 - (1 - middle) ** (stations - 1)
            if self._sent(collided) > middle:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def throughput_mbps(self, stations: int) -> float:
        """Payload that all stations together send."""
        tau = self.attempt(stations)
        busy = 1 - (1 - tau) ** stations
        alone = stations * tau * (1 - tau) ** (stations - 1)
        taken = alone * self.success_us + (busy - alone) * self.collision_us
        return 8 * self.payload * alone / ((1 - busy) * self.phy.slot + taken)

    def _sent(self, collided: float) -> float:
        tail = sum((2 * collided) ** stage for stage in range(self.stages))
        return 2 / (1 + self.window + collided * self.window * tail)


TCP_CHAIN_KBPS: Mapping[int, float] = MappingProxyType(
    {
        1: 1463.0,
        2: 729.0,
        3: 484.4,
        4: 339.9,
        5: 246.4,
        6: 205.2,
        7: 198.1,
        8: 191.8,
        9: 185.3,
        10: 182.4,
    }
)
"""Holland and Vaidya 1999: TCP Reno, 1460-byte packets, window of 8, DSR, 2 Mbit/s, 250 m."""

UDP_CHAIN_SHARE = 1 / 7
"""Li and others 2001: what a long chain carries of one hop's throughput."""
