"""How the rows of many random paths are distributed, kind by kind and by controller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from weir.recordings.judge import Row
from weir.statistics.intervals import rounded
from weir.validation.chance import LATE_US, RTT_US, TRIES
from weir.validation.kinds import GOAL, KINDS

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

KINDS_TITLE = "Ours against the kernel's, by kind of path"

KINDS_HEADERS = ("kind", "of paths", "paths", "rows", "hold", "share", "near", "goodput ratio")

KINDS_NOTE = (
    "Hold: within the tolerance, or of one distribution where anything is random. Near: within the "
    "tolerance alone. Goodput ratio (ours to Linux's): smallest, median, largest."
)

Spread = dict[str, Any]


def by_kind(rows: Sequence[Row]) -> list[Spread]:
    """One entry per kind of path, in the order of `KINDS`; empty where rows name none."""
    judged = [row for row in rows if row.get("group") and row["verdict"]]
    kinds = [kind for kind in KINDS if any(row["group"] == kind for row in judged)]
    found = [_kind(kind, [row for row in judged if row["group"] == kind]) for kind in kinds]
    return [*found, _kind("all", judged)] if found else []


def kinds_table(spreads: Sequence[Spread]) -> list[Sequence[str]]:
    """The lines of the table with `KINDS_HEADERS`."""
    return [
        (
            spread["kind"],
            KINDS[spread["kind"]].title if spread["kind"] in KINDS else "",
            *(str(spread[key]) for key in ("paths", "rows", "held")),
            f"{100 * spread['held'] / spread['rows']:.0f} %",
            str(spread["near"]),
            _three(spread["goodput_ratio"], ".3f"),
        )
        for spread in spreads
    ]


def kinds_sentences(spreads: Sequence[Spread]) -> Iterator[str]:
    """Which kinds miss the goal."""
    if spreads:
        low = [s["kind"] for s in spreads if s["held"] < GOAL * s["rows"] and s["kind"] != "all"]
        yield f"Below {100 * GOAL:.0f} % of rows: {', '.join(low) or 'no kind'}."


def _kind(name: str, rows: Sequence[Row]) -> Spread:
    ratios = [row["ratio"] for row in rows if row["metric"] == GOODPUT and row["ratio"]]
    return {
        "kind": name,
        "paths": len({row["case"] for row in rows}),
        "rows": len(rows),
        "held": _held(rows),
        "near": sum(row["near"] is True for row in rows),
        "goodput_ratio": _range(ratios),
    }


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
