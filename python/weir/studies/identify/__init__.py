"""`identify`: whether `weir read` names the congestion control that a sender ran.

Each congestion control of Linux runs alone on each path and is captured at the sender, and so do
three controllers that are no candidates. Then `weir read` names them. Flows that their application
limits show no window: of these no name may be wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, NamedTuple

from weir import reading
from weir.cells.cells import cell
from weir.cells.protocol import Cell, Settings, StudyResult, capitalised
from weir.experiments import captured
from weir.kernel.recipe import CONTROLS
from weir.results.results import Results
from weir.scenario.source import SIM, VIRTUAL
from weir.scenario.sweep import Plan
from weir.statistics.intervals import mean_interval, percent_interval
from weir.studies.identify.paths import PATHS, WORKLOADS

if TYPE_CHECKING:
    from weir.report.model import ReportSection

OTHERS = ("bbr2", "bbr3", "copa")
"""Controllers of the simulator that are no candidates: their name is unknown."""
UNKNOWN = "unknown"
SUMMARY, LIMITED = "shares", "limited by the application"
CONFUSION, ERRORS = "confusion", "window errors"
_TITLES = {
    SUMMARY: "Shares that are right",
    LIMITED: "Shares of flows that their application limits",
    CONFUSION: "Captures by true controller and by name found",
    ERRORS: "Mean error of the window that the true controller predicts",
}
_WRONG_NAME = 0.5
"""How many flows that their application limits may have a wrong name at most, in percent."""
_GOALS = {"true one in the class": 97.0, "no candidate, called unknown": 90.0}


@dataclass(frozen=True)
class Found:
    """What was found in one capture."""

    path: str
    stack: str
    names: tuple[str, ...]
    """The class; empty if it is unknown."""
    error: float | None
    """The error of the true controller's window, if that is a candidate."""

    @property
    def is_known(self) -> bool:
        """Whether the true controller is a candidate."""
        return self.stack not in OTHERS

    @property
    def is_wrong(self) -> bool:
        """Whether other controllers are named, and the true one is not."""
        return bool(self.names) and self.stack not in self.names


class Identify:
    """The study."""

    name = "identify"
    description = "whether a capture shows which congestion control its sender ran"
    worlds = (SIM, VIRTUAL)

    def run(self, settings: Settings) -> StudyResult:
        """Captures all controllers on all paths and with all workloads, and names them."""
        own, places = self.plan(settings), _places(settings)
        with captured.captured(own, settings) as (results, files):
            ends = [(places[run.case.label], files[run.index]) for run in own.runs]
            found = [(place, _found(place, file)) for place, file in ends]
        greedy = [one for place, one in found if place.workload is None]
        limited = [(place.workload, one) for place, one in found if place.workload is not None]
        rows = [*_summary(greedy), *_limited(limited), *_confusion(greedy), *_errors(greedy)]
        findings = [*_findings(greedy, rows, settings), *_false_names(limited)]
        return StudyResult(rows, findings, results)

    def title(self, table: str) -> str:
        """The title of a table."""
        return _TITLES[table]

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The confusion matrix as a picture, and the tables."""
        from weir.cells.confusion import Captions, matrix
        from weir.cells.tables import study_table
        from weir.report.model import ReportSection

        parts = {name: [row for row in rows if row["table"] == name] for name in _TITLES}
        words = Captions(
            name=self.name,
            title="Names found",
            true="true controller",
            found="name found",
            share="captures, %",
            caption="Shares of the captures of each controller, in percent. Several names in one "
            "label are a class: they predict the same window.",
        )
        figure = matrix(parts[CONFUSION], words, tuple(results.runs["run"]))
        shares = ReportSection(
            "Shares",
            tables=[
                study_table(name, parts[name], interval="over the captures")
                for name in (SUMMARY, LIMITED)
            ],
        )
        names = ReportSection(
            "Names",
            tables=[study_table(ERRORS, parts[ERRORS], interval="over the captures")],
            figures=[figure],
        )
        return [shares, names]

    def plan(self, settings: Settings) -> Plan:
        """Every run: each controller on each path, and with each workload there."""
        sources = {}
        for label, place in _places(settings).items():
            work = {} if place.workload is None else WORKLOADS[place.workload]
            keys = {**PATHS[settings.size][place.path], **work}
            source = captured.source(self.name, keys, place.stack, settings)
            sources[label] = source.in_world(SIM if place.stack in OTHERS else settings.world)
        return captured.plan_of(self.name, sources, settings)


class _Place(NamedTuple):
    """Where a flow runs."""

    path: str
    stack: str
    workload: str | None
    """None of a flow that sends as much as it can."""

    @property
    def label(self) -> str:
        """The label of its case."""
        path = self.path if self.workload is None else f"{self.path}, {self.workload}"
        return captured.label(path, self.stack)


def _places(settings: Settings) -> dict[str, _Place]:
    """By the label of the case."""
    paths = PATHS[settings.size]
    greedy = [_Place(path, stack, None) for path in paths for stack in (*CONTROLS, *OTHERS)]
    limited = [
        _Place(path, stack, work) for path in paths for stack in CONTROLS for work in WORKLOADS
    ]
    return {place.label: place for place in (*greedy, *limited)}


def _found(place: _Place, file: File) -> Found:
    row = captured.row_at_sender(captured.existing(STUDY.name, place.label, file))
    name = row["controller"] or UNKNOWN
    names = () if name == UNKNOWN else tuple(name.split(", "))
    return Found(place.path, place.stack, names, reading.candidates(row).get(place.stack))


def _summary(found: Sequence[Found]) -> Iterator[Cell]:
    """The shares of captures, in all and by path."""
    for path in ("all", *dict.fromkeys(one.path for one in found)):
        some = [one for one in found if path in ("all", one.path)]
        known = [one for one in some if one.is_known]
        others = [one for one in some if not one.is_known]
        shares = {
            "true one in the class": [one.stack in one.names for one in known],
            "true one alone": [one.names == (one.stack,) for one in known],
            "wrong name": [one.is_wrong for one in known],
            "called unknown": [not one.names for one in known],
            "no candidate, called unknown": [not one.names for one in others],
        }
        for row, truths in shares.items():
            yield cell(SUMMARY, row, path, "%", percent_interval(sum(truths), len(truths)))
        sizes = [len(one.names) for one in known if one.names]
        yield cell(SUMMARY, "names in a class", path, "", mean_interval(sizes, (1.0, None)))


def _limited(found: Sequence[tuple[str, Found]]) -> Iterator[Cell]:
    """The shares of flows with a wrong name and without one, in all and by workload."""
    for work in ("all", *dict.fromkeys(work for work, _ in found)):
        own = [one for name, one in found if work in ("all", name)]
        counts = {
            "wrong name": sum(one.is_wrong for one in own),
            "called unknown": sum(not one.names for one in own),
        }
        for row, count in counts.items():
            yield cell(LIMITED, row, work, "%", percent_interval(count, len(own)))


def _false_names(found: Sequence[tuple[str, Found]]) -> Iterator[str]:
    wrong = [(work, one) for work, one in found if one.is_wrong]
    share = 100 * len(wrong) / len(found)
    reached = "reached" if share < _WRONG_NAME else "not reached"
    yield (
        f"Of {len(found)} flows that their application limits {len(wrong)} have a wrong name "
        f"(goal: below {_WRONG_NAME:g} %, {reached})."
    )
    for work, one in wrong:
        yield f"Not right: {one.stack} on {one.path}, {work}, is called {', '.join(one.names)}."


def _confusion(found: Sequence[Found]) -> Iterator[Cell]:
    """Per true controller the share of each name."""
    for stack in dict.fromkeys(one.stack for one in found):
        own = [one for one in found if one.stack == stack]
        names = Counter(", ".join(one.names) or UNKNOWN for one in own)
        for name, count in names.most_common():
            yield cell(CONFUSION, stack, name, "%", percent_interval(count, len(own)))


def _errors(found: Sequence[Found]) -> Iterator[Cell]:
    for stack in dict.fromkeys(one.stack for one in found if one.is_known):
        own = [one for one in found if one.stack == stack and one.error is not None]
        errors = mean_interval([100 * (one.error or 0.0) for one in own], (0.0, None))
        yield cell(ERRORS, stack, "mean error", "%", errors)


def _findings(found: Sequence[Found], rows: Sequence[Cell], settings: Settings) -> Iterator[str]:
    all_of: Mapping[str, Mapping[str, float]] = {
        one["row"]: one["ours"] for one in rows if (one["table"], one["column"]) == (SUMMARY, "all")
    }
    for row, goal in _GOALS.items():
        ours = all_of[row]
        reached = "reached" if ours["mean"] >= goal else "not reached"
        yield (
            f"{capitalised(row)}: {ours['mean']:.1f} % of {ours['n']} captures (goal: "
            f"{goal:.0f} %, {reached})."
        )
    alone = all_of["true one alone"]
    yield f"The true one is named alone in {alone['mean']:.1f} % of {alone['n']} captures."
    for one in found:
        if one.is_known and one.stack not in one.names:
            name = ", ".join(one.names) or UNKNOWN
            yield f"Not right: {one.stack} on {one.path} is called {name}."
        if not one.is_known and one.names:
            yield f"Not right: {one.stack} on {one.path} is called {', '.join(one.names)}."
    if settings.world == SIM:
        yield (
            "The simulator's controllers were captured, which are also the candidates. "
            "--world kernel --virtual captures Linux's."
        )


STUDY = Identify()
