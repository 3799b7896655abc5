"""Ours compared with the kernel's: ratios, and whether a row holds.

What is judged, and how strictly, depends on how a case came about:

- *deterministic*: nothing is random on either side, so one run is compared with one recording;
- *drawn*: no random loss, but the kernel draws random numbers (BBR's phase, RED, PIE), so our mean
  over several seeds is compared, as strictly, with the mean of the recordings there are;
- *loss*: random loss; means over seeds and recordings;
- *shared*: flows of one algorithm that come and go at random moments;
- *mix*: two algorithms against each other;
  who wins such a meeting depends on microseconds, in the kernel too: recordings and our runs with
  perturbed starts are two samples, and a row differs if their distributions do;
- *requests*: a stream, and short requests next to it;
- *reordering*: some packets arrive late; means over the same seeds.

How strictly, depends on the kernel as well: `RECORDED`, in virtual time (`VIRTUAL`) or `LIVE`.

A judged row *holds* if ours is within the tolerance, else it *differs*. It is *inconclusive* if the
95 % interval of its ratio contains 1 and is wider than the tolerance, wherever its middle happens
to be: so few runs cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any, Literal, get_args

from weir.base.grid import number
from weir.recordings.truth import COMPLETION, KEYS, OVERLAP, REQUEST, Reference, Values
from weir.statistics.counts import two_samples
from weir.statistics.intervals import Estimate, mean_interval, mean_ratio, rounded

Verdict = Literal["holds", "differs", "inconclusive"]
Kind = Literal[
    "deterministic", "drawn", "loss", "shared", "mix", "requests", "reordering", "packets"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

PACKETS = "equal_cwnd_share"
"""Of the first acknowledgements, the share at which both have the same window in segments."""

FIRST_ACKS = 1_000

_INTERVALS = ("ours_interval", "reference_interval", "ratio_interval")

SKIPPED = "skipped: "
"""How the note of a case begins that was not compared."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """Our runs and the kernel's, with their means and the ratio of these."""

    mine: Sequence[float]
    kernels: Sequence[float]
    ours: float
    reference: float
    ratio: Estimate


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far ours may be from the kernel's: a share of it or, where that is more, an amount."""

    share: float
    amount: float = 0.0

    def holds(self, ours: float, reference: float) -> bool:
        """Whether ours is near enough."""
        return abs(ours - reference) <= self._tolerance(reference)

    def bounds(self, reference: float) -> tuple[float, float]:
        """The smallest and the largest value that hold."""
        tolerance = self._tolerance(reference)
        return reference - tolerance, reference + tolerance

    def verdict(self, pair: Pair) -> Verdict:
        """Whether ours is near enough, if the runs are enough to say."""
        ratio, reference = pair.ratio, pair.reference
        if ratio.lo is not None and ratio.hi is not None and ratio.lo <= 1 <= ratio.hi:
            half = (ratio.hi - ratio.lo) / 2 * abs(reference)
            if half > self._tolerance(reference):
                return "inconclusive"
        return "holds" if self.is_near(pair) else "differs"

    def is_near(self, pair: Pair) -> bool:
        """Whether the means are within the tolerance, whatever their distributions."""
        return self.holds(pair.ours, pair.reference)

    def _tolerance(self, reference: float) -> float:
        return max(self.share * abs(reference), self.amount)

    def __str__(self) -> str:
        share = f"{self.share:.0%}".replace("%", " %")
        return f"{share} or {self.amount:g}" if self.amount else share


@dataclass(frozen=True, slots=True)
class SameDistribution(Tolerance):
    """How far ours may be from the kernel's where both scatter.

    A row beyond the tolerance holds all the same if a two-sample Kolmogorov-Smirnov test does not
    tell the two samples apart, and is inconclusive where there are too few recordings for one.
    """

    def verdict(self, pair: Pair) -> Verdict:
        """Whether ours is near enough, or of the same distribution."""
        if self.holds(pair.ours, pair.reference):
            return "holds"
        if len(pair.kernels) < LEAST_RECORDINGS:
            return "inconclusive"
        return "differs" if two_samples(pair.mine, pair.kernels) < REJECT else "holds"


@dataclass(frozen=True, slots=True)
class SameSeedsOrDistribution(Tolerance):
    """How far ours may be from the kernel's where both draw random numbers, of the same seeds.

    A row holds if the means of these seeds are within the tolerance. It holds too if a two-sample
    Kolmogorov-Smirnov test does not tell all of ours from the kernel's.
    """

    def verdict(self, pair: Pair) -> Verdict:
        """Whether ours is near enough, or of the same distribution."""
        if self.is_near(pair):
            return "holds"
        return "differs" if two_samples(pair.mine, pair.kernels) < REJECT else "holds"

    def is_near(self, pair: Pair) -> bool:
        """Whether the means of the seeds that both ran are within the tolerance."""
        same = pair.mine[: len(pair.kernels)]
        return self.holds(fmean(same), pair.reference)


@dataclass(frozen=True, slots=True)
class Factor(Tolerance):
    """Ours may be up to twice the kernel's or half of it, or differ by an amount."""

    share: float = 1.0

    def bounds(self, reference: float) -> tuple[float, float]:
        """The smallest and the largest value that hold."""
        factor = 1 + self.share
        return reference / factor - self.amount, reference * factor + self.amount

    def holds(self, ours: float, reference: float) -> bool:
        """Whether ours is near enough."""
        least, most = self.bounds(reference)
        return least <= ours <= most

    def __str__(self) -> str:
        factor = f"factor {1 + self.share:g}"
        return f"{factor} or {self.amount:g}" if self.amount else factor


LEAST_RECORDINGS = 5
"""Recordings that a two-sample test needs to judge a row; with fewer it is inconclusive.

Against 40 runs, four reach `REJECT` only if all lie beyond them (three of four: p = 0.015); of five
recordings four suffice (p = 0.002).
"""

REJECT = 0.01
"""Two samples with a smaller p-value are called different."""

Rules = Mapping[Kind, Mapping[str, Tolerance]]
"""What is judged in cases of each kind, and how strictly; every other metric is only reported."""

Ratio = Callable[[Sequence[float | None], Sequence[float | None]], Estimate]
"""How the mean of ours is compared with the kernel's."""

_NEAR = {
    "steady_goodput_mbps": Tolerance(0.02),
    "mean_cwnd_segments": Tolerance(0.05),
    "mean_srtt_ms": Tolerance(0.05),
}
_CLOSE = {**_NEAR, "retransmits": Tolerance(0.10, 5), "sawtooth_period_s": Tolerance(0.05)}
_SCATTERED = {
    metric: SameDistribution(rule.share, rule.amount)
    for metric, rule in {**_CLOSE, OVERLAP: Tolerance(0.02)}.items()
}
_LIVE = {"steady_goodput_mbps": Tolerance(0.05)}

RECORDED: Rules = MappingProxyType(
    {
        "deterministic": _CLOSE,
        "drawn": _CLOSE,
        "loss": {"steady_goodput_mbps": Tolerance(0.10)},
        "shared": _SCATTERED,
        "mix": _SCATTERED,
    }
)
"""Of recorded runs, whose random numbers were others."""

VIRTUAL: Rules = MappingProxyType(
    {
        **dict.fromkeys(("deterministic", "drawn", "loss", "shared", "mix"), _NEAR),
        "requests": {"steady_goodput_mbps": Tolerance(0.02), REQUEST: Tolerance(0.05)},
        "reordering": {"steady_goodput_mbps": Tolerance(0.05), "retransmits": Factor(amount=5)},
    }
)
"""Of a kernel in virtual time, with our random numbers."""

_ON_A_PATH = {
    "steady_goodput_mbps": Tolerance(0.02),
    "retransmits": Tolerance(0.10, 5),
    REQUEST: Tolerance(0.05),
    COMPLETION: Tolerance(0.02),
}
_AT_RANDOM = {
    metric: SameSeedsOrDistribution(rule.share, rule.amount) for metric, rule in _ON_A_PATH.items()
}

SAMPLED: Rules = MappingProxyType(
    {
        "deterministic": _ON_A_PATH,
        **dict.fromkeys(("loss", "drawn", "shared", "mix"), _AT_RANDOM),
    }
)
"""Of a kernel in virtual time, on a random path."""

LIVE: Rules = MappingProxyType(
    dict.fromkeys(
        ("deterministic", "drawn", "loss", "shared", "mix", "requests", "reordering"), _LIVE
    )
)
"""Of a kernel in real time: no two of its runs are the same."""

_LEAST_SHARE = 0.95

_METRICS = (*KEYS, OVERLAP, REQUEST, COMPLETION)


def kind(reference: Reference, *, draws: bool) -> Kind:
    """How a case came about."""
    if len({flow.cc for flow in reference.flows}) > 1:
        return "mix"
    if len(reference.flows) > 1:
        return "shared"
    if reference.params.get("LOSS"):
        return "loss"
    return "drawn" if draws else "deterministic"


def rows(
    reference: Reference,
    of: Kind,
    ours: Sequence[Sequence[Values]],
    rules: Rules = RECORDED,
    ratio: Ratio = mean_ratio,
) -> list[Row]:
    """Every metric of every flow; `ours[run][flow]` are the metrics of our runs.

    `ratio` says how means are compared: `mean_ratio` where repeats share their random numbers.
    """
    found = []
    for flow in range(len(reference.flows)):
        for metric in _METRICS:
            kernels = [recording[flow].get(metric) for recording in reference.recordings]
            mine = [run[flow].get(metric) for run in ours]
            if metric in KEYS or any(value is not None for value in kernels):
                tolerance = rules.get(of, {}).get(metric)
                named = _named(reference.name, flow, metric, of)
                found.append(named | _compared(mine, kernels, tolerance, ratio))
    return found


def packets_row(case: str, of: Kind, kernels: Sequence[int], ours: Sequence[int]) -> Row:
    """The first acknowledgements of a case, window by window, in segments."""
    theirs = kernels[:FIRST_ACKS]
    pairs = list(zip(ours, theirs, strict=False))
    equal = sum(a == b for a, b in pairs)
    share = equal / len(theirs) if theirs else 0.0
    is_judged = of == "deterministic"
    notes = [f"{equal} of the first {len(theirs)} acknowledgements"]
    for place, (a, b) in enumerate(pairs):
        if a != b:
            notes.append(f"the first that differs is number {place}: {a}, Linux {b}")
            break
    if not is_judged:
        notes.append("reported only: the kernel draws random numbers here")
    return {
        **_named(case, 0, PACKETS, "packets"),
        "ours": rounded(share),
        "reference": 1.0,
        "ratio": rounded(share),
        **_verdict(("holds" if share >= _LEAST_SHARE else "differs") if is_judged else None),
        "near": share >= _LEAST_SHARE if is_judged else None,
        "tolerance": f"at least {_LEAST_SHARE:g}" if is_judged else None,
        **dict.fromkeys(_INTERVALS),
        "note": "; ".join(notes),
    }


def skipped(name: str, reason: str) -> Row:
    """A case that was not compared, and why."""
    return {
        **_named(name, None, None, None),
        **dict.fromkeys(("ours", "reference", "ratio", "near", "tolerance", *_INTERVALS)),
        **_verdict(None),
        "note": f"{SKIPPED}{reason}",
    }


def unjudged(row: Row) -> Row:
    """The row without its verdict."""
    return row | _verdict(None)


def _verdict(verdict: Verdict | None) -> Row:
    """What is said, and whether it is good news: nothing if inconclusive."""
    return {"verdict": verdict, "holds": {"holds": True, "differs": False}.get(verdict or "")}


def _named(case: str, flow: int | None, metric: str | None, of: Kind | None) -> Row:
    return {"case": case, "flow": flow, "metric": metric, "kind": of}


def _compared(
    mine: Sequence[float | None],
    kernels: Sequence[float | None],
    tolerance: Tolerance | None,
    ratio_of: Ratio,
) -> Row:
    own, recorded, ratio = mean_interval(mine), mean_interval(kernels), ratio_of(mine, kernels)
    ours, reference = own.mean, recorded.mean
    verdict: Verdict | None = None
    near: bool | None = None
    note = ""
    if ours is None and reference is None:
        note = "neither has any"
    elif ours is None or reference is None:
        note = "Linux has none" if reference is None else "ours has none"
        verdict = "differs" if tolerance else None
    elif tolerance:
        pair = Pair(known(mine), known(kernels), ours, reference, ratio)
        verdict, near = tolerance.verdict(pair), tolerance.is_near(pair)
    counts = [f"ours: mean of {own.n} seeds"] if own.n > 1 else []
    if recorded.n > 1:
        recordings = known(kernels)
        spread = f"{number(min(recordings))} to {number(max(recordings))}"
        counts.append(f"Linux: mean of {recorded.n} runs, {spread}")
    return {
        "ours": rounded(ours),
        "reference": rounded(reference),
        "ratio": rounded(ratio.mean),
        **_verdict(verdict),
        "near": near,
        "tolerance": str(tolerance) if tolerance else None,
        "ours_interval": interval(own),
        "reference_interval": interval(recorded),
        "ratio_interval": interval(ratio),
        "note": "; ".join(filter(None, [note, *counts])),
    }


def known(values: Sequence[float | None]) -> list[float]:
    """The values that there are."""
    return [value for value in values if value is not None]


def interval(estimate: Estimate) -> dict[str, float | int | None] | None:
    """An estimate as JSON; None if a single value has no interval."""
    return estimate.as_json() if estimate.n > 1 and estimate.lo is not None else None


def score(found: Sequence[Row]) -> dict[str, dict[str, int]]:
    """By kind of case, and for all together: how many were judged, hold, and are inconclusive."""
    totals = {}
    for name in (*KINDS, "all"):
        judged_verdicts = [
            row["verdict"] for row in found if row["verdict"] and name in (row["kind"], "all")
        ]
        held, inconclusive = judged_verdicts.count("holds"), judged_verdicts.count("inconclusive")
        totals[name] = {"held": held, "inconclusive": inconclusive, "judged": len(judged_verdicts)}
    return {name: total for name, total in totals.items() if total["judged"]}
