"""What a QUIC program says of its sender: qlog (draft-ietf-quic-qlog-main-schema), in the tables.

A log is lines of JSON, or JSON records behind a record separator each (RFC 7464). Only event
`metrics_updated` of category `recovery` is read, whose values hold until the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

_EVENTS = ("recovery:metrics_updated", "quic:recovery_metrics_updated")
_COLUMNS: Mapping[str, str] = {
    "congestion_window": "cwnd_bytes",
    "ssthresh": "ssthresh_bytes",
    "bytes_in_flight": "bytes_in_flight",
    "smoothed_rtt": "srtt_ms",
    "latest_rtt": "rtt_ms",
    "rtt_variance": "rttvar_ms",
}
"""Fields of the event, and the columns of table `samples`; times are in milliseconds in both."""
_MILLISECONDS = {"ms": 1, "s": 1000}
_LARGEST = 1 << 62
"""A threshold above is infinite."""
_UNKNOWN_OF_UDP = ("retransmits", "retransmit_ratio", "retransmits_spurious")
"""Packets of an encrypted transport do not tell what they repeat."""


def largest(folder: Path, pattern: str) -> Path | None:
    """The log with the most events: a program may write one per connection."""
    files = [file for file in folder.glob(pattern) if file.is_file()]
    return max(files, key=lambda file: file.stat().st_size, default=None)


def metrics(log: Path, rtt_unit: str = "ms") -> pl.DataFrame:
    """The sender's state over time: `t_ms` from the first event, and columns of table `samples`.

    Round-trip times in the log are in `rtt_unit`.
    """
    rows, first = list[dict[str, Any]](), None
    state = dict[str, float]()
    for event in _events(log):
        time = float(event["time"])
        first = time if first is None else first
        if event.get("name") not in _EVENTS:
            continue
        data = event.get("data", {})
        state |= {name: data[name] for name in _COLUMNS if data.get(name) is not None}
        rows.append({"t_ms": time - first, **{_COLUMNS[key]: v for key, v in state.items()}})
    schema = {"t_ms": pl.Float64, **dict.fromkeys(_COLUMNS.values(), pl.Float64)}
    found = pl.DataFrame(rows, schema=schema, orient="row")
    is_finite = pl.col("ssthresh_bytes") < _LARGEST
    times = [pl.col(name) * _MILLISECONDS[rtt_unit] for name in found.columns if "rtt" in name]
    return found.with_columns(pl.when(is_finite).then(pl.col("ssthresh_bytes")), *times)


def _events(log: Path) -> Iterator[dict[str, Any]]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            # A program that was ended may leave an incomplete last line.
            with suppress(ValueError, TypeError, KeyError):
                event = json.loads(line.strip("\x1e \n"))
                float(event["time"])
                yield event


def merged(
    tables: Mapping[str, pl.DataFrame], flow: int, transport: str, state: pl.DataFrame | None
) -> dict[str, pl.DataFrame]:
    """The tables, with the `metrics` of a flow, and null for what nothing shows."""
    flows, samples = tables["flows"], tables["samples"]
    own = pl.col("flow") == flow
    if transport == "udp":
        flows, samples = (_without(table, own) for table in (flows, samples))
    is_known = pl.col("cwnd_bytes") > 0
    nulls = [_only(name, ~own | is_known) for name in ("bytes_in_flight", "cwnd_bytes", "rto_ms")]
    samples = samples.with_columns(nulls)
    if state is not None and not state.is_empty():
        start_s = flows.filter(own)["start_s"].item()
        samples = _joined(samples, state, flow, start_s)
        cwnd = samples.filter(own)["cwnd_bytes"].drop_nulls()
        if not cwnd.is_empty():
            flows = flows.with_columns(
                pl.when(own).then(pl.lit(cwnd.mean())).otherwise(pl.col("cwnd_bytes_mean"))
                .alias("cwnd_bytes_mean"),
                pl.when(own).then(pl.lit(cwnd.max())).otherwise(pl.col("cwnd_bytes_max"))
                .alias("cwnd_bytes_max"),
            )  # fmt: skip
    return {**tables, "flows": flows.cast(tables["flows"].schema), "samples": samples}


def _without(table: pl.DataFrame, own: pl.Expr) -> pl.DataFrame:
    return table.with_columns(_only(n, ~own) for n in _UNKNOWN_OF_UDP if n in table.columns)


def _only(name: str, where: pl.Expr) -> pl.Expr:
    return pl.when(where).then(pl.col(name)).alias(name)


def _joined(samples: pl.DataFrame, state: pl.DataFrame, flow: int, start_s: float) -> pl.DataFrame:
    """The samples of a flow with the newest state before each. The log begins with the flow."""
    schema = samples.schema
    state = state.with_columns(t_s=pl.col("t_ms") / 1000 + start_s).drop("t_ms").sort("t_s")
    state = state.rename({name: f"log_{name}" for name in _COLUMNS.values()})
    own = samples.filter(pl.col("flow") == flow).sort("t_s").join_asof(state, on="t_s")
    known = [pl.coalesce(f"log_{name}", name).alias(name) for name in _COLUMNS.values()]
    own = own.with_columns(known).select(list(schema)).cast(schema)
    others = samples.filter(pl.col("flow") != flow)
    return pl.concat([others, own]).sort("t_s", "flow")
