"""Options of a path test, and of the server that takes part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, TRAFFIC, Option
from weir.base.quantities import quantity
from weir.pathtest.session import MOST_STREAMS, Limits

SERVER = "With --server"
"""The group of a server's options in `--help`."""

_WARMUP = "3s"
_LEAST_S, _LONGEST_S = 0.5, 3600
_LEAST_BPS = 1000


@dataclass(frozen=True, kw_only=True)
class PathTest:
    """Which loads a path test runs. Quantities are text with a unit."""

    cc: Annotated[
        str | None,
        Option(
            "Congestion controls of the kernel, or all that both ends have.",
            TRAFFIC,
            metavar="NAME,...",
            default_text="the kernel's default",
        ),
    ] = None
    stack: Annotated[
        Sequence[str],
        Option(
            "Our transport over UDP, as in `rack/cubic`; repeat the option for further stacks.",
            TRAFFIC,
            metavar="[NAME=]STACK",
            default_text="none",
        ),
    ] = ()
    streams: Annotated[
        int,
        Option("Parallel flows in each direction.", TRAFFIC, min=1, max=MOST_STREAMS),
    ] = 1
    direction: Annotated[
        str,
        Option(
            "Directions of the load, one run each; both is up and down at the same time.",
            TRAFFIC,
            metavar="up,down,both",
        ),
    ] = "up,down"
    udp: Annotated[
        str | None,
        Option(
            "Load by UDP datagrams at this rate, in place of TCP.",
            TRAFFIC,
            metavar="RATE",
            default_text="off",
        ),
    ] = None
    duration: Annotated[str, Option("Time of each load.", MEASUREMENT, metavar="TIME")] = "15s"
    warmup: Annotated[
        str | None,
        Option(
            "Part of it at the beginning that is not measured.",
            MEASUREMENT,
            metavar="TIME",
            default_text=f"{_WARMUP}, at most a third of the time",
        ),
    ] = None
    repeat: Annotated[int, Option("Repeats of every load.", MEASUREMENT, short="-n", min=1)] = 3

    def check(self) -> None:
        """Refuses what no server can do.

        Raises:
            InputError: a quantity is not valid, or two options exclude each other.
        """
        _ = self.times_s(), self.udp_bps()
        for option, given in (("--cc", self.cc), ("--stack", next(iter(self.stack), None))):
            if self.udp is not None and given is not None:
                raise InputError(
                    f"{option} {given}: datagrams have no congestion control; leave out --udp"
                )

    def times_s(self) -> tuple[float, float]:
        """Returns the time of a load, and the part of it that is not measured.

        Raises:
            InputError: one is not valid.
        """
        duration_s = quantity("time", "duration", self.duration)
        if not _LEAST_S <= duration_s <= _LONGEST_S:
            raise InputError(f"duration='{self.duration}': allowed are 500ms to 1h")
        if self.warmup is None:
            return duration_s, min(quantity("time", "warmup", _WARMUP), duration_s / 3)
        warmup_s = quantity("time", "warmup", self.warmup)
        if not 0 <= warmup_s < duration_s:
            raise InputError(
                f"warmup='{self.warmup}': it must be shorter than --duration {self.duration}"
            )
        return duration_s, warmup_s

    def udp_bps(self) -> float | None:
        """Returns the rate of the datagrams, if there are any.

        Raises:
            InputError: it is no rate.
        """
        return None if self.udp is None else quantity("rate", "udp", self.udp)


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where a server listens, and what it allows. Quantities are text with a unit."""

    listen: Annotated[
        str,
        Option(
            "Where to listen, TCP and UDP; port 0 selects a free one.", SERVER, metavar="ADDR:PORT"
        ),
    ] = ":9077"
    max_rate: Annotated[
        str | None,
        Option(
            "Most of all flows of a test in one direction.",
            SERVER,
            metavar="RATE",
            default_text="none",
        ),
    ] = None
    max_time: Annotated[str, Option("Longest load.", SERVER, metavar="TIME")] = "60s"
    max_clients: Annotated[
        int,
        Option("Clients at a time; two at once would measure each other.", SERVER, min=1),
    ] = 1

    def limits(self) -> Limits:
        """Returns what it allows.

        Raises:
            InputError: a quantity is not valid, or too small.
        """
        rate_bps = None if self.max_rate is None else quantity("rate", "max_rate", self.max_rate)
        time_s = quantity("time", "max_time", self.max_time)
        if rate_bps is not None and rate_bps < _LEAST_BPS:
            raise InputError(f"max_rate='{self.max_rate}': allowed is 1kbit or more")
        if time_s < _LEAST_S:
            raise InputError(
                f"max_time='{self.max_time}': allowed is 500ms or more, as the shortest load has"
            )
        return Limits(rate_bps, time_s, self.max_clients)
