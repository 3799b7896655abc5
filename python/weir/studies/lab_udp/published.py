"""The published tables, as they are printed, with their sources and known errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any

SOURCES = ("002", "000")

_SUFFIX = {"loss_percent": "%", "delay_ms": "ms", "file_bytes": "b"}
_RELATIVE_ROUNDING = 5e-4
"""Throughputs are printed with four digits or more."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one time was measured under."""

    file_bytes: int
    loss_percent: float
    delay_ms: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. `experiment` names what was run, `printed` where it stands."""

    name: str
    experiment: str
    printed: str
    times: tuple[float, ...]
    throughputs: tuple[float, ...] = ()
    note: str = ""
    repeats_row: tuple[str, str] | None = None
    """The table and row whose numbers the source prints here by mistake."""
    measured_under: tuple[Conditions, ...] = ()
    """What each number was measured under, or is taken to be, if not under what its column says."""
    without_timers: bool = False
    """Whether it is read as of runs in which no timer ended."""
    is_reading: bool = False
    """Whether its numbers stand in another row already, read in another way."""


@dataclass(frozen=True, slots=True)
class Table:
    """Times of several protocols while one condition varies."""

    id: str
    title: str
    varies: str
    columns: tuple[float, ...]
    rows: tuple[Row, ...]
    fixed: Conditions

    def measured_under(self, row: Row, column: int) -> Conditions:
        """What a number was measured under, which a row printed by mistake says wrongly."""
        return row.measured_under[column] if row.measured_under else self.conditions(column)

    def conditions(self, column: int) -> Conditions:
        """What a column stands for."""
        values = {**asdict(self.fixed), self.varies: self.columns[column]}
        return Conditions(int(values["file_bytes"]), values["loss_percent"], values["delay_ms"])

    def heading(self, column: int) -> str:
        """The column with its unit, as `20ms`."""
        return f"{self.columns[column]}{_SUFFIX[self.varies]}"

    def row(self, name: str) -> Row:
        """The row of that name."""
        return next(row for row in self.rows if row.name == name)


def in_words(table: str) -> str:
    """Name of a table in sentences: `loss, report 002` for `002-loss`."""
    source, _, varied = table.partition("-")
    return f"{varied}, report {source}"


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure of a report: which rows of which table it shows."""

    name: str
    title: str
    table: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One report: where it comes from, how it was measured, and its tables."""

    id: str
    title: str
    published: str
    repeats: str
    relay: str
    recovery: str
    timeout_s: float | None
    times_handshake: bool
    """Whether its times are of the whole program, not of the transfer alone."""
    throughput_unit: str
    throughput_scale: float
    tables: tuple[Table, ...]
    drawings: tuple[PublishedFigure, ...]

    def table(self, varied: str) -> Table:
        """The table `id-varied`, as in `002-delay`."""
        return next(table for table in self.tables if table.id == f"{self.id}-{varied}")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A printed throughput that is not the file's size over the printed time."""

    table: str
    row: str
    column: str
    printed: float
    computed: float


def load(source: str) -> Source:
    """The tables of one source, which are part of the package."""
    text = (files(__package__) / f"published-{source}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    about, conditions = data["source"], data["conditions"]
    fixed = Conditions(conditions["file_bytes"], conditions["loss_percent"], conditions["delay_ms"])
    return Source(
        about["id"],
        about["title"],
        about["published"],
        about["repeats"],
        about["relay"].strip(),
        about["recovery"].strip(),
        conditions.get("timeout_s"),
        about["times_handshake"],
        about["throughput_unit"],
        about["throughput_scale"],
        tuple(_tables(data["table"], fixed)),
        tuple(PublishedFigure(**{**each, "rows": tuple(each["rows"])}) for each in data["figure"]),
    )


def mismatches(source: Source) -> Iterator[Mismatch]:
    """Every printed throughput that does not follow from its time."""
    for table in source.tables:
        for row in table.rows:
            pairs = zip(row.times, row.throughputs, strict=False)
            for column, (time, printed) in enumerate(pairs):
                size = table.conditions(column).file_bytes
                computed = size / time / source.throughput_scale
                if abs(computed - printed) > _RELATIVE_ROUNDING * computed:
                    heading = table.heading(column)
                    yield Mismatch(table.id, row.name, heading, printed, computed)


def _tables(data: Sequence[Mapping[str, Any]], fixed: Conditions) -> Iterator[Table]:
    """The tables, in which a row that repeats another by mistake has that one's conditions."""
    printed = {table["id"]: _table(table, fixed) for table in data}
    for table in printed.values():
        yield replace(table, rows=tuple(_corrected(row, printed) for row in table.rows))


def _corrected(row: Row, tables: Mapping[str, Table]) -> Row:
    if row.repeats_row is None:
        return row
    other = tables[row.repeats_row[0]]
    return replace(row, measured_under=tuple(map(other.conditions, range(len(other.columns)))))


def _table(data: Mapping[str, Any], fixed: Conditions) -> Table:
    rows = tuple(_row(row) for row in data["row"])
    columns = tuple(data["columns"])
    table = Table(data["id"], data["title"], data["varies"], columns, rows, fixed)
    delays = {row["name"]: row["delays_ms"] for row in data["row"] if "delays_ms" in row}
    return replace(table, rows=tuple(_delayed(row, table, delays.get(row.name)) for row in rows))


def _delayed(row: Row, table: Table, delays: Sequence[float] | None) -> Row:
    if delays is None:
        return row
    under = (
        replace(table.conditions(column), delay_ms=delay) for column, delay in enumerate(delays)
    )
    return replace(row, measured_under=tuple(under))


def _row(data: Mapping[str, Any]) -> Row:
    repeated = data.get("repeats_row")
    without_timers = data.get("without_timers", False)
    return Row(
        data["name"],
        data["experiment"],
        data["printed"],
        tuple(data["times"]),
        tuple(data.get("throughputs", ())),
        data.get("note", ""),
        (repeated["table"], repeated["row"]) if repeated else None,
        without_timers=without_timers,
        is_reading=without_timers or "delays_ms" in data,
    )
