"""What the scatters say, in sentences made from their numbers."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import claims
from weir.studies.cells import Cells, digits
from weir.studies.pantheon.experiment import FLOWS, flows_name
from weir.studies.pantheon.measures import (
    DELAY,
    MEAN_USED,
    OVERALL,
    STRETCH,
    THROUGHPUT,
    table,
)

_NEAR = 0.9
"""A scheme that has this part of the best throughput is among those whose delays are compared."""


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    own = cells.table(claims.TABLE).all
    return [
        *(_glance(cells, flows) for flows in FLOWS),
        _winners(cells),
        claims.summary(own, "of the literature"),
        *claims.in_words(own),
        *_paths(cells),
        "Runs of 30 s; three flows of one scheme start 10 s apart and end together. Throughput is "
        "counted where packets come out of the path, from its first packet on. Loss is what was "
        "dropped over what was dropped or came out.",
        "Every flow starts at a random time within 100 ms; random losses differ from seed to seed. "
        "The opportunities of the paths 1, 2 and 3 are the same in all runs, as the Pantheon's "
        "files are.",
    ]


def _glance(cells: Cells, flows: int) -> str:
    own = cells.table(table(OVERALL, flows))
    ranked = sorted(own.rows(), key=lambda stack: -(own.mean(stack, MEAN_USED) or 0.0))
    parts = [
        f"{stack} {own.mean(stack, MEAN_USED) or 0.0:.0%} at {_times(own, stack)}"
        for stack in ranked
    ]
    return (
        f"{flows_name(flows).capitalize()}, all 18 paths: part of the link used, and P95 delay "
        f"over that of an empty path: {', '.join(parts)}."
    )


def _times(own: Cells, stack: str) -> str:
    mean = own.mean(stack, STRETCH)
    return "an unknown delay" if mean is None else f"{digits(mean)} times"


def _winners(cells: Cells) -> str:
    """Who has the least delay among those that are near the best throughput, path by path."""
    counts: dict[str, int] = {}
    for path in cells.table(table(THROUGHPUT, 1)).rows():
        best = _best(cells, path)
        if best is not None:
            counts[best] = counts.get(best, 0) + 1
    texts = ", ".join(
        f"{stack} on {count}" for stack, count in sorted(counts.items(), key=lambda own: -own[1])
    )
    return (
        f"Least P95 delay among those with {_NEAR:.0%} of the best throughput, one flow, by number "
        f"of paths: {texts}."
    )


def _best(cells: Cells, path: str) -> str | None:
    throughput, delay = cells.table(table(THROUGHPUT, 1)), cells.table(table(DELAY, 1))
    means = {s: m for s in throughput.columns() if (m := throughput.mean(path, s)) is not None}
    delays = {s: m for s in means if (m := delay.mean(path, s)) is not None}
    near = [s for s in delays if means[s] >= _NEAR * max(means.values())]
    return min(near, key=lambda stack: delays[stack]) if near else None


def _paths(cells: Cells) -> Iterator[str]:
    throughput, delay = cells.table(table(THROUGHPUT, 1)), cells.table(table(DELAY, 1))
    for path in throughput.rows():
        texts = [
            f"{stack} {throughput.text(path, stack)} Mbit/s, {digits(mean)} ms"
            for stack in throughput.columns()
            if (mean := delay.mean(path, stack)) is not None
        ]
        yield f"Path {path}, one flow: {'; '.join(texts)}."
