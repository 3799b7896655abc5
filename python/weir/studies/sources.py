"""The five sources: every printed number and claim next to ours, each with a verdict.

`sources.toml` says which study repeats which table. The values come from results on disk.
"""

from __future__ import annotations

import math
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
from weir.cells.texts import evaluated
from weir.statistics.intervals import Estimate

FILE = "sources.toml"
_NEAR = 1.25
"""A value that is at most this many times off is near: as `verdicts` has it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some rows of a part differ, and the run that shows it; without one it is untested.

    `shows` are patterns of the cells of that run which show it, as `table / row / column`.
    `holds` is an expression over these cells; where it is false the reason does not apply.
    """

    rows: str
    text: str
    run: str = ""
    shows: Sequence[str] = ()
    columns: str = ".*"
    holds: str = ""


class Evidence:
    """The cells of a study, found by their place, and whether they bear out a reason."""

    def __init__(self, cells: Sequence[Mapping[str, Any]], column: str) -> None:
        self.cells, self._column = cells, column
        self._by_place = {_place(cell): cell for cell in cells}

    def ours(self, cell: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What stands next to the printed value."""
        found: Mapping[str, Any] | None = cell.get(self._column) or cell.get("ours")
        return found

    def mean(self, table: str, row: str, column: str) -> float | None:
        """Our mean at a place, if there is one."""
        own = self.ours(self._by_place.get((table, row, column), {}))
        return None if own is None else own["mean"]

    def sibling(self, cell: Mapping[str, Any], ending: str) -> float | None:
        """Our mean at the same place of a table for another setting, by the end of its name."""
        table, row, column = _place(cell)
        prefix = table[: table.rindex("window ")] if "window " in table else table
        return self.mean(prefix + ending, row, column)

    def near_share(self, table: str, row: str) -> float:
        """The share of the printed cells of a row to which ours is near."""
        own = [c for c in self.cells if _place(c)[:2] == (table, row) and c.get(PUBLISHED)]
        means = [(_number(self.mean(*_place(c))), _number(c[PUBLISHED])) for c in own]
        near = [_apart(mean, printed) <= math.log(_NEAR) for mean, printed in means]
        return sum(near) / len(near) if near else math.nan

    def bear_out(self, reason: Reason, cell: Mapping[str, Any]) -> bool:
        """Whether a reason for a cell holds; one about cells that are missing does not."""
        if not reason.holds:
            return True
        _, row, column = _place(cell)
        own = self.ours(cell)
        ours = _number(None if own is None else own["mean"])
        printed = _number(cell.get(PUBLISHED))
        names = {
            "row": row,
            "column": column,
            "printed": printed,
            "ours": ours,
            "at": lambda *place: _number(self.mean(*place)),
            "other": lambda ending: _number(self.sibling(cell, ending)),
            "printed_at": lambda *place: _number(self._by_place.get(place, {}).get(PUBLISHED)),
            "near_share": self.near_share,
            "is_near": lambda value: _apart(value, printed) <= math.log(_NEAR),
            "is_nearer": lambda value: _apart(value, printed) < _apart(ours, printed),
        }
        return bool(evaluated(reason.holds, names))


def _place(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(cell["table"]), str(cell["row"]), str(cell["column"])


def _number(value: object) -> float:
    """A value for comparisons, all of which are false without one."""
    return float(value) if isinstance(value, int | float) else math.nan


def _apart(value: float, printed: float) -> float:
    """How far a value is from a printed one, as the logarithm of their ratio."""
    return abs(math.log(value / printed)) if value > 0 and printed > 0 else math.inf


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
    section: str = ""
    """The title of the section of the study's report that has it; its cells begin there."""

    def reason(self, cell: Mapping[str, Any], cells: Evidence) -> Reason | None:
        """The first that is about a cell and that the results bear out."""
        fits = (
            own
            for own in self.reasons
            if re.fullmatch(own.rows, str(cell["row"]))
            and re.fullmatch(own.columns, str(cell["column"]))
            and cells.bear_out(own, cell)
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
    about: str = ""
    """Who wrote it, what was measured and how often, in a sentence."""


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
            source["about"],
        )
        for source in data["source"]
    ]


def claim_reasons(known: Sequence[Source], cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why claims do not agree, by claim."""
    found = {}
    for source in known:
        evidence = Evidence(cells, source.column)
        for cell in cells:
            claim = str(cell["row"])
            is_claim = cell["table"] == claims.TABLE
            if not is_claim or claims.verdict_of(cell) not in verdicts.NEEDS_REASON:
                continue
            for part in source.parts:
                is_own = any(re.fullmatch(pattern, claim) for pattern in part.claims)
                if is_own and (reason := part.reason(cell, evidence)):
                    found[claim] = reason.text
    return found


def _part(data: Mapping[str, Any]) -> Part:
    return Part(
        data["place"],
        data["title"],
        tuple(data.get("tables", ())),
        tuple(data.get("claims", ())),
        tuple(data.get("beside", ())),
        tuple(Reason(**reason) for reason in data.get("reason", ())),
        data.get("section", ""),
    )


def entries(sources: Sequence[Source], cells: Mapping[str, Sequence[Cell]]) -> Iterator[Entry]:
    """Every printed number and claim. `cells` are those of each study that has results."""
    for source in sources:
        own = Evidence(cells.get(source.study, ()), source.column)
        for part in source.parts:
            found = [*_numbers(source, part, own), *_claims(source, part, own)]
            yield from found or [_missing(source, part)]


def _numbers(source: Source, part: Part, cells: Evidence) -> Iterator[Entry]:
    for cell in cells.cells:
        table = str(cell["table"])
        is_ours = any(re.fullmatch(pattern, table) for pattern in part.tables)
        if not is_ours or cell.get(PUBLISHED) is None:
            continue
        ours = cell.get(source.column)
        others = {ending: cells.sibling(cell, ending) for ending in part.beside}
        verdict = verdicts.of_number(cell[PUBLISHED], ours, was_run=bool(cell.get("was_run")))
        yield _entry(source, part, cell, cells, ours, verdict, "number", others)


def _claims(source: Source, part: Part, cells: Evidence) -> Iterator[Entry]:
    for pattern in part.claims:
        for cell in cells.cells:
            if cell["table"] == claims.TABLE and re.fullmatch(pattern, str(cell["row"])):
                verdict = verdicts.of_claim(cell)
                yield _entry(source, part, cell, cells, cell["ours"], verdict, "claim", {})


def _entry(
    source: Source,
    part: Part,
    cell: Mapping[str, Any],
    cells: Evidence,
    ours: Mapping[str, Any] | None,
    verdict: str,
    kind: str,
    others: Mapping[str, float | None],
) -> Entry:
    why = part.reason(cell, cells) if verdict in verdicts.NEEDS_REASON else None
    shown = tuple(_shown(why, cell, cells)) if why else ()
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


def _shown(why: Reason, entry: Mapping[str, Any], cells: Evidence) -> Iterator[str]:
    """The cells that show a reason; `{row}` and `{column}` in a pattern are those of the entry."""
    for pattern in why.shows:
        for name in ("row", "column"):
            pattern = pattern.replace(f"{{{name}}}", re.escape(str(entry[name])))
        for cell in cells.cells:
            place, ours = " / ".join(_place(cell)), cells.ours(cell)
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
