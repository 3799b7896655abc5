"""From the queue disciplines of a recorded case to the queue of a link of ours.

A recording has them as `tc` would get them, with colons for spaces: `sfq:limit:64:headdrop`. What
the simulator does not have is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from weir.recordings import tc
from weir.recordings.tc import UnhostedError

Table = dict[str, Any]
Options = Mapping[str, str]

_DRAWING_QUEUES = {"red", "pie", "fq-pie"}
"""Queues that draw random numbers."""


def bottleneck(params: Mapping[str, str]) -> Table:
    """Rate and queue of the link from A to B.

    Raises:
        UnhostedError: the simulator has no such discipline or option.
    """
    if "QDISC" not in params:
        rate = tc.rate(params.get("RATE", "10mbit"))
        return {**_link(rate), "queue": f"{tc.whole('QLEN', params.get('QLEN', '34'))}p"}
    kind, options = _qdisc(params["QDISC"])
    if "QDISC2" not in params and kind == "netem" and options.keys() <= {"rate", "limit"}:
        limit = tc.whole("limit", options.get("limit", "1000"))
        return {**_link(tc.rate(_required(kind, options, "rate"))), "queue": f"{limit}p"}
    if "QDISC2" not in params and kind == "cake" and "bandwidth" in options:
        return _shaping_cake(options)
    if kind != "tbf" or not options.keys() <= {"rate", "burst", "limit"}:
        raise UnhostedError(f"the simulator has no bottleneck {params['QDISC']}")
    shaper = {
        **_link(tc.rate(_required(kind, options, "rate"))),
        "burst": f"{tc.size(_required(kind, options, 'burst'))}b",
    }
    if "QDISC2" not in params:
        return {**shaper, "queue": f"{tc.size(_required(kind, options, 'limit'))}b"}
    return {**shaper, "queue": _queue(params["QDISC2"])}


def draws_random_numbers(bottleneck: Table) -> bool:
    """Whether its queue decides by random numbers."""
    queue = bottleneck["queue"]
    return isinstance(queue, dict) and queue["kind"] in _DRAWING_QUEUES


def _queue(text: str) -> str | Table:
    """The queue that waits behind a shaper."""
    kind, options = _qdisc(text)
    if kind not in _QUEUES:
        raise UnhostedError(f"the simulator has no queue {kind}")
    return _QUEUES[kind](options)


def _pfifo(options: Options) -> str:
    return f"{tc.whole('limit', options.get('limit', '10000'))}p"


def _bfifo(options: Options) -> str:
    return f"{tc.size(_required('bfifo', options, 'limit'))}b"


def _codel(kind: str, options: Options) -> Table:
    table: Table = (
        {"kind": "codel", "limit": "1000p", "ecn": False}
        if kind == "codel"
        else {"kind": "fq-codel", "limit": "10240p", "ecn": True}
    )
    for key, value in options.items():
        match key:
            case "limit":
                table["limit"] = f"{tc.whole(key, value)}p"
            case "target" | "interval" | "ce_threshold":
                table[key] = tc.time(value)
            case "ecn" | "noecn":
                table["ecn"] = key == "ecn"
            case "flows" if kind == "fq_codel":
                table["flows"] = tc.whole(key, value)
            case "quantum" if kind == "fq_codel":
                table["quantum"] = f"{tc.size(value)}b"
            case _:
                raise UnhostedError(f"the simulator's {kind} has no {key}")
    return table


def _red(options: Options) -> Table:
    known = {"limit", "min", "max", "avpkt", "burst", "probability", "bandwidth", "ecn"}
    if unknown := options.keys() - known:
        raise UnhostedError(f"the simulator's red has no {min(unknown)}")
    sizes = {key: f"{tc.size(_required('red', options, key))}b" for key in ("limit", "min", "max")}
    return {
        "kind": "red",
        **sizes,
        "probability": tc.scaled("probability", options.get("probability", "0.02"), {"": 1}),
        "burst": tc.whole("burst", _required("red", options, "burst")),
        "gentle": False,
        "ecn": "ecn" in options,
    }


def _pie(kind: str, options: Options) -> Table:
    limit = "1000p" if kind == "pie" else "10240p"
    table: Table = {"kind": kind.replace("_", "-"), "limit": limit, "ecn": False}
    for key, value in options.items():
        match key:
            case "limit":
                table["limit"] = f"{tc.whole(key, value)}p"
            case "target":
                table["target"] = tc.time(value)
            case "tupdate":
                table["update"] = tc.time(value)
            case "alpha" | "beta":
                table[key] = tc.whole(key, value)
            case "ecn" | "noecn":
                table["ecn"] = key == "ecn"
            case "flows" if kind == "fq_pie":
                table["flows"] = tc.whole(key, value)
            case "quantum" if kind == "fq_pie":
                table["quantum"] = f"{tc.size(value)}b"
            case _:
                raise UnhostedError(f"the simulator's {kind} has no {key}")
    return table


def _fq(options: Options) -> Table:
    """`sch_fq`: pacing concerns packets of local sockets only, so that a router needs no switch."""
    table: Table = {"kind": "fq"}
    for key, value in options.items():
        match key:
            case "limit":
                table["limit"] = f"{tc.whole(key, value)}p"
            case "flow_limit":
                table["flow_limit"] = tc.whole(key, value)
            case "buckets":
                # Sockets' flows; those of others share as many queues as orphan_mask says.
                tc.whole(key, value)
            case "orphan_mask":
                table["flows"] = tc.whole(key, value) + 1
            case "quantum" | "initial_quantum":
                table[key] = f"{tc.size(value)}b"
            case "refill_delay" | "ce_threshold":
                table[key] = tc.time(value)
            case "pacing" | "nopacing":
                pass
            case _:
                raise UnhostedError(f"the simulator's fq has no {key}")
    return table


def _sfq(options: Options) -> Table:
    """`sch_sfq`: the hash table's `divisor` is our number of queues."""
    depth = min(tc.whole("depth", options.get("depth", "127")), _SFQ_DEPTH)
    table: Table = {"kind": "sfq", "flow_limit": depth}
    for key, value in options.items():
        match key:
            case "limit":
                table["limit"] = f"{min(tc.whole(key, value), depth * _SFQ_FLOWS)}p"
            case "depth":
                pass
            case "divisor":
                table["flows"] = tc.whole(key, value)
            case "quantum":
                table["quantum"] = f"{max(tc.size(value), _SFQ_QUANTUM)}b"
            case "headdrop":
                table["head_drop"] = True
            case "perturb" if tc.whole(key, value) == 0:
                pass
            case _:
                raise UnhostedError(f"the simulator's sfq has no {key}")
    return table


_SFQ_DEPTH, _SFQ_FLOWS, _SFQ_QUANTUM = 127, 128, 256
"""Bounds of Linux 6.1's `sch_sfq`: packets of one queue, queues in use, bytes of a quantum."""


def _cake(options: Options) -> Table:
    table: Table = {"kind": "cake"}
    for key, value in options.items():
        match key:
            case "rtt":
                rtt = tc.nanoseconds(value)
                table |= {"interval": f"{rtt}ns", "target": f"{rtt // _CAKE_TARGETS}ns"}
            case "memlimit":
                table["limit"] = f"{tc.size(value)}b"
            case _ if key in _ISOLATION:
                table["isolation"] = _ISOLATION[key]
            case "bandwidth" | "unlimited" | "besteffort" | "raw":
                pass
            case _:
                raise UnhostedError(f"the simulator's cake has no {key}")
    return table


def _shaping_cake(options: Options) -> Table:
    """CAKE with its own shaper."""
    rate = tc.rate(_required("cake", options, "bandwidth"))
    return {**_link(rate), "queue": {**_cake(options), "shaper": True}}


_CAKE_TARGETS = 20
"""By how much `tc` divides CAKE's `rtt` for its target."""
_ISOLATION = {
    "flowblind": "flow-blind",
    "srchost": "src-host",
    "dsthost": "dst-host",
    "hosts": "hosts",
    "flows": "flows",
    "dual-srchost": "dual-src-host",
    "dual-dsthost": "dual-dst-host",
    "triple-isolate": "triple-isolate",
}


_QUEUES: Mapping[str, Callable[[Options], str | Table]] = {
    "pfifo": _pfifo,
    "bfifo": _bfifo,
    "codel": partial(_codel, "codel"),
    "fq_codel": partial(_codel, "fq_codel"),
    "red": _red,
    "pie": partial(_pie, "pie"),
    "fq_pie": partial(_pie, "fq_pie"),
    "fq": _fq,
    "sfq": _sfq,
    "cake": _cake,
}


def _qdisc(text: str) -> tuple[str, dict[str, str]]:
    """`kind:key:value:flag` as `tc` would get it with spaces for the colons."""
    kind, *words = text.split(":")
    flags = _FLAGS | _ISOLATION.keys() if kind == "cake" else _FLAGS
    options, rest = {}, iter(words)
    for word in rest:
        options[word] = "" if word in flags else next(rest, "")
    return kind, options


_FLAGS = {"ecn", "noecn", "gentle", "adaptive", "harddrop", "nodrop", "headdrop", "pacing"}
_FLAGS |= {"nopacing", "unlimited", "besteffort", "diffserv3", "diffserv4", "diffserv8", "raw"}
_FLAGS |= {"nat", "nonat", "wash", "nowash", "ingress", "egress", "ack-filter", "no-ack-filter"}


def _required(kind: str, options: Options, key: str) -> str:
    if key not in options:
        raise UnhostedError(f"{kind} without {key}")
    return options[key]


def _link(bits: int) -> Table:
    return {"rate": f"{bits}bit", "overhead": "14b"}
