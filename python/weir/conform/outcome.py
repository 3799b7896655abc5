"""The rows of a result: one per criterion and stack, kept next to the tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weir.base import bounded
from weir.conform.cases import scripts, stacks
from weir.conform.cases.bounds import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS, REPORTED
from weir.conform.cases.model import Check
from weir.conform.cases.plans import Planned, Subject
from weir.conform.judge import Judgement, judged
from weir.conform.measures import MEASURES
from weir.conform.measures.needs import missing
from weir.conform.measures.observed import Observed, Runs
from weir.guest.packetdrill import ScriptResult
from weir.results import manifest
from weir.results.results import Results
from weir.scenario.source import SIM
from weir.statistics.intervals import Estimate, rounded

Row = dict[str, Any]

KNOWN, UNEXPECTED = "known failure", "unexpected pass"
"""What a verdict is of a check that the suite lists as failing."""

_GOOD = "good"
_NONE = Estimate(None, None, None, 0)


def rows(found: Planned, results: Results | None) -> list[Row]:
    """A row per criterion of every case with every stack.

    With other seeds than the suites' own, what is known to fail may pass.
    """
    runs = None if results is None else Runs(results)
    keys = [(subject.case.script, subject.stack) for subject in found.subjects if subject.is_script]
    scripted = scripts.run(keys, found.world) if keys else {}
    made = [
        row
        for subject in found.subjects
        for row in (
            _script_rows(subject, scripted, found.world)
            if subject.is_script
            else _rows(subject, runs, found.world, _health(subject, results))
        )
    ]
    for row in made:
        if row["outcome"] == UNEXPECTED and not found.has_own_seeds:
            row["outcome"] = PASS
    return made


def _health(subject: Subject, results: Results | None) -> str | None:
    """The machine's health during the runs of a case, the worst; None where time is virtual."""
    if results is None:
        return None
    found = [health for label in subject.labels.values() if (health := results.health(label))]
    return next((health for health in found if health != _GOOD), found[0] if found else None)


def _rows(subject: Subject, runs: Runs | None, world: str, health: str | None) -> Iterator[Row]:
    case, reason, failed = subject.case, subject.reason, ""
    observed: dict[str, list[Observed]] = {}
    if not reason and runs is not None:
        observed = {name: runs.of(label) for name, label in subject.labels.items()}
        failed = next(filter(None, map(runs.failed, subject.labels.values())), "")
        reason = missing(case.needs, observed)
    for check in case.checks:
        lacking = reason or missing(check.needs, observed)
        if lacking:
            none = Judgement(NOT_APPLICABLE, None, None, _NONE)
            yield _row(subject, check, none, world, lacking)
            continue
        if failed:
            found = Judgement(INCONCLUSIVE, None, None, _NONE, f"a run failed: {failed}")
        else:
            found = judged(_values(check, observed), check.envelope, check.join)
        if health not in (None, _GOOD) and found.verdict in (PASS, FAIL):
            # A late packet of ours is no behaviour of the stack, nor is what it did because of it.
            note = f"the machine did not keep up: {health}"
            found = replace(found, verdict=INCONCLUSIVE, note=note)
        own = observed.get(check.of, [])
        yield {**_row(subject, check, found, world, "", own), "health": health}


def _script_rows(
    subject: Subject, scripted: Mapping[scripts.Key, ScriptResult], world: str
) -> Iterator[Row]:
    """The row of a packet script. The script's head has the worlds where it fails as known."""
    (check,) = subject.case.checks
    result = scripted[(subject.case.script, subject.stack)]
    if result.verdict == "skip":
        none = Judgement(NOT_APPLICABLE, None, None, _NONE)
        yield _row(subject, check, none, world, result.reason)
    else:
        holds = result.line is None
        note = "" if holds else f"line {result.line}: {' '.join(result.message.split())}"
        found = Judgement(PASS if holds else FAIL, float(holds), None, _NONE, note)
        yield _row(subject, check, found, world, "", known=result.reason)


def _values(check: Check, observed: Mapping[str, Sequence[Observed]]) -> list[float | None]:
    """The measure of every run, with the runs of the same seed that it is compared with."""
    measure = MEASURES[check.measure]
    others = [{run.seed: run for run in observed[name]} for name in check.against]
    found = []
    for run in observed[check.of]:
        if all(run.seed in other for other in others):
            with_it = [other[run.seed] for other in others]
            found.append(measure(run, *with_it, **check.arguments))
        else:
            found.append(None)
    return found


def _row(
    subject: Subject,
    check: Check,
    found: Judgement,
    world: str,
    reason: str,
    runs: Sequence[Observed] = (),
    known: str = "",
) -> Row:
    case = subject.case
    known = known or _known(check, subject.stack, world)
    outcome = found.verdict
    if known and found.verdict in (FAIL, INCONCLUSIVE):
        outcome = KNOWN
    elif known and found.verdict == PASS:
        outcome = UNEXPECTED
    return {
        "suite": case.suite,
        "case": case.id,
        "check": check.name,
        "title": case.title,
        "source": case.source,
        "procedure": case.procedure,
        "stack": subject.name,
        **({} if subject.name == subject.stack else {"effective_stack": subject.stack}),
        "world": world,
        "criterion": check.criterion,
        "origin": check.origin,
        "ours": check.is_ours,
        "low": check.envelope.low,
        "high": check.envelope.high,
        "join": check.join,
        "unit": check.unit,
        "value": _finite(found.value),
        "measured": found.estimate.as_json(),
        "margin": _finite(found.margin),
        "verdict": found.verdict,
        "outcome": outcome,
        "reason": reason or _because(found, known),
        "health": None,
        "seeds": [run.seed for run in runs],
        "decisive_run": runs[found.decisive].run if runs else None,
    }


def _because(found: Judgement, known: str) -> str:
    never = "it did not happen within the run" if found.value == math.inf else ""
    texts = [found.note, never, known if found.verdict != PASS else f"known to fail: {known}"]
    return "; ".join(text for text in (texts if known else texts[:2]) if text)


def _known(check: Check, stack: str, world: str) -> str:
    """Why a check is known to fail with a stack, in the simulator."""
    if world != SIM:
        return ""
    name = stack.removeprefix("rack/")
    own = stacks.controller(stack)
    is_plain = own == name
    return check.known.get(name, check.known.get(own, "") if own and is_plain else "")


def _finite(value: float | None) -> float | None:
    return rounded(value) if value is not None and math.isfinite(value) else None


def is_good(row: Row) -> bool:
    """Whether a row is as the suite expects."""
    return row["outcome"] in (PASS, KNOWN, NOT_APPLICABLE, REPORTED)


def pictures(subjects: Sequence[Subject]) -> list[Row]:
    """The pictures of the cases, one each."""
    cases = {(subject.case.suite, subject.case.id): subject.case for subject in subjects}
    return [
        {
            "suite": case.suite,
            "case": case.id,
            "columns": list(case.picture.columns),
            "moments": [list(moment) for moment in case.picture.moments],
            "levels": {name: list(level) for name, level in case.picture.levels.items()},
        }
        for case in cases.values()
    ]


def read(directory: Path) -> list[Row]:
    """The rows next to the results in a directory.

    Raises:
        InputError: there are none.
    """
    found: list[Row] = bounded.read_json(directory / manifest.CONFORM)["rows"]
    return found
