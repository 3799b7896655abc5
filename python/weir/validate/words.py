"""What was found, in words and short texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.validate.judge import KINDS, TITLES, TOLERANCES, Kind, Row, score

_KINDS = {
    "deterministic": "Nothing random",
    "drawn": "The kernel draws random numbers",
    "loss": "Random loss",
    "mix": "Two algorithms against each other",
    "packets": "Window by window",
}


def findings(rows: Sequence[Row]) -> Iterator[str]:
    """How many rows hold, by kind of case, and what was not compared."""
    totals = score(rows)
    for kind in KINDS:
        if kind in totals:
            total = totals[kind]
            yield f"{_KINDS[kind]}: {total['held']} of {total['judged']} rows hold{_rule(kind)}."
    if "all" in totals:
        yield f"In all {totals['all']['held']} of {totals['all']['judged']} judged rows hold."
    for row in rows:
        if row["metric"] is None:
            yield f"{row['case']} {row['note']}."


def _rule(kind: Kind) -> str:
    rules = TOLERANCES.get(kind, {})
    return (
        f" ({', '.join(f'{TITLES[name]} {rule}' for name, rule in rules.items())})" if rules else ""
    )


def mark(row: Row) -> str:
    """Whether a row holds, in one letter; nothing where it is only reported."""
    return {True: "✓", False: "✗", None: ""}[row["holds"]]


def value_text(value: float | None) -> str:
    """A value with about four significant digits."""
    if value is None:
        return "–"
    return f"{value:.4g}" if abs(value) < 1_000 else f"{value:.0f}"
