"""`weir read`: what limited the connections of a capture, and their congestion control."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.base.errors import InputError
from weir.base.grid import Grid, counted, number
from weir.base.options import OUTPUT, Option
from weir.cli import options, output, screen
from weir.cli.help import Verb

if TYPE_CHECKING:
    from weir.reading import Captures

_HELP = """\
Files are pcap, pcapng, snoop or qlog, also compressed by gzip, zstd or xz; - is standard input.
Captures are made at the sender, at the receiver or between them. A qlog is that of one end. Of a
result directory all runs are read.
Prints per connection: amount, goodput, round-trip time, retransmissions by kind, the congestion
control of the sender, and the shares of time in which a limit held it. Flows of UDP and QUIC have
a table of their own.

Exit codes: 0 read, 2 an input is none of these. See docs/read.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir read slow.pcapng

  weir read before.pcap.gz after.pcap.gz --out slow-path

  weir read server.sqlog

  ssh HOST sudo tcpdump -s 128 -c 100000 -w - tcp | weir read -

  weir read results/compare/latest --json"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(read)


def read(
    captures: Annotated[
        list[Path],
        typer.Argument(metavar="INPUT...", help="Captures, qlogs or result directories."),
    ],
    out: Annotated[
        Path | None,
        Option(
            "Write the tables as Parquet and a report with diagrams into this new folder.",
            OUTPUT,
            metavar="DIR",
        ),
    ] = None,
    most: Annotated[
        int,
        Option(
            "Connections to print, those with the most data first; --json prints all.",
            OUTPUT,
            min=1,
        ),
    ] = 20,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Reads the captures and prints their connections."""
    from weir import reading  # data frames would slow down `--help`

    if out is not None and out.exists():
        raise InputError(f"--out {out}: is there already; name a new folder")
    found = reading.read(captures)
    for warning in found.warnings:
        output.note(f"warning: {warning}", quiet=quiet)
    if json:
        rows = [json_row(row) for row in found.connections.iter_rows(named=True)]
        flows = found.udp_flows.to_dicts()
        warnings = list(found.warnings)
        more = {"counts": found.counts, "unread": found.unread, "warnings": warnings}
        output.print_json("read", rows, udp_flows=flows, **more)
    else:
        for grid in _grids(found, most):
            screen.show(grid.rich())
    if out is not None:
        from weir.reading.report import write_report

        path = write_report(found, out, shlex.join(["weir", *sys.argv[1:]]))
        output.note(f"report: {path}", quiet=quiet)


def json_row(row: dict[str, Any]) -> dict[str, Any]:
    """A connection with its limits, candidates and tshark's counts in objects of their own."""
    from weir.reading import COLUMNS, LIMITS, candidates

    shares = {name: row[column] for name, column in zip(LIMITS, COLUMNS, strict=True)}
    counts = {
        name.removeprefix("tshark_"): value
        for name, value in row.items()
        if name.startswith("tshark_")
    }
    kept = {n: v for n, v in row.items() if n not in COLUMNS and not n.startswith("tshark_")}
    kept["controller_candidates"] = candidates(row)
    return {**kept, "limits": shares, "tshark": counts}


def _grids(found: Captures, most: int) -> Iterator[Grid]:
    from weir.reading.flows import flow_grid

    if not found.connections.is_empty() or found.udp_flows.is_empty():
        yield _grid(found, most)
    if not found.udp_flows.is_empty():
        yield flow_grid(found.udp_flows, most)


def _grid(found: Captures, most: int) -> Grid:
    from weir.reading import controller_cell, limits_cell, name_of, unread_text

    rows = [
        [
            name_of(row),
            row["capture_point"],
            f"{row['duration_s']:.2f}",
            f"{row['delivered_bytes'] / 1e6:.2f}",
            number(row["goodput_mbps"]),
            f"{number(row['rtt_ms_min'])} / {number(row['rtt_ms_p50'])}",
            f"{row['retransmits']} {_kinds(row)}".strip(),
            controller_cell(row),
            limits_cell(row),
        ]
        for row in found.connections.head(most).iter_rows(named=True)
    ]
    headers = [
        "connection",
        "captured at",
        "s",
        "MB",
        "Mbit/s",
        "RTT, ms: min / median",
        "retransmissions",
        "controller",
        "limited by",
    ]
    counts = found.counts
    left_out = found.connections.height - len(rows)
    more = f" {left_out} smaller connections are not shown (--most)." if left_out else ""
    left = f" Not read: {unread_text(found.unread)}." if found.unread else ""
    kinds = {
        "packets of TCP": counts["tcp_packets"],
        "packets of UDP": counts["udp_packets"],
        "events of logs": counts["log_events"],
    }
    seen = [f"{count} {what}" for what, count in kinds.items() if count]
    title = ", ".join([*seen, counted(found.connections.height, "connection")])
    note = (
        "An arrow points from the end that sent more data. Retransmissions: fast, timeout, tail "
        "probe, and how many of all were spurious. Controller: the congestion controls that "
        "predict the window, or the one that a log reports. Shares are those of the sender's time."
        f"{more}{left}"
    )
    return Grid(title, headers, rows, names=2, notes=1, note=note)


def _kinds(row: dict[str, Any]) -> str:
    kinds = {
        "fast": row["retransmits_fast"],
        "timeout": row["retransmits_rto"],
        "probe": row["retransmits_tlp"],
        "spurious": row["retransmits_spurious"],
    }
    texts = [f"{count} {name}" for name, count in kinds.items() if count]
    return f"({', '.join(texts)})" if texts else ""
