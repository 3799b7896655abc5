"""Claims of a source, our measurements, and whether they agree: cells and sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weir.cells.cells import cell
from weir.cells.protocol import Cell
from weir.statistics.intervals import Estimate, rounded

TABLE = "expectations"
COLUMN = "value"
_IN_WORDS = {"agrees": "agree", "differs": "differ"}


def claim(
    says: str,
    measured: str,
    ours: Estimate,
    holds: bool | None,
    note: str = "",
    published: float | None = None,
) -> Cell:
    """One claim: what was measured to test it, the source's number if it has one, the verdict.

    `holds` is None if the result is inconclusive. The note of the cell begins with the verdict.
    """
    verdict = "inconclusive" if holds is None else "agrees" if holds else "differs"
    text = f"{verdict}: {note}" if note else verdict
    printed = rounded(published)
    return cell(TABLE, says, COLUMN, "", ours, published=printed, note=text, measured=measured)


def verdict_of(cell: Mapping[str, Any]) -> str:
    """`agrees`, `differs` or `inconclusive`."""
    return str(cell["note"]).partition(":")[0]


def summary(claims: Sequence[Cell], of: str) -> str:
    """How many claims agree and how many differ; `of` names their source."""
    counts = Counter(verdict_of(cell) for cell in claims)
    parts = [
        f"{counts[verdict]} {words}" for verdict, words in _IN_WORDS.items() if counts[verdict]
    ]
    text = f"Of {len(claims)} claims {of} {' and '.join(parts) or 'none can be judged'}"
    is_rest = bool(parts) and counts["inconclusive"]
    return f"{text}; the others are inconclusive." if is_rest else f"{text}."


def ratio(one: Estimate, other: Estimate) -> Estimate:
    """Returns one over the other. Its interval is conservative: all quotients of both intervals.

    It has no bound where the interval of `other` includes zero, and only a lower one where that
    begins at zero and `one` is never negative.
    """
    if one.mean is None or not other.mean:
        return Estimate(None, None, None, 0)
    low, high = _quotients(one, other)
    return Estimate(one.mean / other.mean, low, high, min(one.n, other.n))


def over(ours: Estimate, base: float) -> Estimate:
    """Returns an estimate over an exact number."""
    mean, low, high = (None if v is None else v / base for v in (ours.mean, ours.lo, ours.hi))
    return Estimate(mean, low, high, ours.n)


def _quotients(one: Estimate, other: Estimate) -> tuple[float | None, float | None]:
    """Returns the least and the largest quotient of two intervals."""
    if one.lo is None or one.hi is None or other.lo is None or other.hi is None:
        return None, None
    if other.lo > 0 or other.hi < 0:
        found = [a / b for a in (one.lo, one.hi) for b in (other.lo, other.hi)]
        return min(found), max(found)
    if other.lo == 0 < other.hi and one.lo >= 0:
        return one.lo / other.hi, None
    return None, None


def above(ours: Estimate, least: float) -> bool | None:
    """Whether the whole interval lies above; None if it reaches both sides."""
    if ours.mean is None or ours.lo is None or ours.hi is None:
        return None
    return True if ours.lo > least else False if ours.hi < least else None


def below(ours: Estimate, most: float) -> bool | None:
    """Whether the whole interval lies below; None if it reaches both sides."""
    is_above = above(ours, most)
    return None if is_above is None else not is_above


def decided(ours: Estimate, low: float, high: float) -> bool | None:
    """Whether the whole interval lies in a range, or the mean of a single run, which has none.

    None if only a part of it does. An interval without an upper end has none.
    """
    if ours.mean is None:
        return None
    if ours.lo is None:
        return low <= ours.mean <= high
    upper = math.inf if ours.hi is None else ours.hi
    if low <= ours.lo and upper <= high:
        return True
    return False if upper < low or ours.lo > high else None


def within(ours: Estimate, low: float, high: float) -> bool | None:
    """Whether the mean lies in a printed range; None if only a part of the interval does."""
    if ours.mean is None or ours.lo is None or ours.hi is None:
        return None
    if low <= ours.mean <= high:
        return True
    return False if ours.hi < low or ours.lo > high else None


def size_of(estimate: Estimate) -> float:
    """The mean, 0 where there is none: for sorting."""
    return 0.0 if estimate.mean is None else estimate.mean
