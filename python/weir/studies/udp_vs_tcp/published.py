"""The published tables, cell by cell as they are printed, and what a cell says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

Transport = Literal["TCP", "UDP", "UDPR"]

_CELL = re.compile(r"(?P<seconds>[\d.]+)?(?: \((?P<complete>\d)\))?(?: ?/ ?)?(?P<words>\D*)")


@dataclass(frozen=True, slots=True)
class Printed:
    """One cell: a time, how many of five transfers were complete, what went wrong."""

    text: str
    seconds: float | None
    complete: int | None
    words: str

    @property
    def value(self) -> float | str:
        """The time; in words where these are all there is, or stand beside it."""
        if self.seconds is None:
            return self.words
        return f"{self.seconds} / {self.words}" if self.words else self.seconds


@dataclass(frozen=True, slots=True)
class Row:
    """One transport with packets of one length, a cell per size of file."""

    name: str
    transport: Transport
    packet: str
    cells: Mapping[str, Printed]


@dataclass(frozen=True, slots=True)
class Table:
    """All transfers in one setting."""

    id: str
    setting: str
    printed: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def row(self, transport: Transport, packet: str) -> Row | None:
        """The row of a transport and a packet length, if the source has it."""
        found = (row for row in self.rows if (row.transport, row.packet) == (transport, packet))
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Source:
    """The report: where it comes from, its tables, and where it contradicts itself."""

    id: str
    title: str
    published: str
    repeats: str
    max_retransmits: int
    max_wait: int
    oddities: tuple[str, ...]
    tables: tuple[Table, ...]

    def table(self, setting: str) -> Table:
        """The table of a setting."""
        return next(table for table in self.tables if table.setting == setting)

    def without_count(self) -> Iterator[tuple[Table, Row, str]]:
        """Every cell that has a time and no word, but not how many transfers were complete."""
        for table in self.tables:
            for row in table.rows:
                for column, cell in row.cells.items():
                    if cell.seconds is not None and cell.complete is None and not cell.words:
                        yield table, row, column


def load() -> Source:
    """The source, which is part of the package."""
    text = (files(__package__) / "published.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    tables = tuple(_table(table, data["words"]) for table in data["table"])
    oddities = tuple(oddity["text"] for oddity in data["oddity"])
    return Source(**data["source"], oddities=oddities, tables=tables)


def _table(data: Mapping[str, Any], words: Mapping[str, str]) -> Table:
    columns = tuple(data["columns"])
    rows = tuple(_row(name, columns, cells, words) for name, cells in data["rows"].items())
    return Table(data["id"], data["setting"], data["printed"], data["title"], columns, rows)


def _row(name: str, columns: tuple[str, ...], cells: list[str], words: Mapping[str, str]) -> Row:
    transport, packet = name.removesuffix(")").split(" (")
    printed = (_cell(text, words) for text in cells)
    return Row(name, transport, packet, dict(zip(columns, printed, strict=True)))  # type: ignore[arg-type]


def _cell(text: str, words: Mapping[str, str]) -> Printed:
    found = _CELL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a cell of the published tables")
    seconds, complete = found["seconds"], found["complete"]
    outcomes = "/".join(words[word] for word in found["words"].split("/") if word)
    return Printed(
        text, float(seconds) if seconds else None, int(complete) if complete else None, outcomes
    )
