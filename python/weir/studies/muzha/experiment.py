"""What all parts of the study have in common: the radio network of the slides, and its senders.

Where the slides are silent the settings are ns-2's of that time: nodes 200 m apart with a reach of
250 m, 2 Mbit/s for data and 1 Mbit/s for control, AODV, 1000 B of payload under 40 B of headers,
two segments at first, an acknowledgement per segment, no retransmission sooner than 200 ms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir.studies.contest import Extent

NEWRENO, SACK, VEGAS, MUZHA = "NewReno", "SACK", "Vegas", "Muzha"
MUZHA_RTT = "Muzha, memory 1 RTT"
"""Muzha where routers average over one unloaded round trip instead of 200 ms."""

STACKS = {
    NEWRENO: "newreno/reno",
    SACK: "sack/reno",
    VEGAS: "newreno/vegas",
    MUZHA: "newreno/muzha",
}
"""The protocols of the slides, by the names they have there."""

_RTT_PER_HOP_MS = 7.6
"""What 1000 B and their acknowledgement take over an idle hop, each with a mean backoff."""

HOPS = (4, 5, 6, 7, 8, 9, 10, 13, 16, 32)
WINDOWS = (4, 8, 32)
"""Receiver windows in segments (ns-2's `window_`)."""

EXTENTS = {
    "small": Extent(tuple(STACKS), 20, 3, values=(4, 8)),
    "full": Extent(tuple(STACKS), 50, 10, values=HOPS),
}
"""The values are lengths of chains in hops."""

WARMUP_S = 5.0

_HEAD = """
name = "muzha"

[topology]
kind = "radio"

[topology.radio]
"""

_FLOW = """
[[flow]]
name = "{name}"
stack = "{stack}"
start = "{start:g}s"
start_jitter = "{wait:g}s"
window_limit = {window}
mss = {mss}
timestamps = false
initial_window = 2
delayed_ack = "off"
initial_rto = "3s"
min_rto = "{min_rto}"
slow_start_after_idle = false
gso = 1
route_policy = "{policy}"
ecn = {ecn}
"""

_MEASURE = """
[measure]
duration = "{duration:g}s"
warmup = "{warmup:g}s"
sample_interval = "{sample:g}s"
events = {events}
repeat = {repeat}
seed = {seed}
"""


@dataclass(frozen=True)
class Sender:
    """A bulk flow; `stack` is as a scenario writes it."""

    stack: str
    window: int | str
    """Segments, or a text such as `cwl` that goes by the length of the route."""
    name: str = "flow"
    start_s: float = 0.0
    wait_s: float = 0.0
    """It starts within this time, at random."""
    policy: str = "none"
    mss: int = 1000
    min_rto: str = "200ms"
    ecn: bool = False

    def text(self) -> str:
        """Its section of a scenario."""
        return _FLOW.format(
            name=self.name,
            stack=self.stack,
            start=self.start_s,
            wait=self.wait_s,
            window=json.dumps(self.window),
            mss=self.mss,
            min_rto=self.min_rto,
            policy=self.policy,
            ecn=json.dumps(self.ecn),
        )


@dataclass(frozen=True)
class Radio:
    """The network; `keys` are further keys of its section, as TOML."""

    hops: int | None = None
    placement: str = "chain"
    keys: Mapping[str, str] = field(default_factory=dict)
    feedback: str = '{ kind = "drai" }'
    """What routers stamp, as TOML: the five levels of the slides."""

    def text(self) -> str:
        """The head of a scenario."""
        keys = {
            "placement": f'"{self.placement}"',
            **({} if self.hops is None else {"hops": str(self.hops)}),
            "arp": "false",
            "routing": '"aodv"',
            "feedback": self.feedback,
            **self.keys,
        }
        return _HEAD + "".join(f"{key} = {value}\n" for key, value in keys.items())


@dataclass(frozen=True)
class Watch:
    """How long and how closely a case is looked at, where not as all others are."""

    seconds: float
    warmup_s: float = WARMUP_S
    sample_s: float = 0.0
    repeat: int | None = None
    events: int = 0
    """Rows of table `events` that are kept."""


def scenario(
    radio: Radio, senders: Sequence[Sender], extent: Extent, watch: Watch | None = None
) -> str:
    """One case of the study."""
    own = watch or Watch(extent.seconds)
    measure = _MEASURE.format(
        duration=own.seconds,
        warmup=own.warmup_s,
        sample=own.sample_s,
        events=own.events,
        repeat=own.repeat or extent.repeat,
        seed=extent.seed,
    )
    return radio.text() + "".join(sender.text() for sender in senders) + measure


def memory(hops: int, round_trips: float = 1.0) -> str:
    """Feedback whose average is as long as this number of unloaded round trips over `hops`."""
    return f'{{ kind = "drai", memory = "{hops * _RTT_PER_HOP_MS * round_trips:.1f}ms" }}'


def hops_of(extent: Extent, wanted: Sequence[int] = HOPS) -> tuple[int, ...]:
    """Those of the wanted lengths that this size of the study has."""
    return tuple(hops for hops in wanted if hops in extent.values)


def hops_name(hops: int) -> str:
    """A column."""
    return f"{hops} hops"


def hops_in(column: str) -> int:
    """The number of hops that a column names."""
    return int(column.split()[0])
