"""A path as measured, each parameter with its interval, and its scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from weir.estimates.quantity import Quantity

Steps = tuple[tuple[float, float], ...]
"""Times in seconds, and the rate in Mbit/s from each on."""


@dataclass(frozen=True)
class Path:
    """What a model consists of. Rates and sizes count IP bytes."""

    rate_mbps: Quantity
    delay_ms: Quantity
    """The round trip without queues and transmission times."""
    queue_bytes: Quantity
    loss: Quantity
    packet_bytes: int
    steps: Steps = ()
    """Rates over time, where they change."""
    policer_mbps: Quantity | None = None
    policer_bytes: Quantity | None = None
    reorder: Quantity | None = None
    reorder_ms: Quantity | None = None
    loss_run: float | None = None
    """The mean number of random losses in a row, if they come in bursts."""
    trace: tuple[int, ...] = ()
    """Milliseconds in which the link passes 1500 bytes, in place of a rate."""
    reverse_mbps: float | None = None
    """The rate of the way back, if it differs."""
    cross_mbps: tuple[float, ...] = ()
    """The rate of other traffic that does not react, in each second."""
    cross: Quantity | None = None
    """The rate of other traffic that does not react and is steady, in Mbit/s."""
    jitter_ms: Quantity | None = None
    """The largest random deviation from the delay, which keeps the order."""
    discipline: str | None = None
    """What manages the queue, if that is recognised."""

    def keys(self) -> dict[str, str]:
        """The keys of a scenario with this path."""
        keys = {
            "topology.rate": f"{_bits(self.rate_mbps.value)}bit",
            "topology.rtt": f"{round(self.delay_ms.value * 1e6)}ns",
            "topology.queue": f"{round(self.queue_bytes.value)}b",
        }
        if self.discipline:
            keys["topology.queue"] = f"{{ kind = '{self.discipline}' }}"
        if self.trace:
            keys["topology.forward.rate_trace"] = str(list(self.trace))
        if self.steps:
            keys["topology.forward.rate_steps"] = _steps(self.steps)
        if self.loss_run and self.loss.value > 0:
            end = 1 / self.loss_run
            begin = self.loss.value * end / (1 - self.loss.value)
            both = f"good_to_bad = '{begin * 100:.6f}%', bad_to_good = '{end * 100:.6f}%'"
            keys["topology.forward.burst_loss"] = f"{{ {both} }}"
        elif self.loss.value > 0:
            keys["topology.forward.loss"] = f"{self.loss.value * 100:.6f}%"
        if self.policer_mbps and self.policer_bytes:
            rate, burst = _bits(self.policer_mbps.value), round(self.policer_bytes.value)
            burst = max(burst, self.packet_bytes)
            keys["topology.forward.policer"] = f"{{ rate = '{rate}bit', burst = '{burst}b' }}"
        if self.reorder and self.reorder_ms:
            keys["topology.forward.reorder"] = f"{self.reorder.value * 100:.6f}%"
            keys["topology.forward.reorder_delay"] = f"{round(self.reorder_ms.value * 1e3)}us"
        if self.jitter_ms:
            keys["topology.forward.jitter"] = f"{round(self.jitter_ms.value * 1e3)}us"
        if self.reverse_mbps:
            keys["topology.reverse.rate"] = f"{_bits(self.reverse_mbps)}bit"
        return keys

    def cross_flows(self) -> list[dict[str, str]]:
        """The keys of flows that are the other traffic: one, or one for each second with some."""
        if self.cross:
            return [{"name": "cross", "stack": "udp", "workload": _workload(self.cross.value)}]
        return [
            {
                "name": f"cross-{second}",
                "stack": "udp",
                "start": f"{second}s",
                "stop": f"{second + 1}s",
                "workload": _workload(mbps),
            }
            for second, mbps in enumerate(self.cross_mbps)
            if mbps
        ]

    def named(self) -> Iterator[tuple[str, str, str, str]]:
        """The parameters for people: JSON key, title, value with interval, unit."""
        for key, title, value, unit, scale in self._quantities():
            yield key, title, value.text(4, scale), unit
        if self.discipline:
            yield "discipline", "queue discipline", self.discipline, ""

    def _quantities(self) -> Iterator[tuple[str, str, Quantity, str, float]]:
        yield "rate_mbps", "rate", self.rate_mbps, "Mbit/s", 1.0
        yield "delay_ms", "round trip without queue", self.delay_ms, "ms", 1.0
        yield "queue_bytes", "queue", self.queue_bytes, "kB", 1e-3
        yield "loss", "random loss", self.loss, "%", 100.0
        if self.policer_mbps and self.policer_bytes:
            yield "policer_mbps", "policer", self.policer_mbps, "Mbit/s", 1.0
            yield "policer_bytes", "policer's burst", self.policer_bytes, "kB", 1e-3
        if self.reverse_mbps:
            back = Quantity(self.reverse_mbps, self.reverse_mbps, self.reverse_mbps)
            yield "reverse_mbps", "rate of the way back", back, "Mbit/s", 1.0
        if self.jitter_ms:
            yield "jitter_ms", "jitter", self.jitter_ms, "ms", 1.0
        if self.cross:
            yield "cross", "other traffic", self.cross, "Mbit/s", 1.0
        if self.reorder and self.reorder_ms:
            yield "reorder", "reordered", self.reorder, "%", 100.0
            yield "reorder_ms", "delay of reordered packets", self.reorder_ms, "ms", 1.0

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`."""
        found: dict[str, Any] = {key: value.as_json() for key, _, value, *_ in self._quantities()}
        if self.discipline:
            found["discipline"] = self.discipline
        if self.loss_run:
            found["loss_run"] = self.loss_run
        if self.steps:
            found["steps"] = [{"at_s": at, "rate_mbps": rate} for at, rate in self.steps]
        if self.cross_mbps:
            found["cross_mbps"] = list(self.cross_mbps)
        return found

    @property
    def over_time(self) -> str | None:
        """How the rate changes, for people; None if it does not."""
        if self.trace:
            return f"{len(self.trace)} times at which 1500 bytes pass"
        return f"{len(self.steps)} steps" if self.steps else None

    def rate_at(self, rank: float) -> float:
        """A rate in Mbit/s that the bound of the rate allows, the larger the larger `rank` is.

        Of a size of which nothing else is known every order of magnitude is as likely (Jeffreys
        1946).
        """
        least, most = self.rate_mbps.value, self.rate_mbps.most
        ratio = max(most / least, 1.0) if most and least else 1.0
        return float(least * ratio**rank)

    def queue_at(self, rank: float, mbps: float) -> float:
        """Bytes that the bound of the queue allows at a rate, the larger the larger `rank` is."""
        least = self.queue_bytes.value
        bdp = mbps * 1e6 / 8 * self.delay_ms.value / 1e3
        return float(least * (_MOST_QUEUE * max(bdp / least, 1.0)) ** rank)

    def ranges(self) -> dict[str, list[str]]:
        """Values of each key of which only a lower bound is known: the least, a mean, the most."""
        found = {}
        if self.rate_mbps.high is None and self.rate_mbps.most and not self.steps:
            rates = [self.rate_at(rank) for rank in _RANKS]
            found["topology.rate"] = [f"{_bits(mbps)}bit" for mbps in rates]
        if self.queue_bytes.high is None and not self.discipline:
            sizes = [self.queue_at(rank, self.rate_mbps.value) for rank in _RANKS]
            found["topology.queue"] = [f"{round(size)}b" for size in sizes]
        return found

    def scaled(self, rate: float) -> Path:
        """The same with all rates multiplied by `rate`."""
        steps = tuple((at, mbps * rate) for at, mbps in self.steps)
        value = self.rate_mbps.value * rate
        return replace(self, rate_mbps=replace(self.rate_mbps, value=value), steps=steps)


_MOST_QUEUE = 3.0
"""How many times what it held a queue may have that was never filled, or bandwidth-delay products
if these are more."""
_RANKS = (0.0, 0.5, 1.0)
_PAYLOAD = 1448 / 1476
"""Of a datagram of the default size, with the headers of IPv4 and UDP."""


def _bits(mbps: float) -> int:
    return max(round(mbps * 1e6), 1000)


def _workload(mbps: float) -> str:
    """Datagrams at a rate of IP bytes: a scenario has that of their payload."""
    return f"{{ kind = 'rate', rate = '{_bits(mbps * _PAYLOAD)}bit' }}"


def _steps(steps: Steps) -> str:
    items = (f"{{ at = '{round(at * 1e6)}us', rate = '{_bits(rate)}bit' }}" for at, rate in steps)
    return f"[{', '.join(items)}]"
