"""What is measured, and what each case asks for."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weir.transfer.model import LOCAL, LONGEST_MSS, SEAL_BYTES, Network, Transfer
from weir.transfer.options import DEFAULT_STACK

Quantity = Literal["time", "CPU time", "round trips", "sent again"]

_MB = 1_000_000
_HUGE, _LARGE, _MEDIUM, _MIDDLE = 200 * _MB, 110 * _MB, 14 * _MB, 2_800_000
_SMALL, _ONE = 28_000, 1

_RTT_MS = 50.0
_HEADER = 32
"""Bytes of ours in each datagram: a TCP header with timestamps."""
_INTERNET = 1452 - _HEADER
_WINDOW = 2_000
"""Segments: a first window raised so far holds the file; pacing spreads it over a round trip."""

QUIC = ("quiche", "quinn")
SRT = "srt"

BEST = "the best other"
"""In a goal: the fastest contender of the other protocols in a round."""


@dataclass(frozen=True, slots=True)
class Goal:
    """At most this many times what another contender takes.

    Or this many round trips of the path, or percent of all data segments.
    """

    contender: str
    against: str
    at_most: float
    quantity: Quantity = "time"


@dataclass(frozen=True)
class Case:
    """One file over one path; the first contender is what the others are held against."""

    name: str
    size_bytes: int
    network: Network
    contenders: dict[str, Transfer]
    goals: tuple[Goal, ...]
    limit_s: float = 30.0
    max_rounds: int | None = None
    """Of a case that takes long, whatever `--rounds` says."""

    def with_peers(self, there: Container[str]) -> Case:
        """The same with those of the other protocols that are `there`.

        QUIC joins every case, SRT those of long fat paths.
        """
        kinds = [(peer, stack) for peer in QUIC for stack in self._quic_stacks]
        if self._is_fat:
            kinds.append((SRT, "file"))
        peers = {
            f"{peer} {stack}": Transfer(peer, stack, self.size_bytes)
            for peer, stack in kinds
            if peer in there
        }
        return replace(self, contenders={**self.contenders, **peers})

    @property
    def _is_fat(self) -> bool:
        return self.network.rate_mbit is not None

    @property
    def _quic_stacks(self) -> Sequence[str]:
        if self.network.loss_percent:
            return ("bbr",)
        return ("cubic", "bbr") if self._is_fat else ("cubic",)


def cases() -> tuple[Case, ...]:
    """All cases in the order in which they are printed."""
    return (_large(), *_small(), _long(), _long_with_loss(), *_heavy_loss(), *_long_fat())


def _large() -> Case:
    size = _LARGE
    contenders = {
        "TCP sendfile": _tcp("cubic", size),
        "TCP write": _tcp("cubic", size, write_size=256 << 10),
        "ours, 1452 B": _ours("rack/bbr", size, _INTERNET),
        "ours, 64 KB": _ours("rack/bbr", size, LONGEST_MSS),
        "ours, 1452 B, key": _ours("rack/bbr", size, _INTERNET, with_key=True),
        "ours, 64 KB, key": _ours("rack/bbr", size, LONGEST_MSS - SEAL_BYTES, with_key=True),
    }
    goals = (
        Goal("ours, 1452 B", "TCP sendfile", 1.5),
        Goal("ours, 64 KB", "TCP sendfile", 1.1),
        Goal("ours, 1452 B, key", "quiche cubic", 1.0),
        Goal("ours, 64 KB, key", "quiche cubic", 1.0),
        Goal("ours, 1452 B", "TCP write", 2.0, "CPU time"),
        Goal("ours, 64 KB", "TCP write", 2.0, "CPU time"),
    )
    return Case("110 MB, loopback", size, LOCAL, contenders, goals)


def _small() -> tuple[Case, ...]:
    found = []
    for name, size in (("1 B", _ONE), ("28 KB", _SMALL)):
        contenders = {
            "TCP": _tcp("cubic", size),
            "ours": _ours("rack/bbr", size, _INTERNET),
        }
        faster = (Goal("ours", f"{peer} cubic", 1.0) for peer in QUIC)
        goals = (Goal("ours", "TCP", 1.5), *faster)
        found.append(Case(f"{name}, loopback", size, LOCAL, contenders, goals))
    return tuple(found)


def _long() -> Case:
    size, link = _MIDDLE, Network(delay_ms=_RTT_MS / 2)
    contenders = {
        "TCP cubic": _tcp("cubic", size),
        "TCP bbr": _tcp("bbr", size),
        "ours, rack/cubic": _ours("rack/cubic", size, _INTERNET),
        "ours, rack/bbr": _ours("rack/bbr", size, _INTERNET),
        "ours, first window raised": _ours("rack/bbr", size, _INTERNET, initial_window=_WINDOW),
    }
    goals = (
        Goal("ours, rack/cubic", "TCP cubic", 1.0),
        Goal("ours, first window raised", "", 4.0, "round trips"),
    )
    return Case("2.8 MB, RTT 50 ms", size, link, contenders, goals)


def _long_with_loss() -> Case:
    size, link = _MIDDLE, Network(delay_ms=_RTT_MS / 2, loss_percent=1.0)
    contenders = {
        "TCP bbr": _tcp("bbr", size),
        "TCP cubic": _tcp("cubic", size),
        "ours, rack/bbr": _ours("rack/bbr", size, _INTERNET),
        "ours, rack/cubic": _ours("rack/cubic", size, _INTERNET),
        "ours": _ours(DEFAULT_STACK, size, _INTERNET),
    }
    goals = (
        Goal("ours, rack/bbr", "TCP bbr", 1.0),
        Goal("ours, rack/cubic", "TCP cubic", 1.2),
        Goal("ours", "quiche bbr", 1.0),
    )
    return Case("2.8 MB, RTT 50 ms, 1 % loss", size, link, contenders, goals)


def _heavy_loss() -> tuple[Case, ...]:
    found = []
    for name, size in (("2.8 MB", _MIDDLE), ("14 MB", _MEDIUM)):
        contenders = {
            "TCP bbr": _tcp("bbr", size),
            "ours, rack/bbr": _ours("rack/bbr", size, _INTERNET),
        }
        goals = (Goal("ours, rack/bbr", "TCP bbr", 1.5),)
        link = Network(loss_percent=25.0)
        found.append(Case(f"{name}, 25 % loss both ways", size, link, contenders, goals))
    return tuple(found)


def _long_fat() -> tuple[Case, ...]:
    """Where CUBIC cannot end in minutes, because packets are lost, it is left out."""
    fat = [Network(delay_ms=40, rate_mbit=500, queue=queue) for queue in ("100p", "1bdp")]
    paths = [replace(path, loss_percent=loss) for path in fat for loss in (0.0, 0.1)]
    paths.append(Network(delay_ms=75, rate_mbit=100, loss_percent=1.0))
    return tuple(map(_over, paths))


def _over(path: Network) -> Case:
    loses = path.loss_percent > 0
    stacks = ("bbr",) if loses else ("bbr", "cubic")
    contenders = {f"TCP {stack}": _tcp(stack, _HUGE) for stack in stacks}
    contenders["ours"] = _ours(DEFAULT_STACK, _HUGE, _INTERNET)
    goals = [Goal("ours", BEST, 1.0)]
    if not loses:
        contenders["ours, rack/cubic"] = _ours("rack/cubic", _HUGE, _INTERNET)
        goals += [Goal(name, "", 2.0, "sent again") for name in ("ours", "ours, rack/cubic")]
    name = (
        f"200 MB, {path.rate_mbit:g} Mbit/s, RTT {2 * path.delay_ms:g} ms, queue {path.queue}, "
        f"{path.loss_percent:g} % loss"
    )
    return Case(name, _HUGE, path, contenders, tuple(goals), limit_s=60.0, max_rounds=3)


def _tcp(controller: str, size: int, **options: int) -> Transfer:
    return Transfer("tcp", controller, size, options)


def _ours(
    stack: str, size: int, mss: int, *, with_key: bool = False, initial_window: int | None = None
) -> Transfer:
    options: dict[str, int] = {"mss": mss}
    if initial_window is not None:
        options["initial_window"] = initial_window
    return Transfer("weir", stack, size, options, with_key=with_key)
