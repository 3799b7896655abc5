"""Cells of the tables: what is published, our times beside it, how many files were intact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from weir.cells.cells import Cells, cell
from weir.cells.protocol import Cell
from weir.results.results import Results
from weir.statistics.intervals import Estimate, mean_interval
from weir.studies.udp_vs_tcp.experiment import CONTENDERS, PACKETS, SETTINGS, SIZES, Contender
from weir.studies.udp_vs_tcp.published import Printed, Source, Table, load
from weir.transfer.runs import GIVEN_UP

LEFT_OUT = "not run at this size of the study"


@dataclass(frozen=True, slots=True)
class Measured:
    """The transfers of one cell."""

    took: Estimate
    tried: int
    complete: int
    received: float | None
    """The mean share of the file's bytes that arrived."""
    failures: tuple[str, ...]
    was_run: bool = True

    @property
    def note(self) -> str:
        """Why files are missing."""
        return "; ".join(self.failures)


NOTHING = Measured(Estimate(None, None, None, 0), 0, 0, None, (LEFT_OUT,), was_run=False)


@dataclass(frozen=True)
class Transfers:
    """All transfers of a study by the label of their cell."""

    results: Results

    def at(self, setting: str, row: str, size: str) -> Measured:
        """Those of one cell."""
        found = self._by_label.get(f"{setting}, {row}, {size}")
        if found is None:
            return NOTHING
        tried = found.filter(pl.col("failure").ne_missing(GIVEN_UP))
        if tried.is_empty():
            return Measured(NOTHING.took, 0, 0, None, (GIVEN_UP,))
        shares = (tried["received_bytes"] / tried["file_bytes"]).to_list()
        return Measured(
            mean_interval(tried["took_s"], (0.0, None)),
            tried.height,
            int(tried["completed"].sum()),
            sum(shares) / len(shares),
            tuple(found["failure"].drop_nulls().unique(maintain_order=True)),
        )

    @cached_property
    def _by_label(self) -> dict[str, pl.DataFrame]:
        rows = self.results.flows.join(self.results.runs.select("run", "label"), on="run")
        groups = rows.partition_by("label", as_dict=True)
        return {str(label): group for (label,), group in groups.items()}


def study_cells(source: Source, results: Results) -> list[Cell]:
    """Every published cell with ours, and the rows that only we have."""
    transfers = Transfers(results)
    return [
        _cell(table, contender, packet, size, transfers)
        for table in source.tables
        for packet in PACKETS
        for contender in CONTENDERS
        for size in SIZES
        if _is_published(table, contender, packet, size, transfers)
    ]


def _is_published(
    table: Table, contender: Contender, packet: str, size: str, transfers: Transfers
) -> bool:
    """Whether the source or we have anything there, so that a row is whole."""
    if contender.transport and table.row(contender.transport, packet):
        return True
    measured = (transfers.at(table.setting, contender.row(packet), any_) for any_ in SIZES)
    return size in contender.sizes and any(found is not NOTHING for found in measured)


def _cell(table: Table, contender: Contender, packet: str, size: str, transfers: Transfers) -> Cell:
    row = contender.row(packet)
    found = transfers.at(table.setting, row, size)
    printed = _printed(table, contender, packet, size)
    share = None if found.received is None else round(100 * found.received, 3)
    return cell(
        table.id,
        row,
        size,
        "s",
        found.took,
        published=None if printed is None else printed.value,
        note=found.note,
        published_complete=None if printed is None else printed.complete,
        complete=found.complete,
        tried=found.tried,
        received_percent=share,
        was_run=found.was_run,
    )


def _printed(table: Table, contender: Contender, packet: str, size: str) -> Printed | None:
    published = table.row(contender.transport, packet) if contender.transport else None
    return None if published is None else published.cells[size]


@dataclass(frozen=True)
class Tables:
    """The cells once more, by setting, transport, packet length and size, for what is computed."""

    source: Source
    cells: Sequence[Cell]

    def at(self, setting: str, contender: str, packet: str, size: str) -> Cell | None:
        """A cell, if there is one."""
        table = self.source.table(setting).id
        return self._by_place.get((table, f"{contender} ({packet})", size))

    def ours(self, contender: str, *settings: str, sizes: Iterable[str] = SIZES) -> Iterator[Cell]:
        """Every cell of a kind of row in some settings, or in all, where we have tried."""
        for setting in settings or SETTINGS:
            for packet in PACKETS:
                for size in sizes:
                    found = self.at(setting, contender, packet, size)
                    if found is not None and found["tried"]:
                        yield found

    def ratios(
        self, one: str, other: str, *settings: str, sizes: Iterable[str] = SIZES
    ) -> tuple[Estimate, Estimate]:
        """The time of one kind of row over that of another: published, and ours.

        Geometric means over the cells where both have a time, and for ours where both deliver.
        """
        places = [
            (setting, packet, size)
            for setting in settings or SETTINGS
            for packet in PACKETS
            for size in sizes
        ]
        return _compared(
            (self.at(setting, one, packet, size), self.at(setting, other, packet, size))
            for setting, packet, size in places
        )

    def over(
        self, setting: str, other: str, contender: str, sizes: Iterable[str] = SIZES
    ) -> tuple[Estimate, Estimate]:
        """The same of one kind of row in two settings."""
        return _compared(
            (self.at(setting, contender, packet, size), self.at(other, contender, packet, size))
            for packet in PACKETS
            for size in sizes
        )

    def against_published(self, setting: str, published_in: str, contender: str) -> Estimate:
        """Our time in a setting over the published one in another; a geometric mean."""
        ratios = []
        for packet in PACKETS:
            for size in SIZES:
                ours = self.at(setting, contender, packet, size)
                printed = seconds(self.at(published_in, contender, packet, size))
                if printed and ours is not None and whole(ours):
                    ratios.append(math.log(ours["ours"]["mean"] / printed))
        return _geometric(ratios)

    def growths(self, contender: str, setting: str) -> tuple[Estimate, Estimate]:
        """By which power of the size the time grows from 2.8MB to 110MB: published, and ours."""
        small, large = "2.8MB", "110MB"
        decades = math.log(SIZES[large] / SIZES[small])
        pairs = [
            (self.at(setting, contender, packet, large), self.at(setting, contender, packet, small))
            for packet in PACKETS
        ]
        published, ours = _logarithms(pairs)
        return mean_interval(v / decades for v in published), mean_interval(
            v / decades for v in ours
        )

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Cell]:
        return {(cell["table"], cell["row"], cell["column"]): cell for cell in self.cells}


def seconds(found: Cell | None) -> float | None:
    """The published time, where that is all that is printed."""
    value = None if found is None else found["published"]
    return value if isinstance(value, float) else None


def whole(found: Cell) -> bool:
    """Whether all of our files arrived intact."""
    return bool(found["tried"] and found["complete"] == found["tried"])


def share(cells: Iterable[Cell]) -> Estimate:
    """The share of all transfers that were complete, in percent."""
    kept = list(cells)
    tried = sum(found["tried"] for found in kept)
    complete = sum(found["complete"] for found in kept)
    return Estimate(100 * complete / tried if tried else None, None, None, tried)


def published_share(cells: Iterable[Cell]) -> float | None:
    """The same of what is printed, where a number of complete transfers is."""
    counts = [found["published_complete"] for found in cells]
    known = [count for count in counts if count is not None]
    return 100 * sum(known) / (5 * len(known)) if known else None


def _compared(pairs: Iterable[tuple[Cell | None, Cell | None]]) -> tuple[Estimate, Estimate]:
    published, ours = _logarithms(pairs)
    return _geometric(published), _geometric(ours)


def _logarithms(
    pairs: Iterable[tuple[Cell | None, Cell | None]],
) -> tuple[list[float], list[float]]:
    """The logarithms of the first time over the second: published, and ours."""
    published, ours = [], []
    for one, other in pairs:
        printed = seconds(one), seconds(other)
        if printed[0] and printed[1]:
            published.append(math.log(printed[0] / printed[1]))
        if one is not None and other is not None and whole(one) and whole(other):
            ours.append(math.log(one["ours"]["mean"] / other["ours"]["mean"]))
    return published, ours


def _geometric(logarithms: Sequence[float]) -> Estimate:
    found = mean_interval(logarithms)
    low, mean, high = (None if v is None else math.exp(v) for v in (found.lo, found.mean, found.hi))
    return Estimate(mean, low, high, found.n)


# Data of figures.

_OF = 5
"""Number of transfers behind each published count."""

_Count = tuple[str, str, str, float | None, str]


def _printed_counts(cells: Cells, tables: Sequence[Table]) -> Iterator[_Count]:
    for table, found in _reliable(cells, tables):
        printed, count = found["published"], found["published_complete"]
        if count is not None:
            yield _count("published", table, found, 1 - count / _OF, f"{count}/{_OF}")
        elif isinstance(printed, float):
            yield _count("published", table, found, 0.5, "?")
        else:
            failed = None if printed is None else 1.0
            yield _count("published", table, found, failed, _short(printed or ""))


def _own_counts(cells: Cells, tables: Sequence[Table]) -> Iterator[_Count]:
    for table, found in _reliable(cells, tables):
        complete, tried = found["complete"], found["tried"]
        failed = 1 - complete / tried if tried else None
        yield _count("ours", table, found, failed, f"{complete}/{tried}")


def _reliable(cells: Cells, tables: Sequence[Table]) -> Iterator[tuple[Table, Cell]]:
    for table in tables:
        for found in cells.table(table.id).all:
            if str(found["row"]).startswith("UDPR ("):
                yield table, found


def _count(panel: str, table: Table, found: Cell, failed: float | None, text: str) -> _Count:
    packet = str(found["row"]).removeprefix("UDPR (").removesuffix(")")
    return panel, f"{table.setting}, {packet}", str(found["column"]), failed, text


def _short(printed: str) -> str:
    """A word of the source that fits a found."""
    return "too long" if printed.startswith("beyond") else printed.rpartition("/ ")[2]


def counts(cells: Cells) -> list[_Count]:
    """How many files arrived whole by reliable UDP alone: the others are in the tables."""
    tables = load().tables
    return [*_printed_counts(cells, tables), *_own_counts(cells, tables)]


def times(own: Cells) -> pl.DataFrame:
    """One panel per packet length: reliable transports, published and ours, over the sizes."""
    return pl.concat([_frame(own, packet) for packet in PACKETS])


def _frame(own: Cells, packet: str) -> pl.DataFrame:
    """One panel: reliable transports, published and ours, over the sizes."""
    rows = []
    for name in ("UDPR", "TCP", "TCP bbr"):
        for size in SIZES:
            found = own.at(f"{name} ({packet})", size)
            if found is None:
                continue
            printed, ours = seconds(found), found["ours"]
            if printed:
                rows.append((packet, f"{name}, published", size, printed, None, None, 1))
            if whole(found):
                place = (packet, f"{name}, ours", size)
                rows.append((*place, ours["mean"], ours["lo"], ours["hi"], ours["n"]))
    schema = {
        **dict.fromkeys(("panel", "series", "at"), pl.String),
        **dict.fromkeys(("value", "lo", "hi"), pl.Float64),
        "n": pl.Int64,
    }
    return pl.DataFrame(rows, schema, orient="row")
