"""`weaknesses`: on which network each congestion control does badly, as searches find it.

One search for each controller and each goal that `weir search` looks for in turn, all with the same
budget. The worst networks, shrunk to what matters, are the runs of the study. With
`--world kernel --virtual` those of Linux's controllers are measured in Linux too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from weir.base.errors import InputError
from weir.cells.cells import cell
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.kernel.recipe import CONTROLS
from weir.results.results import Results
from weir.running.execution import Execution, run_plan
from weir.scenario.plans import world_words
from weir.scenario.source import SIM, VIRTUAL, Source
from weir.scenario.sweep import Plan, plan
from weir.search import findings, hunt
from weir.search.findings import Finding, Target
from weir.search.goals import IN_TURN, WEAKNESSES, hunts
from weir.search.hunt import SearchOptions
from weir.search.loop import FRESH, shown
from weir.search.space import Keys
from weir.statistics.intervals import Estimate, mean_interval, percent_interval

if TYPE_CHECKING:
    from weir.report.model import Cell as TableCell
    from weir.report.model import ReportSection, ReportTable

WORST, LINUX, SHOWN = "worst values", "worst values in Linux", "seeds that show it"
_TITLES = {
    WORST: "The worst value that a search found",
    LINUX: "The same network in Linux",
    SHOWN: "Fresh seeds that show it",
}
_OTHERS = ("bbr2", "bbr3", "copa", "ledbat", "prague")
"""Controllers beyond Linux's; those that need routers' feedback are not searched."""
STACKS = {"small": ("reno", "cubic", "bbr", "copa"), "full": (*CONTROLS, *_OTHERS)}
BUDGETS = {"small": 96, "full": 320}
"""Runs of a search that finds nothing; runs of the reference count too."""
_SEEDS = 5
"""Of each network, for its pictures."""


@dataclass(frozen=True)
class _Outcome:
    """What one search found, and what Linux makes of it."""

    stack: str
    goal: str
    target: Target
    finding: Finding | None
    """None if no network has a value."""
    reason: str = ""
    linux: Estimate | None = None
    is_in_linux: bool = False
    linux_note: str = ""

    @property
    def is_found(self) -> bool:
        return self.finding is not None and self.finding.is_found

    @property
    def label(self) -> str:
        return f"{self.goal}, {self.stack}"


class Weaknesses:
    """The study."""

    name = "weaknesses"
    description = "on which network each congestion control does badly"
    worlds = (SIM, VIRTUAL)

    def run(self, settings: Settings) -> StudyResult:
        """Searches, then runs the worst networks."""
        how = Execution(**settings.how)
        if how.resume:
            raise InputError("--resume has no effect on study weaknesses; give its command again")
        outcomes = [
            _searched(stack, goal, settings, how)
            for stack in STACKS[settings.size]
            for goal in IN_TURN
        ]
        results = run_plan(self.plan(outcomes, settings), **settings.how)
        return StudyResult(list(_cells(outcomes)), list(_findings(outcomes)), results)

    def plan(self, outcomes: Sequence[_Outcome], settings: Settings) -> Plan:
        """The worst network of each search, on seeds that no search used."""
        words = ["weir", "study", self.name, "--size", settings.size, "--seed", str(settings.seed)]
        sources = {
            one.label: _source(one.finding, settings) for one in outcomes if one.finding is not None
        }
        words += [] if settings.world == SIM else world_words(settings.world)
        return plan(self.name, shlex.join(words), sources, {})

    def title(self, table: str) -> str:
        """The title of a table."""
        return _TITLES[table]

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The verdicts as a picture and in tables, and the networks."""
        from weir.cells.confusion import Captions, matrix
        from weir.report.model import ReportSection

        parts = {name: [row for row in rows if row["table"] == name] for name in _TITLES}
        tables = [_table(name, parts[name]) for name in (WORST, LINUX) if parts[name]]
        words = Captions(
            name=self.name,
            title="Weaknesses found",
            true="controller",
            found="goal",
            share="seeds, %",
            caption="The worst network of each search: the share of fresh seeds on which the "
            "controller is beyond the threshold, in percent.",
        )
        figure = matrix(parts[SHOWN], words, tuple(results.runs["run"]))
        return [
            ReportSection("What was found", list(_goals()), tables=tables, figures=[figure]),
            ReportSection("Networks", tables=[_networks(parts[WORST], results)]),
        ]


def _searched(stack: str, goal: str, settings: Settings, how: Execution) -> _Outcome:
    (wanted,) = hunts([goal], stack, None)
    target = Target.of(wanted, {}, (), SIM)
    options = SearchOptions(budget=str(BUDGETS[settings.size]), seed=settings.seed)
    try:
        finding = hunt.search(target, options, how)
    except InputError as error:
        return _Outcome(stack, goal, target, None, str(error))
    found = _Outcome(stack, goal, target, finding)
    if settings.world == SIM or not found.is_found:
        return found
    if stack not in CONTROLS:
        return replace(found, linux_note="Linux has no such controller")
    return _in_linux(found, Target.of(wanted, {}, (), settings.world), finding.keys, how)


def _in_linux(found: _Outcome, target: Target, keys: Keys, how: Execution) -> _Outcome:
    """The network in guests: shown if most of its seeds are beyond the threshold."""
    values, reason = hunt.measured(target, keys, _SEEDS, how)
    known = [value for value in values if value is not None]
    if not known:
        return replace(found, linux_note=f"not possible there: {reason}")
    is_shown = 2 * sum(map(target.is_found, values)) > len(values)
    return replace(found, linux=mean_interval(known), is_in_linux=is_shown)


def _source(finding: Finding, settings: Settings) -> Source:
    text = findings.scenario_text(finding)
    repeat = str(settings.repeat or _SEEDS)
    seeds = (("measure.repeat", repeat), ("measure.seed", str(settings.seed + FRESH)))
    return Source(text, f"study weaknesses, {finding.target.goal.name}", seeds)


def _cells(outcomes: Sequence[_Outcome]) -> Iterator[Cell]:
    for one in outcomes:
        finding = one.finding
        nothing = Estimate(None, None, None, 0)
        yield cell(
            WORST,
            one.stack,
            one.goal,
            "",
            nothing if finding is None else finding.value,
            note=one.reason if finding is None else finding.sentence,
            found=one.is_found,
            keys={} if finding is None else dict(finding.keys),
            without={} if finding is None else dict(finding.without),
            after=None if finding is None else finding.runs_until_found or finding.runs,
        )
    for one in outcomes:
        if one.finding is not None:
            share = percent_interval(one.finding.shown, one.finding.seeds)
            yield cell(SHOWN, one.stack, one.goal, "%", share)
    for one in outcomes:
        if one.linux is not None or one.linux_note:
            estimate = one.linux or Estimate(None, None, None, 0)
            note, is_found = one.linux_note, one.is_in_linux
            yield cell(LINUX, one.stack, one.goal, "", estimate, note=note, found=is_found)


def _findings(outcomes: Sequence[_Outcome]) -> Iterator[str]:
    for goal in IN_TURN:
        own = [one for one in outcomes if one.goal == goal]
        found = [one.stack for one in own if one.is_found]
        others = [one.stack for one in own if not one.is_found]
        if not found:
            yield f"{goal}: not found for any controller."
        elif not others:
            yield f"{goal}: found for every controller."
        elif len(found) > len(others):
            yield f"{goal}: found for all but {', '.join(others)}."
        else:
            yield f"{goal}: found only for {', '.join(found)}."
    tried = [one for one in outcomes if one.linux is not None]
    if tried:
        also = [one.label for one in tried if one.is_in_linux]
        not_there = [one.label for one in tried if not one.is_in_linux]
        yield f"Linux shows {len(also)} of the {len(tried)} networks that can run there."
        if not_there:
            yield f"Linux does not show: {'; '.join(not_there)}."
    yield "What was not found may exist: a search looks at a few hundred networks."


def _goals() -> Iterator[str]:
    for name in IN_TURN:
        goal = WEAKNESSES[name]
        yield f"{name}: {goal.about.replace('{against}', goal.against)} ({goal.expression.text})."


def _table(name: str, cells: Sequence[Cell]) -> ReportTable:
    from weir.report.model import Cell as TableCell
    from weir.report.model import ReportTable

    goals = list(dict.fromkeys(str(one["column"]) for one in cells))
    by_place = {(one["row"], one["column"]): one for one in cells}
    rows: list[list[TableCell | str]] = []
    for stack in dict.fromkeys(one["row"] for one in cells):
        values = (_value(by_place.get((stack, goal))) for goal in goals)
        rows.append([TableCell(stack, "name"), *values])
    note = (
        "Mean over fresh seeds. Found: beyond the threshold on 16 of 20 of them or more; in Linux, "
        "on most of five."
    )
    return ReportTable(_TITLES[name], ["controller", *goals], rows, note=note)


def _value(found: Mapping[str, Any] | None) -> TableCell:
    from weir.report.model import Cell as TableCell

    if found is None:
        return TableCell("–", "text")
    mean = found["ours"]["mean"]
    if mean is None:
        return TableCell("no value", "text", note=found["note"])
    word = "found" if found["found"] else "not found"
    return TableCell(f"{mean:.3g}, {word}", "text", tone="bad" if found["found"] else "good")


def _networks(cells: Sequence[Cell], results: Results) -> ReportTable:
    from weir.report.model import Cell as TableCell
    from weir.report.model import ReportTable

    rows: list[list[TableCell | str]] = [
        [
            TableCell(f"{one['column']}, {one['row']}", "name"),
            TableCell(shown(one["keys"]), "text"),
            TableCell(_needed(one["without"]), "text"),
            TableCell(_goodputs(results, f"{one['column']}, {one['row']}"), "text"),
            TableCell(str(one["after"])),
        ]
        for one in cells
        if one["found"]
    ]
    note = (
        "Keys of the goal's scenario, after shrinking; the value without each of them; the goodput "
        "of each flow, in Mbit/s; runs until it was found."
    )
    headers = ["case", "network", "without", "goodput", "runs"]
    return ReportTable("What was found", headers, rows, note=note)


def _goodputs(results: Results, label: str) -> str:
    """The mean goodput of each flow of a case."""
    runs = results.runs.filter(pl.col("label") == label).select("run")
    own = results.flows.join(runs, on="run")
    means = own.group_by("name", maintain_order=True).agg(pl.col("goodput_mbps").mean())
    return ", ".join(f"{name} {mean:.3g}" for name, mean in means.iter_rows() if mean is not None)


def _needed(without: Mapping[str, float | None]) -> str:
    return ", ".join(
        f"{key}: {'no value' if value is None else f'{value:.3g}'}"
        for key, value in without.items()
    )


STUDY = Weaknesses()
