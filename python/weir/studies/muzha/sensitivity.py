"""Effect of unpublished settings on the result: one setting changed at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weir.fairness import jain
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha import chain, cross
from weir.studies.muzha.chain import TIMES
from weir.studies.muzha.experiment import (
    MUZHA,
    NEWRENO,
    STACKS,
    Radio,
    Sender,
    hops_of,
    memory,
    scenario,
)
from weir.studies.muzha.quantities import RETRANSMISSIONS, THROUGHPUT, ratio, summed

HOPS = (4, 8)
WINDOWS = (8, 32)
CROSS_HOPS = 4
CROSS_WINDOW = 32

TABLE = "sensitivity"
NETWORK_TABLE = "networks"
FAIRNESS, SHARE = "Jain beside NewReno", "share beside NewReno"


@dataclass(frozen=True, slots=True)
class Variant:
    """Muzha with one thing changed: at the sender, or what routers do."""

    of: str
    """What it changes."""
    stack: str = STACKS[MUZHA]
    feedback: str = Radio.feedback
    round_trips: float | None = None
    """Of a memory that goes by the length of the route, in place of `feedback`."""

    def feedback_over(self, hops: int) -> str:
        """What routers stamp on a route of `hops` hops."""
        return self.feedback if self.round_trips is None else memory(hops, self.round_trips)


def _router(of: str, keys: str) -> Variant:
    return Variant(of, feedback=f'{{ kind = "drai", {keys} }}')


def _sender(of: str, options: str) -> Variant:
    return Variant(of, f"newreno/muzha({options})")


DEFAULT = "as here"

VARIANTS = {
    DEFAULT: Variant(""),
    "signal: medium": _router("estimator", 'signal = "medium"'),
    "memory: half an RTT": Variant("estimator", round_trips=0.5),
    "memory: 1 RTT": Variant("estimator", round_trips=1.0),
    "memory: 2 RTT": Variant("estimator", round_trips=2.0),
    "memory: 100 ms": _router("estimator", 'memory = "100ms"'),
    "memory: 500 ms": _router("estimator", 'memory = "500ms"'),
    "memory: 1250 ms": _router("estimator", 'memory = "1250ms"'),
    "share: none": _router("share", 'share = "none"'),
    "share: literal": _router("share", 'share = "literal"'),
    "thresholds: half": _router("thresholds", 'thresholds = ["2.5%", "7.5%", "15%", "25%"]'),
    "thresholds: 1.5 times": _router("thresholds", 'thresholds = ["7.5%", "22.5%", "45%", "75%"]'),
    "update: smooth, per ACK": _sender("sender", "update=per-ack-smooth"),
    "update: literal, per ACK": _sender("sender", "update=per-ack-literal"),
    "fast retransmit: by index": _sender("sender", "fr-reduce=by-index"),
    "fast retransmit: no cut": _sender("sender", "fr-reduce=none"),
    "timeout: half": _sender("sender", "rto=half"),
    "recovery ends: any ACK": _sender("sender", "exit=any"),
    "version 2": Variant(
        "version",
        "newreno/muzha2",
        '{ kind = "drai", estimator = "hybrid", signal = "medium" }',
    ),
}


@dataclass(frozen=True)
class Network:
    """The substrate with one thing changed."""

    keys: Mapping[str, str] = field(default_factory=dict)
    mss: int = 1000


NETWORKS = {
    DEFAULT: Network(),
    "ARP": Network({"arp": "true"}),
    "MAC of before 2006": Network({"mac": '"ns-2-old"'}),
    "IEEE 802.11's MAC": Network({"mac": '"standard"'}),
    "DSR": Network({"routing": '"dsr"'}),
    "no false route failures": Network({"routing": '"static"'}),
    "packets of 1460 B": Network(mss=1460),
}
"""On these Muzha is held against NewReno on the same."""


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label, but what the chain has already."""
    found: dict[str, str] = {}
    for name, variant in VARIANTS.items():
        if name == DEFAULT:
            continue
        for hops, window in _places(extent):
            radio = Radio(hops, feedback=variant.feedback_over(hops))
            sender = Sender(variant.stack, window)
            found[_label(name, hops, window)] = scenario(radio, [sender], extent)
        radio = Radio(CROSS_HOPS, "cross", feedback=variant.feedback_over(CROSS_HOPS))
        senders = [
            Sender(stack, CROSS_WINDOW, name, wait_s=cross.WAIT_S)
            for stack, name in (
                (variant.stack, cross.FIRST),
                (STACKS[NEWRENO], cross.SECOND),
            )
        ]
        found[_cross_label(name)] = scenario(radio, senders, extent)
    for name, network in NETWORKS.items():
        if name == DEFAULT:
            continue
        for (hops, window), protocol in itertools.product(_places(extent), (NEWRENO, MUZHA)):
            radio = Radio(hops, keys=network.keys)
            sender = Sender(STACKS[protocol], window, mss=network.mss)
            name_of = _network_label(name, protocol, hops, window)
            found[name_of] = scenario(radio, [sender], extent)
    return found


def cells(contests: Contests, extent: Extent) -> Iterator[Cell]:
    """Throughput and retransmissions over NewReno's, and how NewReno fares beside it."""
    for name in VARIANTS:
        for window in WINDOWS:
            own = [_label(name, *place) for place in _places(extent, window)]
            usual = [chain.label(NEWRENO, *place) for place in _places(extent, window)]
            yield from _over(contests, TABLE, name, window, own, usual)
        rates = [
            THROUGHPUT.by_seed(contests, _cross_label(name), flow)
            for flow in (cross.FIRST, cross.SECOND)
        ]
        seeds = sorted(set(rates[0]) & set(rates[1]))
        pairs = [[rate[seed] or 0.0 for rate in rates] for seed in seeds]
        shares = (own / (own + other) for own, other in pairs if own + other > 0)
        yield cell(TABLE, name, SHARE, "share", mean_interval(shares, (0.0, 1.0)))
        yield cell(TABLE, name, FAIRNESS, "index", mean_interval(map(jain, pairs), (0.5, 1.0)))
    for name in NETWORKS:
        for window in WINDOWS:
            own, usual = (
                [_network_label(name, who, *place) for place in _places(extent, window)]
                for who in (MUZHA, NEWRENO)
            )
            yield from _over(contests, NETWORK_TABLE, name, window, own, usual)


def column(quantity: str, window: int) -> str:
    """A heading of both tables."""
    return f"{quantity}, window {window}"


def _over(
    contests: Contests,
    table: str,
    name: str,
    window: int,
    own: Sequence[str],
    usual: Sequence[str],
) -> Iterator[Cell]:
    """Ratios of sums over some cases."""
    for quantity in (THROUGHPUT, RETRANSMISSIONS):
        ours, reference = (
            summed([quantity.by_seed(contests, label) for label in labels])
            for labels in (own, usual)
        )
        yield cell(table, name, column(quantity.name, window), TIMES, ratio(ours, reference))


def _places(extent: Extent, *windows: int) -> list[tuple[int, int]]:
    """Lengths and windows at which variants are tried."""
    return list(itertools.product(hops_of(extent, HOPS), windows or WINDOWS))


def _label(name: str, hops: int, window: int) -> str:
    if name == DEFAULT:
        return chain.label(MUZHA, hops, window)
    return f"variant, {name}, {hops} hops, window {window}"


def _cross_label(name: str) -> str:
    if name == DEFAULT:
        return cross.label((MUZHA, NEWRENO), CROSS_HOPS, cross.SETTINGS[CROSS_WINDOW])
    return f"variant, {name}, beside NewReno"


def _network_label(name: str, protocol: str, hops: int, window: int) -> str:
    if name == DEFAULT:
        return chain.label(protocol, hops, window)
    return f"network, {name}, {protocol}, {hops} hops, window {window}"
