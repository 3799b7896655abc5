"""The chapter's additional test as cells: streams, 10 KB and 1 MB requests at once, on the LAN."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weir.cells.cells import cell, goodput_interval
from weir.cells.protocol import Cell
from weir.experiments.latencies import Latencies, kind, labelled_flows
from weir.experiments.networks import LAN
from weir.results.results import Results
from weir.statistics.intervals import mean_interval
from weir.studies.book.experiment import AT_SWITCH, STREAMS, Extent, Mix, mix_tests

GOODPUT = {name: f"mix-{name}" for name in (*Mix.REQUESTS, "stream")}
"""Tables of goodput: of either connection of requests, and of one stream on average."""

P99 = {name: f"mix-{name}-p99" for name in Mix.REQUESTS}
LOST = "mix-retransmitted"


def mix_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """Goodput of each kind, P99 latency of the requests, and what was sent again."""
    flows = labelled_flows(results).with_columns(kind())
    samples, per_run = Latencies(results), results.per_run
    tests = {(test.stack, test.streams): test for test in mix_tests(extent)}
    for name, table in GOODPUT.items():
        for place, label in _places(tests):
            own = flows.filter(label=label, kind=name)
            each = own.group_by("run", maintain_order=True).agg(pl.col("goodput_mbps").mean())
            goodput = goodput_interval(each["goodput_mbps"] / 1000, LAN.rate_mbps / 1000)
            yield cell(table, *place, "Gbit/s", goodput)
    for name, table in P99.items():
        for place, label in _places(tests):
            yield samples.cell(label, 99, (table, *place), name)
    for place, label in _places(tests):
        share = per_run.filter(label=label)["retransmit_ratio"] * 100
        yield cell(LOST, *place, "%", mean_interval(share, (0.0, 100.0)))


def _places(tests: dict[tuple[str, int], Mix]) -> Iterator[tuple[tuple[str, str], str]]:
    for stack in AT_SWITCH:
        for streams in STREAMS:
            yield (stack, str(streams)), tests[stack, streams].label
