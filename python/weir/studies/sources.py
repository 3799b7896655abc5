"""The five sources: every printed number and claim next to ours, each with a verdict.

`sources.toml` says which study repeats which table. The values come from results on disk.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

from weir.cells import claims, verdicts
from weir.cells.cells import digits, interval_text
from weir.cells.protocol import PUBLISHED, Cell
from weir.statistics.intervals import Estimate

FILE = "sources.toml"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some rows of a part differ, and the run that shows it; without one it is untested.

    `shows` are patterns of the cells of that run which show it, as `table / row / column`.
    """

    rows: str
    text: str
    run: str = ""
    shows: Sequence[str] = ()
    columns: str = ".*"


@dataclass(frozen=True, slots=True)
class Part:
    """A table, chart or conclusion of a source, and where ours is."""

    place: str
    title: str
    tables: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Endings that stand for another setting in place of the end of a table's name."""
    reasons: tuple[Reason, ...] = ()

    def reason(self, row: str, column: str) -> Reason | None:
        """The first that is about a cell."""
        fits = (
            own
            for own in self.reasons
            if re.fullmatch(own.rows, row) and re.fullmatch(own.columns, column)
        )
        return next(fits, None)


@dataclass(frozen=True, slots=True)
class Source:
    """A document, and the study that repeats it."""

    id: str
    title: str
    study: str
    column: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A printed number or claim next to ours."""

    source: str
    place: str
    part: str
    study: str
    table: str
    row: str
    column: str
    unit: str
    published: float | str | None
    ours: Mapping[str, Any] | None
    ratio: float | None
    verdict: str
    kind: str
    is_ambiguous: bool = False
    is_reading: bool = False
    """Whether the same printed number stands in another row already, read in another way."""
    note: str = ""
    reason: str = ""
    run: str = ""
    evidence: Sequence[str] = ()
    """Cells of that run which show it; empty if the run alone does, or if they are missing."""
    is_explained: bool = False
    """Whether there is a reason, and the run that shows it is in the results."""
    other_settings: Mapping[str, float | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return asdict(self)

    @property
    def published_text(self) -> str:
        """The printed value for people."""
        if isinstance(self.published, int | float):
            return digits(float(self.published))
        return self.published or "–"

    @property
    def ours_text(self) -> str:
        """Our value with its interval; one that says nothing is left out."""
        if self.ours is None or self.ours.get("mean") is None:
            return "–" if self.verdict == verdicts.MISSING else "did not end"
        known = Estimate(**{key: self.ours.get(key) for key in ("mean", "lo", "hi")}, n=0)
        if self.verdict == verdicts.TOO_FEW:
            return f"{digits(float(self.ours['mean']))} (too few repeats)"
        return interval_text(known)


def load() -> list[Source]:
    """The sources, in order."""
    data = tomllib.loads((files("weir.studies") / FILE).read_text(encoding="utf-8"))
    return [
        Source(
            source["id"],
            source["title"],
            source["study"],
            source["column"],
            tuple(_part(part) for part in source["part"]),
        )
        for source in data["source"]
    ]


def _part(data: Mapping[str, Any]) -> Part:
    return Part(
        data["place"],
        data["title"],
        tuple(data.get("tables", ())),
        tuple(data.get("claims", ())),
        tuple(data.get("beside", ())),
        tuple(Reason(**reason) for reason in data.get("reason", ())),
    )


def entries(sources: Sequence[Source], cells: Mapping[str, Sequence[Cell]]) -> Iterator[Entry]:
    """Every printed number and claim. `cells` are those of each study that has results."""
    for source in sources:
        own = cells.get(source.study, ())
        for part in source.parts:
            found = [*_numbers(source, part, own), *_claims(source, part, own)]
            yield from found or [_missing(source, part)]


def _numbers(source: Source, part: Part, cells: Sequence[Cell]) -> Iterator[Entry]:
    by_place = {(cell["table"], cell["row"], cell["column"]): cell for cell in cells}
    for cell in cells:
        table = str(cell["table"])
        is_ours = any(re.fullmatch(pattern, table) for pattern in part.tables)
        if not is_ours or cell.get(PUBLISHED) is None:
            continue
        ours = cell.get(source.column)
        others = {}
        for ending in part.beside:
            prefix = table[: table.rindex("window ")] if "window " in table else table
            other = by_place.get((prefix + ending, cell["row"], cell["column"]))
            others[ending] = None if other is None else other[source.column]["mean"]
        verdict = verdicts.of_number(cell[PUBLISHED], ours, was_run=bool(cell.get("was_run")))
        yield _entry(source, part, cell, cells, ours, verdict, "number", others)


def _claims(source: Source, part: Part, cells: Sequence[Cell]) -> Iterator[Entry]:
    for pattern in part.claims:
        for cell in cells:
            if cell["table"] == claims.TABLE and re.fullmatch(pattern, str(cell["row"])):
                verdict = verdicts.of_claim(cell)
                yield _entry(source, part, cell, cells, cell["ours"], verdict, "claim", {})


def _entry(
    source: Source,
    part: Part,
    cell: Cell,
    cells: Sequence[Cell],
    ours: Mapping[str, Any] | None,
    verdict: str,
    kind: str,
    others: Mapping[str, float | None],
) -> Entry:
    place = (str(cell["row"]), str(cell["column"]))
    why = part.reason(*place) if verdict in verdicts.NEEDS_REASON else None
    shown = tuple(_shown(why, source, cell, cells)) if why else ()
    return Entry(
        source.id,
        part.place,
        part.title,
        source.study,
        str(cell["table"]),
        str(cell["row"]),
        str(cell["column"]),
        str(cell["unit"]),
        cell.get(PUBLISHED),
        ours,
        verdicts.ratio(cell.get(PUBLISHED), ours),
        verdict,
        kind,
        bool(cell.get("ambiguous")),
        bool(cell.get("reading")),
        str(cell.get("note") or ""),
        why.text if why else "",
        why.run if why else "",
        shown,
        why is not None and bool(why.run) and (bool(shown) or not why.shows),
        others,
    )


def _shown(why: Reason, source: Source, entry: Cell, cells: Sequence[Cell]) -> Iterator[str]:
    """The cells that show a reason; `{row}` and `{column}` in a pattern are those of the entry."""
    for pattern in why.shows:
        for name in ("row", "column"):
            pattern = pattern.replace(f"{{{name}}}", re.escape(str(entry[name])))
        for cell in cells:
            place = f"{cell['table']} / {cell['row']} / {cell['column']}"
            ours = cell.get(source.column) or cell.get("ours")
            if re.fullmatch(pattern, place) and ours and ours.get("mean") is not None:
                known = Estimate(**{key: ours.get(key) for key in ("mean", "lo", "hi")}, n=0)
                yield f"{place}: {interval_text(known)}"


def _missing(source: Source, part: Part) -> Entry:
    kind = "number" if part.tables else "claim"
    return Entry(
        source.id, part.place, part.title, source.study, "", "", "", "", None, None, None,
        verdicts.MISSING, kind,
    )  # fmt: skip


def counts(found: Sequence[Entry]) -> dict[str, dict[str, Counter[str]]]:
    """How often each verdict occurs: by kind, by source. Other readings of a number count once."""
    counted: dict[str, dict[str, Counter[str]]] = {"number": {}, "claim": {}}
    for entry in found:
        if not entry.is_reading:
            counted[entry.kind].setdefault(entry.source, Counter())[entry.verdict] += 1
    return counted
