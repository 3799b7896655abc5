"""The rows of a result for a reader: a table, a summary, a summary in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weir.base.grid import counted
from weir.cells.cells import digits
from weir.conform.cases.bounds import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS, REPORTED
from weir.conform.outcome import KNOWN, UNEXPECTED, Row, is_good

HEADERS = (
    "verdict",
    "suite",
    "case",
    "stack",
    "measured",
    "criterion",
    "value",
    "margin",
    "reason",
)
OUTCOMES = (PASS, KNOWN, FAIL, INCONCLUSIVE, UNEXPECTED, REPORTED, NOT_APPLICABLE)
"""In the order of a summary."""

_NO_WORD = (None, "good")
_MOST_MARKDOWN = 200
"""Rows of a table in Markdown: a pull request's summary has a limit of size."""


def value_text(row: Row, key: str) -> str:
    """A value of a row with three digits, two if it is tiny; `yes` or `no` where that was asked."""
    value = row[key]
    if value is None:
        return "–"
    if row["criterion"].startswith("yes"):
        return ("yes" if value == 1 else "no") if key == "value" else "–"
    text = digits(value)
    if value and text in ("0", "-0"):
        # Its sign may decide: 2.1e-06 is more than a bound of 0.
        text = f"{value:.1e}"
    return f"{text} {row['unit']}".strip() if key == "value" else text


def line(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    place = (row["outcome"], row["suite"], row["case"], row["stack"], row["check"])
    values = (row["criterion"], value_text(row, "value"), value_text(row, "margin"))
    return (*place, *values, row["reason"])


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The rows that apply; what is not as expected comes first."""
    shown = [row for row in rows if row["outcome"] != NOT_APPLICABLE]
    return [line(row) for row in sorted(shown, key=is_good)]


def summary(rows: Sequence[Row]) -> str:
    """The number of rows by outcome: `12 pass, 2 known failure`."""
    counts = Counter(row["outcome"] for row in rows)
    return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])


def by_stack(rows: Sequence[Row]) -> list[str]:
    """A summary per stack."""
    meanings = {row["stack"]: row.get("effective_stack") for row in rows}
    return [
        f"{name}{f' ({meaning})' if meaning else ''}: "
        f"{summary([row for row in rows if row['stack'] == name])}."
        for name, meaning in meanings.items()
    ]


def markdown(rows: Sequence[Row], changes: Sequence[str] = ()) -> str:
    """A summary for a pull request: counts, changes, and the rows that are not as expected."""
    bad = [row for row in rows if not is_good(row)]
    verdict = (
        f"Rows that do not hold: {len(bad)}." if bad else "All criteria hold, or fail as known."
    )
    lines = ["## weir conform", "", f"{verdict}", ""]
    lines += [f"- {text}" for text in (*by_stack(rows), *_strained(rows), *changes)]
    for title, own in (("Not as expected", bad), ("Known failures", _known(rows))):
        if own:
            lines += ["", f"### {title}", "", *_markdown_table(own)]
    return "\n".join([*lines, ""])


def _strained(rows: Sequence[Row]) -> list[str]:
    """What to say of the machine, if it did not keep up: its rows are inconclusive."""
    bad = {(r["case"], r["stack"]): r["health"] for r in rows if r.get("health") not in _NO_WORD}
    if not bad:
        return []
    return [
        f"The machine did not keep up in {counted(len(bad), 'case')}: {next(iter(bad.values()))}."
    ]


def _known(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] == KNOWN]


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    lines = [f"| {' | '.join(HEADERS)} |", f"|{'---|' * len(HEADERS)}"]
    for row in rows[:_MOST_MARKDOWN]:
        cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in line(row))
        lines.append(f"| {' | '.join(cells)} |")
    left = len(rows) - _MOST_MARKDOWN
    return [*lines, *([f"\nThe JSON output has {counted(left, 'more row')}."] if left > 0 else [])]
