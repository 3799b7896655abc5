"""What RFC 9743 asks of a new algorithm, where CUBIC, which is a standard, can be the bar.

The RFC names considerations and no numbers. These three need none: whether an algorithm loses more
packets than CUBIC (§5.1.3), keeps longer queues (§5.1.2), or harms a CUBIC flow more than another
CUBIC flow does (§5.2.1, as Ware et al., HotNets 2019, measure harm). Runs are paired by seeds; it
fails where the 95 % interval of the difference is wholly on the wrong side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.fairness import harm
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.ccwg.bundle import Bundle
from weir.studies.cells import cell
from weir.studies.contest import Contests
from weir.studies.envelopes import FAIL, INCONCLUSIVE, PASS
from weir.studies.schemes import KINDS, present

BAR = "cubic"
STACKS = present(KINDS)
BUFFERS = (1, 4)
"""In bandwidth-delay products."""

_TEXT = """
name = "ccwg"

[topology]
rate = "50mbit"
rtt = "30ms"
queue = "{buffer}bdp"

[[flow]]
name = "flow"
stack = "{{stack}}"
start_jitter = "2s"
{beside}
[measure]
duration = "30s"
warmup = "8s"
sample_interval = "0s"
repeat = {{repeat}}
seed = {{seed}}
"""

_BESIDE = """
[[flow]]
name = "cubic"
stack = "cubic"
start_jitter = "2s"
"""

BySeed = Mapping[int, float | None]


def alone(buffer: int) -> Bundle:
    """One flow."""
    text = _TEXT.format(buffer=buffer, beside="")
    return Bundle(f"RFC 9743: alone, {buffer} BDP", "RFC 9743", STACKS, text, [])


def beside(buffer: int) -> Bundle:
    """The flow and one of CUBIC."""
    text = _TEXT.format(buffer=buffer, beside=_BESIDE)
    return Bundle(f"RFC 9743: beside CUBIC, {buffer} BDP", "RFC 9743", STACKS, text, [])


RFC9743 = tuple(kind(buffer) for buffer in BUFFERS for kind in (alone, beside))


def cells(contests: Contests) -> Iterator[Cell]:
    """Every comparison with the bar."""
    for buffer in BUFFERS:
        solo, shared = alone(buffer), beside(buffer)
        for stack in STACKS:
            if stack == BAR:
                continue
            yield _compared(
                (solo.name, "loss less that of CUBIC (§5.1.3)", stack, "share"),
                contests.flow(solo.label(stack), "flow", "loss_ratio"),
                contests.flow(solo.label(BAR), "flow", "loss_ratio"),
            )
            yield _compared(
                (solo.name, "P95 queueing delay less that of CUBIC (§5.1.2)", stack, "ms"),
                contests.link(solo.label(stack), "queue_delay_ms_p95"),
                contests.link(solo.label(BAR), "queue_delay_ms_p95"),
            )
            yield _compared(
                (shared.name, "harm to CUBIC less that of CUBIC (§5.2.1)", stack, "share"),
                _harms(contests, solo, shared, stack),
                _harms(contests, solo, shared, BAR),
            )


def _harms(contests: Contests, solo: Bundle, shared: Bundle, stack: str) -> BySeed:
    """What a CUBIC flow loses of its goodput beside one of `stack`, by seed."""
    has_alone = contests.flow(solo.label(BAR), "flow", "goodput_mbps")
    has_beside = contests.flow(shared.label(stack), "cubic", "goodput_mbps")
    return {
        seed: harm(own, left, "more")
        for seed, own in has_alone.items()
        if own is not None and (left := has_beside.get(seed)) is not None
    }


def _compared(place: tuple[str, str, str, str], ours: BySeed, bar: BySeed) -> Cell:
    """The difference seed by seed; no worse unless its whole interval is above zero."""
    differences = [
        own - theirs
        for seed in sorted(ours.keys() & bar.keys())
        if (own := ours[seed]) is not None and (theirs := bar[seed]) is not None
    ]
    found = mean_interval(differences)
    holds = None if found.lo is None else found.lo <= 0
    words = {
        True: PASS,
        False: f"{FAIL}: worse than CUBIC, with 95 % confidence",
        None: f"{INCONCLUSIVE}: two seeds or more are required",
    }
    return cell(*place, found, published="not above 0", note=words[holds], holds=holds)
