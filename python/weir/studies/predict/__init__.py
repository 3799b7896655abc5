"""`predict`: whether a model of one CUBIC flow predicts what other controllers get.

On each path CUBIC runs once and is captured. `weir.modelling` fits a model to that capture and
predicts the other controllers. Then these run on the path itself and are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from weir.advice import choices, predictions
from weir.cells.cells import cell
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.estimates.quantity import Quantity
from weir.experiments import captured
from weir.modelling import inputs, simulate
from weir.results.results import Results
from weir.scenario.source import SIM, VIRTUAL
from weir.scenario.sweep import Plan
from weir.statistics.intervals import mean_interval
from weir.studies.predict.paths import PATHS

if TYPE_CHECKING:
    from weir.report.model import ReportSection

FITTED = "cubic"
HELD_OUT = ("bbr", "reno", "vegas", "illinois")
METRICS = {"goodput_mbps": ("goodput", "Mbit/s"), "rtt_ms_p95": ("RTT P95", "ms")}
SUMMARY = "errors"
_REPEATS = 8
_DURATION = "30s"
"""Of each flow, as of Pantheon's tests, with which the errors are compared."""
_OTHER_SEEDS = 1000
"""Predictions have other seeds than the runs that they predict."""


class Predict:
    """The study, of paths by size and name."""

    name = "predict"
    description = "whether a model of one CUBIC flow predicts what other controllers get"
    worlds = (SIM, VIRTUAL)

    def __init__(self, paths: Mapping[str, Mapping[str, captured.Keys]] = PATHS) -> None:
        self._paths = paths

    def run(self, settings: Settings) -> StudyResult:
        """Runs all controllers on all paths, models and predicts."""
        own = self.plan(settings)
        with captured.captured(own, settings) as (results, files):
            found = {(run.case.label, run.repeat): files[run.index] for run in own.runs}
            measured = list(_cells(self._paths[settings.size], found, settings))
        rows = [*_summary(measured), *measured]
        return StudyResult(rows, list(_findings(rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The picture of all predictions, and the tables."""
        from weir.cells.tables import study_table
        from weir.report.model import ReportSection
        from weir.studies.predict.figures import scatter

        names = dict.fromkeys(row["table"] for row in rows)
        kind = dict.fromkeys(names, "of the prediction") | {SUMMARY: "over the predictions"}
        tables = [
            study_table(name, [row for row in rows if row["table"] == name], kind[name])
            for name in names
        ]
        runs = tuple(results.runs["run"])
        return [ReportSection("Predictions", tables=tables, figures=[scatter(rows, runs)])]

    def plan(self, settings: Settings) -> Plan:
        """Every run: each controller on each path."""
        sources = {
            captured.label(path, stack): captured.source(
                self.name, {"measure.duration": _DURATION, **keys}, stack, settings
            ).in_world(settings.world)
            for path, keys in self._paths[settings.size].items()
            for stack in (FITTED, *HELD_OUT)
        }
        return captured.plan_of(self.name, sources, settings)


def _cells(
    paths: Iterable[str], captures: dict[tuple[str, int], File], settings: Settings
) -> Iterator[Cell]:
    repeats = settings.repeat or 1
    for path in paths:
        measured = inputs.measure(_captured(captures, path, FITTED, 0), stack=FITTED)
        if measured.flow is None:
            continue
        check = simulate.check(measured.path, measured.flow, repeat=3)
        chosen = choices.options(measured.flow, HELD_OUT)[: 1 + len(HELD_OUT)]
        predicted = predictions.predict(
            measured,
            check,
            chosen,
            predictions.Work({}, None),
            repeat=_REPEATS,
            seed=settings.seed + _OTHER_SEEDS,
            neighbours=0,
        )
        for one in predicted:
            stack = one.option.stack
            if stack == FITTED:
                continue
            truths = [_truth(_captured(captures, path, stack, n)) for n in range(repeats)]
            for metric, (table, unit) in METRICS.items():
                yield _cell(
                    table, path, stack, unit, [t[metric] for t in truths], getattr(one, metric)
                )


def _captured(captures: dict[tuple[str, int], File], path: str, stack: str, repeat: int) -> File:
    case = captured.label(path, stack)
    return captured.existing(STUDY.name, case, captures[case, repeat])


def _truth(file: File) -> dict[str, float]:
    row = captured.row_at_sender(file)
    return {
        "goodput_mbps": row["goodput_mbps"],
        "rtt_ms_p95": row["rtt_ms_p95"] or row["rtt_ms_max"],
    }


def _cell(
    table: str, path: str, stack: str, unit: str, truths: Sequence[float], predicted: Quantity
) -> Cell:
    high = predicted.value if predicted.high is None else predicted.high
    covered = [predicted.low <= truth <= high for truth in truths]
    own = mean_interval(truths)
    return {
        "table": table,
        "row": path,
        "column": stack,
        "published": None,
        "unit": unit,
        "measured": own.as_json(),
        "predicted": {"mean": predicted.value, "lo": predicted.low, "hi": high, "n": _REPEATS},
        "error": predicted.value / own.mean - 1 if own.mean else math.nan,
        "covered": sum(covered),
        "of": len(covered),
        "note": "",
    }


def _summary(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The mean error and the coverage of each metric, by controller and in all."""
    for table, _ in METRICS.values():
        own = [one for one in cells if one["table"] == table]
        for name in ("all", *HELD_OUT):
            some = [one for one in own if name in ("all", one["column"])]
            errors = mean_interval(abs(one["error"]) * 100 for one in some)
            share = [100 * one["covered"] / one["of"] for one in some]
            yield cell(SUMMARY, f"{table}: mean error", name, "%", errors)
            yield cell(SUMMARY, f"{table}: covered", name, "%", mean_interval(share))


def _findings(rows: Sequence[Cell]) -> Iterator[str]:
    means: dict[str, Any] = {
        one["row"]: one["ours"]["mean"]
        for one in rows
        if (one["table"], one["column"]) == (SUMMARY, "all")
    }
    for table, _ in METRICS.values():
        error, covered = means[f"{table}: mean error"], means[f"{table}: covered"]
        reached = "reached" if error <= 10 else "not reached"
        enough = "reached" if covered >= 90 else "not reached"
        yield (
            f"{table}: the mean error is {error:.1f} % (goal: at most 10 %, {reached}). The "
            f"intervals contain {covered:.0f} % of the measured values (goal: 90 %, {enough})."
        )
    own = [one for one in rows if "error" in one]
    for one in sorted(own, key=lambda one: -abs(one["error"]))[:3]:
        yield (
            f"A large error: {one['table']} of {one['column']} on {one['row']}, "
            f"{one['error']:+.0%}."
        )


STUDY = Predict()
