"""The published throughputs and ours: the size of the file over the mean time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.cells.protocol import Cell
from weir.statistics.intervals import Estimate
from weir.studies.lab_udp.cells import StudyCell
from weir.studies.lab_udp.experiment import RELAYS
from weir.studies.lab_udp.published import Source

SUFFIX = "-throughput"
"""A table of times `002-loss` has its throughputs in `002-loss-throughput`."""


def throughput_cells(cells: Sequence[StudyCell], sources: Sequence[Source]) -> Iterator[Cell]:
    """One cell for each throughput that the sources print."""
    by_id = {source.id: source for source in sources}
    for cell in cells:
        if not cell.row.throughputs:
            continue
        source = by_id[cell.source]
        size = cell.conditions.file_bytes / source.throughput_scale
        ours = {name: _throughput(size, measured.time) for name, measured in cell.ours.items()}
        yield {
            "table": f"{cell.table.id}{SUFFIX}",
            "row": cell.row.name,
            "column": cell.table.heading(cell.column),
            "published": cell.row.throughputs[cell.column],
            "unit": source.throughput_unit,
            "reading": cell.row.is_reading,
            **{name: found.as_json() for name, found in ours.items()},
            "note": "",
        }


def throughput_ratios(
    cells: Sequence[StudyCell], sources: Sequence[Source]
) -> dict[str, list[float]]:
    """Ours over the published ones, over each relay."""
    own = [row for row in throughput_cells(cells, sources) if not row["reading"]]
    return {
        relay: [row[relay]["mean"] / row["published"] for row in own if row[relay]["mean"]]
        for relay in RELAYS
    }


def _throughput(size: float, time: Estimate) -> Estimate:
    """`size` over an estimated time; its relative error is the time's, to first order."""
    if time.mean is None:
        return Estimate(None, None, None, time.n)
    mean = size / time.mean
    if time.hi is None:
        return Estimate(mean, None, None, time.n)
    half = mean * (time.hi / time.mean - 1)
    return Estimate(mean, max(mean - half, 0.0), mean + half, time.n)
