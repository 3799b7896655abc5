"""What is expected of Netesto's tests, and what ours say. Every sentence comes from the cells."""

from __future__ import annotations

from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import Cell, claims
from weir.studies.cells import Cells, digits
from weir.studies.claims import claim, ratio, size_of
from weir.studies.netesto import measures
from weir.studies.netesto.experiment import (
    BASELINE,
    CLIENTS,
    MIXES,
    RATE_STACKS,
    SIZE_STACKS,
    Extent,
    flow_name,
    size_buffers,
    small_and_large,
)
from weir.studies.networks import NETWORKS, WAN_10M

_MOVED_TIMES = 20.0
"""Effect of start times on the ratio of two goodputs (L. Brakmo on Netesto, from 1 to 20)."""

_MOVES = 2.0
_EVEN = 1.25


def expectations(cells: Cells, extent: Extent, sensitivity: measures.Sensitivity) -> Iterator[Cell]:
    """One cell per claim."""
    moved = sensitivity.high / sensitivity.low
    yield claim(
        "moving start times a little moves the ratio of two equal flows' goodputs a lot",
        "largest ratio of two repeats' ratios",
        Estimate(moved, None, None, sensitivity.n),
        moved >= _MOVES,
        f"{sensitivity.test.label}: from {digits(sensitivity.low)} to {digits(sensitivity.high)}; "
        f"a lot is taken for a factor of {_MOVES:g}",
        published=_MOVED_TIMES,
    )
    few, many = (f"{bdp:g} BDP" for bdp in (extent.buffers[0], extent.buffers[-1]))
    rtts = cells.table(measures.stream_table(measures.RTT, WAN_10M.id))
    row = f"2-flow, {BASELINE}"
    larger = ratio(rtts.ours(row, many), rtts.ours(row, few))
    yield claim(
        "deep buffers cost round-trip time under loss-based control",
        f"{BASELINE}, mean RTT at {many} over that at {few}",
        larger,
        larger.lo is not None and larger.lo > _MOVES,
        f"expected is more than {_MOVES:g}",
    )
    pairs = cells.table(measures.stream_table(measures.SHARE, WAN_10M.id))
    row = f"2-flow, {BASELINE} then bbr"
    least, most = pairs.ours(row, many), pairs.ours(row, few)
    taken = ratio(most, least)
    yield claim(
        "who wins between CUBIC and BBR depends on the router's buffer",
        f"share of a later BBR at {few} over that at {many}",
        taken,
        most.lo is not None and least.hi is not None and most.lo > least.hi,
        "the two intervals must not overlap",
    )
    yield from _size_fairness(cells, extent)
    yield _evenness(cells, extent)


def _size_fairness(cells: Cells, extent: Extent) -> Iterator[Cell]:
    where = measures.size_where(WAN_10M, 1)
    own = cells.table(f"small over large, {where}")
    column = str(extent.large_counts[0])
    best = max((own.ours(row, column) for row in own.rows()), key=size_of)
    small, large = small_and_large(WAN_10M)
    yield claim(
        "small requests do not get what large ones get beside streams",
        f"goodput of a {flow_name(small)} connection over that of a {flow_name(large)} one, best "
        "algorithm",
        best,
        None if best.lo is None or best.hi is None or best.lo < 1 < best.hi else best.hi <= 1,
        where,
    )


def _evenness(cells: Cells, extent: Extent) -> Cell:
    own = cells.table(f"{measures.EVENNESS}, stream")
    column = str(extent.instances[-1])
    ranked = sorted(own.rows(), key=lambda row: size_of(own.ours(row, column)))
    best = own.ours(ranked[0], column)
    return claim(
        "equal streams of several clients share a LAN equally",
        f"largest over smallest goodput of {CLIENTS * int(column)} streams, best algorithm",
        best,
        best.mean is not None and best.mean <= _EVEN,
        f"{ranked[0]}; equal is taken for {_EVEN:g}",
    )


def findings(cells: Cells, extent: Extent) -> list[str]:
    """The sentences, the main ones first."""
    expected = cells.table(claims.TABLE).all
    return [
        claims.summary(expected, "of the tool's author and scripts"),
        *_streams(cells, extent),
        *_rates(cells, extent),
        *_sizes(cells, extent),
        *claims.in_words(expected),
        *_about(extent),
    ]


def _streams(cells: Cells, extent: Extent) -> Iterator[str]:
    for network in extent.streams:
        for quantity, what in (
            (measures.CROSSES, "until the later of two equal flows first has more"),
            (measures.RECLAIMS, "until the first has taken back what the later leaves"),
        ):
            own = cells.table(measures.stream_table(quantity, network))
            column = "1 BDP"
            parts = []
            for row in own.rows():
                if row.startswith("2-flow, ") and " then " not in row:
                    mean = own.mean(row, column)
                    texts = own.note(row, column) if mean is None else f"{own.text(row, column)} s"
                    parts.append(f"{row.removeprefix('2-flow, ')} {texts}")
            yield f"{_title(network)}, 1 BDP, {what}: {', '.join(parts)}."
        yield _over_buffers(cells, extent, network)


def _over_buffers(cells: Cells, extent: Extent, network: str) -> str:
    own = cells.table(measures.stream_table(measures.SHARE, network))
    columns = [f"{bdp:g} BDP" for bdp in extent.buffers]
    parts = []
    for other in extent.others:
        row = f"2-flow, {BASELINE} then {other}"
        shares = [own.text(row, column) for column in columns]
        parts.append(f"{other} {', '.join(shares)}")
    return (
        f"{_title(network)}, share of a later flow beside {BASELINE}, at "
        f"{', '.join(columns)}: {'; '.join(parts)}."
    )


def _rates(cells: Cells, extent: Extent) -> Iterator[str]:
    few, many = str(extent.instances[0]), str(extent.instances[-1])
    mix = "10K + 1M"
    tail = cells.table(f"{measures.TAIL} of 10K, {mix}")
    total = cells.table(f"{measures.GOODPUT}, {mix}")
    parts = [
        f"{stack} {total.text(stack, many)} Gbit/s; P99 of 10K at {few} per client "
        f"{_latency(tail, stack, few)}, at {many} {_latency(tail, stack, many)}"
        for stack in RATE_STACKS
    ]
    yield f"Rate test {mix}, {CLIENTS} clients on the LAN: {'; '.join(parts)}."
    uneven = []
    for name in MIXES:
        own = cells.table(f"{measures.EVENNESS}, {name}")
        worst = max(own.rows(), key=lambda row: size_of(own.ours(row, many)))
        uneven.append(f"{name}: {worst} {own.text(worst, many)} times")
    yield (
        f"Largest over smallest goodput of connections that ask for the same, {many} per client, "
        f"worst algorithm: {'; '.join(uneven)}."
    )


def _sizes(cells: Cells, extent: Extent) -> Iterator[str]:
    count = str(extent.large_counts[-1])
    for network in NETWORKS:
        if network.id not in extent.size:
            continue
        parts = []
        for bdp in size_buffers(network):
            where = measures.size_where(network, bdp)
            tail = cells.table(f"{measures.TAIL} of small, {where}")
            texts = [f"{stack} {_latency(tail, stack, count)}" for stack in SIZE_STACKS]
            parts.append(f"{where}: {', '.join(texts)}")
        small, large = small_and_large(network)
        yield (
            f"Size test, P99 of {flow_name(small)} requests beside a stream and {count} "
            f"connections of {flow_name(large)} per client: {'; '.join(parts)}."
        )


def _about(extent: Extent) -> Iterator[str]:
    sizes = [f"{seconds:g} s ({network})" for network, (seconds, _) in extent.size.items()]
    yield (
        f"Rate tests take {extent.rate[0]:g} s, size tests {', '.join(sizes)}; the scripts take "
        "60 s each. Staggered tests have the scripts' times."
    )
    yield (
        "Source: Netesto, github.com/facebook/fbkutils, scripts tcpCA23, inlib.rateTest and sizes. "
        "In its own scripts the third flow of a mixed 3-flow test inherits whatever algorithm was "
        "set before; here 3-flow tests have one algorithm."
    )


def _latency(cells: Cells, row: str, column: str) -> str:
    if cells.mean(row, column) is None:
        return f"unknown ({cells.note(row, column)})"
    return f"{cells.text(row, column)} ms"


def _title(network: str) -> str:
    return next(n.title for n in NETWORKS if n.id == network)
