"""What the sentences of `findings.txt` are made from: cells by their place, and a few sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from statistics import fmean, linear_regression, median

from weir.cells.texts import sentences
from weir.studies.lab_udp.calibration import RELAY_HANDLINGS, Model
from weir.studies.lab_udp.cells import StudyCell
from weir.studies.lab_udp.claims import CLAIMS, counted
from weir.studies.lab_udp.experiment import RELAYS
from weir.studies.lab_udp.published import Source, in_words, mismatches
from weir.studies.lab_udp.throughputs import throughput_ratios

WINDOWED = ("W=5", "W=10", "W=20", "W=30")

_FAR_OFF = 0.2
_TIE = 1.01
"""Two means closer than this are the same, where nothing but the hosts' jitter differs."""


class Cells:
    """The cells by table and row, each row in the order of its columns."""

    def __init__(self, cells: Sequence[StudyCell]) -> None:
        self.all = list(cells)

    def row(self, table: str, row: str) -> list[StudyCell]:
        """One row of a table."""
        return [cell for cell in self.all if (cell.table.id, cell.row.name) == (table, row)]

    def delayed(self, table: str, row: str) -> list[StudyCell]:
        """Its cells with a delay."""
        return [cell for cell in self.row(table, row) if cell.place > 0]

    def at(self, table: str, row: str, place: float) -> StudyCell:
        """The cell where what the table varies has this value."""
        return next(cell for cell in self.row(table, row) if cell.place == place)

    def windowed_delay(self) -> list[StudyCell]:
        """The cells of source 002 that have both a window and a delay."""
        return [cell for row in WINDOWED for cell in self.delayed("002-delay", row)]


def findings(
    cells: Sequence[StudyCell], sources: Sequence[Source], models: Mapping[str, Model]
) -> list[str]:
    """The sentences, the main ones first."""
    found, model, other = Cells(cells), models["002"], models["000"]
    template = (files(__package__) / "findings.txt").read_text(encoding="utf-8")
    scope = {
        "cells": found,
        "sources": sources,
        "models": models,
        "model": model,
        "other": other,
        "timeout": model.timeout_ms / 1e3,
        "handlings": RELAY_HANDLINGS,
        "windowed": WINDOWED,
        "windowed_rows": [found.row("002-delay", row) for row in WINDOWED],
        "last_losses": [found.row("002-loss", row)[-1] for row in WINDOWED],
        "quiet_rows": lambda: [found.row("002-loss", f"{row}, no timer") for row in WINDOWED],
        "above": lambda some: [cell.published - cell.serial.seconds for cell in some],
        "expected_timers": lambda: sum(
            cell.serial.timeouts for row in WINDOWED for cell in found.row("002-loss", row)
        ),
        "throughputs": throughput_ratios(cells, sources),
        "real_sockets": {relay: _against_simulated(found, relay) for relay in RELAYS},
        "statements": [(claim, counted(claim, cells)) for claim in CLAIMS],
        "median": median,
        "mean": fmean,
        "mean_error": mean_error,
        "max_by_error": lambda some: max(some, key=lambda cell: abs(cell.error)),
        "farthest": lambda pairs: max(pairs, key=lambda pair: abs(pair[1] - 1)),
        "near": lambda ratios, by: sum(abs(ratio - 1) <= by for ratio in ratios),
        "where": _where,
        "in_words": in_words,
        "slope": _slope,
        "gaining": lambda columns: sum(map(_gains_by_window, columns)),
        "lateness": lambda row: [
            (cell.published - cell.serial.seconds) * 1e3 / model.datagrams for cell in row
        ],
        "extra": lambda some: [cell.published - cell.row.times[0] for cell in some],
        "times_slower": lambda: _times_slower(found),
        "quiet_words": _quiet_words,
        "quiet_shares": _quiet_shares,
        "slower": _slower,
        "errors_by_table": lambda: list(_errors_by_table(found)),
        "far_rows": lambda: list(_far_rows(found)),
        "known_errors": lambda: list(_known_errors(sources)),
    }
    return sentences(template, scope)


def mean_error(cells: Sequence[StudyCell]) -> float:
    """The mean absolute error of the serial relay, relative to what was published."""
    return fmean(abs(cell.error) for cell in cells)


def _slope(row: Sequence[StudyCell]) -> float:
    """Seconds of published time per unit of what the table varies."""
    return linear_regression([c.place for c in row], [c.published for c in row]).slope


def _against_simulated(cells: Cells, relay: str) -> list[tuple[StudyCell, float]]:
    """Of runs over real sockets, if there are any, the time over the simulated one."""
    ratios = ((cell, cell.against_simulated(relay, "udp")) for cell in cells.all)
    return [(cell, ratio) for cell, ratio in ratios if ratio is not None]


def _gains_by_window(column: Sequence[StudyCell]) -> bool:
    times = [cell.line.seconds for cell in column]
    pairs = pairwise(times)
    return times[-1] < times[0] and all(later <= _TIE * earlier for earlier, later in pairs)


def _times_slower(cells: Cells) -> tuple[list[float], list[float]]:
    """Stop-and-wait over each windowed row from 4 % loss on: published, and ours."""
    pairs = [
        (waiting, cells.at("002-loss", row, waiting.place))
        for waiting in cells.row("002-loss", "stop-and-wait")
        if waiting.place >= 4
        for row in WINDOWED
    ]
    return (
        [waiting.published / cell.published for waiting, cell in pairs],
        [waiting.serial.seconds / cell.serial.seconds for waiting, cell in pairs],
    )


def _quiet_words(row: Sequence[StudyCell]) -> str:
    """How many of our runs wait for no timer, which decides about means of few runs."""
    shares = _quiet_shares(row)
    ends = f"{min(shares):.0%}", f"{max(shares):.0%}"
    share = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    return f"Of our runs {share} have no timeout."


def _quiet_shares(row: Sequence[StudyCell]) -> list[float]:
    return [cell.serial.quiet / len(cell.serial.by_seed) for cell in row]


def _slower(
    narrow: Sequence[StudyCell], wide: Sequence[StudyCell]
) -> tuple[list[float], list[float]]:
    """One row over another: published, and ours."""
    pairs = list(zip(narrow, wide, strict=True))
    return (
        [b.published / a.published for a, b in pairs],
        [b.serial.seconds / a.serial.seconds for a, b in pairs],
    )


def _errors_by_table(cells: Cells) -> Iterator[tuple[str, float, float]]:
    """Mean errors of each table: of the rows that constants come from, and of the others."""
    for table in dict.fromkeys(cell.table.id for cell in cells.all):
        own = [cell for cell in cells.all if cell.table.id == table]
        calibrated = [cell for cell in own if is_calibrated(cell)]
        tested = [c for c in own if not is_calibrated(c) and not c.row.without_timers]
        yield in_words(table), mean_error(calibrated), mean_error(tested)


def is_calibrated(cell: StudyCell) -> bool:
    """Whether a constant of the model comes from a cell."""
    is_idle = cell.conditions.loss_percent == cell.conditions.delay_ms == 0
    return cell.row.experiment == "stop-and-wait" or (cell.source == "002" and is_idle)


def _far_rows(cells: Cells) -> Iterator[tuple[str, list[str]]]:
    """Each table with the names of its rows that the serial relay misses on average."""
    for table in dict.fromkeys(cell.table.id for cell in cells.all):
        own = [cell for cell in cells.all if cell.table.id == table and not cell.row.without_timers]
        rows = dict.fromkeys(cell.row.name for cell in own)
        errors = {row: fmean(cell.error for cell in cells.row(table, row)) for row in rows}
        far = [row for row, error in errors.items() if abs(error) >= _FAR_OFF]
        if far:
            yield in_words(table), far


def _known_errors(sources: Sequence[Source]) -> Iterator[str]:
    for source in sources:
        for table in source.tables:
            for row in table.rows:
                if row.repeats_row:
                    other, name = row.repeats_row
                    yield (
                        f"Error of source {source.id}: {in_words(table.id)} ({row.printed}), row "
                        f"“{row.name}”, repeats row “{name}” of {in_words(other)}. {row.note}"
                    )
        for wrong in mismatches(source):
            yield (
                f"Error of source {source.id}: {in_words(wrong.table)}, “{wrong.row} at "
                f"{wrong.column}”: the printed throughput is {wrong.printed:g}, the file over "
                f"the time {wrong.computed:.2f}."
            )


def _where(cell: StudyCell) -> str:
    return f"{cell.row.name} at {cell.table.heading(cell.column)}"
