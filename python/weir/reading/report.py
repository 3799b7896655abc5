"""The report of captures: a table, and one picture per connection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weir import _native
from weir.base.disk import write_text
from weir.base.grid import counted, number
from weir.reading import (
    Captures,
    controller,
    controller_cell,
    limits,
    limits_cell,
    name_of,
    unread_text,
)
from weir.reading.figures import connection_figure
from weir.reading.flows import flow_grid
from weir.report.html import render
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable

_PICTURES = 8
"""Connections with a picture, those with the most data; each takes half a second to draw."""
_ROWS = 200


def write_report(captures: Captures, folder: Path, command: str) -> Path:
    """Writes the tables and `report.html` into a new folder; returns the path of the report.

    Raises:
        StoreError: it cannot be written.
    """
    captures.write(folder)
    path = folder / "report.html"
    write_text(path, render(compose(captures, command)))
    return path


def compose(captures: Captures, command: str) -> Report:
    """The report."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    sections = [
        ReportSection(
            "Summary",
            points=list(_findings(captures)),
            warnings=list(captures.warnings),
            tables=list(_tables(captures)),
        ),
        *_connections(captures),
    ]
    return Report(
        "Captures",
        "What limited these connections?",
        sections,
        Provenance(command, _native.version(), created),
    )


def _findings(captures: Captures) -> Iterator[str]:
    for row in captures.connections.head(_PICTURES).iter_rows(named=True):
        found = limits(row)
        if found:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in found.items())
            yield f"{name_of(row)}: limited by {shares}."
    if captures.unread:
        yield f"Not read: {unread_text(captures.unread)}."


def _tables(captures: Captures) -> Iterator[ReportTable]:
    if not captures.connections.is_empty() or captures.udp_flows.is_empty():
        yield _table(captures)
    if not captures.udp_flows.is_empty():
        grid = flow_grid(captures.udp_flows, _ROWS)
        rows = [
            [Cell(text, "name" if at < grid.names else "number") for at, text in enumerate(row)]
            for row in grid.rows
        ]
        yield ReportTable("Flows of UDP", grid.headers, rows, note=grid.note)


def _table(captures: Captures) -> ReportTable:
    rows = [
        [
            Cell(name_of(row), "name", link=_anchor(row)),
            row["capture_point"],
            Cell(f"{row['duration_s']:.2f}"),
            Cell(f"{row['delivered_bytes'] / 1e6:.2f}"),
            _cell(row["goodput_mbps"]),
            _cell(row["rtt_ms_min"]),
            _cell(row["rtt_ms_p50"]),
            _cell(row["rtt_ms_p95"]),
            Cell(str(row["retransmits_fast"])),
            Cell(str(row["retransmits_rto"])),
            Cell(str(row["retransmits_tlp"])),
            Cell(str(row["retransmits_spurious"])),
            controller_cell(row),
        ]
        for row in captures.connections.head(_ROWS).iter_rows(named=True)
    ]
    headers = [
        "connection",
        "captured at",
        "s",
        "MB",
        "Mbit/s",
        "RTT min, ms",
        "median",
        "P95",
        "fast",
        "timeout",
        "probe",
        "spurious",
        "controller",
    ]
    left_out = captures.connections.height - len(rows)
    more = counted(left_out, "more connection")
    note = f"Not shown: {more}, in connections.parquet." if left_out else ""
    return ReportTable("Connections", headers, rows, note=note)


def _connections(captures: Captures) -> Iterator[ReportSection]:
    for row in captures.connections.head(_PICTURES).iter_rows(named=True):
        number = row["connection"]
        slices = captures.slices.filter(pl.col("connection") == number)
        points = captures.points.filter(pl.col("connection") == number)
        if slices.is_empty():
            continue
        figure = connection_figure(number, name_of(row), slices, points)
        yield ReportSection(f"Connection {number + 1}", list(_facts(row)), figures=[figure])


def _facts(row: dict[str, Any]) -> Iterator[str]:
    yield f"{name_of(row)}. Shares of the sender's time: {limits_cell(row)}."
    yield controller(row)
    if row["capacity_mbps"] is not None:
        yield f"With a queue, the path carries {number(row['capacity_mbps'])} Mbit/s of data."
    if row["reordered"]:
        yield f"{row['reordered']} segments were overtaken on the way."
    if row["policer_mbps"] is not None:
        yield (
            f"A policer passes {number(row['policer_mbps'])} Mbit/s of data after a burst of "
            f"{row['policer_burst_bytes'] / 1e3:.0f} kB."
        )
    if row["merged_packets"]:
        yield (
            f"Offload merged segments in {row['merged_packets']} packets: gaps between packets and "
            "bursts are those of the capture, not of the wire."
        )
    if row["unseen_bytes"]:
        yield f"{row['unseen_bytes']} bytes were acknowledged that the capture does not have."
    if row["source"] == "capture" and not row["has_handshake"]:
        yield "The handshake is not in the capture: the scale of windows is unknown."


def _anchor(row: dict[str, Any]) -> str:
    return f"connection-{row['connection'] + 1}"


def _cell(value: float | None) -> Cell:
    return Cell(number(value))
