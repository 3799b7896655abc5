"""The study's report: the chapter's figures with our data, and the tables that answer it.

Everything is drawn from the cells, so that `weir report` can draw it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots import Figure
from weir.plots.lines import LineAxes, lines, lines_if_any
from weir.plots.timeline import TimePanel, timeline
from weir.report.cells import claims_table, value_table
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies.book import expected, joins, mix, rpc, series
from weir.studies.book.experiment import BUFFERS, RIVAL_BUFFERS, STREAMS
from weir.studies.book.findings import requests, reversal
from weir.studies.cells import Cells, frame, runs_of
from weir.studies.networks import NETWORKS

_TITLES = {network.id: network.title for network in NETWORKS}


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """What stands between the findings and the further ones."""
    return [
        ReportSection("Beside the chapter", tables=[claims_table(cells)]),
        *_two_flows(results, cells),
        _unfair(results, cells),
        *_tests(cells),
        _requests(results, cells),
        _mix(results, cells),
        _buffers(results, cells),
        _rivals(results, cells),
    ]


def _two_flows(results: Results, cells: Cells) -> Iterator[ReportSection]:
    for network in series.DRAWN:
        pair = f"2-flow, {network}"
        runs = runs_of(results, pair)
        goodput = _timeline(
            f"fig-15-{network}",
            f"Figure 15, {_TITLES[network]}: goodput of two flows of the same algorithm",
            "The second flow starts at the first dotted line and ends at the second. Look for how "
            "fast the two lines meet, whether they stay together, and how fast the first flow "
            "takes back what the second leaves. Lines are means over the repeats, shades 95 % "
            "intervals where there are three repeats or more.",
            cells.table(f"{series.GOODPUT} {network}"),
            "goodput, Mbit/s",
            runs,
        )
        window = _timeline(
            f"fig-16-{network}",
            f"Figure 16, {_TITLES[network]}: congestion windows of the same flows",
            "Each algorithm has its pattern. The mean over repeats smooths the sawteeth where the "
            "repeats are out of step.",
            cells.table(f"{series.WINDOW} {network}"),
            "cwnd, kB",
            runs,
        )
        yield ReportSection(f"Two flows: {_TITLES[network]}", figures=[goodput, window])


def _unfair(results: Results, cells: Cells) -> ReportSection:
    table = next(c["table"] for c in cells.all if c["table"].startswith(series.UNFAIR))
    own, network = cells.table(table), table.partition(" ")[2]
    who = own.rows()[0].partition(":")[0]
    figure = _timeline(
        "fig-17",
        f"Figure 17, {_TITLES[network]}: goodput of two flows of different algorithms",
        "Of all mixed pairs that were measured, this is the one in which the second flow takes "
        "most.",
        own,
        "goodput, Mbit/s",
        runs_of(results, f"2-flow, {network}, {who}"),
    )
    return ReportSection("An unfair pair", figures=[figure])


def _timeline(
    name: str, title: str, caption: str, cells: Cells, y: str, runs: Sequence[int]
) -> Figure:
    rows: dict[str, list[str]] = {}
    for row in cells.rows():
        rows.setdefault(row.partition(":")[0], []).append(row)
    panels = [
        TimePanel(who, y, pl.concat(_flow(cells, row, who) for row in own))
        for who, own in rows.items()
    ]
    return timeline(name, title, caption, panels, _moments(panels[0]), runs)


def _flow(cells: Cells, row: str, who: str) -> pl.DataFrame:
    """Flows of one algorithm are distinguished by number, others also by algorithm."""
    name = row.removeprefix(f"{who}: ")
    is_alone = name.endswith(f", {who}")
    text = name.partition(",")[0] if is_alone else name
    return series.over_time(cells, row).select(pl.lit(text).alias("series"), pl.all())


def _moments(panel: TimePanel) -> list[tuple[float, str]]:
    """When every flow but the first begins and ends, to the slice."""
    times = panel.data["t_s"].unique().sort().to_list()
    slice_s = times[1] - times[0] if len(times) > 1 else 0.0
    found = []
    for (name,), own in panel.data.group_by("series", maintain_order=True):
        if name != panel.data["series"][0]:
            first, last = float(own["t_s"][0]), float(own["t_s"][-1])
            text = str(name).partition(",")[0]
            found += [(first - slice_s / 2, f"{text} starts"), (last + slice_s / 2, f"{text} ends")]
    return found


def _tests(cells: Cells) -> Iterator[ReportSection]:
    for test, title in joins.TABLES.items():
        own = cells.table(test)
        yield ReportSection(title, tables=[value_table(own, joins.MEANING)])


def _requests(results: Results, cells: Cells) -> ReportSection:
    figures = [
        _by_streams(
            results,
            cells,
            figure,
            f"Figure {figure.removeprefix('fig-')}: mean goodput of {request} requests",
            "goodput, Gbit/s",
            f"{request}, ",
        )
        for request, figure in rpc.FIGURES.items()
    ]
    panels = [
        (f"{request}, P{percent:g}", cells.table(f"{figure}-p{percent:g}"))
        for request, figure in rpc.FIGURES.items()
        for percent in (50, 99)
    ]
    data = pl.concat(frame(own, panel, map(float, STREAMS)) for panel, own in panels)
    latency = lines_if_any(
        "latency",
        "Latency of the same requests",
        "What a user of small messages feels: the median and the 99th percentile, pooled over the "
        "repeats. The vertical axis is logarithmic.",
        data,
        LineAxes("streams beside the requests", "latency, ms", is_x_log=True, is_y_log=True),
        runs_of(results, *(f"{request}, " for request in rpc.FIGURES)),
    )
    sentences = [requests(cells)]
    return ReportSection("Requests beside streams, LAN", sentences, figures=[*figures, *latency])


def _mix(results: Results, cells: Cells) -> ReportSection:
    runs, places = runs_of(results, "mix, "), list(map(float, STREAMS))
    goodput = pl.concat(
        frame(cells.table(table), _PANELS[name], places) for name, table in mix.GOODPUT.items()
    )
    latency = pl.concat(
        frame(cells.table(table), f"{_PANELS[name]}, P99", places)
        for name, table in mix.P99.items()
    )
    figures = [
        lines(
            "mix",
            "Goodput of each, with both sizes of requests at once",
            "One connection sends 10 KB after 10 KB, another 1 MB after 1 MB, while streams of the "
            "same algorithm go on. With a fair division by connection all three would be the same. "
            "The vertical axis is logarithmic; bars are 95 % intervals over the repeats.",
            goodput,
            LineAxes(
                "streams beside the requests", "goodput, Gbit/s", True, is_y_log=True, columns=3
            ),
            runs,
        ),
        *lines_if_any(
            "mix-latency",
            "Latency of the same requests",
            "The 99th percentile, pooled over the repeats. Both axes are logarithmic.",
            latency,
            LineAxes("streams beside the requests", "latency, ms", is_x_log=True, is_y_log=True),
            runs,
        ),
    ]
    lost = value_table(cells.table(mix.LOST), "Segments sent again, % of all.", "algorithm")
    title = "Streams, 10 KB and 1 MB requests at once, LAN"
    return ReportSection(title, [mix.mix_words(cells)], tables=[lost], figures=figures)


_PANELS = {"10KB": "10 KB requests", "1MB": "1 MB requests", "stream": "one stream"}


def _by_streams(
    results: Results, cells: Cells, table: str, title: str, y: str, prefix: str
) -> Figure:
    data = frame(cells.table(table), "", map(float, STREAMS))
    caption = (
        "One connection asks, is answered by one byte and asks again, while streams of the same "
        "algorithm go on; bars are 95 % intervals over the repeats."
    )
    axes = LineAxes("streams beside the requests", y, is_x_log=True)
    return lines(table, title, caption, data, axes, runs_of(results, prefix))


def _buffers(results: Results, cells: Cells) -> ReportSection:
    data = frame(cells.table(rpc.BUFFER_FIGURE), "", BUFFERS)
    figures = lines_if_any(
        rpc.BUFFER_FIGURE,
        "Figure 20: P99 latency of 10 KB requests beside one stream, 10 Mbit/s, 40 ms",
        "To the right of 1 BDP the queue itself is the delay; to the left of it, what matters is "
        "who loses packets and waits for a timeout. Both axes are logarithmic.",
        data,
        LineAxes("buffer of the router, BDP", "P99 latency, ms", is_x_log=True, is_y_log=True),
        runs_of(results, "router, "),
    )
    return ReportSection("Requests and the router's buffer", figures=figures)


def _rivals(results: Results, cells: Cells) -> ReportSection:
    own = cells.table(rpc.RIVALRY)
    figure = lines(
        rpc.RIVALRY,
        "BBR's share beside CUBIC, by buffer, 10 Mbit/s, 40 ms",
        "The dashed line is a fair share. In a shallow buffer BBR, which does not slow down for "
        "losses, takes the link; in a deep one CUBIC fills the queue and BBR's share falls.",
        frame(own, "", RIVAL_BUFFERS),
        LineAxes("buffer of the router, BDP", "share of BBR", is_x_log=True, level=0.5),
        runs_of(results, "bbr against cubic"),
    )
    table = value_table(own, expected.RIVALRY_SOURCES)
    sentences = [reversal(cells)]
    return ReportSection("BBR against CUBIC", sentences, tables=[table], figures=[figure])
