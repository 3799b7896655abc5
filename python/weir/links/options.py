"""Options of an emulated link, for the commands behind it: of `weir link`, live and virtual."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weir.base.errors import InputError
from weir.links.emulation import given, seconds
from weir.scenario.tc import options as tc_options


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """A link as it is to be. Quantities are text with a unit."""

    rate: str | None = None
    """Rate of IP packets, as in `10mbit`."""
    rtt: str | None = None
    """Sum of the delays of both directions, as in `40ms`."""
    delay: str | None = None
    """One-way delay, in place of `rtt`."""
    queue: str | None = None
    """Queue capacity, with `rate`: `64p`, `1bdp`, `100ms`, `64kb`."""
    loss: str | None = None
    """Share of packets lost, as in `1%`."""
    jitter: str | None = None
    """Largest random variation of the delay."""
    corrupt: str | None = None
    """Share of packets with a flipped bit."""
    duplicate: str | None = None
    """Share of packets duplicated."""
    reorder: str | None = None
    """Share of packets delayed by a further 10 ms."""
    trace: str | Path | None = None
    """Delivery opportunities in place of `rate`: a file in mahimahi's format."""
    tc: str | None = None
    """The link in the syntax of `tc`, as in `netem delay 20ms loss 1%`."""
    up: str = ""
    """Options of the direction from the commands, as in `loss=10%,jitter=5ms`."""
    down: str = ""
    """Options of the direction to the commands."""

    def lowered(self) -> tuple[list[tuple[str, str]], tuple[str, str]]:
        """Returns the options of both directions, and those of each, as the native module has them.

        Raises:
            InputError: two options exclude each other, or `tc` cannot be read.
        """
        options = given(
            rate=self.rate,
            delay=_one_way(self.rtt, self.delay),
            queue=self.queue,
            loss=self.loss,
            jitter=self.jitter,
            corrupt=self.corrupt,
            duplicate=self.duplicate,
            reorder=self.reorder,
            rate_trace=None if self.trace is None else str(self.trace),
        )
        return _merged(tc_options(self.tc), options), (self.up, self.down)


def _merged(of_tc: list[tuple[str, str]], options: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the options and those of `tc`, which must not overlap."""
    both = {key for key, _ in options} & {key for key, _ in of_tc}
    if both:
        raise InputError(f"tc: it sets '{min(both)}' too; give it only once")
    return [*of_tc, *options]


def _one_way(rtt: str | None, delay: str | None) -> str | None:
    if rtt is None:
        return delay
    if delay is not None:
        raise InputError(f"rtt='{rtt}', delay='{delay}': give only one of them")
    return f"{round(seconds('rtt', rtt) * 1e9 / 2)}ns"
