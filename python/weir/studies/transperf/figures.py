"""The tables and curves of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots.heat import HeatAxes, heat_map
from weir.plots.lines import LineAxes, lines_if_any
from weir.report.cells import envelopes_table, value_table
from weir.report.html import slug
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies import Cell
from weir.studies.cells import Cells, digits, frame, runs_of
from weir.studies.transperf import nsperf
from weir.studies.transperf.measures import ASKED, SCORES, nsperf_table, scores_table
from weir.studies.transperf.scored import FULL_QUEUE, TESTS

_HEAT = HeatAxes("control", "score", "points above what is required", -60, 0, 60, "+.0f")


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """The verdicts at a glance, then each test with its numbers, then nsperf's."""
    return [_glance(results, cells), *_scores(cells), *_nsperf(results, cells)]


def _glance(results: Results, cells: Cells) -> ReportSection:
    rows = [
        (
            test.name,
            str(found["row"]),
            str(found["column"]),
            found["ours"]["mean"] - found["low"],
            _text(found),
        )
        for test in TESTS
        for found in cells.table(scores_table(test)).all
        if found["column"] != FULL_QUEUE and found["ours"]["mean"] is not None
    ]
    texts = ("panel", "row", "column")
    schema = {**dict.fromkeys(texts, pl.String), "value": pl.Float64, "text": pl.String}
    figure = heat_map(
        "scores",
        "Scores and what is required",
        "Mean scores of 100 points. Orange is above what transperf requires, blue below; a score "
        "fails that some run does not reach.",
        pl.DataFrame(rows, schema, orient="row"),
        _HEAT,
        runs_of(results, SCORES),
    )
    return ReportSection("Who reaches the required scores", figures=[figure])


def _text(found: Cell) -> str:
    return f"{digits(found['ours']['mean'])}{'' if found['holds'] else ' fails'}"


def _scores(cells: Cells) -> Iterator[ReportSection]:
    for test in TESTS:
        own = cells.table(scores_table(test))
        table = envelopes_table(own, "", ("control", "score"))
        yield ReportSection(f"transperf: {test.name}", tables=[table])


def _nsperf(results: Results, cells: Cells) -> Iterator[ReportSection]:
    for test, what, unit, *_ in ASKED:
        own = cells.table(nsperf_table(test, what))
        if not own.all:
            continue
        places = [float(column.split()[0].rstrip("%")) for column in own.columns()]
        across = {nsperf.RANDOM_LOSS: "random loss, %"}.get(
            test, "buffer, BDP" if own.columns()[0].endswith("BDP") else "flows"
        )
        yield ReportSection(
            f"nsperf {test}: {what}",
            tables=[value_table(own, f"Mean and 95 % interval, {unit}.", "control")],
            figures=lines_if_any(
                slug(nsperf_table(test, what)),
                f"{what.capitalize()} in nsperf's {test}",
                "Each point is the mean over the seeds with its 95 % interval.",
                frame(own, test, places),
                LineAxes(across, f"{what}, {unit}", is_x_log=True, columns=1),
                runs_of(results, f"nsperf {test},"),
            ),
        )
