"""`weir diff`: compares two result directories, for people and for CI."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.grid import Grid
from weir.base.options import Option
from weir.cli import options, output, screen
from weir.cli.help import Verb
from weir.comparison.difference import Diff, Finding
from weir.comparison.tables import difference_text, estimate_text
from weir.results.results import damage_reported
from weir.statistics import intervals

_TRANSFER = "transfer"
_CHANGES = 5
_WIDEST_VALUE = 40

_HELP = (
    "Differences have 95 % intervals. Cases are matched by name and sweep values, runs by seed if "
    "both sides have them. All p-values are adjusted together (Holm); below 5 % a difference is "
    "significant. Folders with files of Flent, iperf3 -J or ss -ti are read too, a run each.\n\n"
    "Exit codes: 0 no significant difference, 1 significant differences, 2 the directories cannot "
    "be compared."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir diff before/compare/latest after/compare/latest

  weir diff main/two-flows/latest results/two-flows/latest --json

  weir diff before/ after/   # folders of files of iperf3 -J"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(diff)


def diff(
    a: Annotated[Path, typer.Argument(metavar="DIR_A", help="Result directory A, the baseline.")],
    b: Annotated[Path, typer.Argument(metavar="DIR_B", help="Result directory B.")],
    everything: Annotated[
        bool, Option("Print every metric, not only significant ones.", flag="--all")
    ] = False,
    json: options.Json = False,
) -> None:
    """Compares, prints a table or JSON, and exits with 1 if a difference is significant."""
    from weir.importing import files_of, loaded

    with tempfile.TemporaryDirectory() as scratch, damage_reported(a, b):
        # Files of other programs are compared whatever their congestion controls are.
        label = _TRANSFER if files_of(a) and files_of(b) else None
        found = Diff(*(loaded(one, Path(scratch), label) for one in (a, b)))
        if json:
            _print_json(found)
        else:
            shown = [f for f in found.findings if everything or f.verdict.startswith("significant")]
            grids = [_grid(shown).rich()] if shown else []
            screen.show(Group(*grids, Text(_summary(found)), *screen.points(_notes(found))))
    if found.differs:
        raise typer.Exit(1)


def _print_json(found: Diff) -> None:
    output.print_json(
        "diff",
        [_row(finding) for finding in found.findings],
        verdict=_verdict(found),
        tested=found.tested,
        correction="holm",
        level=intervals.LEVEL,
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
        "relative": intervals.rounded(finding.relative),
        "paired": finding.is_paired,
        "p_value": intervals.rounded(finding.difference.p_value),
        "adjusted_p_value": intervals.rounded(finding.adjusted_p),
        "verdict": finding.verdict,
    }


def _verdict(found: Diff) -> str:
    if found.is_identical:
        return "byte-identical"
    return "significant" if found.differs else "not significant"


def _grid(findings: list[Finding]) -> Grid:
    rows = [
        (
            finding.label,
            finding.metric.heading,
            estimate_text(finding.a, finding.metric),
            estimate_text(finding.b, finding.metric),
            difference_text(finding.difference.estimate, finding.metric),
            finding.words,
        )
        for finding in findings
    ]
    title = "B − A: means and differences with 95 % intervals"
    return Grid(title, ("case", "", "A", "B", "B − A", "verdict"), rows, names=2, notes=1)


def _summary(found: Diff) -> str:
    if found.is_identical:
        return "Byte-identical: all tables of A and B hold the same bytes."
    counts = Counter(finding.verdict for finding in found.findings)
    metrics = len({finding.metric.name for finding in found.findings})
    return (
        f"{'Significant differences' if found.differs else 'No significant difference'}: "
        f"{counts['significant']} of {found.tested} comparisons (cases: {len(found.a.cases)}, "
        f"metrics: {metrics}; {_pairing(found)}), Holm-corrected at {intervals.LEVEL * 100:g} %. "
        f"{counts['significant only before correction']} more are significant only before "
        "correction."
    )


def _pairing(found: Diff) -> str:
    paired, n = sum(finding.is_paired for finding in found.findings), len(found.findings)
    if paired == 0:
        return "independent samples, no common seeds"
    return f"paired by seed{'' if paired == n else f' in {paired} of {n}'}"


def _notes(found: Diff) -> list[str]:
    changes = Counter((change.key, change.a, change.b) for change in found.changes)
    notes = [
        f"Changed in {n} of {len(found.a.cases)} cases: {key} is {_short(a)} in A, "
        f"{_short(b)} in B."
        for (key, a, b), n in changes.most_common(_CHANGES)
    ]
    if len(changes) > _CHANGES:
        notes.append(f"{len(changes) - _CHANGES} more keys changed; --json lists them all.")
    versions = [results.manifest["version"] for results in (found.a, found.b)]
    if versions[0] != versions[1]:
        notes.append(f"A was written by Weir {versions[0]}, B by {versions[1]}.")
    for side, results in (("A", found.a), ("B", found.b)):
        if results.caution:
            notes.append(f"{side}: {results.caution}.")
    alone = Counter(f.words for f in found.findings if 0 in (f.a.n, f.b.n))
    return [*notes, *(f"Values {words}: {n} metrics, not compared." for words, n in alone.items())]


def _short(value: str) -> str:
    return value if len(value) <= _WIDEST_VALUE else f"{value[:_WIDEST_VALUE]}…"
