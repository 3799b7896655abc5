"""From the parameters of a recorded case to a scenario of ours.

The recording's model: sender S, infinite link, router A with the bottleneck towards B, from B the
delay and the random loss to the receiver, and the same delay back. Frames count their 14 bytes of
Ethernet header there. Values are written as `tc` reads them: `1600` is bytes, `kb` is 1024 bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weir import _native
from weir.kernel.receiver import GROWING
from weir.recordings import tc
from weir.recordings.qdiscs import Table, bottleneck, draws_random_numbers
from weir.recordings.tc import UnhostedError
from weir.recordings.truth import Flow, Reference
from weir.scenario.source import Source

TICK = "TICK"
"""The parameter that says when the kernel's first tick is.

Its timers fire on ticks, and its timestamps change with them.
"""
FIRST_TICK = "750us"
"""Of a run here, in the simulator and in a guest."""
_APART_NS = 1_000_000
"""From tick to tick."""

_SEGMENT = 1_448
_TIMESTAMPS = 12
"""Bytes of the timestamp option: without it a segment carries that much more."""
_KNOWN = {"RATE", "QLEN", "DELAY", "LOSS", "FLOWS", "DUR", "STEP", "QDISC", "QDISC2", "SYSCTL"}
_KNOWN |= {"PARAM", "NOCSV", "TRACE", "PCAP", "MEM", "TIME", TICK}
DRAWING = ("bbr", "cdg", "lp", "nv")
"""Controllers that draw random numbers; to `lp`, the random offset of timestamps is a delay."""


@dataclass(frozen=True)
class Hosted:
    """A case as a scenario."""

    source: Source
    mss: int
    draws: bool
    """Whether the kernel drew random numbers: then means over several seeds are compared."""
    stacks: tuple[str, ...]
    """The stack of each flow."""


def host(reference: Reference, *, acks: int, receiver: Mapping[str, str] = GROWING) -> Hosted:
    """The scenario that repeats a recorded case; the first `acks` acknowledgements are recorded.

    `receiver` has the keys of the receive buffer.

    Raises:
        UnhostedError: the simulator has no such algorithm, queue or switch.
    """
    params = reference.params
    for key in params.keys() - _KNOWN:
        raise UnhostedError(f"parameter {key} is not known")
    stack = _Stack.read(params)
    router = bottleneck(params)
    delay, loss = tc.time(params.get("DELAY", "20ms")), params.get("LOSS", "")
    onward: Table = {"from": "B", "to": "D", "delay": delay, "queue": "infinite"}
    if loss:
        onward["impair"] = {"loss": _percent(loss)}
    links = [
        {"from": "A", "to": "B", "name": "bottleneck", **router},
        {**_INFINITE, **onward},
        {**_INFINITE, "from": "D", "to": "A", "delay": delay, "queue": "infinite"},
    ]
    step_ms = tc.whole("STEP", params.get("STEP", "10"))
    end = max(flow.end_s for flow in reference.flows)
    late_s = _late_s(params)
    flows = [
        {**stack.flow(flow, late_s), **receiver, **_jitter(index)}
        for index, flow in enumerate(reference.flows)
    ]
    scenario = {
        "name": reference.name,
        "topology": {"kind": "graph", "link": [{**link, "duplex": False} for link in links]},
        "flow": flows,
        # The last sample of a recording is that of its last moment.
        "measure": {
            "duration": _seconds(end + step_ms / 1e3),
            "sample_interval": f"{step_ms}ms",
            "acks": acks,
        },
    }
    source = Source(_toml(scenario), reference.name)
    try:
        source.effective()
    except _native.ScenarioError as error:
        what = re.sub(r".*, line \d+: ", "", str(error))
        raise UnhostedError(f"the simulator cannot host it: {what}") from None
    draws = (
        len(reference.flows) > 1
        or bool(loss)
        or draws_random_numbers(router)
        or _is_drawing(reference.flows)
    )
    return Hosted(source, stack.mss, draws, tuple(flow["stack"] for flow in flows))


def _late_s(params: Mapping[str, str]) -> float:
    """How much later everything begins, so that ticks are where they were in the recording."""
    if TICK not in params:
        return 0.0
    early = tc.nanoseconds(FIRST_TICK) - tc.nanoseconds(params[TICK])
    return (early % _APART_NS) / 1e9


def _jitter(index: int) -> Table:
    """Flows that join others start up to 5 ms late, as their recordings do.

    Which packet an overflow costs depends on when they meet, and everything after on that packet.
    """
    return {"start_jitter": "5ms"} if index else {}


_INFINITE: Table = {"rate": "1tbit", "monitored": False}
"""A graph's links have rates; at this one a packet takes 12 ns."""


@dataclass(frozen=True)
class _Stack:
    """The switches of both ends' TCP."""

    sack: bool
    rack: bool
    tlp: bool
    timestamps: bool
    ecn: bool
    dctcp_listens: bool
    cubic: tuple[str, ...]

    @property
    def mss(self) -> int:
        return _SEGMENT if self.timestamps else _SEGMENT + _TIMESTAMPS

    @classmethod
    def read(cls, params: Mapping[str, str]) -> _Stack:
        sysctls, modules = _assignments(params, "SYSCTL"), _assignments(params, "PARAM")
        known = dict.fromkeys(f"net.ipv4.tcp_{key}" for key in _SYSCTLS)
        for key in sysctls.keys() - known.keys():
            raise UnhostedError(f"the simulator has no switch for {key}={sysctls[key]}")
        value = {key: sysctls.get(f"net.ipv4.tcp_{key}", usual) for key, usual in _SYSCTLS.items()}
        for key in modules.keys() - _CUBIC.keys():
            raise UnhostedError(f"the simulator has no switch for {key}={modules[key]}")
        return cls(
            sack=value["sack"] != "0",
            rack=value["recovery"] != "0",
            tlp=value["early_retrans"] != "0",
            timestamps=value["timestamps"] != "0",
            ecn=value["ecn"] == "1",
            dctcp_listens=value["congestion_control"] == "dctcp",
            cubic=tuple(_CUBIC[key] for key, given in sorted(modules.items()) if given == "0"),
        )

    def flow(self, flow: Flow, late_s: float) -> Table:
        """One flow's section."""
        return {
            "stack": f"{self._recovery()}/{self._controller(flow.cc)}",
            "from": "A",
            "to": "D",
            "start": _seconds(flow.start_s + late_s),
            # Just after the sample of that moment, as in the recording.
            "stop": _seconds(flow.end_s + late_s + 1e-6),
            "mss": self.mss,
            "sack": self.sack,
            "timestamps": self.timestamps,
            "ecn": self._negotiates_ecn(flow.cc),
        }

    def _recovery(self) -> str:
        """Without SACK there is neither RACK nor TLP to switch off."""
        off = {"detection=count": self.rack, "tlp=off": self.tlp}
        switches = [switch for switch, is_on in off.items() if self.sack and not is_on]
        return f"rack({','.join(switches)})" if switches else "rack"

    def _controller(self, cc: str) -> str:
        known = {item["name"] for item in _native.catalogue()["controllers"]}
        if cc not in known:
            raise UnhostedError(f"the simulator has no controller {cc}")
        return f"{cc}({','.join(self.cubic)})" if cc == "cubic" and self.cubic else cc

    def _negotiates_ecn(self, cc: str) -> bool:
        """Whether both ends agree on ECN.

        A DCTCP sender's SYN is ECT-marked, which a listener of another algorithm refuses
        (tcp_ecn_create_request); DCTCP without ECN is Reno.
        """
        return self.ecn and (cc != "dctcp" or self.dctcp_listens)


_SYSCTLS = {
    "sack": "1",
    "recovery": "1",
    "early_retrans": "3",
    "timestamps": "1",
    "ecn": "2",
    "congestion_control": "",
}
_CUBIC = {
    "tcp_cubic/parameters/hystart": "hystart=off",
    "tcp_cubic/parameters/tcp_friendliness": "friendliness=off",
}


def _assignments(params: Mapping[str, str], key: str) -> dict[str, str]:
    found = {}
    for item in filter(None, params.get(key, "").split(",")):
        name, equals, value = item.partition("=")
        if not equals:
            raise UnhostedError(f"{key}: {item} is not a name with a value")
        found[name] = value
    return found


def _is_drawing(flows: Sequence[Flow]) -> bool:
    return any(flow.cc in DRAWING for flow in flows)


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%?", text)
    if not match or float(match[1]) > 100:
        raise UnhostedError(f"the simulator has no loss model {text}")
    return float(match[1]) / 100


def _seconds(seconds: float) -> str:
    return f"{round(seconds * 1e9)}ns"


def _toml(value: Any) -> str:
    """`value` as TOML: tables in one line each, of which JSON's scalars and lists are a part."""
    if not isinstance(value, dict):
        return _inline(value)
    return "".join(f"{key} = {_inline(entry)}\n" for key, entry in value.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)
