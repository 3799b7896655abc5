"""transperf's tests: what is run, and which scores are required of it.

The sample is the one that comes with it, with its own scores; the others are scored by its defaults
(google/transperf, `default_target_score`), which its authors chose for BBR: CUBIC and Reno are not
expected to reach them. Packets of a bandwidth-delay product have 1514 bytes, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RATE_MBPS = 50.0
RTT_MS = 40.0
PACKET = 1514
GRACE_S = 4.0
"""Time from which fairness is required: its `convergence_sec`."""

TPUT, RTT, LOCK_ON = "tput", "rtt_med", "lock_on_bw"
LOSS, FAIRNESS, CONVERGENCE = "loss_avoid", "fairness", "convergence_fairness"
FULL_QUEUE = "median RTT, ms"
"""Not a score: its check that the median RTT is below 1.1 times that of a full buffer."""

_SINGLE = {TPUT: 80.0, RTT: 30.0, LOCK_ON: 80.0, LOSS: 100.0}
_SEVERAL = {
    TPUT: 80.0,
    RTT: 30.0,
    LOCK_ON: 35.0,
    LOSS: 96.0,
    FAIRNESS: 96.0,
    CONVERGENCE: 90.0,
}
_SAMPLE = {TPUT: 80.0, RTT: 40.0, LOCK_ON: 35.0, LOSS: 99.0, FAIRNESS: 70.0, CONVERGENCE: 50.0}


def bdp_packets(bdps: float) -> int:
    """A buffer in whole packets, as transperf's `bdp` computes it."""
    return max(1, round(bdps * RATE_MBPS * 1e6 * RTT_MS * 1e-3 / (8 * PACKET)))


@dataclass(frozen=True, slots=True)
class Test:
    """One of its tests over 50 Mbit/s and 40 ms."""

    name: str
    flows: int
    bdps: float
    scores: Mapping[str, float]
    policer: Mapping[str, str] = field(default_factory=dict)
    policer_mbps: float | None = None

    @property
    def network(self) -> str:
        """What is run: tests of one network that differ in their scores share their runs."""
        limit = "" if self.policer_mbps is None else f", policer {self.policer_mbps:g} Mbit/s"
        return f"{self.flows} x {self.queue}{limit}"

    @property
    def queue(self) -> str:
        """As in a scenario."""
        return f"{bdp_packets(self.bdps)}p"

    @property
    def rate_mbps(self) -> float:
        """What goodput is compared with: the link's rate or the policer's."""
        return RATE_MBPS if self.policer_mbps is None else self.policer_mbps

    @property
    def highest_rtt_ms(self) -> float:
        """1.1 times the round trip behind a full buffer."""
        full_ms = bdp_packets(self.bdps) * PACKET * 8 / (RATE_MBPS * 1e3)
        return 1.1 * (RTT_MS + full_ms)


TESTS = (
    Test("sample: 4 flows, 1 BDP", 4, 1.0, _SAMPLE),
    Test("1 flow, 1 BDP", 1, 1.0, _SINGLE),
    Test("4 flows, 1 BDP", 4, 1.0, _SEVERAL),
    Test("4 flows, 0.05 BDP", 4, 0.05, {**_SEVERAL, FAIRNESS: 80.0, CONVERGENCE: 70.0}),
    Test(
        "4 flows, policer of 10 Mbit/s",
        4,
        1.0,
        {**_SEVERAL, LOSS: 70.0, CONVERGENCE: 85.0},
        {"rate": "10mbit", "burst": "50kb"},
        10.0,
    ),
)
"""The policer's bucket, the round trip at its rate, is ours: transperf leaves it to who writes a
test."""

WITH_FULL_QUEUE = tuple(test for test in TESTS if not test.policer)
