"""What the study says in words. Every sentence is computed from the cells; none is fixed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from weir import dynamics
from weir.studies import claims
from weir.studies.book import joins, mix, rpc, series
from weir.studies.book.experiment import AT_SWITCH, BUFFERS, RIVAL_BUFFERS, STREAMS, Extent
from weir.studies.cells import Cells, digits
from weir.studies.networks import NETWORKS

_JUMP = 2.0
"""A change by this factor from one point of a sweep to the next is called sudden."""

_UNSTEADY = 0.1
"""Shares of repeats that differ by more than this depend on start times."""


def findings(cells: Cells, extent: Extent) -> list[str]:
    """The sentences, the main ones first."""
    return [
        claims.summary(cells.table(claims.TABLE).all, "of the chapter and the literature"),
        *_joining(cells, extent),
        _fairness(cells),
        _congestion(cells, extent),
        _sudden(cells),
        requests(cells),
        mix.mix_words(cells),
        reversal(cells),
        *claims.in_words(cells.table(claims.TABLE).all),
        *_extents(extent),
        *_assumptions(),
    ]


def _joining(cells: Cells, extent: Extent) -> Iterator[str]:
    own = cells.table(joins.TWO)
    networks = list(filter(extent.is_long_enough, _networks(own)))
    parts = [f"{_title(n)}: {_time(own, f'{n}, reno', joins.ADAPTS)}" for n in networks]
    yield (
        f"When two Reno flows share equally (ε = {dynamics.EPSILON:g}, from the start of the "
        f"second, 2-flow test): {'; '.join(parts)}."
    )
    yield (
        "How fast flows yield to a new one (the same, all algorithms): "
        f"{_by_network(own, networks, joins.ADAPTS)}."
    )
    yield (
        "How fast what a flow leaves is taken (until 90 % of it is used): "
        f"{_by_network(own, networks, joins.RELEASED)}."
    )


def _fairness(cells: Cells) -> str:
    parts = []
    for table, what in ((joins.TWO, "same algorithm"), (joins.MIXED, "mixed")):
        own = cells.table(table)
        known = [(mean, row) for row in own.rows() if (mean := own.mean(row, joins.JAIN))]
        (low, worst), (high, best) = min(known), max(known)
        parts.append(
            f"{what}, from {digits(low)} ({_named(worst)}) to {digits(high)} ({_named(best)})"
        )
    unfair = next(c for c in cells.all if c["table"].startswith(series.UNFAIR))
    who = str(unfair["row"]).partition(":")[0]
    network = str(unfair["table"]).partition(" ")[2]
    share = cells.table(joins.MIXED).text(f"{network}, {who}", joins.SHARE)
    return (
        f"Fairness (Jain's index over the second half of the newest flow): {'; '.join(parts)}. "
        f"The most uneven pair is {who} on {_title(network)}: the second flow has {share} of both."
    )


def _congestion(cells: Cells, extent: Extent) -> str:
    own = cells.table(joins.TWO)
    parts = []
    for network in filter(extent.is_long_enough, _networks(own)):
        rows = [row for row in own.rows() if row.startswith(f"{network}, ")]
        worst = max(rows, key=lambda row: own.mean(row, joins.LOST) or 0.0)
        longest = max(rows, key=lambda row: own.mean(row, joins.DELAY) or 0.0)
        shortest = min(rows, key=lambda row: own.mean(row, joins.DELAY) or 0.0)
        parts.append(
            f"{_title(network)}: at most {own.text(worst, joins.LOST)} % sent again "
            f"({_algorithm(worst)}), mean queue from {own.text(shortest, joins.DELAY)} ms "
            f"({_algorithm(shortest)}) to {own.text(longest, joins.DELAY)} ms "
            f"({_algorithm(longest)})"
        )
    return f"Level of congestion (2-flow test): {'; '.join(parts)}."


def requests(cells: Cells) -> str:
    """What requests get beside streams."""
    parts = []
    for request, figure in rpc.FIGURES.items():
        for streams in (STREAMS[0], STREAMS[-1]):
            own = cells.table(figure)
            ranked = sorted(own.rows(), key=lambda row: own.mean(row, str(streams)) or 0.0)
            best, worst = ranked[-1], ranked[0]
            parts.append(
                f"{request} beside {streams}: {best} {own.text(best, str(streams))} Gbit/s is "
                f"best, {worst} {own.text(worst, str(streams))} worst"
            )
    samples = [c["samples"] for c in cells.table(rpc.FIGURES["10 KB"]).all]
    return (
        f"Do small requests get their share beside streams? {'; '.join(parts)}. Behind each cell "
        f"of 10 KB stand {min(samples)} to {max(samples)} requests."
    )


def _sudden(cells: Cells) -> str:
    jumps = [
        *_jumps(cells.table(rpc.BUFFER_FIGURE), [f"{bdp:g} BDP" for bdp in BUFFERS], "P99"),
        *(
            jump
            for request, figure in rpc.FIGURES.items()
            for jump in _jumps(
                cells.table(f"{figure}-p99"), [str(n) for n in STREAMS], f"P99 of {request}"
            )
        ),
    ]
    unsteady = [
        f"{_named(row)} ({own.note(row, joins.SPREAD)})"
        for table in (joins.TWO, joins.THREE, joins.MIXED)
        for own in [cells.table(table)]
        for row in own.rows()
        if (own.mean(row, joins.SPREAD) or 0.0) > _UNSTEADY
    ]
    text = f"Sudden changes (by a factor of {_JUMP:g} from one point to the next): "
    text += f"{'; '.join(jumps)}." if jumps else "none."
    if unsteady:
        text += (
            " Where start times that differ by at most 0.1 s move the newest flow's share by more "
            f"than {_UNSTEADY:g}: {'; '.join(unsteady)}."
        )
    return text


def _jumps(cells: Cells, columns: Sequence[str], what: str) -> Iterator[str]:
    for row in cells.rows():
        for one, other in itertools.pairwise(columns):
            before, after = cells.mean(row, one), cells.mean(row, other)
            if before and after and max(before / after, after / before) >= _JUMP:
                yield (
                    f"{what} of {row} from {digits(before)} to {digits(after)} ms between {one} "
                    f"and {other}"
                )


def reversal(cells: Cells) -> str:
    """BBR against CUBIC, by buffer."""
    own = cells.table(rpc.RIVALRY)
    row = own.rows()[0]
    parts = [f"{own.text(row, f'{bdp:g} BDP')} at {bdp:g}" for bdp in RIVAL_BUFFERS]
    below = [bdp for bdp in RIVAL_BUFFERS if (own.mean(row, f"{bdp:g} BDP") or 1.0) < 0.5]
    turn = (
        f"It falls below one half at {min(below):g} BDP." if below else "It stays above one half."
    )
    return f"BBR's share beside CUBIC, by buffer in BDP: {', '.join(parts)}. {turn}"


def _extents(extent: Extent) -> Iterator[str]:
    for network, (scale, repeat) in extent.same.items():
        times = "the chapter's times" if scale == 1 else f"{digits(60 * scale)} s in place of 60 s"
        short = "" if extent.is_long_enough(network) else ", too short for flows to settle"
        yield f"{_title(network)}: 2-flow and 3-flow tests take {times}{short}, {repeat} repeats."
    yield (
        f"Figures 18 and 19: {extent.rpc[0]:g} s per run, a fifth of it not counted, "
        f"{extent.rpc[1]} repeats; both sizes at once: {extent.mix[0]:g} s, {extent.mix[1]} "
        f"repeats; figure 20: {extent.buffer[0]:g} s, {extent.buffer[1]} repeats; "
        f"BBR against CUBIC: {extent.rivals[0]:g} s, {extent.rivals[1]} repeats."
    )


def _assumptions() -> Iterator[str]:
    yield (
        f"The chapter does not name its algorithms. At the switch ours are {', '.join(AT_SWITCH)}: "
        "by loss, by a model of the path, by delay and by marks. Behind the router, which does not "
        "mark, DCTCP is Reno, and Westwood+ takes its place."
    )
    yield (
        "Source: Peterson, Brakmo and Davie, TCP Congestion Control: A Systems Approach, §3.4 "
        "(2022). Sizes of requests, the router's bucket and limits are those of Netesto's scripts."
    )


def _by_network(cells: Cells, networks: Sequence[str], column: str) -> str:
    parts = []
    for network in networks:
        rows = [row for row in cells.rows() if row.startswith(f"{network}, ")]
        texts = [f"{_algorithm(row)} {_time(cells, row, column)}" for row in rows]
        parts.append(f"{_title(network)}: {', '.join(texts)}")
    return "; ".join(parts)


def _time(cells: Cells, row: str, column: str) -> str:
    ours = cells.ours(row, column)
    return cells.note(row, column) if ours.mean is None else f"{cells.text(row, column)} s"


def _networks(cells: Cells) -> list[str]:
    return list(dict.fromkeys(row.partition(", ")[0] for row in cells.rows()))


def _algorithm(row: str) -> str:
    return row.partition(", ")[2]


def _named(row: str) -> str:
    return f"{_algorithm(row)}, {_title(row.partition(', ')[0])}"


def _title(network: str) -> str:
    return next(n.title for n in NETWORKS if n.id == network)
