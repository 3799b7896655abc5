"""`lab-udp`: two published course reports on reliable UDP, measured again.

Each cell stands beside ours through the relay as it was (one server that sleeps for every datagram)
and through a true delay line. The published times are data of this package; what the model of hosts
and relay needs is computed from a few named ones (`calibration`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.cells.claims import TABLE as EXPECTATIONS
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.results.results import Results
from weir.running.execution import RunOptions, run_plan
from weir.scenario.source import SIM
from weir.scenario.sweep import Plan
from weir.studies.lab_udp.calibration import Model, calibrate_000, calibrate_002
from weir.studies.lab_udp.cells import StudyCell, study_cells
from weir.studies.lab_udp.claims import claim_cells
from weir.studies.lab_udp.experiment import study_plan
from weir.studies.lab_udp.findings import findings
from weir.studies.lab_udp.published import SOURCES, Source, load
from weir.studies.lab_udp.throughputs import SUFFIX, throughput_cells

if TYPE_CHECKING:
    from weir.report.model import ReportSection

REPEATS = {"small": 5, "full": 60}
REAL_REPEATS = {"small": 1, "full": 5}
"""In real time every run takes as long as what happens in it."""

REAL_JOBS = 16
"""Runs in real time at a time: they sleep, and use a hundredth of a core each."""


class LabUdp:
    """The study."""

    name = "lab-udp"
    description = (
        "reliable UDP through a course's relay: stop-and-wait, windows of 5 to 30 and Reno under "
        "loss and delay"
    )

    worlds = ("sim", "udp")

    verdicts = (
        "stop-and-wait is far behind .*",
        "the sliding window .*",
        r"a window of (16|30) .*",
        "Reno .*",
    )
    """Claims at the top of its report: all but two steps between windows of report 002."""

    def run(self, settings: Settings) -> StudyResult:
        """Runs every published experiment over both relays and compares."""
        sources = [load(name) for name in SOURCES]
        models = calibrated(sources)
        plan = self.plan(settings, sources, models)
        how = settings.how
        if plan.is_real_time and how.get("jobs") is None:
            how = RunOptions(**{**how, "jobs": REAL_JOBS})
        results = run_plan(plan, **how)
        cells = study_cells(sources, results, settings.world)
        rows = study_rows(cells, sources)
        return StudyResult(rows, findings(cells, sources, models), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """Each published table, its throughputs, and the figures that its source draws of both."""
        from weir.studies.lab_udp import figures  # drawing libraries load slowly

        return figures.sections(results, rows)

    def title(self, table: str) -> str:
        """What a table shows and whose it is: `Time against loss, delay 0 ms, report 002`."""
        if table == EXPECTATIONS:
            return "What the reports conclude"
        times = table.removesuffix(SUFFIX)
        source = load(times.partition("-")[0])
        shown = next(each.title for each in source.tables if each.id == times)
        if times != table:
            shown = shown.replace("Time", "Throughput", 1)
        return f"{shown}, report {source.id}"

    def plan(self, settings: Settings, sources: list[Source], models: dict[str, Model]) -> Plan:
        """Every run that the settings ask for."""
        repeats = {SIM: settings.repeat or REPEATS[settings.size]}
        options = ["--size", settings.size]
        if settings.world == SIM or settings.repeat is not None:
            options += ["--repeat", str(repeats[SIM])]
        if settings.world != SIM:
            repeats[settings.world] = settings.repeat or REAL_REPEATS[settings.size]
            options += ["--world", settings.world]
        return study_plan(sources, models, repeats, settings.seed, options)


def study_rows(cells: Sequence[StudyCell], sources: Sequence[Source]) -> list[Cell]:
    """The times of each table, followed by its throughputs; then the statements of the sources."""
    rows: list[Cell] = []
    for table in dict.fromkeys(cell.table.id for cell in cells):
        own = [cell for cell in cells if cell.table.id == table]
        rows += [cell.as_json() for cell in own]
        rows += throughput_cells(own, sources)
    return [*rows, *claim_cells(cells)]


def calibrated(sources: list[Source]) -> dict[str, Model]:
    """The model of each source, by its id."""
    by_id = {source.id: source for source in sources}
    return {"000": calibrate_000(by_id["000"]), "002": calibrate_002(by_id["002"])}


STUDY = LabUdp()
