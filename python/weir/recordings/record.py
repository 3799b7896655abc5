"""Records what Linux's TCP does in guests, as a folder of traces for `weir validate --reference`.

The cases are those of the recordings in `tests/truth`, with our router where these had netem, so
that the two can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from weir.base.disk import write_text
from weir.guest import world
from weir.kernel import cache
from weir.recordings.guest import FIRST_TICK, TICK, host
from weir.recordings.reduce import reduce
from weir.recordings.truth import KEYS, SUMMARY, Flow, Reference, Values

_ALONE = ("reno", "cubic", "bbr", "vegas", "veno", "westwood", "illinois", "htcp")
_MARKING = {
    "QDISC": "tbf:rate:10mbit:burst:1600:limit:300000",
    "QDISC2": "codel:limit:1000:target:200ms:interval:500ms:ce_threshold:12ms:ecn",
    "SYSCTL": "net.ipv4.tcp_ecn=1,net.ipv4.tcp_congestion_control=dctcp",
}
"""Without marks DCTCP is Reno."""

CASES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        **{
            f"10m-q34-{cc}": {"RATE": "10mbit", "QLEN": "34", "FLOWS": f"{cc}:0:30"}
            for cc in _ALONE
        },
        "10m-ce12ms-dctcp": {**_MARKING, "FLOWS": "dctcp:0:30"},
    }
)
"""One flow for 30 s at 10 Mbit/s and 40 ms, a queue of one bandwidth-delay product."""

_SEED = 1
_EVERY_S = 0.1
_STEPS = 10
"""A row of a trace is every tenth sample."""


def record(folder: Path, *, jobs: int, report: Callable[[str], None]) -> None:
    """Runs every case and writes the folder; calls `report` with each finished case.

    Raises:
        KernelError: there is no guest kernel, or a guest failed.
        StoreError: the folder cannot be written.
    """
    kernel = cache.needed().version
    folder.mkdir(parents=True, exist_ok=True)
    summary: dict[str, Any] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for name, (flows, values, trace) in zip(CASES, pool.map(_run, CASES), strict=True):
            described = [_described(flow, found) for flow, found in zip(flows, values, strict=True)]
            summary[name] = {
                "flows": described,
                "kernel": kernel,
                "params": {**CASES[name], TICK: FIRST_TICK},
            }
            write_text(folder / f"{name}.csv", trace.write_csv(float_precision=2).rstrip())
            report(name)
    write_text(folder / SUMMARY, json.dumps(summary, indent=1, sort_keys=True))


def _run(name: str) -> tuple[tuple[Flow, ...], list[Values], pl.DataFrame]:
    """One case: its flows, their metrics, the series of all."""
    params = CASES[name]
    flows = tuple(_flow(text) for text in params["FLOWS"].split(","))
    # The kernel sizes its own receive buffer.
    hosted = host(Reference(name, params, "", flows, (), None, None), acks=0, receiver={})
    samples = world.run(hosted.source.effective().text, _SEED)["samples"]
    per_flow = [samples.filter(flow=index).sort("t_s") for index in range(len(flows))]
    return flows, reduce(per_flow, flows, hosted.mss), _trace(per_flow, hosted.mss)


def _trace(per_flow: list[pl.DataFrame], mss: int) -> pl.DataFrame:
    """Every tenth of a second, the columns of each flow side by side."""
    columns = [_columns(rows, index, mss) for index, rows in enumerate(per_flow)]
    whole = columns[0]
    for more in columns[1:]:
        whole = whole.join(more, on="t", how="full", coalesce=True)
    return whole.sort("t")


def _columns(rows: pl.DataFrame, index: int, mss: int) -> pl.DataFrame:
    number = (pl.col("t_s") * (_STEPS / _EVERY_S)).round().cast(pl.Int64)
    every = rows.filter(number % _STEPS == 0)
    acked = pl.col("acked_bytes")
    return every.select(
        (pl.col("t_s") / _EVERY_S).round().mul(_EVERY_S).alias("t"),
        (pl.col("cwnd_bytes") // mss).alias(f"cwnd{index}"),
        pl.col("srtt_ms").round(1).alias(f"srtt_ms{index}"),
        pl.col("retransmits").alias(f"rtx{index}"),
        ((acked - acked.shift(1, fill_value=0)) * (8e-6 / _EVERY_S)).alias(f"gput{index}"),
    )


def _described(flow: Flow, values: Values) -> dict[str, Any]:
    figures = {
        theirs: None if (value := values[ours]) is None else round(value, 4)
        for ours, theirs in KEYS.items()
    }
    return {"cc": flow.cc, "start": flow.start_s, "dur": flow.duration_s, **figures}


def _flow(text: str) -> Flow:
    cc, start, duration = text.split(":")
    return Flow(cc, float(start), float(duration))
