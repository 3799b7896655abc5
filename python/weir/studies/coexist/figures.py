"""The heat maps of the study."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.plots.heat import HeatAxes, heat_map
from weir.report.cells import claims_table, value_table
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies.cells import Cells, runs_of
from weir.studies.coexist.experiment import BUFFERS, RATE, RTT, buffer_name
from weir.studies.coexist.measures import DELAY, HARM, SHARE, table

_SHARES = HeatAxes(
    "this control's share …", "… beside this one", "share of the row", 0, 0.5, 1, ".0%"
)
_HARMS = HeatAxes("this control loses …", "… to this one", "harm to the row", 0, 0.5, 1, ".0%")


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """One section per quantity, and what was expected."""
    runs = runs_of(results, "")
    delays = _data(cells, DELAY)
    longest = max(delays["value"], default=1.0)
    delay_axes = HeatAxes(
        "this control …", "… and this one", "queueing delay, ms", -longest, 0, longest, ".1f"
    )
    return [
        ReportSection(
            "Who gets what",
            paragraphs=[
                f"Two flows share {RATE} with a round trip of {RTT}. Read a row from left to "
                "right: how much of the link's goodput the control named there gets beside each "
                "other one. A half is fair. Blue takes less than a half, orange more."
            ],
            figures=[
                heat_map(
                    "share",
                    "Share of the goodput, by buffer",
                    "Each cell: what the control of the row gets beside that of the column, mean "
                    "over the seeds. The cells across the diagonal add up to 100 %.",
                    _data(cells, SHARE),
                    _SHARES,
                    runs,
                )
            ],
            tables=[
                value_table(
                    cells.table(table(SHARE, buffer)),
                    "Share of the row beside the column: mean and 95 % interval.",
                    "control",
                    f"Shares at {buffer_name(buffer)}",
                )
                for buffer in BUFFERS
            ],
        ),
        ReportSection(
            "Who harms whom",
            paragraphs=[
                "Harm (Ware et al., HotNets 2019) is what a flow loses of the goodput that it has "
                "alone on the same link. Two equals cost each other a half; a newcomer does no "
                "more harm than it may where its column is no redder than the incumbent's own."
            ],
            figures=[
                heat_map(
                    "harm",
                    "Harm to goodput, by buffer",
                    "Each cell: the part of its solo goodput that the control of the row loses "
                    "beside that of the column, mean over the seeds, each with the solo run of its "
                    "seed.",
                    _data(cells, HARM),
                    _HARMS,
                    runs,
                )
            ],
        ),
        ReportSection(
            "How long the queue is",
            figures=[
                heat_map(
                    "delay",
                    "Mean queueing delay, by buffer",
                    "Each cell: the mean time that a packet of this pair waits at the bottleneck.",
                    delays,
                    delay_axes,
                    runs,
                )
            ],
        ),
        ReportSection("What was expected", tables=[claims_table(cells)]),
    ]


def _data(cells: Cells, kind: str) -> pl.DataFrame:
    found = [
        (buffer_name(buffer), row, column, own.mean(row, column))
        for buffer in BUFFERS
        for own in [cells.table(table(kind, buffer))]
        for row in own.rows()
        for column in own.columns()
    ]
    return pl.DataFrame(
        found,
        {"panel": pl.String, "row": pl.String, "column": pl.String, "value": pl.Float64},
        orient="row",
    )
