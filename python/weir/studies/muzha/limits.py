"""Windows that go by the length of the route.

Chen, Xue and Nahrstedt (ICC 2003) bound the window by about a fifth of the hops there and back,
Fu et al. (INFOCOM 2003) by a quarter of the hops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha import chain
from weir.studies.muzha.experiment import (
    NEWRENO,
    STACKS,
    WINDOWS,
    Radio,
    Sender,
    hops_name,
    hops_of,
    scenario,
)
from weir.studies.muzha.quantities import RETRANSMISSIONS, THROUGHPUT, ratio, summed

SENDERS: Mapping[str, Sender] = {
    "cwl": Sender(STACKS[NEWRENO], "cwl"),
    "cwl(1/8)": Sender(STACKS[NEWRENO], "cwl(1/8)"),
    "receiver-cwl": Sender(STACKS[NEWRENO], "receiver-cwl"),
}
"""NewReno under limits that go by the length of the route, the last applied by the receiver."""

GAIN = "window limits, gain"
RESENT = "window limits, resent"


def label(name: str, hops: int) -> str:
    """The name of a case."""
    return f"limit, {name}, {hops} hops"


def rows() -> list[str]:
    """Fixed windows first, the widest of which the others are held against."""
    return [*map(_fixed, WINDOWS), *SENDERS]


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label, but what the chain has already."""
    return {
        label(name, hops): scenario(Radio(hops), [sender], extent)
        for (name, sender), hops in itertools.product(SENDERS.items(), hops_of(extent))
    }


def cells(contests: Contests, extent: Extent) -> Iterator[Cell]:
    """Throughput and retransmissions over those at the widest fixed window."""
    lengths = hops_of(extent)
    for table, quantity in ((GAIN, THROUGHPUT), (RESENT, RETRANSMISSIONS)):
        reference = {h: quantity.by_seed(contests, _case(_fixed(WINDOWS[-1]), h)) for h in lengths}
        for name in rows():
            own = {h: quantity.by_seed(contests, _case(name, h)) for h in lengths}
            for hops in lengths:
                ours = ratio(own[hops], reference[hops])
                yield cell(table, name, hops_name(hops), "× window 32", ours)
            total = ratio(summed(list(own.values())), summed(list(reference.values())))
            yield cell(table, name, chain.ALL_HOPS, "× window 32", total)


def _fixed(window: int) -> str:
    return f"window {window}"


def _case(name: str, hops: int) -> str:
    for window in WINDOWS:
        if name == _fixed(window):
            return chain.label(NEWRENO, hops, window)
    return label(name, hops)
