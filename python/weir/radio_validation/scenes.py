"""The scenarios of `weir validate --radio`, and what each of them is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from weir.radio_validation import reference
from weir.radio_validation.reference import DSSS, FHSS, FHSS_PAYLOAD, Phy, Saturation
from weir.recordings.judge import Tolerance
from weir.scenario.source import Source

Group = Literal["airtimes", "stop-and-wait", "fhss", "dsss", "udp-chain", "tcp-chain"]
GROUPS: tuple[Group, ...] = get_args(Group)

EXACT = Tolerance(0.0, 0.001)
"""In microseconds: a nanosecond, which is how finely the simulator tells the time."""

SPACING_M = 200
"""Of neighbours in a chain."""

FRAMES = 400
"""Frames that are looked at, one by one."""

_WARMUP_S = 2

_CASES_OF_5_3 = ((1_000, 2.0, 1.0), (1_460, 2.0, 1.0), (512, 2.0, 1.0), (1_000, 1.0, 1.0))
"""Payload in bytes, rates of data and of control frames in Mbit/s."""
STOP_AND_WAIT = (*_CASES_OF_5_3, (1_000, 2.0, 2.0))
AIRTIMES = (*STOP_AND_WAIT, (1_000, 5.5, 1.0), (1_000, 11.0, 1.0))

FHSS_STATIONS = (5, 10, 15, 20, 30, 50)
DSSS_STATIONS = (1, 2, 5, 10, 20, 50)
WINDOWS = ((32, 3), (32, 5), (128, 3))
"""W and m of the model."""
PACKETS = ((1_040, True), (1_040, False), (1_500, True))
"""Bytes of IP packets of the DSSS set, and whether an RTS goes before them."""

UDP_HOPS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
LONG_CHAIN = 6
"""Hops from which on a chain carries what longer ones carry; shorter ones are only reported."""
NEAR_CHAIN = 4
"""Hops up to which throughput falls as one over their number."""


@dataclass(frozen=True, slots=True)
class Size:
    """How long runs take, in seconds, and over how many seeds where anything is random."""

    window: float
    saturated: float
    chain: float
    seeds: int


SMALL = "small"
SIZES: Mapping[str, Size] = MappingProxyType(
    {SMALL: Size(30, 40, 50, 5), "full": Size(120, 200, 120, 10)}
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One scenario and what is expected of it."""

    name: str
    group: Group
    series: str
    """What it has in common with others of its group: the name of a panel."""
    at: float
    """Where it stands among them: hops, or stations."""
    source: Source
    expected: float | None = None
    """Of its only quantity, if it has one."""
    tolerance: Tolerance | None = None
    base: str | None = None
    """The scene by whose throughput its own is divided."""
    published_kbps: float | None = None
    """Of a scene with a base: what the paper has before it is divided."""
    known: Mapping[str, float] = field(default_factory=dict)
    """Expectations of several quantities."""
    note: str = ""
    scale: float = 1.0
    """What goodput is multiplied by: the headers that the model counts as payload."""

    @property
    def draws(self) -> bool:
        """Whether anything that is measured in it is random."""
        return self.group != "airtimes"


def scenes(size: Size) -> Iterator[Scene]:
    """The set."""
    yield from (_airtimes(*case) for case in AIRTIMES)
    for case in STOP_AND_WAIT:
        yield from (_stop_and_wait(*case, hops, size.window) for hops in range(1, 5))
    for window, stages in WINDOWS:
        for has_rts in (False, True):
            model = Saturation(FHSS, FHSS_PAYLOAD, window, stages, has_rts)
            yield from (_fhss(model, stations, size.saturated) for stations in FHSS_STATIONS)
    for packet, has_rts in PACKETS:
        model = Saturation(DSSS, packet, has_rts=has_rts)
        yield from (_dsss(model, stations, size.saturated) for stations in DSSS_STATIONS)
    yield from (_udp(hops, size.chain) for hops in UDP_HOPS)
    yield from (_tcp(hops, size.chain) for hops in reference.TCP_CHAIN_KBPS)


def _airtimes(payload: int, data: float, basic: float) -> Scene:
    phy = reference.dsss(data, basic)
    packet = payload + reference.TCP_HEADERS
    light = SPACING_M / reference.LIGHT_M_PER_US
    known = {
        "rts_us": phy.rts,
        "cts_us": phy.cts,
        "ack_us": phy.ack,
        "data_us": phy.packet(packet),
        "tcp_ack_us": phy.packet(reference.TCP_HEADERS),
        "exchange_us": phy.frames(packet) + 3 * light,
    }
    name = _rates(payload, data, basic)
    source = _window_of_one(phy, payload, 1, 2, f"frames = {FRAMES}\n")
    return Scene(
        f"airtimes-{name}", "airtimes", _spoken(payload, data, basic), 1, source,
        tolerance=EXACT, known=known,
    )  # fmt: skip


def _stop_and_wait(payload: int, data: float, basic: float, hops: int, seconds: float) -> Scene:
    phy = reference.dsss(data, basic)
    expected = reference.stop_and_wait_kbps(phy, payload, hops)
    plain = reference.plain_kbps(phy, payload, hops)
    return Scene(
        f"stop-and-wait-{_rates(payload, data, basic)}-{hops}h",
        "stop-and-wait",
        _spoken(payload, data, basic),
        hops,
        _window_of_one(phy, payload, hops, seconds),
        expected,
        Tolerance(0.01),
        note=f"{plain:.0f} with a whole backoff before each packet",
    )


def _fhss(model: Saturation, stations: int, seconds: float) -> Scene:
    keys = {
        "mac": '"bianchi"',
        "cw_min": str(model.window - 1),
        "cw_max": str((model.window << model.stages) - 1),
    }
    mode = _mode(model.has_rts)
    name = f"fhss-w{model.window}-m{model.stages}-{mode.lower()}-n{stations}"
    series = f"W = {model.window}, m = {model.stages}, {mode}"
    return _saturated(model, stations, seconds, name, "fhss", series, keys)


def _dsss(model: Saturation, stations: int, seconds: float) -> Scene:
    keys = {
        "mac": '"standard"',
        "short_retries": '"unlimited"',
        "long_retries": '"unlimited"',
        "eifs": f'"{DSSS.difs}us"',
    }
    mode = _mode(model.has_rts)
    name = f"dsss-{model.payload}b-{mode.lower()}-n{stations}"
    return _saturated(model, stations, seconds, name, "dsss", f"{model.payload} B, {mode}", keys)


def _saturated(
    model: Saturation,
    stations: int,
    seconds: float,
    name: str,
    group: Group,
    series: str,
    keys: Mapping[str, str],
) -> Scene:
    """Stations in one spot that always have a packet for one 300 m away: a microsecond of light.

    Each is offered twice what the channel could carry of its packets, so that its queue is never
    empty.
    """
    payload = model.payload - reference.UDP_HEADERS
    rate = round(2e6 * model.phy.data / stations)
    points = ", ".join([*['"0, 0"'] * stations, '"300, 0"'])
    radio = {
        "placement": '"points"',
        "points": f"[{points}]",
        "range": '"400m"',
        "sense_range": '"400m"',
        "rts_threshold": '"0b"' if model.has_rts else '"4kb"',
        **keys,
    }
    flows = [
        f'[[flow]]\nstack = "udp"\nfrom = {station}\nto = {stations}\nmss = {payload}\n'
        f'workload = {{ kind = "rate", rate = "{rate}bit", size = "{payload}b" }}\n'
        for station in range(stations)
    ]
    return Scene(
        name,
        group,
        series,
        stations,
        _source(name, {**_STILL, **radio}, "".join(flows), seconds),
        1e3 * model.throughput_mbps(stations),
        Tolerance(0.02),
        scale=model.payload / payload,
    )


def _udp(hops: int, seconds: float) -> Scene:
    """A first node that always has a packet of 1500 bytes."""
    name = f"udp-chain-{hops}"
    flow = '[[flow]]\nstack = "udp"\nworkload = { kind = "rate", rate = "2mbit", size = "1472b" }\n'
    source = _source(name, {**_STILL, "hops": str(hops)}, flow, seconds)
    series, base = "1500-byte datagrams", "udp-chain-1"
    if hops >= LONG_CHAIN:
        expected, tolerance = reference.UDP_CHAIN_SHARE, Tolerance(0.20)
        return Scene(name, "udp-chain", series, hops, source, expected, tolerance, base)
    # The nodes of so short a chain are too near each other to send at once.
    ideal, note = (1 / hops, "compared with 1/h") if hops <= NEAR_CHAIN else (None, "")
    return Scene(name, "udp-chain", series, hops, source, ideal, None, base, note=note)


def _tcp(hops: int, seconds: float) -> Scene:
    """Holland and Vaidya's: their frames had no slower control frames."""
    name = f"tcp-chain-{hops}"
    flow = (
        '[[flow]]\nstack = "reno/reno"\nmss = 1460\nwindow_limit = 8\ntimestamps = false\n'
        'sack = false\ndelayed_ack = "off"\n'
    )
    radio = {"hops": str(hops), "routing": '"dsr"', "basic_rate": '"2mbit"'}
    published = reference.TCP_CHAIN_KBPS
    tolerance = None
    if hops > 1:
        tolerance = Tolerance(0.15 if hops <= NEAR_CHAIN else 0.25)
    return Scene(
        name,
        "tcp-chain",
        "TCP Reno, window of 8",
        hops,
        _source(name, radio, flow, seconds),
        published[hops] / published[1],
        tolerance,
        "tcp-chain-1",
        published[hops],
    )


def _window_of_one(phy: Phy, payload: int, hops: int, seconds: float, measure: str = "") -> Source:
    radio = {
        **_STILL,
        "hops": str(hops),
        "rate": f'"{phy.data:g}mbit"',
        "basic_rate": f'"{phy.basic:g}mbit"',
    }
    flow = (
        f'[[flow]]\nstack = "newreno/reno"\nmss = {payload}\nwindow_limit = 1\n'
        'timestamps = false\nsack = false\ndelayed_ack = "off"\n'
    )
    return _source(f"window-of-one-{hops}h", radio, flow, seconds, measure)


_STILL = {"arp": "false", "routing": '"static"'}
"""Nothing but data on the air."""


def _source(
    name: str, radio: Mapping[str, str], flows: str, seconds: float, measure: str = ""
) -> Source:
    keys = "".join(f"{key} = {value}\n" for key, value in radio.items())
    text = (
        f'name = "{name}"\n[topology]\nkind = "radio"\n[topology.radio]\n{keys}{flows}'
        f'[measure]\nduration = "{seconds + _WARMUP_S:g}s"\nwarmup = "{_WARMUP_S}s"\n'
        f'sample_interval = "0s"\n{measure}'
    )
    return Source(text, f"validate --radio: {name}")


def _rates(payload: int, data: float, basic: float) -> str:
    return f"{payload}b-{data:g}m-{basic:g}m"


def _spoken(payload: int, data: float, basic: float) -> str:
    return f"{payload} B, {data:g}/{basic:g} Mbit/s"


def _mode(has_rts: bool) -> str:
    return "RTS" if has_rts else "basic"
