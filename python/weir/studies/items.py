"""What the five sources describe, item by item: what ours does of it, and why where it does not.

`items.toml` lists the items. They are judged by the entries of `sources` and the cells of studies.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from statistics import fmean
from typing import Any

from weir.cells import verdicts
from weir.cells.protocol import PUBLISHED, Cell, sources
from weir.studies.sources import Entry

FILE = "items.toml"

HOLDS = "holds"
EXPLAINED = "explained by a run"
UNEXPLAINED = "no tested reason"
MISSING = verdicts.MISSING
OUTCOMES = (HOLDS, EXPLAINED, UNEXPLAINED, MISSING)

MOST_OFF = 0.15
"""The largest mean error of the numbers of an item that holds."""
_ALL = ".*"
_FINE = frozenset({verdicts.IN_INTERVAL, verdicts.NEAR, verdicts.CLOSE, verdicts.WORDS, "agrees"})


@dataclass(frozen=True, slots=True)
class Item:
    """A system, option, scenario, table or conclusion, and where it is in the results."""

    source: str
    study: str
    says: str
    table: str = ""
    rows: str = _ALL
    columns: str = _ALL
    claims: Sequence[str] = field(default_factory=tuple)
    measured: Sequence[str] = field(default_factory=tuple)
    each: Sequence[str] = field(default_factory=tuple)
    """Patterns of `row / column`: what is measured has a value for each of them."""
    shown: str = ""
    is_repeat: bool = False
    """Whether all its numbers are those of other items."""

    @property
    def kind(self) -> str:
        """What decides: numbers, claims, cells of ours, or a command."""
        given = (
            ("numbers", self.table),
            ("claims", self.claims),
            ("measured", self.measured),
            ("command", self.shown),
        )
        return next(name for name, value in given if value)

    def has(self, table: str, row: str, column: str) -> bool:
        """Whether a cell is one of its."""
        named = [self.table] if self.table else self.measured
        return (
            any(re.fullmatch(pattern, table) for pattern in named)
            and re.fullmatch(self.rows, row) is not None
            and re.fullmatch(self.columns, column) is not None
        )

    def judges(self, entry: Entry) -> bool:
        """Whether an entry decides it: another reading of a number only if `rows` names it."""
        if entry.source != self.source:
            return False
        if self.kind == "claims":
            is_own = any(re.fullmatch(pattern, entry.row) for pattern in self.claims)
            return entry.kind == "claim" and is_own
        is_named = not entry.is_reading or self.rows != _ALL
        return (
            entry.kind == "number" and is_named and self.has(entry.table, entry.row, entry.column)
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """An item with its outcome."""

    item: Item
    outcome: str
    detail: str = ""
    error: float | None = None
    """The mean error of its numbers."""
    entries: Sequence[Entry] = ()
    """What decided it."""

    @property
    def bad(self) -> list[Entry]:
        """Those that neither agree nor are missing."""
        return [e for e in self.entries if e.verdict not in (*_FINE, verdicts.MISSING)]

    @property
    def reasons(self) -> dict[str, str]:
        """Why they do not, and the run that shows each."""
        return {entry.reason: entry.run for entry in self.bad if entry.reason}

    @property
    def places(self) -> list[tuple[str, str]]:
        """The parts of its source that have its rows."""
        return list(dict.fromkeys((entry.place, entry.part) for entry in self.entries))

    def as_json(self) -> dict[str, Any]:
        """As `published.json` has it."""
        own = asdict(self.item)
        names = ("source", "study", "says", "shown", "is_repeat")
        return {
            **{name: own[name] for name in names},
            "kind": self.item.kind,
            "outcome": self.outcome,
            "detail": self.detail,
            "error": self.error,
            "reasons": [{"reason": reason, "run": run} for reason, run in self.reasons.items()],
        }


def load() -> list[Item]:
    """The items, in the order of the sources' numbers."""
    data = tomllib.loads((files("weir.studies") / FILE).read_text(encoding="utf-8"))
    found = [
        Item(source["id"], source["study"], **item)
        for source in data["source"]
        for item in source["items"]
    ]
    return sorted(found, key=lambda item: item.source)


def judge(
    items: Sequence[Item], entries: Sequence[Entry], cells: Mapping[str, Sequence[Cell]]
) -> list[Judged]:
    """Each item with its outcome."""
    return [_judged(item, entries, cells.get(item.study, ())) for item in items]


def _judged(item: Item, entries: Sequence[Entry], cells: Sequence[Cell]) -> Judged:
    if item.kind == "command":
        return Judged(item, HOLDS, item.shown)
    if item.kind == "measured":
        return _by_cells(item, [_place(cell) for cell in cells if _is_measured(cell)])
    own = [entry for entry in entries if item.judges(entry)]
    return _by_verdicts(item, own) if item.kind == "claims" else _by_error(item, own)


def _by_cells(item: Item, measured: Sequence[tuple[str, str, str]]) -> Judged:
    """Holds if cells of its have values, and some of each kind that it names."""
    found = [f"{row} / {column}" for table, row, column in measured if item.has(table, row, column)]
    for pattern in item.each:
        if not any(re.fullmatch(pattern, place) for place in found):
            return Judged(item, MISSING, f"no cell {pattern}")
    return Judged(item, HOLDS if found else MISSING, f"{len(found)} cells" if found else "")


def _place(cell: Cell) -> tuple[str, str, str]:
    return str(cell["table"]), str(cell["row"]), str(cell["column"])


def _is_measured(cell: Cell) -> bool:
    values = (cell[name] for name in sources([cell]) if name != PUBLISHED)
    return any(isinstance(own, Mapping) and own.get("mean") is not None for own in values)


def _by_error(item: Item, own: Sequence[Entry]) -> Judged:
    """Holds if the mean error of its numbers is small; one in our interval counts as none."""
    errors = [
        0.0 if entry.verdict == verdicts.IN_INTERVAL else abs(entry.ratio - 1)
        for entry in own
        if entry.ratio is not None
    ]
    if not errors:
        return Judged(item, MISSING, entries=own)
    error = fmean(errors)
    detail = f"{len(errors)} numbers, {error:.0%} off on average".replace("%", " %")
    if error <= MOST_OFF:
        return Judged(item, HOLDS, detail, error, own)
    judged = _by_verdicts(item, own)
    return Judged(item, judged.outcome, f"{detail}; {judged.detail}", error, own)


def _by_verdicts(item: Item, own: Sequence[Entry]) -> Judged:
    """Holds if each agrees, else by whether each that does not has the run that shows why."""
    known = [entry for entry in own if entry.verdict != verdicts.MISSING]
    if not known:
        return Judged(item, MISSING)
    bad = [entry for entry in known if entry.verdict not in _FINE]
    counted = Counter(entry.verdict for entry in known)
    detail = ", ".join(f"{count} {verdict}" for verdict, count in counted.most_common())
    if not bad and item.kind == "claims":
        return Judged(item, HOLDS, detail, entries=own)
    shown = [entry for entry in bad if entry.is_explained]
    if len(shown) == len(bad):
        return Judged(item, EXPLAINED, detail, entries=own)
    detail = f"{detail}; {len(bad) - len(shown)} without a tested reason"
    return Judged(item, UNEXPLAINED, detail, entries=own)


def summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """How often each outcome occurs: by source, and by what decides."""
    names = sorted({own.item.source for own in judged})
    rows = [_counted(name, [own for own in judged if own.item.source == name]) for name in names]
    numbers = [own for own in judged if own.item.kind == "numbers"]
    rows += [
        _counted("all", judged),
        _counted("with numbers", numbers),
        _counted(
            "with numbers that no other item has", [o for o in numbers if not o.item.is_repeat]
        ),
        _counted("by a command alone", [own for own in judged if own.item.kind == "command"]),
    ]
    return {
        "title": "What the sources describe",
        "headers": ["source", *OUTCOMES, "all"],
        "rows": rows,
    }


def _counted(name: str, own: Sequence[Judged]) -> list[str]:
    outcomes = Counter(one.outcome for one in own)
    return [name, *(str(outcomes[outcome]) for outcome in OUTCOMES), str(len(own))]
