"""`advise`: whether the advice of `weir advise` is right.

On each path CUBIC runs once and is captured. `weir advise` sees that capture alone and compares
controllers of Linux. Then these run on the path itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as File
from statistics import mean
from typing import TYPE_CHECKING, Any

from weir.advice import choices, outcomes, words
from weir.advice.decision import Decision, decide
from weir.base.errors import InputError
from weir.cells.cells import cell
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.experiments import captured
from weir.modelling import inputs
from weir.probes.tcp_info import controls
from weir.results.results import Results
from weir.scenario.source import KERNEL, SIM, VIRTUAL
from weir.scenario.sweep import Plan
from weir.statistics.intervals import mean_interval
from weir.studies.advise.judge import Judgement, Truth, judge
from weir.studies.advise.paths import PATHS

if TYPE_CHECKING:
    from weir.report.model import ReportSection

IN_USE = "cubic"
OTHERS = tuple(name for name in choices.KERNEL if name != IN_USE)
ADVICE, COUNTS = "advice", "advices"
_GOALS = {Judgement.WRONG: 2, Judgement.INCONCLUSIVE: 10}
_GOALS_OF = 40
"""The goals are those of 40 paths."""
_OTHER_SEEDS = 1000
"""Advices have other seeds than the runs that they are about."""
_REPEATS = 8


class Advise:
    """The study, of paths by size and name."""

    name = "advise"
    description = "whether advice from a capture of one CUBIC flow is right"
    worlds = (SIM, VIRTUAL, KERNEL)

    def __init__(self, paths: Mapping[str, Mapping[str, captured.Keys]] = PATHS) -> None:
        self._paths = paths

    def run(self, settings: Settings) -> StudyResult:
        """Runs all controllers on all paths, asks for advice, and judges it."""
        own = self.plan(settings)
        with captured.captured(own, settings) as (results, files):
            found = {(run.case.label, run.repeat): files[run.index] for run in own.runs}
            rows = [self._cell(path, results, found, settings) for path in self._own(settings)]
        counts = {one: sum(row["judgement"] == one for row in rows) for one in Judgement}
        summary = [
            cell(COUNTS, str(one), "paths", "", mean_interval([count]))
            for one, count in counts.items()
        ]
        return StudyResult([*summary, *rows], list(_findings(counts, rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The picture of all promises, and the tables."""
        from weir.cells.tables import study_table
        from weir.report.model import ReportSection
        from weir.studies.advise.figures import promises

        names = dict.fromkeys(row["table"] for row in rows)
        kind = {COUNTS: "over the paths", ADVICE: "of the prediction"}
        tables = [
            study_table(name, [row for row in rows if row["table"] == name], kind[name])
            for name in names
        ]
        own = [row for row in rows if row["table"] == ADVICE]
        figure = promises(own, tuple(results.runs["run"]))
        return [ReportSection("Advices", tables=tables, figures=[figure])]

    def plan(self, settings: Settings) -> Plan:
        """Every run: each controller on each path."""
        sources = {
            captured.label(path, stack): captured.source(self.name, keys, stack, settings).in_world(
                settings.world
            )
            for path, keys in self._own(settings).items()
            for stack in (IN_USE, *others(settings.world))
        }
        return captured.plan_of(self.name, sources, settings)

    def _own(self, settings: Settings) -> Mapping[str, captured.Keys]:
        return self._paths[settings.size]

    def _cell(
        self,
        path: str,
        results: Results,
        captures: Mapping[tuple[str, int], File],
        settings: Settings,
    ) -> Cell:
        case = captured.label(path, IN_USE)
        file = captured.existing(self.name, case, captures[case, 0])
        compared = others(settings.world)
        truths = {stack: _truth(results, path, stack) for stack in (IN_USE, *compared)}
        decision, sentence = advice(file, compared, settings.seed + _OTHER_SEEDS)
        verdict = decision.verdict if decision else None
        chosen = decision.chosen if decision else None
        stack = chosen.option.stack if chosen else None
        judgement = judge(verdict, stack, IN_USE, truths)
        best = max(truths, key=lambda name: truths[name].goodput_mbps)
        gains = {n: t.goodput_mbps / truths[IN_USE].goodput_mbps for n, t in truths.items()}
        gain = chosen.gain if chosen else None
        return {
            "table": ADVICE,
            "row": path,
            "column": "gain",
            "published": None,
            "unit": "",
            "ours": mean_interval([gains[stack or best]]).as_json(),
            "predicted": {
                "mean": gain.value if gain else None,
                "lo": gain.low if gain else None,
                "hi": gain.high if gain else None,
                "n": _REPEATS,
            },
            "judgement": judgement,
            "verdict": verdict or "refused",
            "advised": stack,
            "best": best,
            "gains": [{"controller": name, "gain": value} for name, value in gains.items()],
            "note": f"{judgement}. {sentence} Really: {best} gets most, {gains[best]:.2f} ×.",
        }


def others(world: str) -> tuple[str, ...]:
    """The controllers to compare: those of Linux, or of them what this machine's kernel has."""
    if world != KERNEL:
        return OTHERS
    known = controls()
    return tuple(name for name in OTHERS if name in known)


def advice(file: File, compared: Sequence[str], seed: int) -> tuple[Decision | None, str]:
    """The decision from a capture, and its sentence; without a decision why it was refused."""
    try:
        measured = inputs.measure(file)
        if measured.flow is None:
            return None, "it has no flow."
        options = choices.options(measured.flow, [IN_USE, *compared])
        found, _ = outcomes.outcome(measured, options, None, repeat=_REPEATS, seed=seed)
    except InputError as error:
        return None, f"{error}.".replace(f"{file}: ", "")
    decision = decide(found, measured.flow)
    return decision, words.sentence(measured, measured.flow, decision)


def _truth(results: Results, path: str, stack: str) -> Truth:
    label = captured.label(path, stack)
    runs = results.runs.filter(results.runs["label"] == label)["run"]
    own = results.flows.filter(results.flows["run"].is_in(runs.implode()))
    rows = list(own.filter(own["flow"] == 0).iter_rows(named=True))
    return Truth(
        mean(row["goodput_mbps"] for row in rows),
        mean(row["rtt_ms_p95"] or row["rtt_ms_max"] or 0.0 for row in rows),
    )


def _findings(counts: Mapping[Judgement, int], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    parts = ", ".join(f"{count} {one}" for one, count in counts.items())
    yield f"Of {len(rows)} advices: {parts}."
    for one, most in _GOALS.items():
        share = counts[one] * _GOALS_OF / max(len(rows), 1)
        reached = "reached" if share <= most else "not reached"
        yield f"Goal: {one} at most {most} of {_GOALS_OF}: {reached}."
    for row in rows:
        if row["judgement"] is not Judgement.RIGHT:
            yield f"{row['row']}: {row['note']}"


STUDY = Advise()
