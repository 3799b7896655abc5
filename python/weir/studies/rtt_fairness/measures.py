"""The cells of the study: goodput of the long way over that of the short one, and exponents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.fairness import rtt_exponent
from weir.results import Results
from weir.stats import Estimate, mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.rtt_fairness.experiment import LONG, QUEUES, RATIOS, SHORT, label

RATIO = "goodput, long over short"
EXPONENT = "exponent"

Point = tuple[float, float]
"""RTT and goodput of the long way, both over those of the short one."""


def table(queue: str) -> str:
    """The name of the table of ratios of one queue."""
    return f"{RATIO}, {queue}"


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell."""
    stacks, contests = extent.stacks, Contests(results)
    return [*_exponents(contests, stacks), *_ratios(contests, stacks)]


def _exponents(contests: Contests, stacks: Sequence[str]) -> Iterator[Cell]:
    """One exponent per seed over all ratios, of the RTTs that were measured, queues included."""
    for stack in stacks:
        for queue in QUEUES:
            by_seed: dict[int, list[Point]] = {}
            for ratio in RATIOS:
                for seed, point in _points(contests, queue, stack, ratio).items():
                    by_seed.setdefault(seed, []).append(point)
            fits = [rtt_exponent(*zip(*points, strict=True)) for points in by_seed.values()]
            ours = mean_interval(fit.mean for fit in fits)
            yield cell(EXPONENT, stack, queue, "", ours)


def _ratios(contests: Contests, stacks: Sequence[str]) -> Iterator[Cell]:
    for queue in QUEUES:
        for stack in stacks:
            for ratio in RATIOS:
                points = _points(contests, queue, stack, ratio).values()
                ours = mean_interval((rate for _, rate in points), (0.0, None))
                rtts = mean_interval(rtt for rtt, _ in points)
                yield cell(
                    table(queue),
                    stack,
                    f"{ratio}",
                    "ratio",
                    ours,
                    note=_measured_rtt(rtts),
                )


def _measured_rtt(rtts: Estimate) -> str:
    return "" if rtts.mean is None else f"Measured RTTs, queue included: {rtts.mean:.2f} to 1."


def _points(contests: Contests, queue: str, stack: str, ratio: int) -> dict[int, Point]:
    """By seed."""
    case = label(queue, stack, ratio)
    rates = [contests.flow(case, name, "goodput_mbps") for name in (LONG, SHORT)]
    rtts = [contests.flow(case, name, "rtt_ms_mean") for name in (LONG, SHORT)]
    found = {}
    for seed in sorted(rates[0].keys() & rates[1].keys()):
        (long, short), (far, near) = ([own[seed] for own in each] for each in (rates, rtts))
        if long and short and far and near:
            found[seed] = far / near, long / short
    return found
