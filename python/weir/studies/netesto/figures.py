"""The study's report: each quantity over the router's buffer or the number of instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots import Figure
from weir.plots.lines import LineAxes, lines, lines_if_any
from weir.report.cells import claims_table, value_table
from weir.report.html import slug
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies.cells import Cells, frame, runs_of
from weir.studies.netesto import measures
from weir.studies.netesto.experiment import MIXES
from weir.studies.networks import LAN, NETWORKS

_SAME, _FIRST, _SECOND = "same algorithm", "CUBIC first", "CUBIC second"


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """What stands between the findings and the further ones."""
    return [
        ReportSection("Beside what is expected", tables=[claims_table(cells)]),
        *_streams(results, cells),
        *_rates(results, cells),
        *_sizes(results, cells),
    ]


def _streams(results: Results, cells: Cells) -> Iterator[ReportSection]:
    for network in NETWORKS:
        share = cells.table(measures.stream_table(measures.SHARE, network.id))
        if not share.all:
            continue
        runs = runs_of(results, f"2-flow, {network.id}")
        figures = [_shares(share, network.title, runs)]
        figures += [
            _equal(cells, network.id, quantity, title, unit)
            for quantity, title, unit in (
                (measures.RTT, "mean round-trip time", "RTT, ms"),
                (measures.LOST, "segments sent again", "retransmitted, %"),
            )
        ]
        tables = [
            value_table(
                cells.table(measures.stream_table(quantity, network.id)),
                _NOTES.get(quantity, ""),
                title=f"{quantity}, {unit}",
            )
            for quantity, unit in measures.STREAM_QUANTITIES.items()
        ]
        yield ReportSection(f"Staggered streams: {network.title}", tables=tables, figures=figures)


_NOTES = {
    measures.SHARE: "Of the newest flow, over its whole life; fair is 0.5 of two, 0.33 of three.",
    measures.CROSSES: "From the newest flow's start until it first has more than the first flow.",
    measures.RECLAIMS: "From its end until the others have 90 % of what it had, for 2.5 s.",
    measures.RATIO: "Netesto's fairness: of the mean goodputs while the newest flow sends.",
}


def _shares(cells: Cells, where: str, runs: Sequence[int]) -> Figure:
    """Who gets what beside CUBIC: panels by who comes first."""
    own = {_SAME: [], _FIRST: [], _SECOND: []}  # type: dict[str, list[pl.DataFrame]]
    for row in cells.rows():
        if row.startswith("2-flow, "):
            who = row.removeprefix("2-flow, ")
            first, _, second = who.partition(" then ")
            panel = _SAME if not second else _FIRST if first == "cubic" else _SECOND
            series = first if panel != _FIRST else second
            part = frame(Cells([c for c in cells.all if c["row"] == row]), panel, _buffers(cells))
            own[panel].append(part.with_columns(pl.lit(series).alias("series")))
    parts = [part for panel in own.values() for part in panel]
    return lines(
        f"share-{slug(where)}",
        f"Share of the later of two flows, {where}",
        "The dashed line is a fair share. Left, both flows have the algorithm of the colour; then "
        "the later flow beside an earlier CUBIC; then a later CUBIC beside an earlier flow of the "
        "algorithm.",
        pl.concat(parts),
        LineAxes(
            "buffer of the router, BDP",
            "share of the later flow",
            is_x_log=True,
            columns=3,
            level=0.5,
        ),
        runs,
    )


def _equal(cells: Cells, network: str, quantity: str, title: str, unit: str) -> Figure:
    table = cells.table(measures.stream_table(quantity, network))
    parts = []
    for test in ("2-flow", "3-flow"):
        for row in table.rows():
            if row.startswith(f"{test}, ") and " then " not in row:
                only = Cells([c for c in table.all if c["row"] == row])
                part = frame(only, f"{test} test", _buffers(table))
                series = pl.lit(row.removeprefix(f"{test}, ")).alias("series")
                parts.append(part.with_columns(series))
    where = next(n.title for n in NETWORKS if n.id == network)
    return lines(
        f"{slug(quantity)}-{network}",
        f"Flows of one algorithm: {title}, {where}",
        "What the router's buffer does to flows of one algorithm; bars are 95 % intervals.",
        pl.concat(parts),
        LineAxes("buffer of the router, BDP", unit, is_x_log=True),
    )


def _rates(results: Results, cells: Cells) -> Iterator[ReportSection]:
    goodput = [(mix, cells.table(f"{measures.GOODPUT}, {mix}")) for mix in MIXES]
    runs = runs_of(results, "rate test")
    axis = "instances per client"
    total = lines(
        "rate-goodput",
        "Rate tests: goodput of all connections, three clients on the LAN",
        "Every panel is a mix of requests, n of each size per client; 10 Gbit/s is all there is.",
        pl.concat(frame(own, mix, map(float, own.columns())) for mix, own in goodput),
        LineAxes(axis, "goodput, Gbit/s", is_x_log=True),
        runs,
    )
    tails = [
        (f"P99 of {size} in {mix}", cells.table(f"{measures.TAIL} of {size}, {mix}"))
        for mix, size in (
            ("1M", "1M"),
            ("10K + 1M", "10K"),
            ("8M + 1M + 50K + 10K", "10K"),
            ("8M + 1M + 50K + 10K", "1M"),
        )
    ]
    latency = lines_if_any(
        "rate-latency",
        "Rate tests: P99 latency of requests",
        "Pooled over clients and repeats; where there are too few requests, nothing is drawn. The "
        "vertical axis is logarithmic.",
        pl.concat(frame(own, panel, map(float, own.columns())) for panel, own in tails),
        LineAxes(axis, "P99 latency, ms", is_x_log=True, is_y_log=True),
        runs,
    )
    evenness = [
        value_table(cells.table(f"{measures.EVENNESS}, {mix}"), "", "algorithm", mix)
        for mix in MIXES
    ]
    yield ReportSection("Rate tests, LAN", figures=[total, *latency])
    yield ReportSection(
        "Largest over smallest goodput of equal connections",
        [f"Within one size of requests, the size that fares worst; 1 is fair. Columns are {axis}."],
        tables=evenness,
    )


def _sizes(results: Results, cells: Cells) -> Iterator[ReportSection]:
    names = dict.fromkeys(str(cell["table"]) for cell in cells.all)
    for kind, title, unit, is_log in (
        (f"{measures.TAIL} of small", "P99 latency of the small requests", "P99, ms", True),
        ("small over large", "goodput of a small connection over a large one's", "times", True),
    ):
        tables = {
            name.removeprefix(f"{kind}, "): cells.table(name)
            for name in names
            if name.startswith(f"{kind}, ")
        }
        data = pl.concat(
            frame(own, where, map(float, own.columns())) for where, own in tables.items()
        )
        figures = lines_if_any(
            slug(f"size {kind}"),
            f"Size tests: {title}",
            "Each of three clients has a stream, n connections of large requests and one of "
            f"small ones: 10 kB beside 1 MB behind the router, 1 MB beside 8 MB on {LAN.title}. "
            "The vertical axis is logarithmic.",
            data,
            LineAxes("large connections per client", unit, is_x_log=True, is_y_log=is_log),
            runs_of(results, "size test"),
        )
        yield ReportSection(f"Size tests: {title}", figures=figures)


def _buffers(cells: Cells) -> list[float]:
    return [float(column.removesuffix(" BDP")) for column in cells.columns()]
