"""The statements of the reports, each counted over the cells that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weir.cells.claims import claim
from weir.cells.protocol import Cell
from weir.statistics.intervals import Estimate
from weir.studies.lab_udp.cells import StudyCell
from weir.studies.lab_udp.experiment import RELAYS

_HOLDS = 0.75
"""Cells that must agree for a statement to hold: means of few runs may cross sometimes."""


_MEANS = {
    (True, True): "",
    (True, False): ": true of this relay, not of a network with that delay",
    (False, True): ": true of such a network; our model of this relay does not show it",
    (False, False): "",
}
"""What it means that a statement holds or not through the relay, and over a delay line."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Of two rows of a table, one is said to be slower in every column from `start` on."""

    text: str
    table: str
    slower: str
    faster: str
    start: int = 1


CLAIMS = (
    Claim("stop-and-wait is far behind the sliding window under loss", "002-loss",
          "stop-and-wait", "W=30"),
    Claim("the sliding window is clearly slower than stop-and-wait under delay", "002-delay",
          "W=30", "stop-and-wait"),
    Claim("a window of 10 is slower than one of 5 under delay", "002-delay", "W=10", "W=5"),
    Claim("a window of 20 is slower than one of 10 under delay", "002-delay", "W=20", "W=10"),
    Claim("a window of 30 is slower than one of 20 under delay", "002-delay", "W=30", "W=20"),
    Claim("Reno is slower than a fixed window under loss", "002-loss", "Reno", "W=30"),
    Claim("Reno is faster than a fixed window of 30 under delay", "002-delay", "W=30", "Reno"),
    Claim("the sliding window is faster than stop-and-wait under delay", "000-delay",
          "stop-and-wait", "W=8"),
    Claim("a window of 16 is slower than one of 8 under loss", "000-loss", "W=16", "W=8", 0),
    Claim("a window of 16 is slower than one of 8 under delay", "000-delay", "W=16", "W=8"),
    Claim("Reno is slower than a fixed window under loss", "000-loss", "Reno", "W=8", 0),
    Claim("Reno is slower than a fixed window under delay", "000-delay", "Reno", "W=8"),
)  # fmt: skip
"""What the two reports conclude, as far as it compares rows."""


@dataclass(frozen=True, slots=True)
class Count:
    """In how many cells of how many a claim is true."""

    agreeing: int
    cells: int

    @property
    def holds(self) -> bool:
        """Whether it is true on the whole."""
        return self.agreeing >= _HOLDS * self.cells

    def __str__(self) -> str:
        return f"{self.agreeing} of {self.cells}"


def counted(claim: Claim, cells: Sequence[StudyCell]) -> dict[str, Count]:
    """The claim held against the published times and against ours."""
    slower, faster = (
        [cell for cell in cells if cell.table.id == claim.table and cell.row.name == row]
        for row in (claim.slower, claim.faster)
    )
    pairs = [pair for pair in zip(slower, faster, strict=True) if pair[0].column >= claim.start]
    counts = {"published": _count([(a.published, b.published) for a, b in pairs])}
    for relay in RELAYS:
        times = [(a.ours[relay].seconds, b.ours[relay].seconds) for a, b in pairs]
        counts[relay] = _count(times)
    return counts


def claim_cells(cells: Sequence[StudyCell]) -> Iterator[Cell]:
    """Each statement as a cell: in how many columns it is true of ours, and whether it holds."""
    for statement in CLAIMS:
        counts = counted(statement, cells)
        ours, line = counts["serial"], counts["delay_line"]
        yield claim(
            f"{statement.text} (report {statement.table[:3]})",
            f"columns of its table in which it is true, of {ours.cells}",
            Estimate(float(ours.agreeing), None, None, ours.cells),
            ours.holds,
            f"over a delay line in {counts['delay_line']}{_MEANS[ours.holds, line.holds]}",
            float(counts["published"].agreeing),
        )


def _count(pairs: Sequence[tuple[float, float]]) -> Count:
    return Count(sum(slower > faster for slower, faster in pairs), len(pairs))
