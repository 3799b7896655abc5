"""The measurements as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.udp.measure import Row
from weir.base.grid import Grid
from weir.cells.cells import digits

_HEADERS = (
    "contender",
    "ms",
    "min..max",
    "intact",
    "CPU s/GB",
    "sent again",
    "× the first",
    "min..max",
    "goals",
)

_SOME_BYTES = 1_000_000
"""CPU time per byte means something from here on."""

SETTINGS = (
    "Medians over the rounds; a ratio is taken within each round, and is less than (<) that if the "
    "other ran out of time. Times run from the sender's clock just before it connects to the "
    "receiver's when the last byte is in its file; every file is compared by SHA-256. CPU time is "
    "that of both ends, user and system. TCP is the kernel's, with CUBIC where nothing else is "
    "said, over the same path. RTT and loss are those of a link between two network namespaces; "
    "loss is that of each direction."
)


def grids(rows: Sequence[Row]) -> Iterator[Grid]:
    """One table per case."""
    for case in dict.fromkeys(str(row["case"]) for row in rows):
        own = [row for row in rows if row["case"] == case]
        yield Grid(case, _HEADERS, [_cells(row) for row in own], names=1, notes=1)


def _cells(row: Row) -> tuple[str, ...]:
    per_gb = row["cpu_s_per_gb"] if row["size_bytes"] >= _SOME_BYTES else None
    return (
        row["contender"],
        _number(row["seconds"], 1e3),
        _ends(row, "seconds", 1e3),
        f"{row['intact']}/{row['rounds']}",
        _number(per_gb),
        "–" if row["resent"] is None else f"{100 * row['resent']:.2g} %",
        _bound(row) + _number(row["ratio"]),
        _ends(row, "ratio"),
        "; ".join([*map(_goal, row["goals"]), *([row["failure"]] if row["failure"] else [])]),
    )


def _goal(goal: Row) -> str:
    units = {"round trips": "round trips", "sent again": "% sent again"}
    unit = units.get(goal["quantity"], f"× {goal['against']}")
    what = "CPU " if goal["quantity"] == "CPU time" else ""
    asked = f"{what}≤ {goal['at_most']:g} {unit}"
    if goal["held"] is None:
        return f"{asked}: not measured"
    verdict = "held" if goal["held"] else "missed"
    return f"{asked}: {verdict} ({_bound(goal)}{digits(goal['ratio'])})"


def _bound(row: Row) -> str:
    """What stands before a ratio to a contender that ran out of time at least once."""
    return "< " if row["ratio_is_bound"] else ""


def _ends(row: Row, name: str, scale: float = 1.0) -> str:
    low, high = row[f"{name}_min"], row[f"{name}_max"]
    return "–" if low is None else f"{_number(low, scale)}..{_number(high, scale)}"


def _number(value: float | None, scale: float = 1.0) -> str:
    return "–" if value is None else digits(value * scale)


def held(rows: Sequence[Row]) -> tuple[int, int, int]:
    """How many goals are held, missed, and not measured."""
    verdicts = [goal["held"] for row in rows for goal in row["goals"]]
    return verdicts.count(True), verdicts.count(False), verdicts.count(None)
