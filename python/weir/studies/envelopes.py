"""Envelopes: bounds that a number must keep in every run, as cells with a verdict.

A bound is a source's, or follows from one by a sum that stands beside it. It is not widened to
pass: what lies outside fails, and says why where that has been found out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.stats import Bounds, mean_interval
from weir.studies import Cell
from weir.studies.cells import Cells, cell, digits

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a value must lie between; None leaves a side open."""

    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value is within, the bounds included."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    @property
    def text(self) -> str:
        """In words: `at least 80`, `48 to 49`."""
        if self.low is None:
            return "anything" if self.high is None else f"at most {digits(self.high)}"
        if self.high is None:
            return f"at least {digits(self.low)}"
        return f"{digits(self.low)} to {digits(self.high)}"


def judged(
    place: tuple[str, str, str, str],
    values: Sequence[float | None],
    envelope: Envelope,
    reason: str = "",
    bounds: Bounds = (None, None),
) -> Cell:
    """A cell at a table, row, column and unit, with one value per run and the verdict on them.

    It passes if every run does. `reason` says why it fails, where it does; `bounds` are those of
    the quantity itself. Besides the keys of every cell it has `low`, `high`, `holds` (null where
    some run has no value) and `within`, a count.
    """
    known = [value for value in values if value is not None]
    within = sum(envelope.holds(value) for value in known)
    holds = None if not known or len(known) < len(values) else within == len(known)
    if holds is None:
        note = f"{INCONCLUSIVE}: {len(known)} of {len(values)} runs have a value"
        note += f"; {reason}" if reason else ""
    elif holds:
        note = PASS
    else:
        note = f"{FAIL}: {within} of {len(known)} runs within"
        note += f"; {reason}" if reason else ""
    ours = mean_interval(known, bounds)
    return cell(
        *place,
        ours,
        published=envelope.text,
        note=note,
        low=envelope.low,
        high=envelope.high,
        holds=holds,
        within=within,
    )


def is_judged(found: Cell) -> bool:
    """Whether a cell has a verdict."""
    return "holds" in found


def verdict(found: Cell) -> str:
    """`pass`, `fail` or `inconclusive`."""
    return {True: PASS, False: FAIL, None: INCONCLUSIVE}[found["holds"]]


def summary(cells: Sequence[Cell], of: str) -> str:
    """Counts the bounds `of` something that are met."""
    own = [found for found in cells if is_judged(found)]
    kept = sum(found["holds"] is True for found in own)
    unknown = sum(found["holds"] is None for found in own)
    more = f", {unknown} inconclusive" if unknown else ""
    return f"{of}: {kept} of {len(own)} bounds met{more}."


def in_words(found: Cell) -> str:
    """Returns a cell as a sentence: what was checked, the result, the bounds, the verdict."""
    ours = Cells([found]).text(str(found["row"]), str(found["column"]))
    unit = f" {found['unit']}" if found["unit"] else ""
    return (
        f"{found['table']}, {found['row']}, {found['column']}: {ours}{unit}, required "
        f"{found['published']}; {found['note']}."
    )
