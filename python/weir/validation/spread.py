"""How the rows of many single flows are distributed, controller by controller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from weir.recordings.judge import Row
from weir.statistics.intervals import rounded
from weir.validation.chance import LATE_US, RTT_US, TRIES

GOODPUT, RETRANSMITS = "steady_goodput_mbps", "retransmits"

TITLE = "Ours against the kernel's, by controller"

HEADERS = (
    *("controller", "flows", "goodput ratio", "within 0.5 %", "hold"),
    *("retransmits, difference", "equal", "hold"),
)

NOTE = (
    "Goodput ratio and difference of retransmissions (ours less Linux's): smallest, median, "
    "largest. Equal: the same number of retransmissions."
)

_NEAR = 0.005

Spread = dict[str, Any]


def by_controller(rows: Sequence[Row]) -> list[Spread]:
    """One entry per controller, the last for all of them; empty where rows name none."""
    judged = [row for row in rows if row.get("controller") and None not in _values(row)]
    names = sorted({row["controller"] for row in judged})
    found = [_spread(name, [row for row in judged if row["controller"] == name]) for name in names]
    return [*found, _spread("all", judged)] if len(found) > 1 else found


def table(spreads: Sequence[Spread]) -> list[Sequence[str]]:
    """The lines of the table with `HEADERS`."""
    return [
        (
            spread["controller"],
            str(spread["flows"]),
            _three(spread["goodput_ratio"], ".4f"),
            str(spread["goodput_near"]),
            str(spread["goodput_held"]),
            _three(spread["retransmits_difference"], ".3g"),
            str(spread["retransmits_equal"]),
            str(spread["retransmits_held"]),
        )
        for spread in spreads
    ]


def sentences(spreads: Sequence[Spread]) -> list[str]:
    """The line of all controllers in words."""
    if not spreads:
        return []
    whole = spreads[-1]
    share = f"{whole['goodput_held']} of {whole['flows']}"
    return [
        f"Goodput within tolerance: {share} flows, {whole['goodput_near']} within 0.5 %.",
        f"Retransmissions within tolerance: {whole['retransmits_held']} of {whole['flows']} flows, "
        f"{whole['retransmits_equal']} equal.",
    ]


def by_chance(rows: Sequence[Row]) -> Iterator[str]:
    """How many of the rows that differ are as far from ours as more simulations are."""
    tried = [row["chance"]["includes"] for row in rows if row.get("chance")]
    if tried:
        yield (
            f"Of the {len(tried)} rows that differ, {sum(tried)} are among {TRIES} more "
            "simulations, or within tolerance of one. In these, packets leave and return up to "
            f"{LATE_US + RTT_US} µs earlier or later, and controllers draw other numbers."
        )


def _values(row: Row) -> tuple[float | None, float | None]:
    return row["ours"], row["reference"]


def _spread(name: str, rows: Sequence[Row]) -> Spread:
    goodput = [row for row in rows if row["metric"] == GOODPUT]
    again = [row for row in rows if row["metric"] == RETRANSMITS]
    differences = [row["ours"] - row["reference"] for row in again]
    ratios = [row["ratio"] for row in goodput if row["ratio"] is not None]
    return {
        "controller": name,
        "flows": len(goodput),
        "goodput_ratio": _range(ratios),
        "goodput_near": sum(abs(ratio - 1) <= _NEAR for ratio in ratios),
        "goodput_held": _held(goodput),
        "retransmits_difference": _range(differences),
        "retransmits_equal": differences.count(0),
        "retransmits_held": _held(again),
    }


def _held(rows: Sequence[Row]) -> int:
    return sum(row["holds"] is True for row in rows)


def _range(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return dict.fromkeys(("least", "median", "most"))
    return {
        "least": rounded(min(values)),
        "median": rounded(median(values)),
        "most": rounded(max(values)),
    }


def _three(values: dict[str, float | None], form: str) -> str:
    known = [format(value, form) for value in values.values() if value is not None]
    return " · ".join(known) or "–"
