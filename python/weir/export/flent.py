"""Flent's data file, version 4, one `.flent.gz` per run, as a test `tcp_nup` would have written it.

Source: Flent 2.1.1, `resultset.py` (the format), `tests/tcp_nup.conf` (the series and plots), and
`runners.py` (the sub-series `tcp_cwnd` in packets, `tcp_rtt` in ms, rates in Mbit/s).

Our runs send no pings: the series `Ping (ms) ICMP`, which Flent's plots ask for by that name, holds
the newest round-trip time that the connections measured, averaged over them. Its metadata says so.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weir.export.runs import ExportedRun
from weir.results.results import Results

FORMAT_VERSION = 4
SUFFIX = ".flent.gz"

_TEST = "tcp_nup"
_SUM, _MEAN, _PING = "TCP upload sum", "TCP upload avg", "Ping (ms) ICMP"
_PING_SOURCE = "weir: mean of the connections' newest RTT samples; no pings were sent"

Row = Mapping[str, Any]


def write(_results: Results, runs: Sequence[ExportedRun], folder: Path) -> None:
    """Writes `STEM.flent.gz` for each run.

    Raises:
        InputError: a run has no samples of connections.
    """
    for run in runs:
        run.sampled("flent")
        text = json.dumps(document(run), sort_keys=True)
        # Without a time in its header the same run gives the same file.
        (folder / f"{run.stem}{SUFFIX}").write_bytes(gzip.compress(text.encode(), mtime=0))


def document(run: ExportedRun) -> dict[str, Any]:
    """What the file of a run holds."""
    by_flow = {
        f"TCP upload::{number}": {round(row["t_s"], 9): row for row in run.samples[flow["flow"]]}
        for number, flow in enumerate(run.reliable, 1)
    }
    times = sorted({time for rows in by_flow.values() for time in rows})
    rates = {name: _column(rows, times, "goodput_mbps") for name, rows in by_flow.items()}
    rtts = [_column(rows, times, "rtt_ms") for rows in by_flow.values()]
    results: dict[str, list[float | None]] = dict(rates)
    results[_SUM] = [_total(values) for values in zip(*rates.values(), strict=True)]
    results[_MEAN] = [_mean(values) for values in zip(*rates.values(), strict=True)]
    results[_PING] = [_mean(values) for values in zip(*rtts, strict=True)]
    began = run.created.timestamp()
    raw: dict[str, list[dict[str, float]]] = {
        name: [_raw(run, flow["flow"], row, began) for row in by_flow[name].values()]
        for name, flow in zip(by_flow, run.reliable, strict=True)
    }
    for name in (_SUM, _MEAN, _PING):
        pairs = zip(times, results[name], strict=True)
        raw[name] = [{"t": began + t, "val": value} for t, value in pairs if value is not None]
    return {
        "version": FORMAT_VERSION,
        "x_values": times,
        "results": results,
        "raw_values": raw,
        "metadata": _metadata(run, results, times),
    }


def _raw(run: ExportedRun, flow: int, row: Row, began: float) -> dict[str, float]:
    """A sample as Flent keeps those of `ss`."""
    values = {
        "t": began + row["t_s"],
        "val": row["goodput_mbps"],
        "tcp_cwnd": row["cwnd_bytes"] / run.mss[flow],
        "tcp_rtt": row["srtt_ms"],
        "tcp_rtt_var": row["rttvar_ms"],
        "tcp_pacing_rate": row["pacing_mbps"],
        "tcp_delivery_rate": row["delivery_mbps"],
    }
    return {key: value for key, value in values.items() if value is not None}


def _metadata(
    run: ExportedRun, results: Mapping[str, Sequence[float | None]], times: Sequence[float]
) -> dict[str, Any]:
    stamp = f"{run.created:%Y-%m-%dT%H:%M:%S}.000000Z"
    duration = run.measure("duration")
    measured = (run.measure("warmup"), duration)
    return {
        "NAME": _TEST,
        "TITLE": run.title,
        "NOTE": f"weir {run.results.manifest['version']}: {run.results.manifest['command']}",
        "TIME": stamp,
        "T0": stamp,
        "HOST": run.world,
        "HOSTS": [run.world],
        "LOCAL_HOST": "weir",
        "IP_VERSION": 4,
        "LENGTH": duration,
        "TOTAL_LENGTH": max(duration, times[-1]),
        "STEP_SIZE": run.measure("sample_interval"),
        "TEST_PARAMETERS": {"upload_streams": str(len(run.reliable))},
        "FLENT_VERSION": f"weir {run.results.manifest['version']}",
        "SERIES_META": {
            name: {
                "UNITS": "ms" if name == _PING else "Mbits/s",
                "RUNNER": _PING_SOURCE if name == _PING else "weir",
                "MEAN_VALUE": _mean(
                    [
                        v
                        for t, v in zip(times, values, strict=True)
                        if measured[0] < t <= measured[1]
                    ]
                ),
            }
            for name, values in results.items()
        },
    }


def _column(rows: Mapping[float, Row], times: Sequence[float], key: str) -> list[float | None]:
    return [rows[time][key] if time in rows else None for time in times]


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
