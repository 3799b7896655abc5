"""ns-3's tcp-validation: four cases of one flow over CoDel at 50 Mbit/s, and their envelopes.

Source: `examples/tcp/tcp-validation.cc` of ns-3, whose program checks these bounds as it runs; the
comments at its head name the numbers that were seen. The flow starts at 5 s. Goodput is that of
200 ms, as the program counts it.

`alpha` of DCTCP is in no table. It is made here from the queue's marks as RFC 8257 §3.3 makes it
from the receiver's: one step per round trip of the sender's smoothed RTT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from weir.curves import Array
from weir.studies.ccwg.bundle import MSS, Bundle, Check, Observed, least, most
from weir.studies.envelopes import Envelope

_START_S = 5.0
_BIN_S = 0.2
_GAIN = 1 / 16

_TEXT = """
name = "ccwg"

[topology]
rate = "50mbit"
rtt = "{rtt_ms}ms"
queue = {{{{ kind = "codel", limit = "1000p"{marks} }}}}

[[flow]]
name = "flow"
stack = "{{stack}}"
start = "5s"
ecn = true

[measure]
duration = "{seconds}.1s"
sample_interval = "5ms"
repeat = {{repeat}}
seed = {{seed}}
"""

_HYSTART = (
    "our CUBIC is Linux's, whose HyStart leaves slow start as soon as the RTT has grown by an "
    "eighth or ACKs have come in a train for half an RTT (tcp_cubic.c), ns-3's not before the RTT "
    "has doubled (tcp-cubic.cc, HystartDelayThresh); how far the later maxima lie from ns-3's "
    "says the table of maxima"
)

_DEVICE = (
    "ns-3's device holds three packets behind CoDel, whose wait CoDel does not see: with a "
    "threshold longer by their 0.72 ms ours is within"
)

_ALPHA = (
    "ours has the alpha of DCTCP's theory, up to √(2/W) (Alizadeh et al. 2011): 0.21 for a window "
    "of 46 segments at 10 ms, 0.077 for 338 at 80 ms; ns-3's is a third of that, and why has not "
    "been found out"
)


def _text(rtt_ms: int, seconds: int, marks: str) -> str:
    """The scenario; what a bundle fills in is left open."""
    return _TEXT.format(rtt_ms=rtt_ms, seconds=seconds, marks=marks)


@lru_cache(maxsize=8)
def alpha(run: Observed) -> tuple[Array, Array]:
    """Times and DCTCP's alpha at them, from 1 at the start (Linux's and ns-3's initial value)."""
    times = run.queues["t_s"].to_numpy()
    marks = run.queues["marks"].cast(float).to_numpy()
    own = run.samples.drop_nulls("srtt_ms")
    sampled, srtts = own["t_s"].to_numpy(), own["srtt_ms"].to_numpy() / 1e3
    now, value = float(sampled[0]), 1.0
    found = [(now, value)]
    while now < times[-1]:
        then = now + float(np.interp(now, sampled, srtts))
        marked = float(np.interp(then, times, marks) - np.interp(now, times, marks))
        packets = float(run.curve.delivered(then) - run.curve.delivered(now)) * 1e6 / 8 / MSS
        share = min(1.0, marked / packets) if packets > 0 else 0.0
        value += _GAIN * (share - value)
        now = then
        found.append((now, value))
    return np.array([time for time, _ in found]), np.array([own for _, own in found])


def _alphas(run: Observed, from_s: float, to_s: float) -> Array:
    times, values = alpha(run)
    return values[(times > from_s) & (times < to_s)]


def _goodput(
    name: str, from_s: float, to_s: float, envelope: Envelope, reason: str = ""
) -> list[Check]:
    """Every bin must lie within: the least and the most of them are checked."""

    def extreme(of: str) -> Check:
        pick = least if of == "least" else most
        return Check(
            f"{of} goodput per 200 ms, {name}",
            "Mbit/s",
            envelope,
            lambda run: pick(run.rates(from_s, to_s, _BIN_S)),
            {"*": reason},
        )

    if envelope.low is None:
        return [extreme("most")]
    return [extreme("least"), extreme("most")]


def _alpha(name: str, from_s: float, to_s: float, envelope: Envelope) -> list[Check]:
    def extreme(of: str) -> Check:
        pick = least if of == "least" else most
        return Check(
            f"{of} alpha, {name}",
            "",
            envelope,
            lambda run: pick(_alphas(run, from_s, to_s)),
            {"*": _ALPHA},
        )

    ends = [] if envelope.low is None else [extreme("least")]
    return ends if envelope.high is None else [*ends, extreme("most")]


def _window(name: str, from_s: float, to_s: float, envelope: Envelope) -> Check:
    """All windows of a span must lie within."""
    pick = least if envelope.low is not None else most
    extreme = "least" if envelope.low is not None else "most"
    return Check(
        f"{extreme} cwnd, {name}",
        "segments",
        envelope,
        lambda run: pick(run.windows(from_s, to_s)),
        {"*": _HYSTART},
    )


_MARKS = ', ecn = true, ce_threshold = "1ms"'
_END_S = math.inf

DCTCP_10 = Bundle(
    "ns-3 dctcp-10ms",
    "ns-3, examples/tcp/tcp-validation.cc",
    ("dctcp",),
    _text(10, 15, _MARKS),
    [
        *_goodput("from 5.6 s on", 5.6, 15.0, Envelope(48, 49), _DEVICE),
        *_alpha("from 5.6 s on", 5.6, _END_S, Envelope(None, 0.1)),
        *_alpha("from 7 s on", 7.0, _END_S, Envelope(0.055, 0.09)),
    ],
    is_single=True,
    level_mbps=48.3,
)

DCTCP_80 = Bundle(
    "ns-3 dctcp-80ms",
    "ns-3, examples/tcp/tcp-validation.cc",
    ("dctcp",),
    _text(80, 40, _MARKS),
    [
        *_goodput("before 14 s", _START_S, 14.0, Envelope(None, 20)),
        *_goodput("before 30 s", _START_S, 30.0, Envelope(None, 48)),
        *_goodput("from 32 s on", 32.0, 40.0, Envelope(47.5, 48.5), _ALPHA),
        *_alpha("before 7.5 s", 0.0, 7.5, Envelope(0.1, None)),
        *_alpha("from 11 to 30 s", 11.0, 30.0, Envelope(None, 0.01)),
        *_alpha("from 34 s on", 34.0, _END_S, Envelope(0.015, 0.025)),
    ],
    is_single=True,
    level_mbps=48.3,
)


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum of CUBIC's window that ns-3's comments name; they give no bounds for it."""

    name: str
    from_s: float
    to_s: float
    segments: float
    at_s: float

    def found(self, run: Observed) -> tuple[float, float] | None:
        """Ours in that span: segments, and when."""
        windows = run.windows(self.from_s, self.to_s)
        if not len(windows):
            return None
        times = run.column("t_s", self.from_s, self.to_s)
        return float(windows.max()), float(times[int(windows.argmax())])


def maxima(at_s: tuple[float, float, float], segments: tuple[float, float, float]) -> list[Maximum]:
    """The first of slow start, and the two after it."""
    spans = (("first", 5.0, 7.0), ("second", 13.0, 16.0), ("third", 16.5, 20.0))
    return [
        Maximum(*span, size, time) for span, size, time in zip(spans, segments, at_s, strict=True)
    ]


MAXIMA = {
    "ns-3 cubic-50ms-no-ecn": maxima((5.4593, 14.2815, 18.048), (511, 236, 234)),
    "ns-3 cubic-50ms-ecn": maxima((5.4593, 14.3477, 18.064), (511, 236, 234)),
}


def _cubic(name: str, marks: str) -> Bundle:
    return Bundle(
        name,
        "ns-3, examples/tcp/tcp-validation.cc",
        ("cubic",),
        _text(50, 20, marks),
        [
            _window("5.43 to 5.465 s", 5.43, 5.465, Envelope(500, None)),
            _window("5.795 to 6 s", 5.795, 6.0, Envelope(None, 190)),
            _window("14 to 14.328 s", 14.0, 14.328, Envelope(225, None)),
            _window("17 to 18.2 s", 17.0, 18.2, Envelope(225, None)),
        ],
        is_single=True,
        level_mbps=48.3,
    )


NS3 = (
    DCTCP_10,
    DCTCP_80,
    _cubic("ns-3 cubic-50ms-no-ecn", ""),
    _cubic("ns-3 cubic-50ms-ecn", ", ecn = true"),
)
