"""Logs of `ss -ti` with a time before each output.

`while sleep 0.2; do date +%s.%N; ss -tin; done` makes one. Source: iproute2's `misc/ss.c`. A
connection is a line with its ends and one with what the kernel knows of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weir.base.errors import InputError
from weir.importing.runs import UNKNOWN, ImportedFlow, ImportedRun, Sample

_TIME = re.compile(r"^\s*(\d{9,}(?:\.\d+)?)\s*$")
_ENDS = re.compile(r"(\S+:\d+)\s+(\S+:\d+)")
_VALUE = re.compile(r"\b([a-z_]+):(\d+(?:\.\d+)?)(?:/(\d+(?:\.\d+)?))?")
_CONTROLS = re.compile(r"^\s*(?:ts |sack |ecn |ecnseen |fastopen )*([a-z][a-z0-9_]*) wscale")
_LEAST = 2


@dataclass
class _Connection:
    stack: str = UNKNOWN
    samples: list[Sample] = field(default_factory=list)
    segments: int | None = None


def is_own(text: str) -> bool:
    """Whether a text is such a log."""
    return "bytes_acked:" in text and "cwnd:" in text


def run(file: Path, text: str) -> ImportedRun:
    """The run of a log.

    Raises:
        InputError: it has no times, or no connection twice.
    """
    found = dict(_connections(text))
    if not found:
        raise InputError(
            f"{file}: no time stands before an output of ss; write the log by: while sleep 0.2; do "
            "date +%s.%N; ss -tin dst HOST; done"
        )
    usable = {
        ends: one
        for ends, one in found.items()
        if len(one.samples) >= _LEAST and _delivered(one.samples) > 0
    }
    if not usable:
        raise InputError(f"{file}: no connection acknowledged data between two outputs of ss")
    begin = min(one.samples[0].t_s for one in usable.values())
    most = max(_delivered(one.samples) for one in usable.values())
    flows = [
        _flow(ends, one, begin)
        for ends, one in usable.items()
        if _delivered(one.samples) >= most / 100
    ]
    return ImportedRun("ss", flows)


def _connections(text: str) -> Iterator[tuple[str, _Connection]]:
    found: dict[str, _Connection] = {}
    time: float | None = None
    ends = ""
    for line in text.splitlines():
        if match := _TIME.match(line):
            time = float(match[1])
        elif "cwnd:" in line and ends and time is not None:
            _note(found.setdefault(ends, _Connection()), time, line)
        elif match := _ENDS.search(line):
            ends = f"{match[1]} → {match[2]}"
    return iter(found.items())


def _note(one: _Connection, time: float, line: str) -> None:
    values = {name: (float(first), last) for name, first, last in _VALUE.findall(line)}
    acked = values.get("bytes_acked", (0.0, ""))[0]
    before = one.samples[-1] if one.samples else None
    mbps = None
    if before is not None and time > before.t_s:
        mbps = max(acked - (before.acked_bytes or 0.0), 0.0) * 8e-6 / (time - before.t_s)
    rtt = values.get("rtt")
    window = values["cwnd"][0] * values.get("mss", (1448.0, ""))[0]
    retransmits = values.get("retrans")
    if match := _CONTROLS.match(line):
        one.stack = match[1]
    total = int(retransmits[1]) if retransmits and retransmits[1] else 0
    one.samples.append(Sample(time, mbps, rtt[0] if rtt else None, window, total, acked))
    segments = values.get("data_segs_out")
    one.segments = int(segments[0]) if segments else one.segments


def _delivered(samples: list[Sample]) -> float:
    return (samples[-1].acked_bytes or 0.0) - (samples[0].acked_bytes or 0.0)


def _flow(ends: str, one: _Connection, begin: float) -> ImportedFlow:
    first, last = one.samples[0], one.samples[-1]
    samples = [
        Sample(s.t_s - begin, s.goodput_mbps, s.rtt_ms, s.cwnd_bytes, s.retransmits, s.acked_bytes)
        for s in one.samples
    ]
    return ImportedFlow(
        ends,
        one.stack,
        first.t_s - begin,
        last.t_s - begin,
        _delivered(one.samples),
        samples,
        segments=one.segments,
        retransmits=(last.retransmits or 0) - (first.retransmits or 0),
    )
