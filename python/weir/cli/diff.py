"""`weir diff`: compares two result directories, for people and for CI."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir import stats
from weir.cli import options, output
from weir.difference import Diff, Finding
from weir.grid import Grid
from weir.results import load, understood
from weir.tables import difference_text, estimate_text, heading

_CHANGES = 5
_WIDEST_VALUE = 40

_HELP = (
    "Compare two result directories, metric by metric, with 95 % intervals of the differences.\n\n"
    "Cases are matched by their names and sweep values, runs by their seeds where both sides have "
    "them. A difference counts when Holm's correction over everything compared leaves it below "
    "5 %.\n\n"
    "Exit codes: 0 no difference is shown, 1 they differ, 2 they cannot be compared."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir diff before/compare/latest after/compare/latest

  weir diff main/two-flows/latest results/two-flows/latest --json"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(diff)


def diff(
    a: Annotated[Path, typer.Argument(metavar="DIR_A", help="Result directory A, the baseline.")],
    b: Annotated[Path, typer.Argument(metavar="DIR_B", help="Result directory B.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Print every metric, also those that do not differ.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Compares, prints a table or JSON, and says by the exit code whether they differ."""
    with understood(a, b):
        found = Diff(load(a), load(b))
        if json:
            _print_json(found)
        else:
            shown = [f for f in found.findings if everything or f.verdict.startswith("differs")]
            grids = [_grid(shown).rich()] if shown else []
            output.show(Group(*grids, Text(_summary(found)), *output.points(_notes(found))))
    if found.differs:
        raise typer.Exit(1)


def _print_json(found: Diff) -> None:
    output.print_json(
        "diff",
        [_row(finding) for finding in found.findings],
        verdict=_verdict(found),
        tested=found.tested,
        correction="holm",
        level=stats.LEVEL,
        changes=[{"label": c.label, "key": c.key, "a": c.a, "b": c.b} for c in found.changes],
    )


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "label": finding.label,
        **finding.point,
        "metric": finding.metric.name,
        "a": finding.a.as_json(),
        "b": finding.b.as_json(),
        "difference": finding.difference.estimate.as_json(),
        "relative": stats.rounded(finding.relative),
        "paired": finding.is_paired,
        "p_value": stats.rounded(finding.difference.p_value),
        "adjusted_p_value": stats.rounded(finding.adjusted_p),
        "verdict": finding.verdict,
    }


def _verdict(found: Diff) -> str:
    if found.is_identical:
        return "byte-identical"
    return "differs" if found.differs else "no difference shown"


def _grid(findings: list[Finding]) -> Grid:
    rows = [
        (
            finding.label,
            heading(finding.metric),
            estimate_text(finding.a, finding.metric),
            estimate_text(finding.b, finding.metric),
            difference_text(finding.difference.estimate, finding.metric),
            finding.words,
        )
        for finding in findings
    ]
    title = "B less A: means and differences with 95 % intervals"
    return Grid(title, ("case", "", "A", "B", "B − A", "verdict"), rows, names=2, remarks=1)


def _summary(found: Diff) -> str:
    if found.is_identical:
        return "Byte-identical: all tables of A and B hold the same bytes."
    counts = Counter(finding.verdict for finding in found.findings)
    metrics = len({finding.metric.name for finding in found.findings})
    return (
        f"{'They differ' if found.differs else 'No difference is shown'}: {counts['differs']} of "
        f"{found.tested} comparisons differ (cases: {len(found.a.cases)}, metrics: {metrics}; "
        f"{_pairing(found)}). Holm's correction is over all of them: were A and B alike, the "
        "chance that any differs would be 5 % at most. Without it, by their own intervals, perhaps "
        f"{counts['differs before correction']} more do."
    )


def _pairing(found: Diff) -> str:
    paired, n = sum(finding.is_paired for finding in found.findings), len(found.findings)
    if paired == 0:
        return "no seeds in common, so as independent samples"
    return f"pair by pair over common seeds{'' if paired == n else f' in {paired} of {n}'}"


def _notes(found: Diff) -> list[str]:
    changes = Counter((change.key, change.a, change.b) for change in found.changes)
    notes = [
        f"Not the same in {n} of {len(found.a.cases)} cases: {key} is {_short(a)} in A, "
        f"{_short(b)} in B."
        for (key, a, b), n in changes.most_common(_CHANGES)
    ]
    if len(changes) > _CHANGES:
        notes.append(f"{len(changes) - _CHANGES} further keys are not; --json has them all.")
    versions = [results.manifest["version"] for results in (found.a, found.b)]
    if versions[0] != versions[1]:
        notes.append(f"A was made by Weir {versions[0]}, B by {versions[1]}.")
    for side, results in (("A", found.a), ("B", found.b)):
        if results.caution:
            notes.append(f"{side}: {results.caution}.")
    alone = Counter(f.words for f in found.findings if 0 in (f.a.n, f.b.n))
    return [*notes, *(f"Values {words}: {n} metrics, not compared." for words, n in alone.items())]


def _short(value: str) -> str:
    return value if len(value) <= _WIDEST_VALUE else f"{value[:_WIDEST_VALUE]}…"
