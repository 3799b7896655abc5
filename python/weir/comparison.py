"""Each stack against the first one, repeat by repeat, with a verdict in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from weir import metrics
from weir.stats import LEVEL, Difference, holm, paired_difference

if TYPE_CHECKING:
    from weir.results import Results

Verdict = Literal["differs", "differs before correction", "no difference shown", "too few repeats"]

Case = Mapping[str, Any]

_ALSO_COMPARED = ("jain_index", "fct_s")


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

    @property
    def words(self) -> str:
        """The verdict for people."""
        return spoken(self.verdict, self.difference.estimate.mean, self.relative)


def spoken(verdict: Verdict, mean: float | None, relative: float | None) -> str:
    """A verdict for people, with the size of the difference beside the reference's mean."""
    if verdict == "differs" and mean:
        return f"differs: {_size(mean, relative)}"
    if verdict == "differs before correction" and mean:
        return f"perhaps {_size(mean, relative)}"
    return verdict


def _size(mean: float, relative: float | None) -> str:
    direction = "higher" if mean > 0 else "lower"
    if relative is None:
        return direction
    if relative >= 1:
        return f"{1 + relative:.1f} times as high"
    return f"{abs(relative):.1%} {direction}"


def compared(results: Results) -> list[metrics.Metric]:
    """The metrics that a comparison is about, as far as these results have them."""
    names = (*metrics.HEADLINE, *_ALSO_COMPARED)
    return [metric for metric in results.measured() if metric.name in names]


def contrasts(results: Results) -> list[Contrast]:
    """Every case against the first case at the same point of the sweep.

    A contrast counts as shown when its Holm-adjusted p-value, over all contrasts here, is below
    0.05: with many comparisons, some of the unadjusted ones are bound to look like differences.
    """
    pairs = [
        (case, reference, metric)
        for case, reference in _against_first(results.cases)
        for metric in compared(results)
    ]
    differences = [
        paired_difference(results.values(a["label"], m.name), results.values(b["label"], m.name))
        for a, b, m in pairs
    ]
    adjusted = iter(holm([d.p_value for d in differences if d.p_value is not None]))
    found = []
    for (case, reference, metric), difference in zip(pairs, differences, strict=True):
        p_value = None if difference.p_value is None else next(adjusted)
        base = results.estimate(reference["label"], metric.name).mean
        found.append(
            Contrast(
                label=case["label"],
                series=case["series"],
                point=case["point"],
                reference=reference["series"],
                metric=metric,
                difference=difference,
                verdict=judged(difference, p_value),
                relative=over(difference, base),
            )
        )
    return found


def caution(found: Sequence[Contrast]) -> str:
    """How many comparisons were made, and what that means."""
    tested = sum(contrast.difference.p_value is not None for contrast in found)
    if tested < 2:
        return ""
    chance = tested * (1 - LEVEL)
    return (
        f"{tested} comparisons were made; were all stacks alike, about {chance:.1f} of them would "
        "still look different at the 95 % level. «Differs» allows for that (Holm's correction), "
        "«perhaps» does not: its interval excludes zero only when taken by itself."
    )


def _against_first(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    first: dict[tuple[tuple[str, str], ...], Case] = {}
    pairs = []
    for case in cases:
        reference = first.setdefault(tuple(case["point"].items()), case)
        if reference is not case:
            pairs.append((case, reference))
    return pairs


def judged(difference: Difference, adjusted_p: float | None) -> Verdict:
    """What a difference is, given its p-value as adjusted for the number of comparisons."""
    if adjusted_p is None:
        return "too few repeats"
    if adjusted_p < 1 - LEVEL:
        return "differs"
    return "differs before correction" if difference.is_shown else "no difference shown"


def over(difference: Difference, reference: float | None) -> float | None:
    """A difference as a share of the reference's mean, where it has one that is not zero."""
    mean = difference.estimate.mean
    return mean / reference if mean is not None and reference else None
