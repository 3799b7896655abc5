"""The 18 emulated paths, as the Pantheon's command lines for mahimahi describe them.

mahimahi's shells are nested: `mm-link` holds the sender, with its queue; then come `mm-loss` and
`mm-delay`. So what is lost at random is lost behind the bottleneck, and the scenario is a graph.

Constant rates are rates here, and delivery opportunities of 1500 bytes in whole milliseconds there.
Paths of Poisson rate have opportunities here too, whose distances are exponential; the Pantheon's
own files are not part of Weir, so that only their mean and kind are the same. As there, both
directions have the same trace, and every run meets the same.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

SECONDS = 30
"""How long a run takes, and after how long a trace of opportunities repeats."""

_OPPORTUNITY_MBIT = 1500 * 8e-6

_TOPOLOGY = """
[topology]
kind = "graph"
rtt = "{rtt}ms"

[[topology.link]]
name = "up"
from = "sender"
to = "edge"
rate = "{up.mbps:g}mbit"
queue = "{queue}"
duplex = false
{up_trace}
[[topology.link]]
name = "wire"
from = "edge"
to = "receiver"
rate = "100gbit"
delay = "{delay}ms"
queue = "infinite"
duplex = false
monitored = false
impair = {{ loss = {loss:g} }}

[[topology.link]]
name = "down"
from = "receiver"
to = "sender"
rate = "{down.mbps:g}mbit"
delay = "{delay}ms"
queue = "{down_queue}"
duplex = false
monitored = false
{down_trace}
"""


@dataclass(frozen=True, slots=True)
class Rate:
    """What one direction carries: `mbps`, spread out evenly or at given moments."""

    mbps: float
    opportunities_ms: tuple[int, ...] = ()
    """Moments at which 1500 bytes may leave; the last one ends the cycle."""


@dataclass(frozen=True, slots=True)
class Path:
    """One path; `number` is that of the Pantheon's list."""

    number: int
    name: str
    up: Rate
    down: Rate
    delay_ms: int
    """One way, the same in both directions."""
    queue: str
    loss: float = 0.0
    """Behind the bottleneck, on the way of the data only."""
    down_queue: str = "infinite"

    @property
    def title(self) -> str:
        """For tables and pictures."""
        return f"{self.number}. {self.name}"

    @property
    def packet_ms(self) -> float:
        """How long a full packet takes to leave the bottleneck once its turn has come."""
        return 0.0 if self.up.opportunities_ms else _OPPORTUNITY_MBIT / self.up.mbps * 1e3

    def topology(self) -> str:
        """The section of a scenario."""
        return _TOPOLOGY.format(
            rtt=2 * self.delay_ms,
            up=self.up,
            down=self.down,
            delay=self.delay_ms,
            queue=self.queue,
            down_queue=self.down_queue,
            loss=self.loss,
            up_trace=_trace(self.up),
            down_trace=_trace(self.down),
        )


def poisson(mbps: float) -> Rate:
    """Opportunities whose distances are exponential, with this mean rate over the cycle exactly.

    Their times are whole milliseconds, as in mahimahi's files, so that several may fall together.
    """
    rng = random.Random(f"pantheon, {mbps:g} Mbit/s")  # noqa: S311
    count = round(mbps * SECONDS / _OPPORTUNITY_MBIT)
    times = list(itertools.accumulate(-math.log(1 - rng.random()) for _ in range(count)))
    scale = SECONDS * 1000 / times[-1]
    return Rate(mbps, tuple(round(time * scale) for time in times))


def _trace(rate: Rate) -> str:
    times = ", ".join(str(time) for time in rate.opportunities_ms)
    return f"impair = {{ rate_trace = [{times}] }}" if times else ""


def _calibrated() -> list[Path]:
    nepal, mexico, colombia = poisson(0.57), poisson(2.64), poisson(3.04)
    india, china, california = Rate(100.42), Rate(77.72), Rate(114.68)
    return [
        Path(1, "Nepal to India, 0.57 Mbit/s", nepal, nepal, 28, "14p", 0.0477),
        Path(2, "Mexico cellular, 2.64 Mbit/s", mexico, mexico, 88, "130p"),
        Path(3, "Brazil to Colombia cellular, 3.04 Mbit/s", colombia, colombia, 130, "426p"),
        Path(4, "within India, 100 Mbit/s", india, india, 27, "173p"),
        Path(5, "Korea to China, 78 Mbit/s", china, china, 51, "94p", 0.0006),
        Path(6, "California to Mexico, 115 Mbit/s", california, california, 45, "450p"),
    ]


def _policers() -> list[Path]:
    kinds = itertools.product((10, 50), (12.0, 60.0, 108.0))
    return [
        Path(
            7 + place,
            f"one-packet queue, {mbps:g} Mbit/s, {2 * delay_ms} ms",
            Rate(mbps),
            Rate(mbps),
            delay_ms,
            "1p",
            down_queue="1p",
        )
        for place, (delay_ms, mbps) in enumerate(kinds)
    ]


def _aggregated() -> list[Path]:
    up = Rate(12)
    every_100_ms = Rate(0.12, (100,))
    ten_every_200_ms = Rate(0.6, (200,) * 10)
    return [
        Path(13, "ACKs once per 100 ms", up, every_100_ms, 10, "infinite"),
        Path(14, "ACKs in bursts per 200 ms", up, ten_every_200_ms, 10, "infinite"),
    ]


def _shallow() -> list[Path]:
    parts = (("0.1", "9kb"), ("1/3", "30kb"), ("1/2", "45kb"), ("1", "90kb"))
    return [
        Path(15 + place, f"buffer of {part} BDP, 12 Mbit/s", Rate(12), Rate(12), 30, queue)
        for place, (part, queue) in enumerate(parts)
    ]


PATHS = (*_calibrated(), *_policers(), *_aggregated(), *_shallow())
