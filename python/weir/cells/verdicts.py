"""One rule for all published numbers and claims: how ours compares with what a source prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir.cells import cells, claims
from weir.report.model import Tone

IN_INTERVAL = "in the interval"
NEAR = "within 10 %"
CLOSE = "within 25 %"
FACTOR = "within a factor of 2"
OFF = "off"
TOO_FEW = cells.TOO_FEW
WORDS = "words"
MISSING = "missing"

NUMBERS = (IN_INTERVAL, NEAR, CLOSE, FACTOR, OFF, TOO_FEW, WORDS, MISSING)
"""Verdicts on numbers, from the best."""
CLAIMS = ("agrees", "differs", "inconclusive", MISSING)
NEEDS_REASON = frozenset({FACTOR, OFF, TOO_FEW, "differs", "inconclusive"})
"""Verdicts for which a reader expects a reason."""

TONES: Mapping[str, Tone] = {
    IN_INTERVAL: "good",
    NEAR: "good",
    "agrees": "good",
    CLOSE: "fair",
    FACTOR: "fair",
    OFF: "bad",
    "differs": "bad",
}
"""Colours; all others are open."""

_NEAR, _CLOSE, _FACTOR = 1.10, 1.25, 2.0
_WIDEST = 1.0
"""An interval that is wider than its mean says little: a number in it is no agreement."""


def of_number(published: Any, ours: Mapping[str, Any] | None, *, was_run: bool = False) -> str:
    """The verdict on a printed number.

    In words: it is in our 95 % interval, if that is narrower than our mean; else by the ratio of
    both, whichever is larger. Runs that came to no end are off.
    """
    mean = None if ours is None else ours.get("mean")
    if not isinstance(published, int | float):
        return MISSING if mean is None and not was_run else WORDS
    if ours is None or mean is None:
        return OFF if was_run else MISSING
    low, high = ours.get("lo"), ours.get("hi")
    if low is not None and high is not None:
        if high - low > _WIDEST * abs(mean):
            return TOO_FEW
        if low <= published <= high:
            return IN_INTERVAL
    if published <= 0 or mean <= 0:
        return NEAR if published == mean else OFF
    # A hair above a bound is rounding of the last digit, not another verdict.
    apart = max(mean / published, published / mean) - 1e-9
    bounds = ((NEAR, _NEAR), (CLOSE, _CLOSE), (FACTOR, _FACTOR))
    return next((verdict for verdict, most in bounds if apart <= most), OFF)


def of_claim(cell: Mapping[str, Any] | None) -> str:
    """The verdict on a claim."""
    return MISSING if cell is None else claims.verdict_of(cell)


def ratio(published: Any, ours: Mapping[str, Any] | None) -> float | None:
    """Ours over the printed number, where both are numbers."""
    mean = None if ours is None else ours.get("mean")
    is_number = isinstance(published, int | float) and published and mean is not None
    return float(mean) / published if is_number and mean is not None else None
