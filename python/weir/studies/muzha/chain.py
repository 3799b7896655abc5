"""One flow on a chain: every protocol, window and length; and its window over time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import polars as pl

from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha import cross
from weir.studies.muzha.experiment import (
    MUZHA,
    MUZHA_RTT,
    NEWRENO,
    STACKS,
    VEGAS,
    WINDOWS,
    Radio,
    Sender,
    Watch,
    hops_name,
    hops_of,
    memory,
    scenario,
)
from weir.studies.muzha.published import Index, printed
from weir.studies.muzha.quantities import (
    QUANTITIES,
    RETRANSMISSIONS,
    THROUGHPUT,
    BySeed,
    Quantity,
    ratio,
    summed,
)

ALL_HOPS = "all lengths"
SHORT = "lengths 4 to 8"
GROUPS: dict[str, tuple[int, int]] = {
    SHORT: (4, 8),
    "lengths 4 to 10": (4, 10),
    "lengths 13 to 32": (13, 32),
    ALL_HOPS: (0, 64),
}
"""Columns that take several lengths together, with the shortest and the longest. The printed index
comparison has 4 to 8 hops."""

GAIN = "gain"
RESENT = "resent"
"""Tables of ratios to NewReno: of throughput, and of retransmissions."""

CONTENDERS = (*STACKS, MUZHA_RTT)
"""Who crosses the chain: the slides' protocols, and Muzha with a shorter memory."""

LOST = "lost packets"
CAUSES = {
    "MAC gave up": "dropped_mac",
    "queue full": "dropped_queue",
    "no route": "dropped_no_route",
    "waited for a route": "dropped_buffer",
}

TIMES = "× NewReno"
"""The unit of a ratio."""

TRACE_HOPS = (4, 8)
TRACE_WINDOW = 32


def label(protocol: str, hops: int, window: int) -> str:
    """The name of a case."""
    return f"chain, {protocol}, {hops} hops, window {window}"


def trace_label(protocol: str, hops: int) -> str:
    """The name of a case whose window is drawn."""
    return f"trace, {protocol}, {hops} hops"


def is_length(column: str) -> bool:
    """Whether a column is about one length."""
    return column not in GROUPS


def table(quantity: str, window: int) -> str:
    """The name of a table of this part."""
    return f"{quantity}, window {window}"


def index_table(window: int) -> str:
    """The name of a table with the slides' index comparison beside ours."""
    return f"index comparison, window {window}"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    found = {
        label(protocol, hops, window): scenario(Radio(hops), [Sender(stack, window)], extent)
        for window in WINDOWS
        for hops in hops_of(extent)
        for protocol, stack in STACKS.items()
    }
    for window, hops in itertools.product(WINDOWS, hops_of(extent)):
        radio = Radio(hops, feedback=memory(hops))
        found[label(MUZHA_RTT, hops, window)] = scenario(
            radio, [Sender(STACKS[MUZHA], window)], extent
        )
    watch = Watch(extent.seconds, sample_s=0.05, repeat=1)
    for hops in hops_of(extent, TRACE_HOPS):
        for protocol, stack in STACKS.items():
            senders = [Sender(stack, TRACE_WINDOW)]
            found[trace_label(protocol, hops)] = scenario(Radio(hops), senders, extent, watch)
    return found


def cells(results: Results, contests: Contests, extent: Extent) -> Iterator[Cell]:
    """What every protocol got, beside NewReno and beside the slides."""
    lengths = hops_of(extent)
    for window in WINDOWS:
        for quantity in QUANTITIES:
            for protocol in CONTENDERS:
                for hops in lengths:
                    ours = quantity.of(contests, label(protocol, hops, window))
                    place = table(quantity.name, window), protocol, hops_name(hops)
                    yield cell(*place, quantity.unit, ours)
    for name, quantity in ((GAIN, THROUGHPUT), (RESENT, RETRANSMISSIONS)):
        for window in WINDOWS:
            yield from _ratios(contests, extent, name, quantity, window)
    for window in WINDOWS:
        yield from _indices(contests, extent, window)
    yield from _losses(results, extent)


def _ratios(
    contests: Contests, extent: Extent, name: str, quantity: Quantity, window: int
) -> Iterator[Cell]:
    """A quantity over NewReno's: at each length, and of the sums over all lengths."""
    lengths = hops_of(extent)

    def of(protocol: str) -> dict[int, BySeed]:
        return {h: quantity.by_seed(contests, label(protocol, h, window)) for h in lengths}

    reference = of(NEWRENO)
    for protocol in CONTENDERS:
        if protocol == NEWRENO:
            continue
        own = of(protocol)
        for hops in lengths:
            place = table(name, window), protocol, hops_name(hops)
            yield cell(*place, TIMES, ratio(own[hops], reference[hops]))
        for group, (shortest, longest) in GROUPS.items():
            some = [hops for hops in lengths if shortest <= hops <= longest]
            if some:
                total = ratio(*(summed([side[hops] for hops in some]) for side in (own, reference)))
                yield cell(table(name, window), protocol, group, TIMES, total)


def _indices(contests: Contests, extent: Extent, window: int) -> Iterator[Cell]:
    for hops in hops_of(extent):
        index = printed().index(hops)
        if index is None:
            continue
        for protocol in (NEWRENO, VEGAS, MUZHA):
            for quantity, published in _printed(index, protocol):
                yield cell(
                    index_table(window),
                    f"{hops} hops, {quantity.name}",
                    protocol,
                    quantity.unit,
                    quantity.of(contests, label(protocol, hops, window)),
                    published=published,
                    note=index.note if index.is_ambiguous else "",
                    ambiguous=index.is_ambiguous,
                )
        yield from _index_fairness(contests, index, window)


def _printed(index: Index, protocol: str) -> Iterator[tuple[Quantity, float]]:
    yield THROUGHPUT, index.throughput[protocol]
    yield RETRANSMISSIONS, index.retransmissions[protocol]


def _index_fairness(contests: Contests, index: Index, window: int) -> Iterator[Cell]:
    """The third row of the slides' comparison, which stems from two flows on a cross."""
    for protocol, published in index.fairness.items():
        name = cross.label((protocol, NEWRENO), index.hops, cross.SETTINGS[window])
        yield cell(
            index_table(window),
            f"{index.hops} hops, fairness beside NewReno",
            protocol,
            "index",
            cross.fairness_of_means(contests, name),
            published=published,
            note=index.note,
            ambiguous=index.is_ambiguous,
        )


def _losses(results: Results, extent: Extent) -> Iterator[Cell]:
    """Packets lost per run, by cause, at the widest window."""
    runs = results.runs.filter(status="ok").select("run", "label")
    nodes = results.scan("nodes").collect().join(runs, on="run")
    window = WINDOWS[-1]
    for protocol in STACKS:
        for hops in hops_of(extent):
            own = nodes.filter(label=label(protocol, hops, window))
            per_run = own.group_by("run").agg(pl.col(column).sum() for column in CAUSES.values())
            for cause, column in CAUSES.items():
                ours = mean_interval(per_run[column], (0.0, None))
                row = f"{protocol}, {hops} hops"
                yield cell(table(LOST, window), row, cause, "packets", ours)
