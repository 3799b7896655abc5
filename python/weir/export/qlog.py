"""qlog, one file per flow and vantage point: the sender's and the receiver's side of a connection.

Source: draft-ietf-quic-qlog-main-schema for the file; for what TCP shares with QUIC the names of
draft-ietf-quic-qlog-quic-events, with the namespaces `transport` and `recovery` of qlog 0.3, which
viewers read. A segment's number is its place among those that its end sent; TCP's own fields are in
`tcp`. The sender's metrics are those of table `samples`.

Packets come from the simulation, run once more; files of other worlds have metrics only, and no
receiver's side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from weir._native import stack_parts
from weir.base.errors import InputError
from weir.export import packets
from weir.export.capture_file import CapturedSegment, segments
from weir.export.connection import Event, Receiver, Sender
from weir.export.runs import ExportedRun, flow_of
from weir.results.results import INTERNAL, Results
from weir.scenario.source import SIM

SUFFIX = ".qlog"
MOST_FLOWS = 200
"""Most flows of a run: each needs two open files."""

_SCHEMA = "tag:weir,2026:qlog:tcp"
_TOTALS = ("acked_bytes", "retransmits")
"""Columns of `samples` that stand for packets where these are not known."""
_SIDES: Mapping[str, tuple[str, str, Callable[[], Sender | Receiver]]] = {
    "senders": ("sender", "client", Sender),
    "receivers": ("receiver", "server", Receiver),
}

Row = Mapping[str, Any]


def write(_results: Results, runs: Sequence[ExportedRun], folder: Path) -> None:
    """Writes `STEM-FLOW-sender.qlog` and `STEM-FLOW-receiver.qlog` for each connection of each run.

    Raises:
        InputError: a run has no connections, or too many, or goes over radio.
        RunError: a run came out differently from what is on disk.
    """
    for run in runs:
        if not 0 < len(run.reliable) <= MOST_FLOWS:
            raise InputError(
                f"--format qlog: {run.label} has {len(run.reliable)} flows with a connection; "
                f"from 1 to {MOST_FLOWS} are written, two files each"
            )
        if run.world != SIM:
            run.sampled("qlog")
            _write_side(run, folder, "senders", ())
            continue
        with TemporaryDirectory(dir=folder, prefix=".packets") as temporary:
            packets.record(run, Path(temporary))
            for side in _SIDES:
                capture = Path(temporary) / f"{run.stem}-{side}.pcapng"
                _write_side(run, folder, side, segments(capture))


def _write_side(run: ExportedRun, folder: Path, side: str, seen: Iterable[CapturedSegment]) -> None:
    """The files of one side of all connections, in one pass over what its interface saw."""
    end, _, made = _SIDES[side]
    names = {flow["flow"]: f"{run.stem}-{_word(flow['name'])}-{end}" for flow in run.reliable}
    if len(set(names.values())) < len(names):
        names = {flow: f"{run.stem}-{flow}-{end}" for flow in names}
    states = {flow: made() for flow in names}
    files = {
        flow: _Trace(folder / f"{name}{SUFFIX}", run, flow, side) for flow, name in names.items()
    }
    metrics = _metrics(run) if end == "sender" else iter(())
    try:
        for t_s, flow, what in merge(metrics, _packets(seen, states), key=lambda event: event[0]):
            files[flow].add(t_s, what)
    finally:
        for file in files.values():
            file.close()


def _packets(
    seen: Iterable[CapturedSegment], states: Mapping[int, Sender | Receiver]
) -> Iterator[tuple[float, int, Event]]:
    for segment in seen:
        forward = segment.source < segment.destination
        flow = flow_of(segment.source if forward else segment.destination)
        if flow in states:
            for event in states[flow].events(segment, forward=forward):
                yield segment.t_s, flow, event


def _metrics(run: ExportedRun) -> Iterator[tuple[float, int, Event]]:
    """What table `samples` says, in the order of time: every value, and states when they change."""
    states: dict[int, str] = {}
    rows = run.table("samples").sort("t_s", "flow").iter_rows(named=True)
    wanted = {flow["flow"] for flow in run.reliable}
    for row in rows:
        flow = row["flow"]
        if flow not in wanted:
            continue
        metrics = _updated(row)
        if run.world != SIM:
            metrics |= {name: row[name] for name in _TOTALS}
        yield row["t_s"], flow, ("recovery:metrics_updated", metrics)
        if own := _variables(row):
            yield row["t_s"], flow, ("weir:controller_updated", own)
        state = f"{row['state']}/{row['phase']}"
        if states.get(flow) != state:
            change = {"new": state} | ({"old": states[flow]} if flow in states else {})
            states[flow] = state
            yield row["t_s"], flow, ("recovery:congestion_state_updated", change)


def _updated(row: Row) -> dict[str, Any]:
    rate = row["pacing_mbps"]
    values = {
        "smoothed_rtt": row["srtt_ms"],
        "latest_rtt": row["rtt_ms"],
        "rtt_variance": row["rttvar_ms"],
        "congestion_window": row["cwnd_bytes"],
        "bytes_in_flight": row["bytes_in_flight"],
        "ssthresh": row["ssthresh_bytes"],
        "pacing_rate": None if rate is None else round(rate * 1e6),
    }
    return {key: value for key, value in values.items() if value is not None}


def _variables(row: Row) -> dict[str, float]:
    """The controller's internal variables, by their names in table `samples`."""
    return {
        key.removeprefix(INTERNAL): value
        for key, value in row.items()
        if key.startswith(INTERNAL) and value is not None
    }


class _Trace:
    """A file while it is being written: events go out as they come."""

    def __init__(self, path: Path, run: ExportedRun, flow: int, side: str) -> None:
        end, kind, _ = _SIDES[side]
        (row,) = (row for row in run.flows if row["flow"] == flow)
        title = f"{run.title}: {row['name']}, {row['stack']}"
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._separator = ""
        head = {
            "qlog_version": "0.3",
            "qlog_format": "JSON",
            "file_schema": "urn:ietf:params:qlog:file:contained",
            "serialization_format": "application/qlog+json",
            "title": title,
            "traces": [
                {
                    "title": title,
                    "description": f"weir {run.results.manifest['version']}, world {run.world}",
                    "event_schemas": [_SCHEMA],
                    "vantage_point": {"name": end, "type": kind},
                    "common_fields": {
                        "ODCID": f"{flow:08x}",
                        "group_id": f"{flow:08x}",
                        "protocol_types": ["TCP"],
                        "time_format": "relative",
                        "reference_time": 0,
                        **_controller(row["stack"]),
                    },
                    "events": [],
                }
            ],
        }
        self._file.write(json.dumps(head, ensure_ascii=False).removesuffix("]}]}"))

    def add(self, t_s: float, event: Event) -> None:
        """Writes an event; times are milliseconds since the run began."""
        name, data = event
        record = {"time": round(t_s * 1e3, 6), "name": name, "data": data}
        self._file.write(f"{self._separator}\n{json.dumps(record, ensure_ascii=False)}")
        self._separator = ","

    def close(self) -> None:
        """Completes the document."""
        self._file.write("\n]}]}\n")
        self._file.close()


def _controller(stack: str) -> dict[str, str]:
    """The congestion control of a stack of Weir or of the kernel."""
    return {} if ":" in stack else {"congestion_control": stack_parts(stack)[2]}


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._=" else "-" for letter in name)
