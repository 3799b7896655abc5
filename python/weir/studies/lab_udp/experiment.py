"""From published cells to scenarios: each over the relay as it was and over a delay line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weir.scenario.source import SIM
from weir.scenario.source import Source as ScenarioSource
from weir.scenario.sweep import Plan, plan
from weir.studies.lab_udp.calibration import SOCKET_BUFFER, Model
from weir.studies.lab_udp.published import Conditions, Source

RELAYS = {"serial": "serial", "delay_line": "delay-line"}
"""Our simulated columns, and the relay of each as a scenario names it."""


@dataclass(frozen=True, slots=True)
class Column:
    """One of our columns: over which of `RELAYS`, in which world."""

    relay: str
    world: str = SIM

    @property
    def name(self) -> str:
        """What it is called in tables and `--json`."""
        return self.relay if self.world == SIM else f"{self.relay}_{self.world}"


def columns(world: str) -> list[Column]:
    """The simulated columns, and beside each the same in `world`."""
    worlds = dict.fromkeys((SIM, world))
    return [Column(relay, each) for relay in RELAYS for each in worlds]


STACKS: Mapping[str, Mapping[str, str]] = {
    "000": {
        "stop-and-wait": "stop-and-wait/none",
        "window-8": "go-back-n(8,duplicates=off)/none",
        "window-16": "go-back-n(16,duplicates=off)/none",
        "reno": "go-back-n(30,duplicates=2)/reno-002(ssthresh=4)",
    },
    "002": {
        "stop-and-wait": "stop-and-wait/none",
        "window-5": "go-back-n(5,duplicates=2)/none",
        "window-10": "go-back-n(10,duplicates=2)/none",
        "window-20": "go-back-n(20,duplicates=2)/none",
        "window-30": "go-back-n(30,duplicates=2)/none",
        "reno": "go-back-n(30,duplicates=2)/reno-002(ssthresh=4)",
    },
}
"""The stack of ours that is each published protocol.

Source 000 says that fast retransmit came with its Reno: a plain window waits for its timer.
Source 002 resends after three equal acknowledgements: two duplicates of a first one.

Source 002 prints the state machine of its Reno, but not the first threshold. The textbook's figure
of that machine (Kurose and Ross §3.7) starts with 64 KB, which are 4 of its segments.

Source 000 prints nothing of its Reno. Both send the same file, so it is taken to be that of source
002, which was chosen after seeing what RFC 5681's under a window of 8 gives.
"""

RENO_WINDOW = 30
"""Segments that bound the window under Reno, as source 002 has it."""

_LONGEST = "1000s"

_SCENARIO = """
name = "lab-udp"

[topology]
kind = "lab-router"
relay = "{relay}"
queue = "{buffer}"
delay = "{delay_ms:.4f}ms"
reverse_delay = "{relay_ms:.4f}ms"

[topology.forward]
{losses}

[topology.reverse]
{later}

[[flow]]
stack = "{stack}"
mss = {payload}
fixed_rto = "{timeout_ms:.3f}ms"
send_time = "{send_ms:.4f}ms"
send_jitter = "{send_jitter_ms:.4f}ms"
recv_buffer = "{window_bytes}b"
workload = {{ kind = "file", size = "{file_bytes}b" }}
# Neither protocol has what TCP added later.
timestamps = false
sack = {sack}
delayed_ack = "off"
initial_window = 1
limited_transmit = false
cwnd_validation = false
slow_start_after_idle = false
max_retransmits = 1000

[measure]
duration = "{longest}"
sample_interval = "0s"
repeat = {repeat}
seed = {seed}
"""


_LATER = 'delay_steps = [{{ at = "0s", delay = "{}ms" }}]'
"""On the way back, so that it passes after the relay has handled the data."""


def _losses(percent: float, model: Model) -> str:
    """The losses, which begin once the SYN has passed where only the transfer is timed."""
    if model.times_handshake:
        return f'loss = "{percent}%"'
    at = model.send_ms + model.send_jitter_ms
    return f'loss_steps = [{{ at = "{at:.4f}ms", loss = "{percent}%" }}]'


@dataclass(frozen=True, slots=True)
class Experiment:
    """One protocol of one source under one set of conditions."""

    source: str
    protocol: str
    conditions: Conditions

    def label(self, column: Column) -> str:
        """The name of its case in one of our columns."""
        conditions, where = self.conditions, column.name.replace("_", " ")
        return (
            f"{self.source} {self.protocol}, loss {conditions.loss_percent:g} %, delay "
            f"{conditions.delay_ms:g} ms, {conditions.file_bytes} B, {where}"
        )

    @property
    def stack(self) -> str:
        """The stack that stands for the protocol."""
        return STACKS[self.source][self.protocol]

    def scenario(self, relay: str, model: Model, *, repeat: int, seed: int) -> str:
        """The scenario of its case over one of `RELAYS`."""
        conditions = self.conditions
        segments = RENO_WINDOW if self.protocol == "reno" else 64
        is_serial = RELAYS[relay] == RELAYS["serial"]
        later = model.later_ms(conditions.delay_ms) if is_serial else 0.0
        needs = conditions.delay_ms + model.relay_ms
        return _SCENARIO.format(
            relay=RELAYS[relay],
            buffer=SOCKET_BUFFER,
            delay_ms=model.needs_ms(conditions.delay_ms) if is_serial else needs,
            later=_LATER.format(later) if later else "",
            relay_ms=model.relay_ms,
            losses=_losses(conditions.loss_percent, model),
            stack=self.stack,
            payload=model.payload_bytes,
            timeout_ms=model.timeout_ms,
            send_ms=model.send_ms,
            send_jitter_ms=model.send_jitter_ms,
            window_bytes=segments * model.payload_bytes,
            file_bytes=conditions.file_bytes,
            sack="true" if self.stack.startswith("selective-repeat") else "false",
            longest=_LONGEST,
            repeat=repeat,
            seed=seed,
        )


def experiments(sources: Sequence[Source]) -> Iterator[Experiment]:
    """What the published tables consist of; a cell that stands in several tables comes once."""
    seen = set()
    for source in sources:
        for table in source.tables:
            for row in table.rows:
                for column in range(len(table.columns)):
                    found = Experiment(source.id, row.experiment, table.measured_under(row, column))
                    if found not in seen:
                        seen.add(found)
                        yield found


def study_plan(
    sources: Sequence[Source],
    models: Mapping[str, Model],
    repeats: Mapping[str, int],
    seed: int,
    options: Sequence[str],
) -> Plan:
    """Every run of the study: in each world as often as `repeats` says, the simulated ones first.

    `options` are those of the command that repeats it, but for the seed.
    """
    scenarios = {
        experiment.label(column): ScenarioSource(
            experiment.scenario(
                column.relay, models[experiment.source], repeat=repeats[column.world], seed=seed
            ),
            "study lab-udp",
        ).in_world(column.world)
        for world in repeats
        for experiment in experiments(sources)
        for column in (Column(relay, world) for relay in RELAYS)
    }
    command = shlex.join(["weir", "study", "lab-udp", *options, "--seed", str(seed)])
    return plan("lab-udp", command, scenarios, {})
