"""Paths that others have measured: traces of mahimahi and profiles of iBox."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

import polars as pl

from weir import _native
from weir.base import bounded
from weir.base.errors import InputError
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity
from weir.modelling.measured import Measurement

_PACKET_BYTES = 1500
_TRACE_DELAY_MS = 40.0
_TRACE_QUEUE = 1000
_HEAD_BYTES = 64
_MOST_KBPS = 1e9
_MOST_BYTES = 1e10
_MOST_DELAY_MS = 60_000.0
_MOST_SECONDS = 600


def read(file: File) -> Measurement | None:
    """The path in a trace of mahimahi or a profile of iBox; None if `file` is something else.

    Raises:
        InputError: it lacks something, or has a value that no path has.
    """
    head = _head(file)
    if head.lstrip().startswith(b"{"):
        return _of_profile(file, bounded.read_json(file))
    first_line = head.partition(b"\n")[0].strip()
    if first_line and all(byte in b"0123456789 \t" for byte in first_line):
        return _of_trace(file, bounded.read_bytes(file))
    return None


def _head(file: File) -> bytes:
    if not file.is_file():
        return b""
    with file.open("rb") as opened:
        return opened.read(_HEAD_BYTES)


def _of_trace(file: File, content: bytes) -> Measurement:
    """The times of mahimahi's format are milliseconds, one per line, at which 1500 bytes pass."""
    key = "topology.forward.rate_trace"
    try:
        _native.Scenario.parse("[[flow]]", [(key, str(file.resolve()))], "trace")
    except _native.ScenarioError as error:
        problem = str(error).rpartition("', ")[2]
        raise InputError(f"{file}, read as a trace of mahimahi: {problem}") from None
    times = [int(line) for line in content.split()]
    mbps = len(times) * _PACKET_BYTES * 8e-3 / times[-1]
    queue = float(_TRACE_QUEUE * _PACKET_BYTES)
    path = Path(
        _exact(mbps),
        _exact(_TRACE_DELAY_MS),
        _exact(queue),
        _exact(0.0),
        _PACKET_BYTES,
        trace=tuple(times),
    )
    warning = (
        f"a trace has no delay and no queue: the model has {_TRACE_DELAY_MS:g} ms and "
        f"{_TRACE_QUEUE} packets; edit topology.rtt and topology.queue"
    )
    return Measurement(str(file), path, None, pl.DataFrame(), (warning,))


def _of_profile(file: File, profile: Any) -> Measurement:
    """A profile of microsoft/internet-in-a-box: kbit/s, bytes, ms, one cross rate per second."""
    ways = _section(file, profile, "config")
    up, down = _section(file, ways, "uplink"), _section(file, ways, "downlink")
    if profile.get("data_flow_direction") == "download":
        up, down = down, up
    delays = [_number(file, way, "propagation_delay", 0.0, _MOST_DELAY_MS) for way in (up, down)]
    rate, back = (
        _number(file, way, "bottleneck_bandwidth", 1.0, _MOST_KBPS) / 1e3 for way in (up, down)
    )
    cross = _cross(file, up)
    path = Path(
        _exact(rate),
        _exact(sum(delays)),
        _exact(_number(file, up, "buffer_size_bytes", float(_PACKET_BYTES), _MOST_BYTES)),
        _exact(0.0),
        _PACKET_BYTES,
        reverse_mbps=back,
        cross_mbps=cross,
    )
    return Measurement(str(file), path, None, pl.DataFrame(), tuple(_warnings(path, delays[1])))


def _warnings(path: Path, way_back_ms: float) -> list[str]:
    found = []
    if way_back_ms == 0:
        found.append(
            "the profile has no delay of the way back: the round trip is the delay of one way"
        )
    above = sum(rate > path.rate_mbps.value for rate in path.cross_mbps)
    if above:
        found.append(
            f"in {above} of {len(path.cross_mbps)} seconds the cross traffic is above the rate"
        )
    return found


def _cross(file: File, way: Mapping[str, Any]) -> tuple[float, ...]:
    key = "cross_traffic_pattern"
    values = way.get(key, [])
    if not isinstance(values, list) or len(values) > _MOST_SECONDS:
        raise InputError(f"{file}: {key}: use a list of at most {_MOST_SECONDS} rates in kbit/s")
    each = [_number(file, {key: value}, key, 0.0, _MOST_KBPS) for value in values]
    return tuple(kbps / 1e3 for kbps in each)


def _section(file: File, within: Any, key: str) -> Mapping[str, Any]:
    found = within.get(key) if isinstance(within, dict) else None
    if not isinstance(found, dict):
        raise InputError(f"{file}: a profile of iBox has an object {key}; this file has none")
    return found


def _number(file: File, within: Mapping[str, Any], key: str, least: float, most: float) -> float:
    value = within.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or not is_number or not math.isfinite(value) or not least <= value <= most:
        raise InputError(f"{file}: {key} is {value!r:.40}; use a number from {least:g} to {most:g}")
    return float(value)


def _exact(value: float) -> Quantity:
    return Quantity(value, value, value)
