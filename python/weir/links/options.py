"""Options of an emulated path: of relays, and of links live and virtual."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from weir.base.errors import InputError
from weir.base.options import NETWORK, Option
from weir.base.quantities import quantity
from weir.scenario.tc import options as tc_options

Pairs = list[tuple[str, str]]
"""Options with their values, as the native module has them."""


@dataclass(kw_only=True, eq=False)
class PathOptions:
    """A path between two ends. Quantities are text with a unit."""

    rate: Annotated[
        str | None, Option("Rate of IP packets, as in `10mbit`.", NETWORK, metavar="RATE")
    ] = None
    delay: Annotated[
        str | None, Option("One-way delay, as in `20ms`.", NETWORK, metavar="TIME")
    ] = None
    queue: Annotated[
        str | None,
        Option(
            "Queue capacity, with {rate}: `64p` (default), `1bdp`, `100ms`, `64kb`.",
            NETWORK,
            metavar="SIZE",
        ),
    ] = None
    loss: Annotated[
        str | None, Option("Share of packets lost, as in `5%`.", NETWORK, metavar="SHARE")
    ] = None
    jitter: Annotated[
        str | None, Option("Largest random variation of the delay.", NETWORK, metavar="TIME")
    ] = None
    corrupt: Annotated[
        str | None, Option("Share of packets with a flipped bit.", NETWORK, metavar="SHARE")
    ] = None
    duplicate: Annotated[
        str | None, Option("Share of packets duplicated.", NETWORK, metavar="SHARE")
    ] = None
    reorder: Annotated[
        str | None,
        Option("Share of packets delayed by reorder_delay (10ms).", NETWORK, metavar="SHARE"),
    ] = None
    up: Annotated[
        str, Option("Options of the direction up: `key=value,...`", NETWORK, metavar="OPTIONS")
    ] = ""
    down: Annotated[
        str, Option("Options of the direction down: `key=value,...`", NETWORK, metavar="OPTIONS")
    ] = ""
    seed: Annotated[int, Option("Random seed.", NETWORK, min=0)] = 1

    def pairs(self) -> Pairs:
        """Returns the options of both directions that were given."""
        values = {
            "rate": self.rate,
            "delay": self.one_way_delay(),
            "queue": self.queue,
            "loss": self.loss,
            "jitter": self.jitter,
            "corrupt": self.corrupt,
            "duplicate": self.duplicate,
            "reorder": self.reorder,
        }
        return [(key, value) for key, value in values.items() if value is not None]

    def one_way_delay(self) -> str | None:
        """Returns the delay of each direction, if it was given."""
        return self.delay


@dataclass(kw_only=True, eq=False)
class LinkOptions(PathOptions):
    """A link, for the commands behind it. Quantities are text with a unit."""

    rtt: Annotated[
        str | None,
        Option("Sum of the delays of both directions, as in `40ms`.", NETWORK, metavar="TIME"),
    ] = None
    trace: Annotated[
        str | Path | None,
        Option(
            "Delivery opportunities in place of {rate}: a trace in mahimahi's format.",
            NETWORK,
            metavar="FILE",
        ),
    ] = None
    tc: Annotated[
        str | None,
        Option("Link in tc syntax, as in `netem delay 20ms loss 1%`.", NETWORK, metavar="TEXT"),
    ] = None

    def to_native(self) -> tuple[Pairs, tuple[str, str]]:
        """Returns the options of both directions, and those of each, as the native module has them.

        Raises:
            InputError: two options exclude each other, or `tc` cannot be read.
        """
        pairs = self.pairs()
        if self.trace is not None:
            pairs.append(("rate_trace", str(self.trace)))
        return _merged(tc_options(self.tc), pairs), (self.up, self.down)

    def one_way_delay(self) -> str | None:
        """Returns the delay of each direction, if it or the RTT was given.

        Raises:
            InputError: both were.
        """
        if self.rtt is None:
            return self.delay
        if self.delay is not None:
            raise InputError(f"rtt='{self.rtt}', delay='{self.delay}': give only one of them")
        return f"{round(quantity('time', 'rtt', self.rtt) * 1e9 / 2)}ns"


def _merged(of_tc: Pairs, pairs: Pairs) -> Pairs:
    """Returns the options and those of `tc`, which must not overlap."""
    both = {key for key, _ in pairs} & {key for key, _ in of_tc}
    if both:
        raise InputError(f"tc: it sets '{min(both)}' too; give it only once")
    return [*of_tc, *pairs]
