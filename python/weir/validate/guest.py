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
from weir.errors import WeirError
from weir.scenario import Source
from weir.validate.truth import Flow, Reference

_SEGMENT = 1_448
_TIMESTAMPS = 12
"""Bytes of the timestamp option: without it a segment carries so much more."""
_RECV_BUFFER, _LARGEST_BUFFER = 4 << 20, 16 << 20
"""Half of the recordings' `tcp_rmem`: the window's bound at first, and where a path needs more."""
_KNOWN = {"RATE", "QLEN", "DELAY", "LOSS", "FLOWS", "DUR", "STEP", "QDISC", "QDISC2", "SYSCTL"}
_KNOWN |= {"PARAM", "NOCSV", "TRACE", "PCAP", "MEM", "TIME"}
DRAWING = ("bbr", "cdg", "lp", "nv")
"""Controllers that hang on random numbers; to `lp`, the random offset of timestamps is a delay."""
_DRAWING_QUEUES = {"red", "pie"}
"""Queues that do."""

Table = dict[str, Any]


class UnhostedError(WeirError):
    """Why a case cannot be carried out in the simulator."""


@dataclass(frozen=True)
class Hosted:
    """A case as a scenario."""

    source: Source
    mss: int
    draws: bool
    """Whether the kernel drew random numbers: then means over several seeds are compared."""


def host(reference: Reference, *, acks: int) -> Hosted:
    """The scenario that repeats a recorded case; the first `acks` acknowledgements are recorded.

    Raises:
        UnhostedError: the simulator has no such algorithm, queue or switch.
    """
    params = reference.params
    for key in params.keys() - _KNOWN:
        raise UnhostedError(f"parameter {key} is not known")
    stack = _Stack.read(params)
    bottleneck = _bottleneck(params)
    delay, loss = _time(params.get("DELAY", "20ms")), params.get("LOSS", "")
    onward: Table = {"from": "B", "to": "D", "delay": delay, "queue": "infinite"}
    if loss:
        onward["impair"] = {"loss": _percent(loss)}
    links = [
        {"from": "A", "to": "B", "name": "bottleneck", **bottleneck},
        {**_INFINITE, **onward},
        {**_INFINITE, "from": "D", "to": "A", "delay": delay, "queue": "infinite"},
    ]
    step_ms = _whole("STEP", params.get("STEP", "10"))
    end = max(flow.end_s for flow in reference.flows)
    scenario = {
        "name": reference.name,
        "topology": {"kind": "graph", "link": [{**link, "duplex": False} for link in links]},
        "flow": [{**stack.flow(flow), **_window(params)} for flow in reference.flows],
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
    draws = bool(loss) or _drops_at_random(bottleneck) or _is_drawing(reference.flows)
    return Hosted(source, stack.mss, draws)


def _window(params: Mapping[str, str]) -> Table:
    """The receive buffer: Linux enlarges its own as data comes in (`tcp_rcv_space_adjust`).

    Slow start over a buffer of one bandwidth-delay product overshoots to four of them.
    """
    rate = _native.parse_quantity("rate", params.get("RATE", "10mbit"))
    rtt_s = 2 * _native.parse_quantity("time", params.get("DELAY", "20ms"))
    needed = 4 * rate * rtt_s / 8
    return {"recv_buffer": f"{_RECV_BUFFER if needed <= _RECV_BUFFER else _LARGEST_BUFFER}b"}


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

    def flow(self, flow: Flow) -> Table:
        """One flow's section."""
        return {
            "stack": f"{self._recovery()}/{self._controller(flow.cc)}",
            "from": "A",
            "to": "D",
            "start": _seconds(flow.start_s),
            # Just after the sample of that moment, as in the recording.
            "stop": _seconds(flow.end_s + 1e-6),
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
        known = {item["name"] for item in json.loads(_native.catalogue())["controllers"]}
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


def _bottleneck(params: Mapping[str, str]) -> Table:
    """Rate and queue of the link from A to B."""
    if "QDISC" not in params:
        rate = _rate(params.get("RATE", "10mbit"))
        return {**_link(rate), "queue": f"{_whole('QLEN', params.get('QLEN', '34'))}p"}
    kind, options = _qdisc(params["QDISC"])
    if kind == "netem" and "QDISC2" not in params and options.keys() <= {"rate", "limit"}:
        limit = _whole("limit", options.get("limit", "1000"))
        return {**_link(_rate(_needed(kind, options, "rate"))), "queue": f"{limit}p"}
    if kind != "tbf" or not options.keys() <= {"rate", "burst", "limit"}:
        raise UnhostedError(f"the simulator has no bottleneck {params['QDISC']}")
    shaper = {
        **_link(_rate(_needed(kind, options, "rate"))),
        "burst": f"{_size(_needed(kind, options, 'burst'))}b",
    }
    if "QDISC2" not in params:
        return {**shaper, "queue": f"{_size(_needed(kind, options, 'limit'))}b"}
    return {**shaper, "queue": _queue(params["QDISC2"])}


def _queue(text: str) -> str | Table:
    """The queue that waits behind a shaper."""
    kind, options = _qdisc(text)
    match kind:
        case "pfifo":
            return f"{_whole('limit', options.get('limit', '10000'))}p"
        case "bfifo":
            return f"{_size(_needed(kind, options, 'limit'))}b"
        case "codel":
            return {"kind": "codel", "limit": "1000p", "ecn": False, **_codel(kind, options)}
        case "fq_codel":
            return {"kind": "fq-codel", "limit": "10240p", "ecn": True, **_codel(kind, options)}
        case "red":
            return _red(options)
        case "pie":
            return _pie(options)
    raise UnhostedError(f"the simulator has no queue {kind}")


def _codel(kind: str, options: Mapping[str, str]) -> Table:
    table: Table = {}
    for key, value in options.items():
        match key:
            case "limit":
                table["limit"] = f"{_whole(key, value)}p"
            case "target" | "interval" | "ce_threshold":
                table[key] = _time(value)
            case "ecn" | "noecn":
                table["ecn"] = key == "ecn"
            case "flows" if kind == "fq_codel":
                table["flows"] = _whole(key, value)
            case "quantum" if kind == "fq_codel":
                table["quantum"] = f"{_size(value)}b"
            case _:
                raise UnhostedError(f"the simulator's {kind} has no {key}")
    return table


def _red(options: Mapping[str, str]) -> Table:
    strange = options.keys() - {
        "limit",
        "min",
        "max",
        "avpkt",
        "burst",
        "probability",
        "bandwidth",
        "ecn",
    }
    if strange:
        raise UnhostedError(f"the simulator's red has no {min(strange)}")
    sizes = {key: f"{_size(_needed('red', options, key))}b" for key in ("limit", "min", "max")}
    return {
        "kind": "red",
        **sizes,
        "probability": _scaled("probability", options.get("probability", "0.02"), {"": 1}),
        "burst": _whole("burst", _needed("red", options, "burst")),
        "gentle": False,
        "ecn": "ecn" in options,
    }


def _pie(options: Mapping[str, str]) -> Table:
    table: Table = {"kind": "pie", "limit": "1000p", "ecn": False}
    for key, value in options.items():
        match key:
            case "limit":
                table["limit"] = f"{_whole(key, value)}p"
            case "target":
                table["target"] = _time(value)
            case "tupdate":
                table["update"] = _time(value)
            case "alpha" | "beta":
                table[key] = _whole(key, value)
            case "ecn" | "noecn":
                table["ecn"] = key == "ecn"
            case _:
                raise UnhostedError(f"the simulator's pie has no {key}")
    return table


def _qdisc(text: str) -> tuple[str, dict[str, str]]:
    """`kind:key:value:flag` as `tc` would get it with spaces for the colons."""
    kind, *words = text.split(":")
    options, rest = {}, iter(words)
    for word in rest:
        options[word] = "" if word in _FLAGS else next(rest, "")
    return kind, options


_FLAGS = {"ecn", "noecn", "gentle", "adaptive", "harddrop", "nodrop"}


def _needed(kind: str, options: Mapping[str, str], key: str) -> str:
    if key not in options:
        raise UnhostedError(f"{kind} without {key}")
    return options[key]


def _drops_at_random(bottleneck: Table) -> bool:
    queue = bottleneck["queue"]
    return isinstance(queue, dict) and queue["kind"] in _DRAWING_QUEUES


def _is_drawing(flows: Sequence[Flow]) -> bool:
    return any(flow.cc in DRAWING for flow in flows)


def _link(bits: int) -> Table:
    return {"rate": f"{bits}bit", "overhead": "14b"}


def _rate(text: str) -> int:
    return round(_scaled("rate", text, _RATES))


def _size(text: str) -> int:
    return round(_scaled("size", text, _SIZES))


def _time(text: str) -> str:
    return f"{round(_scaled('time', text, _TIMES))}ns"


def _scaled(what: str, text: str, units: Mapping[str, int]) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
    if not match or match[2] not in units:
        raise UnhostedError(f"{text} is not a {what}")
    return float(match[1]) * units[match[2]]


_RATES = {
    "": 1,
    **{f"{prefix}bit": 1_000**power for power, prefix in enumerate(("", "k", "m", "g", "t"))},
    **{f"{prefix}bps": 8 * 1_000**power for power, prefix in enumerate(("", "k", "m", "g", "t"))},
}
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "kbit": 1 << 7}
_TIMES = {
    "": 1_000,
    **dict.fromkeys(("s", "sec", "secs"), 1_000_000_000),
    **dict.fromkeys(("ms", "msec", "msecs"), 1_000_000),
    **dict.fromkeys(("us", "usec", "usecs"), 1_000),
}


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%?", text)
    if not match or float(match[1]) > 100:
        raise UnhostedError(f"the simulator has no loss model {text}")
    return float(match[1]) / 100


def _whole(key: str, text: str) -> int:
    if not text.isdecimal():
        raise UnhostedError(f"{key}: {text} is not a whole number")
    return int(text)


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
