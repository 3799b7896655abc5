"""What the page asks about results: their runs, and values of a run over time."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from weir.base.errors import InputError
from weir.laboratory.detail import Detail, Series, detail
from weir.results.results import Results, damage_reported

MOST_BINS = 4_000
"""Bins of an answer: more than a screen has pixels in a row."""
MOST_GROUPS = 64
"""Flows and links of a run that are shown."""

FLOW_COLUMNS = (
    *("cwnd_bytes", "ssthresh_bytes", "bytes_in_flight", "srtt_ms", "rtt_ms"),
    *("pacing_mbps", "goodput_mbps", "retransmits", "acked_bytes"),
)
ACK_COLUMNS = ("acked_bytes", "cwnd_bytes", "ssthresh_bytes", "srtt_ms")
"""Of these a run has a value per acknowledgement, if it recorded them (`measure.acks`)."""
QUEUE_COLUMNS = ("packets", "bytes", "queue_delay_ms", "drops", "marks")

_RUN_COLUMNS = ("run", "label", "repeat", "seed", "sim_s", "trace_hash", "data_packets")


class Explorer:
    """Result tables, of which one run at a time is in memory."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._loaded: _Run | None = None

    @property
    def name(self) -> str:
        """Where the results are."""
        return str(self._results.path)

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """The runs that succeeded.

        Raises:
            InputError: the tables are damaged.
        """
        with damage_reported(self._results.path):
            ok = self._results.runs.filter(pl.col("status") == "ok")
            return ok.select(c for c in _RUN_COLUMNS if c in ok.columns).sort("run").to_dicts()

    def about(self, run: int) -> dict[str, Any]:
        """Duration, flows and links of a run, as the page describes its own runs.

        Raises:
            InputError: there is no such run.
        """
        facts = self._known(run)
        with damage_reported(self._results.path):
            loaded = self._of(run)
            return {
                "name": facts["label"],
                "duration_s": facts["sim_s"],
                "radio": None,
                "is_tabled": True,
                "flows": loaded.flows,
                "links": loaded.links,
                "facts": facts,
            }

    def detail(self, run: int, start: float, end: float, bins: int) -> bytes:
        """Values of a run from `start` to `end`: a JSON header with its length, then numbers.

        Raises:
            InputError: there is no such run.
        """
        self._known(run)
        with damage_reported(self._results.path):
            return _packed(self._of(run).detail(start, end, bins))

    def next(self, run: int, what: str, after: float) -> float | None:
        """The first sample after `after` at which drops or marks of a link have increased.

        Raises:
            InputError: there is no such run, or nothing of that kind is counted.
        """
        self._known(run)
        if what not in ("drops", "marks"):
            raise InputError(f"what={what}: allowed are drops, marks")
        with damage_reported(self._results.path):
            return self._of(run).next(what, after)

    def _known(self, run: int) -> dict[str, Any]:
        found = next((facts for facts in self.runs if facts["run"] == run), None)
        if found is None:
            raise InputError(f"run={run}: there is no such run with results")
        return found

    def _of(self, run: int) -> _Run:
        if self._loaded is None or self._loaded.number != run:
            self._loaded = None  # frees it before the next one is read
            label = self._known(run)["label"]
            scenario = next(c["scenario"] for c in self._results.cases if c["label"] == label)
            self._loaded = _Run(self._results, run, int(scenario["measure"].get("acks", 0)))
        return self._loaded


class _Run:
    """The tables of one run."""

    def __init__(self, results: Results, number: int, most_acks: int) -> None:
        self.number = number
        self._most_acks = most_acks
        own = pl.col("run") == number
        flows = results.flows.filter(own).sort("flow").head(MOST_GROUPS)
        links = results.links.filter(own).sort("link")
        links = pl.concat([links.filter("monitored"), links.filter(~pl.col("monitored"))])
        links = links.head(MOST_GROUPS).sort("link")
        self.flows = [
            {"name": name, "stack": stack, "start_s": start_s, "forward": [], "reverse": []}
            for name, stack, start_s in flows.select("name", "stack", "start_s").iter_rows()
        ]
        self.links = [
            {
                "name": name,
                "is_monitored": monitored,
                "rate_mbps": rate,
                "delay_ms": 0,
                "limit_packets": None,
                "limit_bytes": None,
            }
            for name, monitored, rate in links.select(
                "name", "monitored", "capacity_mbps"
            ).iter_rows()
        ]
        self._samples = _parts(results, "samples", number, "flow", FLOW_COLUMNS, flows["flow"])
        self._acks = _parts(results, "acks", number, "flow", ACK_COLUMNS, flows["flow"])
        self._queues = _parts(results, "queues", number, "link", QUEUE_COLUMNS, links["link"])

    def detail(self, start: float, end: float, bins: int) -> list[tuple[dict[str, Any], Detail]]:
        """A group of columns per flow and link, each with what it is."""
        found = []
        for index, samples in enumerate(self._samples):
            found.append(({"of": "flow", "index": index}, detail(samples, start, end, bins)))
            acks = self._acks[index]
            # The table has the first acknowledgements only: samples show what comes after them.
            if len(acks.t_s) and (len(acks.t_s) < self._most_acks or acks.t_s[-1] >= end):
                found.append(({"of": "acks", "index": index}, detail(acks, start, end, bins)))
        found += [
            ({"of": "link", "index": index}, detail(queue, start, end, bins))
            for index, queue in enumerate(self._queues)
        ]
        return found

    def next(self, what: str, after: float) -> float | None:
        """The time of the next sample with more of them than the sample before."""
        times = []
        for queue in self._queues:
            more = np.flatnonzero(np.diff(queue.columns[what], prepend=0.0) > 0)
            at = more[np.searchsorted(queue.t_s[more], after + 1e-9) :]
            times += [float(queue.t_s[at[0]])] if len(at) else []
        return min(times, default=None)


def _parts(
    results: Results,
    table: str,
    run: int,
    key: str,
    columns: Sequence[str],
    members: pl.Series,
) -> list[Series]:
    """The rows of each member: of each flow or link."""
    floats = [pl.col(name).cast(pl.Float64) for name in ("t_s", *columns)]
    rows = results.scan(table).filter(pl.col("run") == run).select(key, *floats)
    parts = rows.collect().sort(key, "t_s", maintain_order=True).partition_by(key, as_dict=True)
    found = []
    for member in members:
        part = parts.get((member,))
        if part is None:
            found.append(Series(np.empty(0), {name: np.empty(0) for name in columns}))
        else:
            values = {name: part[name].to_numpy() for name in columns}
            found.append(Series(part["t_s"].to_numpy(), values))
    return found


def _packed(groups: Sequence[tuple[dict[str, Any], Detail]]) -> bytes:
    """A length of four bytes, that many bytes of JSON, and columns as little-endian doubles.

    Columns are `t_s` and each name; where there are bins, each `NAME.low` and `NAME.high` too.
    """
    headers, columns = [], []
    for what, shown in groups:
        names = ["t_s", *shown.mean]
        columns += [shown.t_s, *shown.mean.values()]
        if shown.low is not None and shown.high is not None:
            names += [f"{name}.low" for name in shown.low]
            names += [f"{name}.high" for name in shown.high]
            columns += [*shown.low.values(), *shown.high.values()]
        headers.append({**what, "rows": len(shown.t_s), "columns": names})
    header = json.dumps(headers).encode()
    header += b" " * (-(len(header) + 4) % 8)  # so that the doubles are aligned
    body = b"".join(np.ascontiguousarray(c, dtype="<f8").tobytes() for c in columns)
    return struct.pack("<I", len(header)) + header + body
