"""The cells of the study: share, harm and queueing delay of every pair over every buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weir.fairness import harm_interval
from weir.results import Results
from weir.stats import Estimate, mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.coexist.experiment import (
    BUFFERS,
    FIRST,
    SECOND,
    buffer_name,
    pair_label,
    pairs,
    solo_label,
)
from weir.studies.contest import Contests, Extent

SHARE, HARM, DELAY = "share", "harm", "queue delay"

BySeed = Mapping[int, float | None]


def table(kind: str, buffer: float) -> str:
    """The name of a table."""
    return f"{kind}, {buffer_name(buffer)}"


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell; a row is about the control that it names, beside that of the column."""
    stacks, contests = extent.stacks, Contests(results)
    cells: list[Cell] = []
    for buffer in BUFFERS:
        own = list(_of_buffer(contests, stacks, buffer))
        cells += sorted(own, key=lambda found: (SHARE, HARM, DELAY).index(_kind(found)))
    order = {stack: place for place, stack in enumerate(stacks)}
    kinds = {name: place for place, name in enumerate(dict.fromkeys(c["table"] for c in cells))}
    return sorted(
        cells, key=lambda c: (kinds[c["table"]], order[str(c["row"])], order[str(c["column"])])
    )


def _kind(found: Cell) -> str:
    return str(found["table"]).partition(",")[0]


def _of_buffer(contests: Contests, stacks: Sequence[str], buffer: float) -> Iterator[Cell]:
    alone = {s: contests.flow(solo_label(buffer, s), FIRST, "goodput_mbps") for s in stacks}
    for one, other in pairs(stacks):
        label = pair_label(buffer, one, other)
        first, second = (contests.flow(label, name, "goodput_mbps") for name in (FIRST, SECOND))
        delay = mean_interval(contests.link(label, "queue_delay_ms_mean").values(), (0.0, None))
        places = [(one, other, first, second)]
        if one != other:
            places.append((other, one, second, first))
        for row, column, ours, theirs in places:
            share = table(SHARE, buffer), row, column, "share"
            yield cell(*share, _share(ours, theirs), note=_spread(row, column, ours, theirs))
            harm = harm_interval(alone[row], ours, "more")
            yield cell(table(HARM, buffer), row, column, "share", harm)
            yield cell(table(DELAY, buffer), row, column, "ms", delay)


def _shares(ours: BySeed, theirs: BySeed) -> list[float]:
    both = (
        (ours[seed] or 0.0, theirs[seed] or 0.0) for seed in sorted(ours.keys() & theirs.keys())
    )
    return [one / (one + other) for one, other in both if one + other > 0]


def _share(ours: BySeed, theirs: BySeed) -> Estimate:
    return mean_interval(_shares(ours, theirs), (0.0, 1.0))


def _spread(row: str, column: str, ours: BySeed, theirs: BySeed) -> str:
    """Among equals the mean is a half however unfair single runs are: what the larger one had."""
    if row != column:
        return ""
    larger = [max(share, 1 - share) for share in _shares(ours, theirs)]
    mean = mean_interval(larger).mean
    return "" if mean is None else f"Two {row} flows: the larger one had {mean:.0%} on average."
