"""What a report says about flows that come and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from weir.comparison.tables import estimate_text
from weir.dynamics.criteria import EPSILON, HOLD_S, RECLAIMED
from weir.graphics.select import Case
from weir.graphics.theme import significant
from weir.plots import Figure
from weir.report.model import Cell, ReportSection, ReportTable
from weir.results import metrics
from weir.results.metrics import Metric
from weir.results.results import Results
from weir.statistics.censoring import Waits
from weir.statistics.intervals import Estimate

if TYPE_CHECKING:
    from weir.dynamics.sharing import Observed

_MOST_CASES = 5
_PART = metrics.BY_NAME["utilisation"]
_JAIN = metrics.BY_NAME["jain_index"]


def section(
    results: Results, cases: Sequence[Case], anchors: Mapping[str, str], figures: Sequence[Figure]
) -> ReportSection:
    """How fast flows yield capacity and take it back: sentences, tables and Jain's index over time.

    `anchors` leads from a case to its provenance.
    """
    found = [(case, change) for case in cases for change in results.changes(case.label)]
    is_short = len({case.label for case, _ in found}) <= _MOST_CASES
    together = [(case, change) for case, change in found if change.converged]
    reclaimed = [(case, change) for case, change in found if change.reclaimed]
    tables = []
    if together:
        tables.append(_together(together, anchors))
    if reclaimed:
        tables.append(_reclaimed(reclaimed, anchors))
    points = [sentence for pair in found for sentence in _sentences(*pair)] if is_short else []
    return ReportSection(
        "When flows come and go", points=points, tables=tables, figures=list(figures)
    )


def _sentences(case: Case, change: Observed) -> Iterator[str]:
    when = f"{case.name}, {change.event} at {significant(change.at_s)} s"
    if change.converged:
        *fine, coarse = [_outcome(waits, "share fairly") for waits in change.converged.values()]
        *_, width = change.converged
        text = f"{when}: going by bins of {significant(width)} s, {coarse}"
        if fine:
            text += f"; by bins of {significant(min(change.converged))} s, {fine[0]}"
        if change.newcomers.mean is not None:
            part = estimate_text(change.newcomers, _PART)
            text += f". Who came has {part} % of what is delivered until the next change"
        yield f"{text}."
    if change.reclaimed:
        first, *_ = change.reclaimed.values()
        done = f"{RECLAIMED:.0%} of what was set free is taken".replace("%", " %")
        yield f"{when}: {done} in {_of(first)}{_median(first)}."


def _outcome(waits: Waits, done: str) -> str:
    if waits.ended == 0:
        return f"none of {waits.n} repeats {done} for {significant(HOLD_S)} s{_watched(waits)}"
    return f"{_of(waits)} {done}{_watched(waits)}{_median(waits)}"


def _of(waits: Waits) -> str:
    return f"{waits.ended} of {waits.n} repeats"


def _watched(waits: Waits) -> str:
    return "" if waits.watched_s is None else f" within the {significant(waits.watched_s)} s seen"


def _median(waits: Waits) -> str:
    if waits.median_s is None:
        return ""
    text = f", after {significant(waits.median_s)} s in the median"
    if waits.lo_s is None:
        return text
    upper = "or more" if waits.hi_s is None else f"to {significant(waits.hi_s)} s"
    return f"{text} (95 %: {significant(waits.lo_s)} s {upper})"


def _together(found: Sequence[tuple[Case, Observed]], anchors: Mapping[str, str]) -> ReportTable:
    rows = []
    for case, change in found:
        link = anchors[case.label]
        fine, *_, coarse = [*change.converged.values(), *change.converged.values()]
        rows.append(
            [
                *_names(case, change),
                Cell(fine.short(), link=link),
                Cell(coarse.short(), link=link),
                _estimate(change.jain, _JAIN, link),
                _estimate(change.newcomers, _PART, link),
            ]
        )
    headers = ["case", "change", "at, s", "fair by RTT", "fair by 1 s", "Jain index", "came, %"]
    note = (
        "Fair: how long after the change all goodputs are within "
        f"{EPSILON:.0%} of the largest in every bin for {significant(HOLD_S)} s, median over the "
        "repeats, and how many of them get there before the next change. Bins are a round trip "
        "(at least 100 ms), or one second, which averages out the stops that a repair makes. "
        "Jain index: of the goodputs until the next change. Came: the newcomers' part of all that "
        "is delivered until then."
    ).replace("20%", "20 %")
    return ReportTable("Sharing after a change", headers, rows, note=note, anchor="sharing")


def _reclaimed(found: Sequence[tuple[Case, Observed]], anchors: Mapping[str, str]) -> ReportTable:
    rows = []
    for case, change in found:
        link = anchors[case.label]
        fine, *_, coarse = [*change.reclaimed.values(), *change.reclaimed.values()]
        cells = [Cell(waits.short(), link=link) for waits in (fine, coarse)]
        rows.append([*_names(case, change), *cells])
    headers = ["case", "change", "at, s", "taken by RTT", "taken by 1 s"]
    note = (
        "Taken: how long after a flow has gone the others first have what they had and 90 % of "
        f"what it had, and hold it over {significant(HOLD_S)} s on average."
    )
    return ReportTable("Taking what was left", headers, rows, note=note, anchor="reclaim")


def _names(case: Case, change: Observed) -> list[Cell | str]:
    return [Cell(case.name, "name"), change.event, Cell(significant(change.at_s))]


def _estimate(estimate: Estimate, metric: Metric, link: str) -> Cell:
    return Cell(estimate_text(estimate, metric), link=link)
