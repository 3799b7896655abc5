"""The chapter's tests with the kernel's own TCP, beside the simulated ones.

Behind the router in either time; at the switch, with 10 Gbit/s, in a guest's virtual time only.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from weir.cells.cells import Cells, cell, digits
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.experiments.latencies import labelled_flows
from weir.experiments.networks import LAN, NETWORKS, WAN_10G, WAN_10M, WAN_100M, Network
from weir.results.results import Results
from weir.running.execution import run_plan
from weir.scenario.source import SIM, VIRTUAL, Source
from weir.scenario.sweep import Case, Plan
from weir.statistics.intervals import mean_interval
from weir.studies.book import joins
from weir.studies.book.experiment import (
    REQUESTS,
    THREE_FLOWS,
    TWO_FLOWS,
    Experiment,
    RequestsWithStreams,
    Staggered,
)

if TYPE_CHECKING:
    from weir.report.model import ReportSection

KERNEL_COLUMN = "kernel"
STACKS = ("reno", "cubic", "bbr")
"""What nearly every Linux has."""

BESIDE = (1, 4)
"""Streams beside the requests."""

FIGURE, GOODPUT = "requests", "goodput, Mbit/s"


@dataclass(frozen=True, slots=True)
class Extent:
    """The share of the chapter's times, the seconds of requests, and the repeats.

    `switch` has the former two of the networks of 10 Gbit/s: a guest needs half a minute of a core
    for half a second there.
    """

    scale: float
    requests_s: float
    repeat: int
    switch: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def in_world(self, world: str) -> Extent:
        """What of it runs there: our router in real time does not carry 10 Gbit/s."""
        return self if world == VIRTUAL else replace(self, switch={})

    def networks(self) -> Iterator[tuple[Network, float, float]]:
        """Each network with its share of the chapter's times, and its seconds of requests."""
        for network in (WAN_10M, WAN_100M):
            yield network, self.scale, self.requests_s
        for network in (LAN, WAN_10G):
            if network.id in self.switch:
                yield network, *self.switch[network.id]


EXTENTS = {
    "small": Extent(1 / 5, 6, 1, {"lan-10g": (1 / 1200, 0.03), "wan-10g": (1 / 120, 0.3)}),
    "full": Extent(1, 60, 5, {"lan-10g": (1 / 200, 0.2), "wan-10g": (1 / 30, 1)}),
}


class _KernelStaggered(Staggered):
    """The same in the kernel."""

    @property
    def label(self) -> str:
        return f"{super().label}, kernel"


class _KernelBesideStreams(RequestsWithStreams):
    """The same in the kernel."""

    @property
    def label(self) -> str:
        return f"{super().label}, kernel"


def run(settings: Settings) -> StudyResult:
    """Carries the tests out in both worlds."""
    extent = EXTENTS[settings.size].in_world(settings.world)
    if settings.repeat is not None:
        extent = replace(extent, repeat=settings.repeat)
    results = run_plan(study_plan(extent, settings), **settings.how)
    rows = study_cells(results, extent)
    return StudyResult(rows, [*findings(Cells(rows)), *_extents(extent, settings.world)], results)


def study_plan(extent: Extent, settings: Settings) -> Plan:
    """Every run in both worlds, with the same random seed."""
    words = ["weir", "study", "book", "--world", "kernel"]
    words += ["--virtual"] if settings.world == VIRTUAL else []
    words += ["--size", settings.size, "--seed", str(settings.seed)]
    words += [] if settings.repeat is None else ["--repeat", str(settings.repeat)]
    pairs = zip(_tests(extent, SIM), _tests(extent, settings.world), strict=True)
    cases = [
        _case(experiment, world, settings.seed)
        for pair in pairs
        for experiment, world in zip(pair, (SIM, settings.world), strict=True)
    ]
    return Plan("book", shlex.join(words), tuple(cases), extent.repeat, settings.seed)


def staggered_tests(extent: Extent, world: str) -> Iterator[Staggered]:
    """The 2-flow and 3-flow tests on each network."""
    kind = Staggered if world == SIM else _KernelStaggered
    for network, scale, _ in extent.networks():
        for timing in (TWO_FLOWS, THREE_FLOWS):
            for stack in STACKS:
                scaled = replace(timing, scale=scale)
                yield kind(network, scaled, (stack,) * len(timing.flows), extent.repeat)


def request_tests(extent: Extent, world: str) -> Iterator[RequestsWithStreams]:
    """Requests next to streams on each network."""
    kind = RequestsWithStreams if world == SIM else _KernelBesideStreams
    for network, _, seconds in extent.networks():
        for request in REQUESTS:
            for streams in BESIDE:
                for stack in STACKS:
                    name = f"{network.id}, {request} beside {streams}"
                    yield kind(network, stack, request, streams, name, seconds, extent.repeat)


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """One cell per value, ours and the kernel's."""
    found = []
    for world in (SIM, KERNEL_COLUMN):
        cells = [*joins.join_cells(results, list(staggered_tests(extent, world)))]
        found.append([*cells, *_request_cells(results, list(request_tests(extent, world)))])
    return [_both(ours, theirs) for ours, theirs in zip(*found, strict=True)]


def findings(cells: Cells) -> list[str]:
    """How far the worlds agree, in words."""
    sentences = []
    for table, column in ((joins.TWO, joins.SHARE), (joins.THREE, joins.SHARE), (FIGURE, GOODPUT)):
        own = [c for c in cells.table(table).all if c["column"] == column]
        parts = [
            f"{c['row']} {digits(c['ours']['mean'])} and {digits(c[KERNEL_COLUMN]['mean'])}"
            for c in own
            if c["ours"]["mean"] is not None and c[KERNEL_COLUMN]["mean"] is not None
        ]
        what = "share of the newest flow" if column == joins.SHARE else "goodput of the requests"
        sentences.append(f"{table}, {what}, ours and the kernel's: {'; '.join(parts)}.")
    return sentences


def _extents(extent: Extent, world: str) -> Iterator[str]:
    """How long the tests took on each network, and which were left out."""
    for network, scale, seconds in extent.networks():
        times = "the chapter's 60 s" if scale == 1 else f"{digits(60 * scale)} s in place of 60 s"
        yield (
            f"{network.title}: 2-flow and 3-flow tests take {times}, requests {digits(seconds)} s; "
            f"repeats: {extent.repeat}."
        )
    if world != VIRTUAL:
        yield (
            "The networks of 10 Gbit/s are left out: our router in real time does not carry so "
            "much. `--world kernel --virtual` has them."
        )


def sections(results: Results) -> list[ReportSection]:
    """The 2-flow and 3-flow tests of both worlds over one axis of time."""
    from weir.graphics.overlay import READING, overlay
    from weir.report.model import ReportSection
    from weir.results.series import series

    cases = {case["label"]: case for case in results.cases}
    runs = dict(results.runs.filter(repeat=0, status="ok").select("label", "run").iter_rows())
    titles = {network.id: network.title for network in NETWORKS}
    figures = []
    for label in runs:
        there = f"{label}, kernel"
        if label.split(",")[0] not in (joins.TWO, joins.THREE) or there not in runs:
            continue
        mss = cases[label]["scenario"]["flow"][0]["mss"]
        data = pl.concat(
            series(results, runs[name], mss).select(
                pl.lit(source).alias("source"),
                pl.format("flow {}", pl.col("flow") + 1).alias("flow"),
                pl.exclude("source", "flow"),
            )
            for name, source in ((label, "Weir"), (there, "Linux"))
        )
        test, network, who = label.split(", ")
        title = f"{test} test, {titles[network]}: {who} in both worlds"
        name = f"worlds-{label.replace(', ', '-')}"
        caption = "The first repeat of each world, with the same random waits."
        figures.append(overlay(name, title, caption, data, (runs[label], runs[there])))
    return [ReportSection("Both worlds, the same axes", [READING], figures=figures)]


def _tests(extent: Extent, world: str) -> list[Experiment]:
    return [*staggered_tests(extent, world), *request_tests(extent, world)]


def _case(experiment: Experiment, world: str, seed: int) -> Case:
    source = Source(experiment.scenario(seed), "study book")
    scenario = source.in_world(world).at({})
    return Case(experiment.label, " + ".join(scenario.stacks), {}, scenario, world)


def _request_cells(results: Results, tests: Sequence[RequestsWithStreams]) -> Iterator[Cell]:
    flows = labelled_flows(results)
    for test in tests:
        own = flows.filter(label=test.label, name="requests")
        row = f"{test.name}, {test.stack}"
        goodput = mean_interval(own["goodput_mbps"], (0.0, None))
        yield cell(FIGURE, row, GOODPUT, "Mbit/s", goodput)
        latency = mean_interval(own["request_latency_ms_p50"], (0.0, None))
        yield cell(FIGURE, row, "median latency, ms", "ms", latency)


def _both(ours: Cell, theirs: Cell) -> Cell:
    """One cell of two worlds."""
    said = [f"{who}: {c['note']}" for who, c in (("ours", ours), ("kernel", theirs)) if c["note"]]
    return {**ours, KERNEL_COLUMN: theirs["ours"], "note": "; ".join(said)}
