"""The links of the study: what each is at first, what changes when, and where the idea is from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

_PAYLOAD = 1448 / 1500
"""Application bytes per byte of a full packet."""


@dataclass(frozen=True, slots=True)
class Change:
    """From `at_s` on the link has this rate; `event` names a change that is asked about."""

    at_s: float
    mbps: float
    event: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One link; `forward` is TOML for the way of the data."""

    name: str
    story: str
    changes: tuple[Change, ...]
    """The first is at 0."""
    seconds: float
    forward: str = ""
    rtt: str = "40ms"
    queue: str = "100ms"

    @property
    def rate(self) -> str:
        """At first, as in a scenario."""
        return f"{self.changes[0].mbps:g}mbit"

    def rate_steps(self) -> str:
        """What changes, as in a scenario; empty if the rate never does."""
        steps = [
            f'{{ at = "{change.at_s:g}s", rate = "{change.mbps:g}mbit" }}'
            for before, change in itertools.pairwise(self.changes)
            if change.mbps != before.mbps
        ]
        return f"rate_steps = [{', '.join(steps)}]" if steps else ""

    def phases(self) -> Iterator[tuple[Change, float]]:
        """Every change with the end of what it begins."""
        ends = [*(change.at_s for change in self.changes[1:]), self.seconds]
        return zip(self.changes, ends, strict=True)

    def capacity_mbit(self, from_s: float) -> float:
        """What an application could be given from a time on to the end, headers left out."""
        parts = (
            change.mbps * max(0.0, end - max(from_s, change.at_s)) for change, end in self.phases()
        )
        return _PAYLOAD * sum(parts)


def goodput_of(mbps: float) -> float:
    """The goodput of a link of this rate."""
    return _PAYLOAD * mbps


def _suspended(every_s: float, for_s: float, until_s: float, mbps: float) -> tuple[Change, ...]:
    """A link that pauses again and again."""
    changes = [Change(0, mbps)]
    for number in range(1, int(until_s / every_s)):
        begin = number * every_s
        changes += [Change(begin, 0), Change(begin + for_s, mbps)]
    return tuple(changes)


LINKS = (
    Link(
        "rate steps",
        "20 Mbit/s becomes 5 Mbit/s at 15 s and 20 Mbit/s again at 30 s.",
        (Change(0, 20), Change(15, 5, "down to a quarter"), Change(30, 20, "up fourfold")),
        45,
    ),
    Link(
        "delay steps",
        "The way there becomes 100 ms longer at 15 s and as short as before at 35 s: another route."
        "",
        (Change(0, 10), Change(15, 10, "100 ms longer"), Change(35, 10, "100 ms shorter")),
        50,
        forward='delay_steps = [{ at = "15s", delay = "120ms" }, { at = "35s", delay = "20ms" }]',
        queue="1bdp",
    ),
    Link(
        "black hole",
        "Nothing passes from 10 s to 12 s; the queue keeps what fits (after black_hole "
        "of picoquic's simulator).",
        (Change(0, 10), Change(10, 0), Change(12, 10, "after 2 s of nothing")),
        25,
    ),
    Link(
        "drop and back",
        "A tenth of the rate from 10 s to 14 s (after drop_and_back of picoquic's simulator).",
        (Change(0, 10), Change(10, 1, "down to a tenth"), Change(14, 10, "back")),
        30,
    ),
    Link(
        "low and up",
        "It begins at a tenth of what it has from 5 s on (after low_and_up of picoquic's "
        "simulator).",
        (Change(0, 2), Change(5, 20, "up tenfold")),
        25,
    ),
    Link(
        "wifi fade",
        "A radio that fades away within 4 s and comes back, with jitter and losses in bursts.",
        (
            Change(0, 30),
            Change(10, 12),
            Change(12, 4),
            Change(14, 1),
            Change(16, 4),
            Change(18, 12),
            Change(20, 30, "back from the fade"),
        ),
        32,
        forward='jitter = "4ms"\n'
        'burst_loss = { good_to_bad = "0.1%", bad_to_good = "30%", loss_in_bad = "80%" }',
        rtt="30ms",
        queue="150ms",
    ),
    Link(
        "wifi suspension",
        "A radio that is away for 200 ms every 2 s, as when it looks for other networks.",
        _suspended(2.0, 0.2, 24, 20),
        24,
    ),
)
