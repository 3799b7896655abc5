"""`lab-udp`: two published course reports on reliable UDP, measured again.

Each cell stands beside ours through the relay as it was (one server that sleeps for every datagram)
and through a true delay line. The published times are data of this package; what the model of hosts
and relay needs is computed from a few named ones (`calibration`).
"""

from __future__ import annotations

from weir.api import carry_out
from weir.studies import Settings, StudyResult
from weir.studies.lab_udp.calibration import Model, calibrate_000, calibrate_002
from weir.studies.lab_udp.cells import study_cells
from weir.studies.lab_udp.experiment import study_plan
from weir.studies.lab_udp.findings import findings
from weir.studies.lab_udp.published import SOURCES, Source, load

REPEATS = {"small": 5, "full": 20}


class LabUdp:
    """The study."""

    name = "lab-udp"
    description = (
        "reliable UDP through a course's relay: stop-and-wait, windows of 5 to 30 and Reno under "
        "loss and delay"
    )

    def run(self, settings: Settings) -> StudyResult:
        """Runs every published experiment over both relays and compares."""
        sources = [load(name) for name in SOURCES]
        models = calibrated(sources)
        repeat = settings.repeat or REPEATS[settings.size]
        plan = study_plan(sources, models, settings.size, repeat, settings.seed)
        results = carry_out(plan, **settings.how)
        cells = study_cells(sources, results)
        rows = [cell.as_json() for cell in cells]
        return StudyResult(rows, findings(cells, sources, models), results)


def calibrated(sources: list[Source]) -> dict[str, Model]:
    """The model of each source, by its id."""
    by_id = {source.id: source for source in sources}
    model = calibrate_002(by_id["002"])
    return {"000": calibrate_000(by_id["000"], model), "002": model}


STUDY = LabUdp()
