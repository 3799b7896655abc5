"""Figures 18 to 20 as cells: requests beside streams, and over the buffer of the router."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import polars as pl

from weir.cells.cells import cell, goodput_interval
from weir.cells.protocol import Cell
from weir.experiments.latencies import Latencies, labelled_flows
from weir.experiments.networks import LAN
from weir.results.results import Results
from weir.statistics.intervals import mean_interval
from weir.studies.book.experiment import (
    AT_ROUTER,
    AT_SWITCH,
    BUFFERS,
    REQUESTS,
    RIVAL_BUFFERS,
    STREAMS,
    Extent,
    RequestsWithStreams,
    Rivals,
    buffer_tests,
    far_tests,
    rpc_tests,
)

FIGURES = dict(zip(REQUESTS, ("fig-18", "fig-19"), strict=True))
BUFFER_FIGURE = "fig-20"
RIVALRY = "bbr-cubic"


def rpc_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """Mean goodput of the requests, and the percentiles of their latency."""
    flows = labelled_flows(results)
    tests = {(test.request, test.stack, test.streams): test for test in rpc_tests(extent)}
    for request, figure in FIGURES.items():
        for stack in AT_SWITCH:
            for streams in STREAMS:
                own = _requests(flows, tests[request, stack, streams])
                goodput = goodput_interval(own["goodput_mbps"] / 1000, LAN.rate_mbps / 1000)
                answered = int(own["requests"].sum())
                yield cell(figure, stack, str(streams), "Gbit/s", goodput, samples=answered)


def latency_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """P50, P99 and P99.9 of the requests of figures 18 and 19, pooled over the repeats."""
    samples = Latencies(results)
    tests = {(test.request, test.stack, test.streams): test for test in rpc_tests(extent)}
    for request, figure in FIGURES.items():
        for percent in (50, 99, 99.9):
            for stack in AT_SWITCH:
                for streams in STREAMS:
                    label = tests[request, stack, streams].label
                    place = (f"{figure}-p{percent:g}", stack, str(streams))
                    yield samples.cell(label, percent, place)


def far_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """Goodput and P99 of the same requests over the round trips of WANs."""
    flows, samples = labelled_flows(results), Latencies(results)
    tests = list(far_tests(extent))
    for test in tests:
        own = _requests(flows, test)
        goodput = goodput_interval(own["goodput_mbps"], test.network.rate_mbps)
        place = (_far_table(test), test.stack, str(test.streams))
        yield cell(*place, "Mbit/s", goodput, samples=int(own["requests"].sum()))
    for test in tests:
        place = (f"{_far_table(test)}-p99", test.stack, str(test.streams))
        yield samples.cell(test.label, 99, place)


def _far_table(test: RequestsWithStreams) -> str:
    return f"{FIGURES[test.request]} {test.network.id}"


def buffer_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """P99 of 10 KB requests beside one stream, over the buffer."""
    samples = Latencies(results)
    tests = sorted(buffer_tests(extent), key=lambda test: AT_ROUTER.index(test.stack))
    for test, bdp in zip(tests, itertools.cycle(BUFFERS), strict=False):
        yield samples.cell(test.label, 99, (BUFFER_FIGURE, test.stack, f"{bdp:g} BDP"))


def rivalry_cells(results: Results) -> Iterator[Cell]:
    """What BBR gets beside CUBIC."""
    flows = labelled_flows(results)
    for bdp in RIVAL_BUFFERS:
        own = flows.filter(label=Rivals(bdp, 0, 0).label)
        wide = own.pivot(on="name", index="run", values="goodput_mbps")
        shares = wide["bbr"] / (wide["bbr"] + wide["cubic"])
        estimate = mean_interval(shares, bounds=(0.0, 1.0))
        yield cell(RIVALRY, "share of bbr", f"{bdp:g} BDP", "share", estimate)


def _requests(flows: pl.DataFrame, test: RequestsWithStreams) -> pl.DataFrame:
    """The flow of requests of each run of a test."""
    return flows.filter(label=test.label, name="requests")
