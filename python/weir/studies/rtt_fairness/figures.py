"""The curves of the study."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.plots.lines import LineAxes, lines
from weir.report.cells import claims_table, value_table
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies.cells import Cells, frame, runs_of
from weir.studies.rtt_fairness.experiment import QUEUES, RATIOS
from weir.studies.rtt_fairness.measures import EXPONENT, table

_AXES = LineAxes(
    "round trip of the long way over that of the short one",
    "goodput, long over short",
    is_x_log=True,
    is_y_log=True,
)


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """Ratios over both queues, exponents, and what was expected."""
    data = pl.concat(frame(cells.table(table(queue)), queue, RATIOS) for queue in QUEUES)
    figure = lines(
        "ratio",
        "What the flow with the longer way gets",
        "1 is fair. A straight line that falls with slope -a is goodput ∝ RTT^-a; one that rises "
        "favours the longer way. Bars are 95 % intervals over the seeds.",
        data,
        _AXES,
        runs_of(results, ""),
    )
    return [
        ReportSection(
            "Exponents",
            paragraphs=[
                "a of goodput ∝ RTT^-a: 0 is fair whatever the distance, 1 divides the link in "
                "inverse proportion to the round trips, below 0 the longer way wins."
            ],
            tables=[
                value_table(
                    cells.table(EXPONENT), "Mean over the seeds and 95 % interval.", "control"
                )
            ],
        ),
        ReportSection(
            "Goodput against distance",
            figures=[figure],
            tables=[
                value_table(
                    cells.table(table(queue)),
                    "Goodput of the long way over that of the short one, by the ratio of the ways: "
                    "mean and 95 % interval.",
                    "control",
                    f"Over {queue}",
                )
                for queue in QUEUES
            ],
        ),
        ReportSection("What was expected", tables=[claims_table(cells)]),
    ]
