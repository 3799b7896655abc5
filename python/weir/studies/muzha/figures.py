"""The pictures and tables of the study, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.plots.figure import Figure
from weir.plots.lines import LineAxes, lines
from weir.plots.timeline import TimePanel, timeline
from weir.report.cells import claims_table, value_table
from weir.report.model import ReportSection
from weir.report.study import study_table
from weir.results import Results
from weir.studies.cells import Cells, frame, runs_of
from weir.studies.muzha import chain, dynamics, limits, marking, slowstart
from weir.studies.muzha.experiment import STACKS, WINDOWS, hops_in
from weir.studies.muzha.parameters import parameter_sections
from weir.studies.muzha.quantities import QUANTITIES
from weir.studies.muzha.sharing import cross_section

_MSS = 1000
_SLICE_S = 0.25


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """One section per part of the study, and what was expected."""
    return [
        _chain(results, cells),
        _windows(results),
        cross_section(results, cells),
        _dynamics(results, cells),
        *parameter_sections(results, cells),
        ReportSection("What was expected", tables=[claims_table(cells)]),
    ]


def _chain(results: Results, cells: Cells) -> ReportSection:
    runs = runs_of(results, "chain,")
    figures = [
        _over_hops(
            cells,
            [(quantity.name, f"window {window}", window) for window in WINDOWS],
            f"chain-{quantity.name}",
            f"{quantity.name.capitalize()} over the length of the chain",
            f"{quantity.name}, {quantity.unit}",
            runs,
        )
        for quantity in QUANTITIES
    ]
    gains = [(chain.GAIN, f"window {window}", window) for window in WINDOWS]
    gain = _over_hops(
        cells,
        gains,
        "chain-gain",
        "Throughput over NewReno's",
        "times NewReno",
        runs,
        level=1.0,
    )
    return ReportSection(
        "One flow on a chain",
        paragraphs=[
            "Nodes stand in a row, 200 m apart; each reads its neighbours and hears those two hops "
            "away. A bulk flow crosses the whole row. Its receiver allows 4, 8 or 32 segments at a "
            "time. The slides show these three quantities; their curves are lost. In the tables "
            "below throughputs are in kbit/s, retransmissions in segments per run."
        ],
        figures=[figures[0], gain, *figures[1:]],
        tables=[
            *(
                value_table(
                    cells.table(chain.table(chain.GAIN, window)),
                    "Throughput over NewReno's on the same seeds: ratio of means and 95 % "
                    "interval.",
                    "protocol",
                    f"Gain over NewReno, window {window}",
                )
                for window in WINDOWS
            ),
            *(
                study_table(name, cells.table(name).all)
                for name in map(chain.index_table, WINDOWS)
                if cells.table(name).all
            ),
            *(
                value_table(
                    cells.table(chain.table(chain.RESENT, window)),
                    "Segments sent again over NewReno's on the same seeds: ratio of means and 95 % "
                    "interval.",
                    "protocol",
                    f"Retransmissions over NewReno's, window {window}",
                )
                for window in WINDOWS
            ),
            *(
                value_table(cells.table(table), note, "window", title)
                for table, title, note in (
                    (
                        limits.GAIN,
                        "NewReno with other windows",
                        "Throughput over that at window 32. “cwl” is a fifth of the hops there and "
                        "back, “cwl(1/8)” a quarter of the hops. With “receiver-cwl” the receiver "
                        "offers that window.",
                    ),
                    (
                        limits.RESENT,
                        "NewReno with other windows, retransmissions",
                        "Segments sent again over those at window 32.",
                    ),
                    (
                        slowstart.TABLE,
                        "NewReno's time in slow start",
                        "Share of the samples, 20 a second, after the first 5 s.",
                    ),
                )
            ),
            *(
                value_table(
                    cells.table(marking.table(hops)),
                    "Throughput in kbit/s; per run: segments sent again, packets that RED marked, "
                    "entries of ATCP's congested state.",
                    "sender",
                    f"RED and ECN on every queue, {hops} hops, window {marking.WINDOW}",
                )
                for hops in marking.HOPS
                if cells.table(marking.table(hops)).all
            ),
            value_table(
                cells.table(chain.table(chain.LOST, WINDOWS[-1])),
                "Packets per run that were lost for each cause, all nodes together; the MAC "
                "gives up "
                "after seven unanswered requests to send.",
                "protocol",
                f"Where packets are lost, window {WINDOWS[-1]}",
            ),
        ],
    )


def _over_hops(
    cells: Cells,
    panels: Sequence[tuple[str, str, int]],
    name: str,
    title: str,
    y: str,
    runs: Sequence[int],
    level: float | None = None,
) -> Figure:
    """One panel per window, one line per protocol."""
    frames = []
    for quantity, heading, window in panels:
        own = Cells(
            [
                found
                for found in cells.table(chain.table(quantity, window)).all
                if chain.is_length(str(found["column"]))
            ]
        )
        frames.append(frame(own, heading, [str(hops_in(c)) for c in own.columns()]))
    caption = "Mean over the seeds with its 95 % interval. All panels have the same axes."
    axes = LineAxes("hops", y, columns=3, level=level)
    return lines(name, title, caption, pl.concat(frames), axes, runs)


def _windows(results: Results) -> ReportSection:
    return ReportSection(
        "How the window moves",
        paragraphs=[
            f"One run of each protocol at window {chain.TRACE_WINDOW}. A chain of h hops holds "
            "about "
            "h/4 segments that do not disturb each other: what a window has beyond that waits in "
            "queues and collides."
        ],
        figures=[
            _window_figure(results, hops)
            for hops in chain.TRACE_HOPS
            if runs_of(results, chain.trace_label(next(iter(STACKS)), hops))
        ],
    )


def _window_figure(results: Results, hops: int) -> Figure:
    panels = [
        TimePanel(protocol, "cwnd, segments", _samples(results, chain.trace_label(protocol, hops)))
        for protocol in STACKS
    ]
    runs = [run for p in STACKS for run in runs_of(results, chain.trace_label(p, hops))]
    caption = "The congestion window of one run, sampled 20 times a second."
    return timeline(
        f"cwnd-{hops}", f"Congestion windows over {hops} hops", caption, panels, (), runs
    )


def _dynamics(results: Results, cells: Cells) -> ReportSection:
    panels = [
        TimePanel(protocol, "cwnd, segments", _samples(results, dynamics.label(protocol)))
        for protocol in STACKS
    ]
    moments = [
        (start, f"{flow} starts")
        for flow, start in zip(dynamics.FLOWS, dynamics.STARTS_S, strict=True)
    ]
    figure = timeline(
        "dynamics",
        "Congestion windows of three flows",
        "The windows of the run with the first seed. Flows that share fairly have windows of one "
        "size.",
        panels,
        moments,
        runs_of(results, "three flows,"),
    )
    table = value_table(
        cells.table(dynamics.TABLE),
        f"Throughput in kbit/s and Jain's index from {dynamics.STARTS_S[-1]:g} to "
        f"{dynamics.END_S:g} s, "
        "while all three send; the largest window of any of them in segments. Mean and 95 % "
        "interval.",
        "protocol",
    )
    return ReportSection(
        "Three flows, one after the other",
        paragraphs=[
            f"Three flows of one protocol on one chain of {dynamics.HOPS} hops at window "
            f"{dynamics.WINDOW}, starting after 0, 10 and 20 s."
        ],
        figures=[figure],
        tables=[table],
    )


def _samples(results: Results, label: str) -> pl.DataFrame:
    """Windows of the first run of a case: `series` (the flow), `t_s`, `value` in segments."""
    runs = results.runs.filter(label=label, status="ok").sort("run").head(1)
    names = results.flows.select("run", "flow", "name")
    rows = results.scan("samples").join(runs.lazy().select("run"), on="run").collect()
    named = rows.join(names, on=["run", "flow"]).sort("flow", "t_s")
    return named.select(
        pl.col("name").alias("series"), "t_s", (pl.col("cwnd_bytes") / _MSS).alias("value")
    )
