"""What `iperf3 -J` prints, one `.json` per run: the flows with a connection are its streams.

Source: iperf 3.12, `iperf_api.c` and its own output. Times are seconds since the run began, `rtt`
and `rttvar` microseconds, windows bytes. An interval is that between two samples, and `bytes` is
what was acknowledged in it; intervals of the warm-up are `omitted`. The sender's bytes at the end
are those sent, repetitions included, and the receiver's those that arrived in order.

Left out is what our runs do not have: `cookie`, `snd_wnd`, `pmtu`, `cpu_utilization_percent`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weir.export.runs import ExportedRun, addresses
from weir.results.results import Results

Row = Mapping[str, Any]


def write(_results: Results, runs: Sequence[ExportedRun], folder: Path) -> None:
    """Writes `STEM.json` for each run.

    Raises:
        InputError: a run has no samples of connections.
    """
    for run in runs:
        run.sampled("iperf3")
        text = json.dumps(document(run), indent=2, ensure_ascii=False)
        (folder / f"{run.stem}.json").write_text(text + "\n", encoding="utf-8")


def document(run: ExportedRun) -> dict[str, Any]:
    """What the file of a run holds."""
    return {"start": _start(run), "intervals": _intervals(run), "end": _end(run)}


def _start(run: ExportedRun) -> dict[str, Any]:
    manifest = run.results.manifest
    hosts = {flow["flow"]: addresses(flow["flow"]) for flow in run.reliable}
    first = hosts[run.reliable[0]["flow"]]
    return {
        "connected": [
            {
                "socket": flow,
                "local_host": sender,
                "local_port": port,
                "remote_host": receiver,
                "remote_port": port,
            }
            for flow, (sender, receiver, port) in hosts.items()
        ],
        "version": f"weir {manifest['version']}",
        "system_info": f"world {run.world}: {run.title}",
        "timestamp": {
            "time": f"{run.created:%a, %d %b %Y %H:%M:%S} GMT",
            "timesecs": int(run.created.timestamp()),
        },
        "connecting_to": {"host": first[1], "port": first[2]},
        "tcp_mss_default": run.mss[run.reliable[0]["flow"]],
        "target_bitrate": 0,
        "test_start": {
            "protocol": "TCP",
            "num_streams": len(run.reliable),
            "blksize": 0,
            "omit": run.measure("warmup"),
            "duration": run.measure("duration"),
            "bytes": 0,
            "blocks": 0,
            "reverse": 0,
            "tos": 0,
            "target_bitrate": 0,
        },
    }


def _intervals(run: ExportedRun) -> list[dict[str, Any]]:
    warmup = run.measure("warmup")
    by_end: dict[float, list[dict[str, Any]]] = {}
    for flow in run.reliable:
        before = {"t_s": flow["start_s"], "acked_bytes": 0, "retransmits": 0}
        for row in run.samples[flow["flow"]]:
            if row["t_s"] > before["t_s"]:
                by_end.setdefault(row["t_s"], []).append(_stream(row, before, warmup))
            before = row
    return [
        {"streams": streams, "sum": _sum(streams)}
        for _, streams in sorted(by_end.items(), key=lambda item: item[0])
    ]


def _stream(row: Row, before: Row, warmup: float) -> dict[str, Any]:
    seconds = row["t_s"] - before["t_s"]
    sent = row["acked_bytes"] - before["acked_bytes"]
    stream = {
        "socket": row["flow"],
        "start": before["t_s"],
        "end": row["t_s"],
        "seconds": seconds,
        "bytes": sent,
        "bits_per_second": sent * 8 / seconds,
        "retransmits": row["retransmits"] - before["retransmits"],
        "snd_cwnd": row["cwnd_bytes"],
        "omitted": row["t_s"] <= warmup,
        "sender": True,
    }
    times = {"rtt": row["srtt_ms"], "rttvar": row["rttvar_ms"]}
    return stream | {key: round(ms * 1000) for key, ms in times.items() if ms is not None}


def _sum(streams: Sequence[Row]) -> dict[str, Any]:
    start, end = min(s["start"] for s in streams), max(s["end"] for s in streams)
    return {
        "start": start,
        "end": end,
        "seconds": end - start,
        "bytes": sum(s["bytes"] for s in streams),
        "bits_per_second": sum(s["bits_per_second"] for s in streams),
        "retransmits": sum(s["retransmits"] for s in streams),
        "omitted": all(s["omitted"] for s in streams),
        "sender": True,
    }


def _end(run: ExportedRun) -> dict[str, Any]:
    streams = [_total(run, flow) for flow in run.reliable]
    used = list(dict.fromkeys(flow["stack"] for flow in run.reliable))
    return {
        "streams": streams,
        "sum_sent": _sum_of_totals([s["sender"] for s in streams]),
        "sum_received": _sum_of_totals([s["receiver"] for s in streams]),
        "sender_tcp_congestion": " + ".join(used),
        "receiver_tcp_congestion": " + ".join(used),
    }


def _total(run: ExportedRun, flow: Row) -> dict[str, Any]:
    """A stream over the time in which it was measured: from the end of the warm-up at most."""
    start = max(flow["start_s"], run.measure("warmup"))
    end = flow["end_s"] if flow["end_s"] is not None else run.measure("duration")
    seconds = max(end - start, 0.0)
    place = {"socket": flow["flow"], "start": start, "end": end, "seconds": seconds}
    rows = run.samples[flow["flow"]]
    rtts = [row["srtt_ms"] * 1000 for row in rows if row["srtt_ms"] is not None]
    sender = {
        **place,
        "bytes": flow["sent_bytes"],
        "bits_per_second": _rate(flow["sent_bytes"], seconds),
        "retransmits": flow["retransmits"],
        "max_snd_cwnd": max((row["cwnd_bytes"] for row in rows), default=0),
        "max_rtt": round(max(rtts, default=0)),
        "min_rtt": round(min(rtts, default=0)),
        "mean_rtt": round(sum(rtts) / len(rtts)) if rtts else 0,
        "sender": True,
    }
    receiver = {
        **place,
        "bytes": flow["delivered_bytes"],
        "bits_per_second": _rate(flow["delivered_bytes"], seconds),
        "sender": True,
    }
    return {"sender": sender, "receiver": receiver}


def _sum_of_totals(totals: Sequence[Row]) -> dict[str, Any]:
    start, end = min(t["start"] for t in totals), max(t["end"] for t in totals)
    found = {
        "start": start,
        "end": end,
        "seconds": end - start,
        "bytes": sum(t["bytes"] for t in totals),
        "bits_per_second": _rate(sum(t["bytes"] for t in totals), end - start),
    }
    if "retransmits" in totals[0]:
        found["retransmits"] = sum(t["retransmits"] for t in totals)
    return {**found, "sender": True}


def _rate(count: int, seconds: float) -> float:
    return count * 8 / seconds if seconds > 0 else 0.0
