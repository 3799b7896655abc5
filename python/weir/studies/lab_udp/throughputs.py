"""The published throughputs and ours: the size of the file over the mean time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.lab_udp.cells import StudyCell
from weir.studies.lab_udp.experiment import RELAYS
from weir.studies.lab_udp.published import Source

SUFFIX = "-throughput"
"""A table of times `002-loss` has its throughputs in `002-loss-throughput`."""

_NEAR = 0.1


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
            **{name: found.as_json() for name, found in ours.items()},
            "note": "",
        }


def throughput_words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How far ours are from the published ones, over each relay."""
    own = [row for row in rows if str(row["table"]).endswith(SUFFIX)]
    for relay in RELAYS:
        ratios = [row[relay]["mean"] / row["published"] for row in own if row[relay]["mean"]]
        if ratios:
            near = sum(abs(ratio - 1) <= _NEAR for ratio in ratios)
            yield (
                f"Throughput, {relay.replace('_', ' ')}: {near} of the {len(ratios)} published "
                f"throughputs are met within {_NEAR:.0%}; ours is {median(ratios):.2f} times the "
                "published one (median). A throughput is the size of the file over the mean time, "
                "in the sources and here."
            )


def _throughput(size: float, time: Estimate) -> Estimate:
    """`size` over an estimated time; its relative error is the time's, to first order."""
    if time.mean is None:
        return Estimate(None, None, None, time.n)
    mean = size / time.mean
    if time.hi is None:
        return Estimate(mean, None, None, time.n)
    half = mean * (time.hi / time.mean - 1)
    return Estimate(mean, max(mean - half, 0.0), mean + half, time.n)
