"""What the literature expects of pairs, and whether ours agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.cells import Cells
from weir.studies.claims import claim
from weir.studies.coexist.experiment import buffer_name
from weir.studies.coexist.measures import SHARE, table

Side = Literal["above", "below", "about"]

_ABOUT = 0.1
"""A share within this of a half counts as about half."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """On which side of a half the share of `row` beside `column` lies."""

    row: str
    column: str
    buffer: float
    side: Side
    source: str

    @property
    def says(self) -> str:
        """In words."""
        amount = {"above": "more than half", "below": "less than half", "about": "about half"}
        where = buffer_name(self.buffer)
        return (
            f"{self.row} gets {amount[self.side]} beside {self.column} at {where} ({self.source})"
        )

    def holds(self, share: Estimate) -> bool | None:
        """Whether the whole interval lies where it should; None if it reaches the other side."""
        if share.mean is None or share.lo is None or share.hi is None:
            return None
        if self.side == "about":
            return abs(share.mean - 0.5) <= _ABOUT
        low, high = (share.lo, share.hi) if self.side == "above" else (1 - share.hi, 1 - share.lo)
        return True if low > 0.5 else False if high < 0.5 else None


EXPECTATIONS = (
    Expectation("bbr", "cubic", 0.5, "above", "Scholz et al. 2018; Hock et al. 2017"),
    Expectation("bbr", "cubic", 4.0, "below", "Scholz et al. 2018; Ware et al. 2019"),
    Expectation("bbr", "reno", 0.5, "above", "Hock et al. 2017"),
    Expectation("vegas", "reno", 4.0, "below", "Mo et al. 1999"),
    Expectation("vegas", "cubic", 4.0, "below", "Mo et al. 1999, said of loss-based control"),
    Expectation("cubic", "reno", 4.0, "above", "Ha, Rhee and Xu 2008"),
    Expectation("veno", "reno", 1.0, "about", "Fu and Liew 2003"),
    Expectation("westwood", "reno", 1.0, "about", "Grieco and Mascolo 2004"),
    Expectation("dctcp", "reno", 1.0, "about", "RFC 8257 §3.5: without marks it is Reno"),
)


def claims(cells: Cells) -> Iterator[Cell]:
    """Those whose pair was run, each with the share that tests it."""
    for expectation in EXPECTATIONS:
        own = cells.table(table(SHARE, expectation.buffer))
        if own.at(expectation.row, expectation.column) is None:
            continue
        share = own.ours(expectation.row, expectation.column)
        measured = f"share of {expectation.row}"
        yield claim(expectation.says, measured, share, expectation.holds(share))
