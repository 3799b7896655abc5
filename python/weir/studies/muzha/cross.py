"""Two flows on the two arms of a cross: pairs of protocols, and each next to itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from weir.fairness import jain
from weir.stats import Estimate, jackknife, mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha.experiment import (
    MUZHA,
    NEWRENO,
    STACKS,
    VEGAS,
    WINDOWS,
    Radio,
    Sender,
    hops_of,
    scenario,
)
from weir.studies.muzha.published import printed
from weir.studies.muzha.quantities import DELAY, THROUGHPUT, BySeed, Quantity, summed

HOPS = (4, 6, 8)
PAIRS = ((VEGAS, NEWRENO), (MUZHA, NEWRENO), (NEWRENO, NEWRENO), (MUZHA, MUZHA))
"""The two of the slides, and what they are to be held against."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A window, and how packets find their way."""

    window: int
    routing: str = "aodv"

    @property
    def name(self) -> str:
        """As tables and figures name it."""
        known = ", routes known" if self.routing == "static" else ""
        return f"window {self.window}{known}"


SETTINGS = {window: Setting(window) for window in WINDOWS}
"""By window: those that may be the slides'."""

KNOWN = Setting(WINDOWS[-1], "static")
"""Without route failures: AODV takes a neighbour that does not answer seven times for gone."""

ALL_SETTINGS = (*SETTINGS.values(), KNOWN)

FIRST, SECOND = "first", "second"
WAIT_S = 1.0
"""Each flow starts within this time, so that either may come first."""

AGGREGATE, FAIRNESS, SHARE = "aggregate", "Jain", "share"
FAIRNESS_OF_MEANS = "Jain of means"
"""The index of the mean throughputs, as the slides print; not the mean of each run's index."""


Pair = tuple[str, str]


def label(pair: Pair, hops: int, setting: Setting) -> str:
    """The name of a case."""
    return f"cross, {pair_name(pair)}, {hops} hops, {setting.name}"


def table(hops: int, setting: Setting) -> str:
    """The name of a table of this part."""
    return f"cross of {hops} hops, {setting.name}"


def pair_name(pair: Pair) -> str:
    """The row of what is about both flows."""
    return " + ".join(pair)


def flow_name(own: str, other: str) -> str:
    """The row of what is about one flow."""
    return f"{own} beside {other}"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    return {
        label(pair, hops, setting): scenario(
            Radio(hops, "cross", {"routing": f'"{setting.routing}"'}),
            [
                Sender(STACKS[protocol], setting.window, name, wait_s=WAIT_S)
                for protocol, name in zip(pair, (FIRST, SECOND), strict=True)
            ],
            extent,
        )
        for setting in ALL_SETTINGS
        for hops in hops_of(extent, HOPS)
        for pair in PAIRS
    }


def cells(contests: Contests, extent: Extent) -> Iterator[Cell]:
    """What each flow got, and how evenly both shared."""
    for setting in ALL_SETTINGS:
        for hops in hops_of(extent, HOPS):
            for pair in PAIRS:
                yield from _of_pair(contests, pair, hops, setting)


def _of_pair(contests: Contests, pair: Pair, hops: int, setting: Setting) -> Iterator[Cell]:
    name, place = label(pair, hops, setting), table(hops, setting)
    slide = printed().cross(hops, pair)
    note = "" if slide is None else slide.note
    rates = [THROUGHPUT.by_seed(contests, name, flow) for flow in (FIRST, SECOND)]
    total = summed(rates)
    if pair[0] == pair[1]:
        yield from _of_equals(contests, pair[0], name, place)
    else:
        for number, own in enumerate(pair):
            row, flow = flow_name(own, pair[1 - number]), (FIRST, SECOND)[number]
            for quantity in (THROUGHPUT, DELAY):
                values = quantity.of(contests, name, flow)
                was = None if slide is None else getattr(slide, quantity.name)[number]
                column = quantity.name
                yield cell(place, row, column, quantity.unit, values, published=was)
            yield cell(place, row, SHARE, "share", _share(rates[number], total))
    for column, unit, ours, was in (
        (AGGREGATE, "kbit/s", mean_interval(total.values(), (0.0, None)), "aggregate"),
        (FAIRNESS, "index", _fairness(rates), "fairness"),
        (FAIRNESS_OF_MEANS, "index", fairness_of_means(contests, name), "fairness"),
    ):
        value = None if slide is None else getattr(slide, was)
        said = note if was == "fairness" else ""
        yield cell(place, pair_name(pair), column, unit, ours, published=value, note=said)


def _of_equals(contests: Contests, own: str, name: str, place: str) -> Iterator[Cell]:
    """One row for both of them: each run counts with their mean."""

    def mean(quantity: Quantity) -> Estimate:
        both = summed([quantity.by_seed(contests, name, flow) for flow in (FIRST, SECOND)])
        halves = (None if value is None else value / 2 for value in both.values())
        return mean_interval(halves, (0.0, None))

    for quantity in (THROUGHPUT, DELAY):
        yield cell(place, flow_name(own, own), quantity.name, quantity.unit, mean(quantity))


def _share(own: BySeed, total: BySeed) -> Estimate:
    shares = ((own[seed] or 0.0) / whole for seed, whole in total.items() if whole)
    return mean_interval(shares, (0.0, 1.0))


def fairness_of_means(contests: Contests, name: str) -> Estimate:
    """Jain's index of both flows' mean throughputs, with a jackknife's interval."""
    rates = [THROUGHPUT.by_seed(contests, name, flow) for flow in (FIRST, SECOND)]
    seeds = sorted(set(rates[0]) & set(rates[1]))
    runs = [tuple(rate[seed] or 0.0 for rate in rates) for seed in seeds]
    return jackknife(
        runs, lambda some: jain([math.fsum(own) for own in zip(*some, strict=True)]), (0.5, 1.0)
    )


def _fairness(rates: list[BySeed]) -> Estimate:
    seeds = sorted(set(rates[0]) & set(rates[1]))
    return mean_interval(
        (jain([rate[seed] or 0.0 for rate in rates]) for seed in seeds), (0.5, 1.0)
    )
