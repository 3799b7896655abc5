"""What the slides, and others, say of these networks, and whether ours agree.

A claim about more or less agrees if the whole 95 % interval lies on its side, differs if the whole
interval lies on the other, and else is inconclusive. A printed range agrees if our mean lies in it,
differs if the whole interval lies outside, and else is inconclusive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.cells import Cells, digits, interval_text
from weir.studies.claims import above, below, claim
from weir.studies.claims import ratio as over
from weir.studies.muzha import chain, cross, losses, mobility, slowstart
from weir.studies.muzha.experiment import (
    MUZHA,
    MUZHA_RTT,
    NEWRENO,
    SACK,
    VEGAS,
    WINDOWS,
    hops_in,
)
from weir.studies.muzha.published import printed

_FAIR = 0.985
"""What is printed as 0.99 after rounding."""

_ABOUT = 0.1
"""A ratio within this of one counts as one."""

_NARROW, _WIDE = WINDOWS[0], WINDOWS[-1]


def claims(cells: Cells) -> Iterator[Cell]:
    """Those of the slides first, then what the literature found on such chains."""
    yield from _ranges(cells)
    yield from _gains(cells)
    yield from _retransmissions(cells)
    yield from _order(cells)
    yield from _fairness(cells)
    yield from _vegas(cells)
    yield from _windows(cells)
    yield from _slow_start(cells)
    yield from _causes(cells)
    yield from _limits(cells)
    yield from _random_loss(cells)
    yield from _notices(cells)


def within(ours: Estimate, low: float, high: float) -> bool | None:
    """Whether the mean lies in a range; None if only a part of the interval does."""
    if ours.mean is None or ours.lo is None or ours.hi is None:
        return None
    if low <= ours.mean <= high:
        return True
    return False if ours.hi < low or ours.lo > high else None


def _ranges(cells: Cells) -> Iterator[Cell]:
    """The index comparison over 4 to 8 hops, at each window and memory."""
    printed_ranges = printed().ranges(MUZHA, NEWRENO)
    for own, memory in ((MUZHA, "200 ms"), (MUZHA_RTT, "one RTT")):
        for window in WINDOWS:
            for name, (low, high) in printed_ranges.items():
                table = chain.GAIN if name == "throughput" else chain.RESENT
                ours = cells.table(chain.table(table, window)).ours(own, chain.SHORT)
                says = (
                    f"over 4 to 8 hops Muzha has {name} of {digits(low)} to {digits(high)} times "
                    f"NewReno's, window {window}, memory {memory} (slides, index comparison)"
                )
                note = "two of the three printed rows are ambiguous"
                yield claim(says, f"{name} over NewReno's", ours, within(ours, low, high), note)


def _gains(cells: Cells) -> Iterator[Cell]:
    low, high = printed().claimed_gain
    for window, group in itertools.product(WINDOWS, chain.GROUPS):
        ours = cells.table(chain.table(chain.GAIN, window)).ours(MUZHA, group)
        if ours.mean is None:
            continue
        reaches = above(ours, low)
        is_less = below(ours, low)
        holds = True if reaches else False if is_less else None
        note = f"claimed is {digits(low)} to {digits(high)}"
        if above(ours, high):
            note += "; ours is more than that"
        says = (
            f"Muzha carries 5 to 10 % more than NewReno on a chain, {group}, at window {window} "
            "(slides)"
        )
        yield claim(says, "throughput over NewReno's", ours, holds, note)


def _retransmissions(cells: Cells) -> Iterator[Cell]:
    for window in WINDOWS:
        ours = cells.table(chain.table(chain.RESENT, window)).ours(MUZHA, chain.ALL_HOPS)
        says = f"Muzha resends less than NewReno on a chain at window {window} (slides)"
        measured = "retransmissions over NewReno's, all lengths"
        yield claim(says, measured, ours, below(ours, 1.0))


def _order(cells: Cells) -> Iterator[Cell]:
    own = cells.table(chain.table(chain.RESENT, _WIDE))
    vegas, muzha = (own.ours(who, chain.ALL_HOPS) for who in (VEGAS, MUZHA))
    says = f"Vegas resends least, then Muzha, then NewReno, at window {_WIDE} (slides)"
    quotient = over(vegas, muzha)
    is_less, is_between = below(quotient, 1.0), below(muzha, 1.0)
    holds = None if None in (is_less, is_between) else bool(is_less and is_between)
    note_text = f"Vegas {interval_text(vegas)} and Muzha {interval_text(muzha)} times NewReno's"
    yield claim(says, "retransmissions of Vegas over Muzha's", quotient, holds, note_text)


def _fairness(cells: Cells) -> Iterator[Cell]:
    for window in WINDOWS:
        for hops in cross.HOPS:
            own = cells.table(cross.table(hops, cross.SETTINGS[window]))
            ours = own.ours(cross.pair_name((MUZHA, NEWRENO)), cross.FAIRNESS_OF_MEANS)
            slide = printed().cross(hops, (MUZHA, NEWRENO))
            if ours.mean is None or slide is None:
                continue
            like = own.ours(cross.pair_name((NEWRENO, NEWRENO)), cross.FAIRNESS_OF_MEANS)
            says = (
                f"Muzha and NewReno share a cross of {hops} hops evenly at window {window} (slides)"
            )
            note = "" if like.mean is None else f"two NewReno flows: {digits(like.mean)}"
            holds = above(ours, _FAIR)
            measured = "Jain's index of mean throughputs"
            yield claim(says, measured, ours, holds, note, slide.fairness)


def _vegas(cells: Cells) -> Iterator[Cell]:
    for window in WINDOWS:
        for hops in cross.HOPS:
            own = cells.table(cross.table(hops, cross.SETTINGS[window]))
            ours = own.ours(cross.flow_name(VEGAS, NEWRENO), cross.SHARE)
            slide = printed().cross(hops, (VEGAS, NEWRENO))
            if ours.mean is None or slide is None:
                continue
            was = slide.throughput[0] / sum(slide.throughput)
            says = (
                f"Vegas has less than half beside NewReno on a cross of {hops} hops at window "
                f"{window} (slides)"
            )
            yield claim(says, "share of Vegas", ours, below(ours, 0.5), published=was)


def _windows(cells: Cells) -> Iterator[Cell]:
    """Chains are hurt by windows beyond what they can hold."""
    wide, narrow = (cells.table(chain.table("throughput", w)) for w in (_WIDE, _NARROW))
    for hops in (4, 8):
        place = f"{hops} hops"
        for who, source in (
            (NEWRENO, "Xu, Saadawi and Lee 2001: 13 to 20 % less; Fu et al. 2003: up to 30 %"),
            (SACK, "Xu, Saadawi and Lee 2001"),
        ):
            ours = over(wide.ours(who, place), narrow.ours(who, place))
            if ours.mean is not None:
                says = (
                    f"{who} carries less at window {_WIDE} than at {_NARROW} over {place} "
                    f"({source})"
                )
                measured = f"throughput at {_WIDE} over that at {_NARROW}"
                yield claim(says, measured, ours, below(ours, 1.0))
        ours = over(wide.ours(VEGAS, place), wide.ours(NEWRENO, place))
        if ours.mean is not None:
            says = f"Vegas does not suffer so over {place} (Xu, Saadawi and Lee 2001)"
            yield claim(
                says, f"throughput over NewReno's at window {_WIDE}", ours, above(ours, 1.0)
            )


def _slow_start(cells: Cells) -> Iterator[Cell]:
    """Up to 40 %: the largest share that we find."""
    own = cells.table(slowstart.TABLE)
    found = [(row, column) for row in own.rows() for column in own.columns()]
    shares = {place: own.ours(*place) for place in found if own.mean(*place) is not None}
    if not shares:
        return
    row, column = max(shares, key=lambda place: shares[place].mean or 0.0)
    most = printed().slow_start_share
    says = f"NewReno spends up to {most:.0%} of the time in slow start (slides)"
    note = f"the largest of {len(shares)} shares, that at {row} over {column}"
    ours = shares[row, column]
    is_less = below(ours, most)
    yield claim(
        says, "share of the time", ours, None if is_less is None else not is_less, note, most
    )


def _limits(cells: Cells) -> Iterator[Cell]:
    """Windows by the length of the route, on nodes that stand and nodes that move."""
    low, high = 1.08, 1.16
    source = "Chen, Xue and Nahrstedt 2003, moving nodes"
    for name in mobility.GROUNDS:
        own = cells.table(mobility.table(mobility.GAIN, name))
        ours = own.ours(mobility.CWL, mobility.column(10))
        if ours.mean is not None:
            says = (
                f"a window by the length of the route gains 8 to 16 % at 10 m/s over {name} "
                f"({source})"
            )
            note = f"theirs was held against an unbounded window, ours against {mobility.WINDOW}"
            yield claim(says, "throughput over NewReno's", ours, within(ours, low, high), note)


def _causes(cells: Cells) -> Iterator[Cell]:
    own = cells.table(chain.table(chain.LOST, _WIDE))
    for row in own.rows():
        if not row.startswith(NEWRENO) or hops_in(row.partition(", ")[2]) not in (4, 8):
            continue
        means = {cause: own.mean(row, cause) or 0.0 for cause in own.columns()}
        queue = means["queue full"]
        hops = row.partition(", ")[2]
        says = f"over {hops} the MAC loses packets, queues do not (Fu et al. 2003)"
        ours = own.ours(row, "queue full")
        note_text = ", ".join(f"{cause} {digits(value)}" for cause, value in means.items())
        measured = "packets per run that found a queue full"
        yield claim(says, measured, ours, queue < means["MAC gave up"], note_text)


def _random_loss(cells: Cells) -> Iterator[Cell]:
    """The rule for the third duplicate can only pay where losses reach the transport."""
    for hops in losses.HOPS:
        tables = {k: cells.table(losses.table(losses.GAIN, k, hops)) for k in losses.KINDS}
        base = tables["packets"].ours(MUZHA, losses.column(0.0))
        for kind, says in (
            ("frames", "what the MAC repairs changes nothing"),
            ("packets", "telling random losses apart pays where losses reach TCP"),
        ):
            ours = over(tables[kind].ours(MUZHA, losses.column(2.0)), base)
            if ours.mean is None:
                continue
            text = f"{says}, over {hops} hops with 2 % of {kind} lost (slides' loss rule)"
            holds = _is_about_one(ours) if kind == "frames" else above(ours, 1.0)
            yield claim(text, "gain over NewReno, over that without losses", ours, holds)


def _is_about_one(ours: Estimate) -> bool | None:
    """Whether the whole interval does; None if only a part of it does."""
    if ours.lo is None or ours.hi is None:
        return None
    if ours.lo >= 1 - _ABOUT and ours.hi <= 1 + _ABOUT:
        return True
    return None if ours.lo <= 1 + _ABOUT and ours.hi >= 1 - _ABOUT else False


def _notices(cells: Cells) -> Iterator[Cell]:
    sources = {
        "TCP-F": "Chandran et al. 1998",
        "ELFN": "Holland and Vaidya 1999",
        "ATCP": "Liu and Singh 2001",
        "BuS": "Kim, Toh and Choi 2000",
    }
    for name in mobility.GROUNDS:
        own = cells.table(mobility.table(mobility.GAIN, name))
        for sender, source in sources.items():
            ours = own.ours(sender, mobility.column(10))
            if ours.mean is not None:
                says = f"{sender} carries more than NewReno at 10 m/s over {name} ({source})"
                yield claim(says, "throughput over NewReno's", ours, above(ours, 1.0))
