"""What the claims, findings and figures of the study ask of its cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from weir.cells.cells import Cells
from weir.cells.claims import ratio, size_of
from weir.dynamics.criteria import EPSILON
from weir.experiments.networks import NETWORKS
from weir.statistics.intervals import Estimate
from weir.studies.book.experiment import AT_SWITCH, BUFFERS, RIVAL_BUFFERS, STREAMS
from weir.studies.book.joins import MEANING
from weir.studies.book.series import DRAWN, over_time

__all__ = ["AT_SWITCH", "BUFFERS", "DRAWN", "EPSILON", "MEANING", "RIVAL_BUFFERS", "STREAMS"]

_JUMP = 2.0
"""A change by this factor from one point of a sweep to the next is called sudden."""

_UNSTEADY = 0.1
"""Shares of repeats that differ by more than this depend on start times."""

titles = {network.id: network.title for network in NETWORKS}


def network_of(row: str) -> str:
    """The network of a row of the staggered tests."""
    return row.partition(", ")[0]


def algorithm_of(row: str) -> str:
    """Its algorithms."""
    return row.partition(", ")[2]


def networks_of(own: Cells) -> list[str]:
    """All networks of a table, in order."""
    return list(dict.fromkeys(network_of(row) for row in own.rows()))


def unfair_pair(cells: Cells) -> dict[str, str]:
    """The pair of figure 17: `who`, and on which `network`."""
    own = cells.starting("fig-17 ")
    (table,) = own.names() or [""]
    who = own.rows()[0].partition(":")[0] if own.all else ""
    return {"who": who, "network": table.partition(" ")[2]}


def _ranked(own: Cells, column: str) -> list[str]:
    """The rows of a table from the smallest to the largest value of a column."""
    return sorted(own.rows(), key=lambda row: size_of(own.ours(row, column)))


def largest_gap(own: Cells) -> Estimate:
    """How far the best is above the second, or the last but one above the worst, at its largest."""
    gaps = []
    for column in own.columns():
        values = [own.ours(row, column) for row in _ranked(own, column)]
        gaps += [max(ratio(values[-1], values[-2]), ratio(values[1], values[0]), key=size_of)]
    return max(gaps, key=size_of)


def without(own: Cells, row: str) -> Cells:
    """A table without one of its algorithms."""
    return Cells([found for found in own.all if found["row"] != row])


def rise_of_requests(own: Cells) -> Estimate:
    """Goodput at the largest load over that at the least, of the algorithm with the most of it."""
    few, many = str(STREAMS[0]), str(STREAMS[-1])
    return max((ratio(own.ours(r, many), own.ours(r, few)) for r in own.rows()), key=size_of)


def lead(own: Cells) -> dict[str, Any]:
    """`who` is best most often, how many `times`, and its median `lead` over the second."""
    found = []
    for streams in map(str, STREAMS):
        second, best = _ranked(own, streams)[-2:]
        found.append((best, ratio(own.ours(best, streams), own.ours(second, streams)), streams))
    who = Counter(best for best, _, _ in found).most_common(1)[0][0]
    led = sorted((one for one in found if one[0] == who), key=lambda one: size_of(one[1]))
    _, times_better, streams = led[(len(led) - 1) // 2]
    order = ", ".join(reversed(_ranked(own, streams)))
    names = ("who", "lead", "streams", "times", "order")
    return dict(zip(names, (who, times_better, streams, len(led), order), strict=True))


def worst_of_shallow(own: Cells) -> dict[str, Any]:
    """`who` has the worst latency in a shallow buffer: how many `times` the second, and where."""
    found = []
    for column in ("0.25 BDP", "0.5 BDP"):
        second, worst = _ranked(own, column)[-2:]
        found.append((ratio(own.ours(worst, column), own.ours(second, column)), worst, column))
    best = max(found, key=lambda one: size_of(one[0]))
    return dict(zip(("times", "who", "column"), best, strict=True))


def jumps(own: Cells) -> list[str]:
    """The rows whose value changes suddenly from one column to the next."""
    found = []
    for row in own.rows():
        means = [own.mean(row, column) for column in own.columns()]
        pairs = ((a, b) for a, b in itertools.pairwise(means) if a and b)
        if any(max(a / b, b / a) >= _JUMP for a, b in pairs):
            found.append(row)
    return found


def unsteady(table: Callable[[str], Cells], names: dict[str, str]) -> list[str]:
    """Tests whose repeats lie far apart."""
    column = "share, range"
    found = [
        f"{algorithm_of(row)}, {names[network_of(row)]}"
        for own in map(table, ("2-flow", "3-flow", "mixed"))
        for row in own.rows()
        if (own.mean(row, column) or 0.0) > _UNSTEADY
    ]
    return list(dict.fromkeys(found))


def panels(own: Cells) -> list[tuple[str, pl.DataFrame]]:
    """Flows over time for each algorithm, or pair of algorithms."""
    rows: dict[str, list[str]] = {}
    for row in own.rows():
        rows.setdefault(row.partition(":")[0], []).append(row)
    return [(who, pl.concat(_flow(own, row, who) for row in some)) for who, some in rows.items()]


def _flow(own: Cells, row: str, who: str) -> pl.DataFrame:
    """Flows of one algorithm are distinguished by number, others also by algorithm."""
    name = row.removeprefix(f"{who}: ")
    text = name.partition(",")[0] if name.endswith(f", {who}") else name
    return over_time(own, row).select(pl.lit(text).alias("series"), pl.all())


def moments(own: Cells) -> list[tuple[float, str]]:
    """When every flow but the first begins and ends, to the slice."""
    data = panels(own)[0][1]
    times: Sequence[float] = data["t_s"].unique().sort().to_list()
    slice_s = times[1] - times[0] if len(times) > 1 else 0.0
    found = []
    for (name,), flow in data.group_by("series", maintain_order=True):
        if name != data["series"][0]:
            first, last = float(flow["t_s"][0]), float(flow["t_s"][-1])
            text = str(name).partition(",")[0]
            found += [(first - slice_s / 2, f"{text} starts"), (last + slice_s / 2, f"{text} ends")]
    return found
