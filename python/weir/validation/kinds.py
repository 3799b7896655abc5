"""Kinds of random paths: what is drawn, beyond a rate, a round trip and a queue.

Each kind is one thing that paths have, so that a table of kinds says where the simulator is Linux.
A kind draws from a generator of its own for each path, and changes nothing but the keys it returns.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

PACKET = 1_500
LEAST_PACKETS = 2
"""Of a queue."""

GOAL = 0.95
"""Share of the rows of a kind that should hold."""

Range = tuple[float, float]
Rng = random.Random


@dataclass(frozen=True, slots=True)
class Path:
    """A path with one bottleneck, and what runs over it."""

    rate_kbit: int
    rtt_ms: int
    queue_bdp: float
    seconds: float = 0.0
    keys: tuple[tuple[str, str], ...] = ()
    """Of the scenario, beyond these."""

    word: str = ""
    """What the kind drew, for the name of the path."""

    def having(self, word: str, **keys: str) -> Path:
        """The path with `keys`, whose names have `__` for each dot."""
        own = tuple((key.replace("__", "."), value) for key, value in keys.items())
        return replace(self, word=word, keys=(*self.keys, *own))

    @property
    def bdp(self) -> float:
        """The bandwidth-delay product in bytes."""
        return self.rate_kbit * self.rtt_ms / 8

    @property
    def packets(self) -> int:
        """Packets that the queue holds, the one being sent included."""
        return max(LEAST_PACKETS, round(self.bdp * self.queue_bdp / PACKET))


@dataclass(frozen=True, slots=True)
class PathKind:
    """A kind of random path."""

    title: str
    draw: Callable[[Rng, Path], Path]
    is_random: bool = False
    """Whether random numbers decide what happens to packets, or which flow comes first."""

    rate_mbit: Range = (2.0, 50.0)
    rtt_ms: Range = (2.0, 250.0)
    queue_bdp: Range = (0.3, 3.0)
    """Ranges of the path; logarithms are uniform."""

    flows: int = 1


def log_uniform(rng: Rng, between: Range) -> float:
    """A number whose logarithm is uniform."""
    low, high = map(math.log, between)
    return math.exp(low + (high - low) * rng.random())


def _plain(_: Rng, path: Path) -> Path:
    return path


def _percent(rng: Rng, low: float, high: float) -> str:
    return f"{log_uniform(rng, (low, high)):.2g}%"


def _loss(rng: Rng, path: Path) -> Path:
    percent = _percent(rng, 0.01, 2)
    return path.having(percent, topology__forward__loss=percent)


def _bursts(rng: Rng, path: Path) -> Path:
    begin, end = _percent(rng, 0.02, 0.5), _percent(rng, 15, 60)
    section = f'{{ good_to_bad = "{begin}", bad_to_good = "{end}" }}'
    return path.having(f"{begin}-{end}", topology__forward__burst_loss=section)


def _lost_acks(rng: Rng, path: Path) -> Path:
    percent = _percent(rng, 0.5, 20)
    return path.having(percent, topology__reverse__loss=percent)


def _codel(_: Rng, path: Path) -> Path:
    return path.having("codel", topology__queue='{ kind = "codel", limit = "1000p" }')


def _red(_: Rng, path: Path) -> Path:
    limit = max(16, 4 * path.packets)
    return path.having("red", topology__queue=f'{{ kind = "red", limit = "{limit}p" }}')


def _ecn(rng: Rng, path: Path) -> Path:
    kind = rng.choice(("codel", "red"))
    limit = max(16, 4 * path.packets)
    queue = f'{{ kind = "{kind}", limit = "{limit}p", ecn = true }}'
    return path.having(kind, topology__queue=queue, flow__0__ecn="true")


def _reordering(rng: Rng, path: Path) -> Path:
    percent, late_ms = _percent(rng, 0.1, 5), round(path.rtt_ms * log_uniform(rng, (0.05, 0.7)), 1)
    keys = {"topology__forward__reorder": percent}
    return path.having(
        f"{percent}-{late_ms}ms", **keys, topology__forward__reorder_delay=f"{late_ms}ms"
    )


def _jitter(rng: Rng, path: Path) -> Path:
    by_ms = round(path.rtt_ms * log_uniform(rng, (0.005, 0.3)), 2)
    return path.having(f"{by_ms}ms", topology__forward__jitter=f"{by_ms}ms")


def _duplicates(rng: Rng, path: Path) -> Path:
    percent = _percent(rng, 0.1, 2)
    return path.having(percent, topology__forward__duplicate=percent)


def _slow_reverse(rng: Rng, path: Path) -> Path:
    ratio, packets = log_uniform(rng, (15, 80)), rng.choice((10, 30, 100))
    rate = f"{max(8, round(path.rate_kbit / ratio))}kbit"
    keys = {"topology__reverse__rate": rate, "topology__reverse__queue": f'"{packets}p"'}
    return path.having(f"{rate}-{packets}p", **keys)


def _steps(rng: Rng, path: Path) -> Path:
    times = sorted(rng.uniform(0.15, 0.9) * path.seconds for _ in range(3))
    rates = [path.rate_kbit * log_uniform(rng, (0.25, 2)) for _ in times]
    steps = [
        f'{{ at = "{round(at * 1e3)}ms", rate = "{round(rate)}kbit" }}'
        for at, rate in zip(times, rates, strict=True)
    ]
    return path.having("steps", topology__forward__rate_steps=f"[{', '.join(steps)}]")


def _blackout(rng: Rng, path: Path) -> Path:
    at = rng.uniform(0.2, 0.5) * path.seconds
    lasts = log_uniform(rng, (0.1, min(3, 0.3 * path.seconds)))
    steps = (
        f'[{{ at = "{round(at * 1e3)}ms", rate = "0bit" }}, '
        f'{{ at = "{round((at + lasts) * 1e3)}ms", rate = "{path.rate_kbit}kbit" }}]'
    )
    return path.having(f"{lasts:.1f}s", topology__forward__rate_steps=steps)


def _bucket(rng: Rng, path: Path) -> Path:
    burst = round(PACKET * log_uniform(rng, (2, 40)))
    return path.having(f"{burst}b", topology__burst=f"{burst}b")


def _file(rng: Rng, path: Path) -> Path:
    size = round(log_uniform(rng, (3_000, 1_000_000)))
    return path.having(f"{size}b", flow__0__workload=f'{{ kind = "file", size = "{size}b" }}')


def _requests(rng: Rng, path: Path) -> Path:
    size, gap = round(log_uniform(rng, (1_000, 200_000))), round(log_uniform(rng, (1, 300)))
    work = f'{{ kind = "request", request = "{size}b", response = "1b", gap = "{gap}ms" }}'
    return path.having(f"{size}b-{gap}ms", flow__0__workload=work)


def _paced(rng: Rng, path: Path) -> Path:
    share, size = rng.uniform(0.1, 0.85), round(log_uniform(rng, (500, 50_000)))
    rate = round(path.rate_kbit * share)
    work = f'{{ kind = "rate", rate = "{rate}kbit", size = "{size}b" }}'
    return path.having(f"{rate}kbit-{size}b", flow__0__workload=work)


def _window(rng: Rng, path: Path) -> Path:
    size = max(6_000, round(path.bdp * log_uniform(rng, (0.1, 1.5))))
    return path.having(f"{size}b", flow__0__recv_buffer=f"{size}b")


LOW: Range = (0.2, 2.0)
HIGH: Range = (50.0, 400.0)

KINDS: Mapping[str, PathKind] = MappingProxyType(
    {
        "plain": PathKind("Drop-tail queue of 0.3 to 3 BDP", _plain),
        "loss": PathKind("Random loss, 0.01 to 2 %", _loss, is_random=True),
        "shallow": PathKind("Queue of 0.05 to 0.3 BDP", _plain, queue_bdp=(0.05, 0.3)),
        "deep": PathKind("Queue of 3 to 5 BDP", _plain, queue_bdp=(3.0, 5.0)),
        "slow": PathKind("0.2 to 2 Mbit/s", _plain, rate_mbit=LOW),
        "fast": PathKind("50 to 400 Mbit/s", _plain, rate_mbit=HIGH),
        "long": PathKind("Round trips of 250 to 600 ms", _plain, rtt_ms=(250.0, 600.0)),
        "codel": PathKind("CoDel", _codel),
        "red": PathKind("RED", _red, is_random=True),
        "ecn": PathKind("Marks of CoDel or RED", _ecn, is_random=True),
        "reordering": PathKind(
            "0.1 to 5 % of packets late by 0.05 to 0.7 round trips", _reordering, is_random=True
        ),
        "jitter": PathKind("Jitter of 0.005 to 0.3 round trips", _jitter, is_random=True),
        "duplicates": PathKind("0.1 to 2 % of packets twice", _duplicates, is_random=True),
        "bursts": PathKind("Bursts of loss", _bursts, is_random=True),
        "ack-loss": PathKind("0.5 to 20 % of acknowledgements lost", _lost_acks, is_random=True),
        "slow-reverse": PathKind("Reverse path 15 to 80 times slower", _slow_reverse),
        "steps": PathKind("Three steps of the rate, by 0.25 to 2", _steps),
        "blackout": PathKind("A pause of the link, 0.1 to 3 s", _blackout),
        "bucket": PathKind("Token bucket of 2 to 40 packets", _bucket),
        "file": PathKind("A file of 3 kB to 1 MB", _file),
        "requests": PathKind("Requests of 1 to 200 kB, with pauses", _requests),
        "paced": PathKind("An application of 10 to 85 % of the rate", _paced),
        "window": PathKind("Receive buffer of 0.1 to 1.5 BDP", _window),
        "two": PathKind("Two flows", _plain, is_random=True, flows=2),
        "three": PathKind("Three flows", _plain, is_random=True, flows=3),
    }
)
"""All kinds by name, in the order in which they are drawn."""
