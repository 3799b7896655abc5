"""Times until something happened, of which some are only known to be longer than was watched."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from weir.base.grid import number
from weir.statistics.intervals import rank_interval, rounded


@dataclass(frozen=True, slots=True)
class Wait:
    """How long something took, or how long it was watched for in vain: one of the two is None."""

    time_s: float | None
    censored_at_s: float | None = None

    def __post_init__(self) -> None:
        if (self.time_s is None) == (self.censored_at_s is None):
            raise ValueError("a wait has ended or is censored, one of the two")


@dataclass(frozen=True, slots=True)
class Waits:
    """Several waits of one kind: how many ended, and the median of all with its 95 % interval.

    `median_s` is None where it lies beyond what was watched; so is an end of the interval, and both
    are with fewer than six waits, which cannot carry such an interval.
    """

    median_s: float | None
    lo_s: float | None
    hi_s: float | None
    ended: int
    n: int
    watched_s: float | None
    """How long all those that did not end were watched for at least."""

    def short(self) -> str:
        """For a cell: `4 s (10/10)`, or `> 14 s (2/10)` where the median was not seen."""
        of = f"({self.ended}/{self.n})"
        if self.median_s is not None:
            return f"{number(self.median_s)} s {of}"
        return f"– {of}" if self.watched_s is None else f"> {number(self.watched_s)} s {of}"

    def words(self, done: str = "ended") -> str:
        """For people: `8 of 10 converged, median 4.2 s (3 s to 6.1 s)`."""
        if self.n == 0:
            return "not observed"
        text = f"{self.ended} of {self.n} {done}"
        if self.watched_s is not None:
            text += f" within {number(self.watched_s)} s"
        if self.median_s is None:
            return text
        text += f", median {number(self.median_s)} s"
        if self.lo_s is None:
            return text
        upper = f"to {number(self.hi_s)} s" if self.hi_s is not None else "or more"
        return f"{text} ({number(self.lo_s)} s {upper})"

    def as_json(self) -> dict[str, float | int | None]:
        """The form that `--json` outputs use."""
        return {
            "median_s": rounded(self.median_s),
            "lo_s": rounded(self.lo_s),
            "hi_s": rounded(self.hi_s),
            "ended": self.ended,
            "n": self.n,
            "watched_s": rounded(self.watched_s),
        }


def summarised(waits: Iterable[Wait | None]) -> Waits:
    """The median over repeats, the wait of rank ⌈n/2⌉; None, where nothing was to see, not counted.

    A mean over those that ended would favour flows that often fail. A censored wait is longer
    than it was watched, so its rank is beyond all that ended by then, and the median is exact
    without any assumption; where all are watched equally long it is that of Kaplan and Meier's
    estimate (1958). The interval is between the ranks that hold the median with 95 % by the
    binomial distribution.
    """
    present = [wait for wait in waits if wait is not None]
    ended = sorted(wait.time_s for wait in present if wait.time_s is not None)
    censored = [wait.censored_at_s for wait in present if wait.censored_at_s is not None]
    n, watched = len(present), min(censored, default=None)

    def of_rank(rank: int | None) -> float | None:
        if rank is None or rank > len(ended) or (watched is not None and ended[rank - 1] > watched):
            return None
        return ended[rank - 1]

    low, high = rank_interval(n, 0.5)
    median = of_rank(math.ceil(n / 2) or None)
    return Waits(median, of_rank(low), of_rank(high), len(ended), n, watched)
