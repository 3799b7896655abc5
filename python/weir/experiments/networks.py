"""The networks of the chapter's tests, as scenarios: a switch or router, and a way back for ACKs.

Larry Peterson, Lawrence Brakmo and Bruce Davie, "TCP Congestion Control: A Systems Approach", §3.4.
All delay of the wide-area networks lies on the way back, where the chapter has it: netem at the
receiver, which delays acknowledgements only. The links of the senders are no bottleneck and not
modelled, so that the queue is always that of the switch or router.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TBF_BURST = "3000b"
"""Bucket of the router's token-bucket filter, two packets; Netesto's scripts set it."""

NETEM_LIMIT = "20000p"

MARKING_THRESHOLD = "100kb"
"""Where the switch marks packets of flows that use ECN: about 65 packets, as DCTCP's authors set it
at 10 Gbit/s (Alizadeh et al. 2010, §4)."""

_TOPOLOGY = """
[topology]
kind = "graph"
rtt = "{rtt}"

[[topology.link]]
name = "bottleneck"
from = "senders"
to = "receiver"
rate = "{rate}"
delay = "{forward}"
queue = {queue}
duplex = false
{burst}
[[topology.link]]
name = "acks"
from = "receiver"
to = "senders"
rate = "10gbit"
delay = "{back}"
queue = "{limit}"
duplex = false
monitored = false
"""


@dataclass(frozen=True, slots=True)
class Network:
    """One network of the chapter; texts are as in a scenario."""

    id: str
    title: str
    rate: str
    rtt: str
    forward: str
    back: str
    queue: str
    """TOML: a size in quotes or a table."""
    rate_mbps: float
    full_rtt_s: float
    """Round trip through the full buffer."""
    burst: str | None = None
    """The bucket of a token-bucket filter; None for a switch."""

    @property
    def has_router(self) -> bool:
        """Whether the bottleneck is a router, whose buffer the tests vary."""
        return self.burst is not None

    def with_buffer(self, bdp: float) -> Network:
        """The same with a drop-tail buffer of `n` bandwidth-delay products."""
        return replace(self, queue=f'"{bdp:g}bdp"')

    def marking(self) -> Network:
        """The same with a switch that marks, if it has a switch: DCTCP is nothing without."""
        if self.has_router:
            return self
        queue = f'{{ kind = "ecn-step", limit = {self.queue}, threshold = "{MARKING_THRESHOLD}" }}'
        return replace(self, queue=queue)

    def topology(self) -> str:
        """The section of a scenario."""
        return _TOPOLOGY.format(
            rtt=self.rtt,
            rate=self.rate,
            forward=self.forward,
            queue=self.queue,
            burst=f'burst = "{self.burst}"\n' if self.burst else "",
            back=self.back,
            limit=NETEM_LIMIT,
        )


def _router(name: str, rate_mbps: float, rtt_ms: int = 40) -> Network:
    rate, rtt = f"{rate_mbps:g}mbit", f"{rtt_ms}ms"
    title = f"WAN, {rate_mbps:g} Mbit/s, {rtt_ms} ms"
    queue, full_s = '"1bdp"', 2 * rtt_ms / 1000
    return Network(name, title, rate, rtt, "0s", rtt, queue, rate_mbps, full_s, TBF_BURST)


_SWITCH = '"1500kb"'
"""The chapter's shallow switch has 1 to 2 MB."""

LAN = Network(
    "lan-10g", "LAN, 10 Gbit/s, 20 µs", "10gbit", "20us", "10us", "10us", _SWITCH, 1e4, 1.22e-3
)
WAN_10G = Network(
    "wan-10g", "WAN, 10 Gbit/s, 10 ms", "10gbit", "10ms", "0s", "10ms", _SWITCH, 1e4, 0.0112
)
WAN_100M = _router("wan-100m", 100)
WAN_10M = _router("wan-10m", 10)

WAN_100M_NEAR = _router("wan-100m-10ms", 100, 10)
WAN_10M_NEAR = _router("wan-10m-10ms", 10, 10)
"""Figure 14 of the chapter has a delay of 10 or of 40 ms."""

NETWORKS = (WAN_10G, WAN_100M, WAN_10M, WAN_100M_NEAR, WAN_10M_NEAR, LAN)
