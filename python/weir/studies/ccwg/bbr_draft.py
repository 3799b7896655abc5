"""The test cases of the BBR draft's appendix that need no internal state, and steps of the RTT.

Source: draft-ietf-ccwg-bbr, appendix "BBR Example Test Cases", added to the working group's text in
April 2026 and refined in July. It gives a case's steps and few numbers; where a bound follows from
the draft's constants, the sum stands beside it. Cases that ask of variables inside an
implementation (`BBR.bw_shortterm`, `BBR.extra_acked`) are unit tests and not here.

Paths have 10 Mbit/s, as there, 40 ms and a queue of eight bandwidth-delay products, unless a case
says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import polars as pl

from weir.studies.ccwg.bundle import MSS, PAYLOAD, Bundle, Check, Observed, least, median
from weir.studies.envelopes import Envelope
from weir.studies.schemes import present

STACKS = present(("bbr", "bbr3"))

_SOURCE = "draft-ietf-ccwg-bbr, appendix"
_RTT_S = 0.04
_STEP_S = 10.0
_CLOSE = Envelope(0.98, 1.02)
"""Close to the simulated bandwidth: within 2 %, as the draft says in its first case."""

_WAIT_S = 3.0
"""A PROBE_BW cycle waits at most this long before it probes (BBR.bw_probe_wait, 2 to 3 s)."""

_GAIN = 1.25
"""Of pacing while it probes for bandwidth."""

_PROBE_RTT_S = 5.0
_PROBE_RTT_LASTS_S = 0.2
_MIN_RTT_S = 10.0
"""ProbeRTTInterval, ProbeRTTDuration and MinRTTFilterLen."""

_LOSS = 0.02
"""BBR.LossThresh."""

_MIN_CWND = 4.0
"""BBR.MinPipeCwnd, in packets."""

_TEXT = """
name = "ccwg"

[topology]
rate = "{rate}"
rtt = "{rtt}"
queue = "{queue}"

[topology.forward]
{forward}

[[flow]]
name = "flow"
stack = "{{stack}}"
start_jitter = "50ms"
{more}
[measure]
duration = "{seconds}s"
warmup = "{warmup}s"
sample_interval = "5ms"
repeat = {{repeat}}
seed = {{seed}}
"""

_BESIDE = """
[[flow]]
name = "reno"
stack = "reno"
"""

_OLD_FILTER = "BBR of Linux 6.1 is version 1, whose PROBE_RTT comes every 10 s (tcp_bbr.c)"
_OLD_LOSS = (
    "BBR of Linux 6.1 is version 1, which does not take losses for a sign of congestion; its "
    "policer detection bounds the rate only after it has seen losses over whole intervals"
)
_OLD_DRAIN = (
    "BBR of Linux 6.1 is version 1, whose phase that drains ends after a round trip, drained or "
    "not (tcp_bbr.c, bbr_is_next_cycle_phase): the queue that the longer path leaves behind goes "
    "away over seconds"
)
_OLD_PROBING = "BBR of Linux 6.1 is version 1, which gains a quarter per cycle of eight round trips"


def _text(
    rate: str = "10mbit",
    rtt: str = "40ms",
    queue: str = "8bdp",
    forward: str = "",
    *,
    more: str = "",
    seconds: int = 20,
    warmup: int = 0,
) -> str:
    open_braces = forward.replace("{", "{{").replace("}", "}}")
    return _TEXT.format(
        rate=rate,
        rtt=rtt,
        queue=queue,
        forward=open_braces,
        more=more,
        seconds=seconds,
        warmup=warmup,
    )


# STARTUP.


def _after_startup(run: Observed) -> float | None:
    """1 if DRAIN follows STARTUP, 0 if something else does."""
    names = [name for name, _, _ in run.phases()]
    if "startup" not in names[:-1]:
        return None
    return float(names[names.index("startup") + 1] == "drain")


def _estimate(run: Observed) -> float | None:
    """The newest delivery rate as STARTUP ends, over what the link carries of payload."""
    ends = [end for name, _, end in run.phases() if name == "startup"]
    if not ends:
        return None
    rates = run.column("delivery_mbps", 0.0, ends[0])
    return float(rates[-1]) / (10 * PAYLOAD) if len(rates) else None


STARTUP = Bundle(
    "BBR draft: exiting STARTUP on a plateau",
    _SOURCE,
    STACKS,
    _text(seconds=10),
    [
        Check("DRAIN follows STARTUP", "", Envelope(1, 1), _after_startup),
        Check("estimate over the link's bandwidth as STARTUP ends", "", _CLOSE, _estimate),
    ],
    level_mbps=10 * PAYLOAD,
)

# PROBE_RTT.


def _probes(run: Observed) -> list[tuple[float, float]]:
    return [(begin, end) for name, begin, end in run.phases() if name == "probe_rtt"]


def _longest_without(run: Observed) -> float | None:
    """From the end of one PROBE_RTT to the beginning of the next."""
    probes = _probes(run)
    gaps = [later[0] - one[1] for one, later in pairwise(probes)]
    return max(gaps) if gaps else None


def _shortest(run: Observed) -> float | None:
    whole = [end - begin for begin, end in _probes(run) if end < run.curve.seen_s]
    return min(whole) if whole else None


def _after_probe(run: Observed) -> float | None:
    """1 if PROBE_BW follows every PROBE_RTT."""
    phases = run.phases()
    following = [later[0] for one, later in pairwise(phases) if one[0] == "probe_rtt"]
    return float(all(name.startswith("probe_bw") for name in following)) if following else None


_FULL_RTT_S = _RTT_S * 9
"""Through the full buffer of eight bandwidth-delay products."""

PROBE_RTT = Bundle(
    "BBR draft: PROBE_RTT and exit",
    _SOURCE,
    STACKS,
    _text(more=_BESIDE, seconds=40),
    [
        Check(
            "longest time without PROBE_RTT beside a flow that keeps the queue full",
            "s",
            # ProbeRTTInterval, and the round trip after which the smallest RTT was seen.
            Envelope(high=_PROBE_RTT_S + 2 * _FULL_RTT_S),
            _longest_without,
            {"bbr": _OLD_FILTER},
        ),
        Check("shortest PROBE_RTT", "s", Envelope(low=_PROBE_RTT_LASTS_S + _RTT_S), _shortest),
        Check("PROBE_BW follows PROBE_RTT", "", Envelope(1, 1), _after_probe),
    ],
)

# Paths of less than a packet.

_SMALL_MBPS = 0.2
_PROBING = pl.col("phase").cast(pl.String).str.starts_with("probe_bw")


def _pacing(rate_mbps: float, from_s: float, to_s: float) -> Check:
    """The median, since gains go around one."""
    return Check(
        "median pacing rate over the link's bandwidth",
        "",
        _CLOSE,
        lambda run: _over(median(run.column("pacing_mbps", from_s, to_s)), rate_mbps * PAYLOAD),
    )


def _over(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


SMALL = Bundle(
    "BBR draft: sub-packet BDP",
    _SOURCE,
    STACKS,
    _text("200kbit", "20ms", "100p", seconds=40),
    [
        Check(
            "least cwnd in PROBE_BW",
            "packets",
            Envelope(low=_MIN_CWND),
            lambda run: least(
                run.samples.filter(_PROBING)["cwnd_bytes"].cast(pl.Float64).to_numpy() / MSS
            ),
        ),
        _pacing(_SMALL_MBPS, 10.0, 40.0),
    ],
    level_mbps=_SMALL_MBPS * PAYLOAD,
)

# Steps.


def _until(
    share: float, mbps: float, at_s: float, bin_s: float
) -> Callable[[Observed], float | None]:
    """Seconds after a step until a bin has this share of what the link carries."""

    def value(run: Observed) -> float | None:
        rates = run.rates(at_s, run.curve.seen_s, bin_s)
        reached = (rates >= share * mbps * PAYLOAD).nonzero()[0]
        return float(reached[0] + 1) * bin_s if len(reached) else None

    return value


_ROUNDS_UP = math.log(10) / math.log(_GAIN)
"""Round trips in which a rate grows tenfold if every one gains a quarter: O(log(BDP))."""

UP = Bundle(
    "BBR draft: bandwidth ten times as high",
    _SOURCE,
    STACKS,
    _text(queue="500kb", forward='rate_steps = [{ at = "10s", rate = "100mbit" }]', seconds=25),
    [
        Check(
            "time to 95 % of 100 Mbit/s",
            "s",
            # A wait for the next probe, and rounds that gain a quarter each.
            Envelope(high=_WAIT_S + _ROUNDS_UP * _RTT_S),
            _until(0.95, 100, _STEP_S, 5 * _RTT_S),
            {"bbr": _OLD_PROBING},
        )
    ],
    moments=[(_STEP_S, "10 to 100 Mbit/s")],
)

_DRAINING_S = 0.44
"""A round trip through 500 kB at 10 Mbit/s."""

_SETTLED_S = 2 * (_WAIT_S + 4 * _DRAINING_S)
"""Two PROBE_BW cycles, in which BBR.max_bw_filter forgets: a wait and a round each of REFILL, UP,
DOWN and CRUISE."""

DOWN = Bundle(
    "BBR draft: bandwidth a tenth",
    _SOURCE,
    STACKS,
    _text(
        "100mbit",
        queue="500kb",
        forward='rate_steps = [{ at = "10s", rate = "10mbit" }]',
        seconds=30,
    ),
    [_pacing(10, _STEP_S + _SETTLED_S, 30.0)],
    moments=[(_STEP_S, "100 to 10 Mbit/s")],
)

LONGER = Bundle(
    "BBR draft: RTT 100 ms longer, then shorter",
    "draft-ietf-ccwg-bbr, MinRTTFilterLen",
    STACKS,
    _text(
        forward=('delay_steps = [{ at = "10s", delay = "120ms" }, { at = "30s", delay = "20ms" }]'),
        seconds=40,
    ),
    [
        Check(
            "time to 95 % of the rate after the RTT became longer",
            "s",
            # The old minimum is forgotten, then looked for, then a round trip to use the new one.
            Envelope(high=_MIN_RTT_S + _PROBE_RTT_LASTS_S + 2 * (_RTT_S + 0.1)),
            _until(0.95, 10, _STEP_S, 1.0),
        ),
        Check(
            "median RTT over the smallest from 2 s after it became shorter",
            "",
            # An UP phase holds a quarter of a BDP more in flight than the path.
            Envelope(high=_GAIN),
            lambda run: _over(median(run.column("rtt_ms", 32.0, 40.0)), run.flow["rtt_ms_min"]),
            {"bbr": _OLD_DRAIN},
        ),
    ],
    moments=[(10.0, "40 to 140 ms"), (30.0, "back to 40 ms")],
    level_mbps=10 * PAYLOAD,
)

POLICED = Bundle(
    "BBR draft: token bucket policer",
    _SOURCE,
    STACKS,
    _text(
        "100mbit",
        forward='policer = { rate = "10mbit", burst = "50kb" }',
        seconds=40,
        warmup=10,
    ),
    [
        Check(
            "loss from 10 s on",
            "share",
            Envelope(high=_LOSS),
            lambda run: run.flow["loss_ratio"],
            {"bbr": _OLD_LOSS},
        )
    ],
    level_mbps=10 * PAYLOAD,
)

BBR_DRAFT = (STARTUP, PROBE_RTT, SMALL, UP, DOWN, LONGER, POLICED)
