"""What marks, losses, movement and smaller windows do to senders, in words made from the cells."""

from __future__ import annotations

from collections.abc import Iterator

from weir.report.summary import listed
from weir.studies.cells import Cells, digits, interval_text
from weir.studies.claims import above, below
from weir.studies.muzha import chain, limits, losses, marking, mobility, slowstart
from weir.studies.muzha.experiment import MUZHA, WINDOWS
from weir.studies.muzha.published import printed


def findings(cells: Cells) -> Iterator[str]:
    """One sentence or more per condition."""
    yield _slow_start(cells)
    yield _limits(cells)
    yield _marking(cells)
    yield from _random_loss(cells)
    yield _mobility(cells)


def _slow_start(cells: Cells) -> str:
    own = cells.table(slowstart.TABLE)
    parts = []
    for row in own.rows():
        shares = [f"{own.text(row, column)} over {column}" for column in own.columns()]
        parts.append(f"{', '.join(shares)} at {row}")
    return (
        f"Share of the time that NewReno spends in slow start, of which the slides say up to "
        f"{digits(printed().slow_start_share)}: {'; '.join(parts)}."
    )


def _limits(cells: Cells) -> str:
    gain, resent = cells.table(limits.GAIN), cells.table(limits.RESENT)
    parts = [
        f"{row} {gain.text(row, chain.ALL_HOPS)} with {resent.text(row, chain.ALL_HOPS)} of the "
        "retransmissions"
        for row in gain.rows()
        if row != f"window {WINDOWS[-1]}"
    ]
    return (
        f"NewReno with a smaller window, throughput over that at window {WINDOWS[-1]}, all lengths "
        f"together: {'; '.join(parts)}."
    )


def _marking(cells: Cells) -> str:
    texts = []
    for hops in marking.HOPS:
        own = cells.table(marking.table(hops))
        parts = [
            f"{row} {own.text(row, 'throughput')} kbit/s ("
            f"{digits(own.mean(row, marking.MARKS) or 0)} marks, "
            f"{digits(own.mean(row, marking.CONGESTED) or 0)} times in ATCP's congested state)"
            for row in own.rows()
        ]
        if parts:
            texts.append(f"over {hops} hops {', '.join(parts)}")
    return f"RED with marks on every queue, window {marking.WINDOW}: {'; '.join(texts)}."


def _random_loss(cells: Cells) -> Iterator[str]:
    for hops in losses.HOPS:
        parts = []
        for kind in losses.KINDS:
            own = cells.table(losses.table(losses.GAIN, kind, hops))
            shown = [
                column
                for column in own.columns()
                if losses.percent_of(column) in _SHOWN and own.mean(MUZHA, column) is not None
            ]
            values = [f"{interval_text(own.ours(MUZHA, column))} at {column}" for column in shown]
            if values:
                parts.append(f"{', '.join(values)} of {kind} lost on each hop")
        if parts:
            yield (
                f"Random loss over {hops} hops at window {losses.WINDOW}, throughput over "
                "NewReno's: "
                f"{'; '.join(parts)}. The MAC repeats frames. {_rule(cells, hops)}"
            )


def _rule(cells: Cells, hops: int) -> str:
    """Whether leaving the window alone after random losses pays, by more than without losses."""
    own = cells.table(losses.table(losses.GAIN, "packets", hops))
    usual = own.ours(MUZHA, losses.column(0.0))
    lossy = [
        c for c in own.columns() if losses.percent_of(c) > 0 and own.mean(MUZHA, c) is not None
    ]
    paying = [c for c in lossy if above(own.ours(MUZHA, c), usual.hi or 1.0)]
    costing = [c for c in lossy if below(own.ours(MUZHA, c), usual.lo or 1.0)]
    pays = f"at {listed(paying)} of packets" if paying else "nowhere"
    costs = f"at {listed(costing)}" if costing else "nowhere"
    return f"The rule that leaves the window alone is shown to pay {pays}, and to cost {costs}."


_SHOWN = (0.0, 1.0, 2.0, 5.0)
"""Loss rates that are put into words."""


def _mobility(cells: Cells) -> str:
    texts = []
    for name in mobility.GROUNDS:
        own = cells.table(mobility.table(mobility.GAIN, name))
        parts = []
        for sender in own.rows():
            means = [own.ours(sender, column) for column in own.columns()]
            better = sum(bool(above(ours, 1.0)) for ours in means)
            worse = sum(bool(below(ours, 1.0)) for ours in means)
            low = min(ours.mean or 0.0 for ours in means)
            high = max(ours.mean or 0.0 for ours in means)
            parts.append(
                f"{sender} {digits(low)} to {digits(high)} (shown to be more at {better}, less at "
                f"{worse} of {len(means)} speeds)"
            )
        texts.append(f"over {name}: {', '.join(parts)}")
    return (
        f"With moving nodes, throughput over that of NewReno left in the dark: {'; '.join(texts)}."
    )
