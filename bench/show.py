"""The measurements as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure import Row
from weir.base.grid import Grid, number

_HEADERS = (
    "case",
    "simulator",
    "sim s",
    "packets",
    "Mbit/s",
    "CPU s",
    "events/s",
    "packets/s",
    "sim s/s",
    "peak MiB",
    "run MiB",
    "note",
)

_TITLES = {
    "dumbbell": "Dumbbells over three hops",
    "flow count": "What a packet costs with more flows (10 Mbit/s each)",
    "arrivals": "100 000 connections in one run next to 16 long flows (1 Gbit/s)",
    "duration": "Memory over simulated time",
    "radio": "A chain of radios",
}

_GOAL = 15
"""How many times faster than ns-3 the chain of radios is to be."""

_ARRIVALS_GOAL = 2
"""How many times what a packet of long flows costs one of many connections may cost."""

SETTINGS = (
    "Dumbbells: sack/reno, buffer 1 BDP, access links ten times the bottleneck, delayed ACKs after "
    "RFC 1122. Chain: newreno/reno, 1460 B, 802.11 DSSS at 2 Mbit/s with RTS and CTS, AODV; ns-3 "
    "and Weir take turns. Connections: sizes of web-search, a tenth as large, at a load of 60 %. "
    "All have samples every 100 ms unless said otherwise and all checkers on, as in weir compare. "
    "Rates are per second of CPU time; packets are data packets that reached their receiver; every "
    "run is a fresh process, and the median CPU time counts. Peak MiB is the "
    "whole process, with Python's libraries; run MiB is what the run added."
)


def grids(rows: Sequence[Row]) -> list[Grid]:
    """One table per group of cases."""
    groups = dict.fromkeys(str(row["group"]) for row in rows)
    return [_grid(group, [row for row in rows if row["group"] == group]) for group in groups]


def _grid(group: str, rows: Sequence[Row]) -> Grid:
    notes = {
        "dumbbell": _against_ns3,
        "flow count": _cost_ratio,
        "arrivals": _cost_of_arrivals,
        "duration": _growth,
        "radio": _ratio_of_rounds,
    }[group]
    cells = [
        (
            row["case"],
            row["simulator"],
            number(row["sim_s"]),
            _short(row["data_packets"]),
            _rate(row["goodput_mbps"]),
            number(row["cpu_s"]),
            _short(row["events_per_cpu_s"]),
            _short(row["packets_per_cpu_s"]),
            number(row["sim_s_per_cpu_s"]),
            f"{row['peak_mib']:.0f}",
            "" if row["run_mib"] is None else f"{row['run_mib']:.1f}",
            notes(row, rows),
        )
        for row in rows
    ]
    return Grid(_TITLES[group], _HEADERS, cells, names=2, notes=1)


def _against_ns3(row: Row, rows: Sequence[Row]) -> str:
    if row["simulator"] != "weir":
        return str(row["note"])
    other = [r for r in rows if r["case"] == row["case"] and r["simulator"] != "weir"]
    if not other:
        return ""
    return f"{row['packets_per_cpu_s'] / other[0]['packets_per_cpu_s']:.0f} × ns-3"


def _ratio_of_rounds(row: Row, rows: Sequence[Row]) -> str:
    ratio = row["ns3_cpu_ratio"]
    if ratio is None:
        return ""
    packets = _against_ns3(row, rows)
    return f"{packets}; time × {ratio:.1f} (goal {_GOAL})"


def _cost_ratio(row: Row, rows: Sequence[Row]) -> str:
    first = rows[0]["packets_per_cpu_s"]
    return f"cost × {first / row['packets_per_cpu_s']:.2f}" if row is not rows[0] else ""


def _cost_of_arrivals(row: Row, rows: Sequence[Row]) -> str:
    ratio = _cost_ratio(row, rows)
    return f"{ratio} (goal {_ARRIVALS_GOAL})" if ratio else ""


def _growth(row: Row, rows: Sequence[Row]) -> str:
    shorter = [
        r
        for r in rows
        if r["sample_interval_ms"] == row["sample_interval_ms"] and r["sim_s"] < row["sim_s"]
    ]
    if not shorter:
        return ""
    times = row["sim_s"] / shorter[0]["sim_s"]
    return f"{row['run_mib'] - shorter[0]['run_mib']:+.1f} MiB for {times:.0f} × the time"


def _rate(mbps: float) -> str:
    return f"{mbps:.0f}" if mbps >= 1 else f"{mbps:.3f}"


def _short(count: float) -> str:
    """Three digits and a unit."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.3g} {letter}"
    return f"{count:.3g}"
