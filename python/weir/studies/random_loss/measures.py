"""The cells of the study: goodput by control and loss rate."""

from __future__ import annotations

from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.random_loss.experiment import FLOW, label
from weir.studies.random_loss.laws import LAWS, SOURCES

GOODPUT = "goodput"


def column(percent: float) -> str:
    """A loss rate as a heading."""
    return f"{percent:g}%"


def percent_of(column: str) -> float:
    """The loss rate that a heading names, in percent."""
    return float(column.rstrip("%"))


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell; `published` is a control's law, where there is one."""
    contests = Contests(results)
    cells = []
    for stack in extent.stacks:
        for percent in extent.values:
            rates = contests.flow(label(stack, percent), FLOW, "goodput_mbps").values()
            law = LAWS.get(stack)
            cells.append(
                cell(
                    GOODPUT,
                    stack,
                    column(percent),
                    "Mbit/s",
                    mean_interval(rates, (0.0, None)),
                    published=None if law is None else round(law(percent / 100), 3),
                    note="" if law is None else SOURCES[stack],
                )
            )
    return cells
