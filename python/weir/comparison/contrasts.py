"""Each stack compared with the first one, repeat by repeat, with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from weir._native import parse_quantity
from weir.base.errors import InputError, unknown
from weir.base.options import MEASUREMENT, Option
from weir.results import metrics
from weir.scenario.plans import ALONE, NEIGHBOUR
from weir.statistics.intervals import LEVEL, Difference, holm, paired_difference, pairs_needed

if TYPE_CHECKING:
    from weir.results.results import Results

Verdict = Literal[
    "significant", "significant only before correction", "not significant", "too few repeats"
]

Case = Mapping[str, Any]

_ALSO_COMPARED = (
    *("jain_index", "fct_s"),
    *("idle_rtt_ms_p50", "loaded_rtt_ms_p50", "loaded_rtt_ms_p95", "responsiveness_rpm"),
)


_DELIVERED = "goodput_mbps"
"""It is zero only where no data arrived."""

NOTHING = "neither delivered anything"

RELEVANT = 0.01
"""Smallest relevant difference, as a share of the reference's mean."""
RELEVANT_SHARE = f"{RELEVANT * 100:g}%"
"""The same as text."""
Relevant = Annotated[
    str,
    Option(
        "Smallest relevant difference, as a share of the first stack's mean.",
        MEASUREMENT,
        metavar="SHARE",
    ),
]


Chosen = Annotated[
    list[str] | None,
    Option(
        "Metric of the tables and of the figures that compare metrics, in place of the usual "
        "ones; may be given more than once.",
        metavar="NAME",
    ),
]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One metric of one case against the same metric of the reference case."""

    label: str
    series: str
    point: dict[str, str]
    reference: str
    """The series compared with, at the same point."""
    metric: metrics.Metric
    difference: Difference
    verdict: Verdict
    relative: float | None
    """The mean difference over the reference's mean."""
    base: float | None = None
    """The reference's mean."""
    relevant: float = RELEVANT
    """Smallest relevant difference, as a share of the reference's mean."""
    tests: int = 1
    """Number of comparisons made together."""

    def as_row(self) -> dict[str, Any]:
        """For a data frame."""
        estimate = self.difference.estimate
        return {
            "label": self.label,
            "series": self.series,
            **self.point,
            "reference": self.reference,
            "metric": self.metric.name,
            "difference": estimate.mean,
            "lo": estimate.lo,
            "hi": estimate.hi,
            "relative": self.relative,
            "n": estimate.n,
            "verdict": self.verdict,
            "relevant": self.is_relevant,
            "repeats_needed": self.needed,
            "words": self.words,
        }

    @property
    def is_empty(self) -> bool:
        """Whether neither case delivered anything, so that nothing is compared."""
        return self.metric.name == _DELIVERED and self.base == 0 == self.difference.estimate.mean

    @property
    def is_relevant(self) -> bool | None:
        """Whether the difference is relevant; None if unknown, or if nothing is compared.

        A significant difference is judged by its mean, any other by its whole interval.
        """
        if self.verdict == "significant":
            return self.relative is None or abs(self.relative) >= self.relevant
        low, high = self.difference.estimate.lo, self.difference.estimate.hi
        if low is None or high is None or self.is_empty:
            return None
        least = self._least
        return False if (-least < low and high < least) or low == high == 0 else None

    @property
    def needed(self) -> int | None:
        """Number of repeats needed for a verdict; None if it is decided, or if too many.

        With them, 8 of 10 experiments show a difference as large as the one seen, or as the
        smallest relevant one if that is larger.
        """
        mean, deviation = self.difference.estimate.mean, self.difference.deviation
        size = max(abs(mean or 0.0), self._least)
        if not self.is_open or not deviation or not size:
            return None
        return pairs_needed(deviation, size, self.tests)

    @property
    def is_open(self) -> bool:
        """Whether more repeats could show a difference, or that none is relevant."""
        return (
            self.verdict in ("significant only before correction", "not significant")
            and self.is_relevant is not False
            and bool(self.difference.deviation)
        )

    @property
    def words(self) -> str:
        """The verdict for people."""
        if self.is_empty:
            return NOTHING
        if self.is_open:
            return f"{self._before_correction}{self.inconclusive}"
        if self.verdict == "not significant" and self.is_relevant is False:
            return "no relevant difference"
        text = in_words(self.verdict, self.difference.estimate.mean, self.relative)
        is_small = self.verdict == "significant" and self.is_relevant is False
        return f"{text}, not relevant" if is_small else text

    @property
    def _before_correction(self) -> str:
        if self.verdict != "significant only before correction":
            return ""
        return f"{in_words(self.verdict, self.difference.estimate.mean, self.relative)}; "

    @property
    def inconclusive(self) -> str:
        """States the number of seeds, and how many would be enough."""
        needed, n = self.needed, self.difference.estimate.n
        enough = f"about {needed}" if needed else "more than 100000"
        return f"inconclusive with {n} seeds ({enough} would do)"

    @property
    def _least(self) -> float:
        """The smallest relevant difference."""
        return abs(self.base or 0.0) * self.relevant


def in_words(verdict: Verdict, mean: float | None, relative: float | None) -> str:
    """Returns a verdict for people, with the difference relative to the reference's mean."""
    if verdict in ("significant", "significant only before correction") and mean:
        return f"{verdict}: {_size(mean, relative)}"
    return verdict


def _size(mean: float, relative: float | None) -> str:
    direction = "higher" if mean > 0 else "lower"
    if relative is None:
        return direction
    if relative >= 1:
        return f"{1 + relative:.1f} times as high"
    return f"{abs(relative):.1%} {direction}"


def compared(results: Results, chosen: Sequence[str] = ()) -> list[metrics.Metric]:
    """Returns the metrics to compare, as far as these results have them: `chosen`, or the usual.

    Raises:
        InputError: no run has one of those chosen.
    """
    known = {metric.name: metric for metric in results.measured()}
    for name in chosen:
        if name in metrics.BY_NAME and name not in known:
            raise InputError(f"--metric {name}: no run has a value; there are: {', '.join(known)}")
        if name not in known:
            raise InputError(f"--metric {name}: {unknown('metric', name, known)}")
    names = chosen or (*metrics.HEADLINE, *_ALSO_COMPARED)
    return [metric for metric in known.values() if metric.name in names]


def has_neighbour(case: Case) -> bool:
    """Whether a flow of a case is the neighbour of the others."""
    return any(flow.get("name") == NEIGHBOUR for flow in case["scenario"].get("flow", ()))


def compared_cases(cases: Sequence[Case]) -> list[Case]:
    """Returns the cases that are compared: all but a neighbour alone, by which harm is measured."""
    alone = {f"{case['series']} {ALONE}" for case in cases if has_neighbour(case)}
    return [case for case in cases if case["series"] not in alone or has_neighbour(case)]


def contrasts(
    results: Results, relevant: float = RELEVANT, chosen: Sequence[str] = ()
) -> list[Contrast]:
    """Compares every case with the first case at the same point of the sweep.

    A difference of at least `relevant` times the reference's mean is relevant. `chosen` are the
    metrics to return, in place of the usual ones.

    A difference is significant if its Holm-adjusted p-value, over all contrasts of the usual and
    the chosen metrics, is below 0.05. Without the correction, some of many comparisons would be
    significant by chance. A choice after the fact does not make it weaker.
    """
    shown = {metric.name: metric for metric in compared(results, chosen)}
    tested = {metric.name: metric for metric in compared(results)} | shown
    pairs = [
        (case, reference, metric)
        for case, reference in _against_first(compared_cases(results.cases))
        for metric in tested.values()
    ]
    tries = [
        Pair(
            case,
            reference,
            metric,
            paired_difference(
                results.values(case["label"], metric.name),
                results.values(reference["label"], metric.name),
            ),
            results.estimate(reference["label"], metric.name).mean,
        )
        for case, reference, metric in pairs
    ]
    return [one for one in corrected(tries, relevant) if one.metric.name in shown]


@dataclass(frozen=True)
class Pair:
    """A case and its reference, with their difference in a metric and the reference's mean."""

    case: Case
    reference: Case
    metric: metrics.Metric
    difference: Difference
    base: float | None


def corrected(pairs: Sequence[Pair], relevant: float) -> list[Contrast]:
    """The contrasts of pairs that are tested together: Holm's correction is over all of them."""
    p_values = [one.difference.p_value for one in pairs if one.difference.p_value is not None]
    adjusted = iter(holm(p_values))
    return [
        Contrast(
            label=one.case["label"],
            series=one.case["series"],
            point=one.case["point"],
            reference=one.reference["series"],
            metric=one.metric,
            difference=one.difference,
            verdict=judged(
                one.difference, None if one.difference.p_value is None else next(adjusted)
            ),
            relative=over(one.difference, one.base),
            base=one.base,
            relevant=relevant,
            tests=max(len(p_values), 1),
        )
        for one in pairs
    ]


def caution(found: Sequence[Contrast]) -> str:
    """States the number of comparisons, the correction, and what is relevant."""
    if all(contrast.difference.p_value is None for contrast in found):
        return ""
    tested = found[0].tests
    relevant = f"{found[0].relevant * 100:g} %"
    level = f"{LEVEL * 100:g} %"
    several = (
        f"{tested} comparisons, Holm-corrected at {level}."
        if tested > 1
        else f"1 comparison at {level}."
    )
    return f"{several} Relevant: at least {relevant} of {found[0].reference}'s mean."


def _against_first(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    first: dict[tuple[tuple[str, str], ...], Case] = {}
    pairs = []
    for case in cases:
        reference = first.setdefault(tuple(case["point"].items()), case)
        if reference is not case:
            pairs.append((case, reference))
    return pairs


def judged(difference: Difference, adjusted_p: float | None) -> Verdict:
    """Returns the verdict on a difference, given its adjusted p-value."""
    if adjusted_p is None:
        return "too few repeats"
    if adjusted_p < 1 - LEVEL:
        return "significant"
    return "significant only before correction" if difference.is_shown else "not significant"


def share(text: str, form: str = "relevant={!r}") -> float:
    """Parses a share of a mean, as `1%`; `form` is how an error spells it.

    Raises:
        InputError: it is not a share.
    """
    try:
        return parse_quantity("ratio", text)
    except ValueError as error:
        raise InputError(f"{form.format(text)}: {error}") from None


def over(difference: Difference, reference: float | None) -> float | None:
    """Returns a difference as a share of the reference's mean; None if that is zero or missing."""
    mean = difference.estimate.mean
    return mean / reference if mean is not None and reference else None
