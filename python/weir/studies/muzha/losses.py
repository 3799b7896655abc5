"""Random losses on every hop: of frames, which the MAC repeats, and of packets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha.chain import TIMES
from weir.studies.muzha.experiment import NEWRENO, STACKS, Radio, Sender, hops_of, scenario
from weir.studies.muzha.quantities import THROUGHPUT, TIMEOUTS, ratio

KINDS = {"frames": "frame_error", "packets": "packet_error"}
"""What is lost, and the key that says how often."""

RATES = (0.0, 1.0, 2.0, 5.0, 10.0)
"""In percent, per hop."""

HOPS = (4, 8)
WINDOW = 8

GAIN = "gain"
_LEAST_KBPS = 10.0
"""What NewReno must carry for a ratio to it to mean anything."""


def label(protocol: str, kind: str, percent: float, hops: int) -> str:
    """The name of a case; without losses both kinds have the same."""
    what = f"{percent:g} % of {kind} lost" if percent else "nothing lost"
    return f"{what}, {protocol}, {hops} hops"


def table(quantity: str, kind: str, hops: int) -> str:
    """The name of a table of this part."""
    return f"{quantity}, {kind} lost, {hops} hops"


def column(percent: float) -> str:
    """A loss rate as a heading."""
    return f"{percent:g} %"


def percent_of(heading: str) -> float:
    """The loss rate that a heading names, in percent."""
    return float(heading.split()[0])


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    found: dict[str, str] = {}
    for hops, kind, percent in itertools.product(hops_of(extent, HOPS), KINDS, RATES):
        radio = Radio(hops, keys={KINDS[kind]: f'"{percent:g}%"'})
        for protocol, stack in STACKS.items():
            sender = Sender(stack, WINDOW)
            found[label(protocol, kind, percent, hops)] = scenario(radio, [sender], extent)
    return found


def cells(contests: Contests, extent: Extent) -> Iterator[Cell]:
    """What every protocol got, also beside NewReno, and how often its timer ran out."""
    for hops, kind in itertools.product(hops_of(extent, HOPS), KINDS):
        for quantity in (THROUGHPUT, TIMEOUTS):
            for protocol, percent in itertools.product(STACKS, RATES):
                ours = quantity.of(contests, label(protocol, kind, percent, hops))
                place = table(quantity.name, kind, hops), protocol, column(percent)
                yield cell(*place, quantity.unit, ours)
        for protocol, percent in itertools.product(STACKS, RATES):
            if protocol == NEWRENO:
                continue
            own, reference = (
                THROUGHPUT.by_seed(contests, label(who, kind, percent, hops))
                for who in (protocol, NEWRENO)
            )
            gain, note = ratio(own, reference), ""
            if (mean_interval(reference.values()).mean or 0.0) < _LEAST_KBPS:
                gain, note = mean_interval(()), "NewReno carries next to nothing here."
            place = table(GAIN, kind, hops), protocol, column(percent)
            yield cell(*place, TIMES, gain, note=note)
