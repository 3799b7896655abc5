"""The cells of the study: a published time, and what our runs make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import polars as pl

from weir.base.grid import counted
from weir.results.results import Results
from weir.scenario.source import SIM
from weir.statistics.intervals import Estimate, mean_interval
from weir.studies.lab_udp.experiment import Experiment, columns
from weir.studies.lab_udp.published import Conditions, Row, Source, Table

_WORTH_A_WORD = 0.1
_RELAY_LINK = "relay"


@dataclass(frozen=True, slots=True)
class Measured:
    """Our runs of one experiment over one relay; counts are means per run."""

    time: Estimate
    sent: float
    timeouts: float
    overflows: float
    unfinished: int
    quiet: int
    """Runs that ended without a timeout."""
    quiet_time: Estimate
    """The time of those."""
    by_seed: Mapping[int, float]
    """The time of each run that came to an end."""

    @property
    def seconds(self) -> float:
        """The mean time; NaN where no run came to an end."""
        return float("nan") if self.time.mean is None else self.time.mean


@dataclass(frozen=True, slots=True)
class StudyCell:
    """One published time beside ours."""

    source: str
    table: Table
    row: Row
    column: int
    ours: Mapping[str, Measured]

    @property
    def published(self) -> float:
        """Seconds, as printed."""
        return self.row.times[self.column]

    @property
    def place(self) -> float:
        """The value of what the table varies."""
        return self.table.columns[self.column]

    @property
    def conditions(self) -> Conditions:
        """What it was measured under."""
        return self.table.measured_under(self.row, self.column)

    @property
    def serial(self) -> Measured:
        """Through the relay as it was."""
        return self.ours["serial"]

    @property
    def line(self) -> Measured:
        """Through a true delay line."""
        return self.ours["delay_line"]

    def against_simulated(self, relay: str, world: str) -> float | None:
        """The time over `relay` in `world` over the simulated one, on average over common seeds."""
        simulated, real = self.ours[relay], self.ours.get(f"{relay}_{world}")
        if real is None:
            return None
        common = simulated.by_seed.keys() & real.by_seed.keys()
        ratios = [real.by_seed[seed] / simulated.by_seed[seed] for seed in sorted(common)]
        return fmean(ratios) if ratios else None

    @property
    def error(self) -> float:
        """How far the serial relay is from what was published, relative to it."""
        return self.serial.seconds / self.published - 1

    def as_json(self) -> dict[str, Any]:
        """The cell as `--json` prints it."""
        return {
            "table": self.table.id,
            "row": self.row.name,
            "column": self.table.heading(self.column),
            "published": self.published,
            "unit": "s",
            "reading": self.row.is_reading,
            **{column: measured.time.as_json() for column, measured in self.ours.items()},
            "note": " ".join(self._notes()),
        }

    def _notes(self) -> Iterator[str]:
        if self.row.note:
            yield self.row.note
        serial = self.serial
        if serial.unfinished:
            yield f"{counted(serial.unfinished, 'run')} did not come to an end."
        if self.row.without_timers:
            yield f"{serial.quiet} of {len(serial.by_seed)} runs."
            return
        if abs(self.error) < _WORTH_A_WORD:
            return
        yield (
            f"Serial relay, per run: {serial.timeouts:.1f} timeouts, {serial.overflows:.0f} "
            f"overflows, {serial.sent:.0f} datagrams sent."
        )


def study_cells(sources: Sequence[Source], results: Results, world: str = SIM) -> list[StudyCell]:
    """Every cell, in the order of the published tables, simulated and in `world`."""
    measured, ours_are = _measured(results), columns(world)
    cells = []
    for source in sources:
        for table in source.tables:
            for row in table.rows:
                for column in range(len(table.columns)):
                    under = table.measured_under(row, column)
                    experiment = Experiment(source.id, row.experiment, under)
                    ours = {each.name: measured[experiment.label(each)] for each in ours_are}
                    if row.without_timers:
                        ours = {
                            name: replace(own, time=own.quiet_time) for name, own in ours.items()
                        }
                    cells.append(StudyCell(source.id, table, row, column, ours))
    return cells


def _measured(results: Results) -> dict[str, Measured]:
    """By label of the case."""
    runs = results.runs.filter(status="ok").select("run", "label", "seed")
    relays = results.links.filter(pl.col("name") == _RELAY_LINK)
    lost = relays.select("run", "dropped_queue")
    flows = results.flows.select("run", "fct_s", "sent_segments", "timeouts")
    rows = runs.join(flows, on="run").join(lost, on="run").sort("run")
    return {
        str(label): Measured(
            mean_interval(own["fct_s"], bounds=(0.0, None)),
            _mean(own["sent_segments"]),
            _mean(own["timeouts"]),
            _mean(own["dropped_queue"]),
            own["fct_s"].null_count(),
            len(quiet := own.drop_nulls("fct_s").filter(pl.col("timeouts") == 0)["fct_s"]),
            mean_interval(quiet, bounds=(0.0, None)),
            dict(own.drop_nulls("fct_s").select("seed", "fct_s").iter_rows()),
        )
        for (label,), own in rows.group_by("label", maintain_order=True)
    }


def _mean(values: pl.Series) -> float:
    mean = values.cast(pl.Float64).mean()
    return float(mean) if isinstance(mean, float) else float("nan")
