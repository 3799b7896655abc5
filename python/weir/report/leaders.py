"""Which case is best by each measure: named only where its lead is shown and relevant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from weir.base.grid import listed
from weir.comparison.tables import estimate_text
from weir.graphics.select import Case
from weir.graphics.theme import short_key, significant
from weir.results import metrics
from weir.results.metrics import Metric
from weir.results.results import Results
from weir.statistics.intervals import Difference, paired_difference

_TITLES = (
    ("goodput_mbps", "Highest goodput"),
    ("fct_s", "Shortest completion time"),
    ("queue_delay_ms_mean", "Lowest queueing delay"),
    ("jain_index", "Fairest, by Jain's index"),
)
_FEW = 3

_Point = tuple[tuple[str, str], ...]


def leaders(results: Results, cases: Sequence[Case], relevant: float) -> Iterator[str]:
    """A sentence per measure. A lead of a share `relevant` of the smaller mean is relevant."""
    by_point: dict[_Point, list[Case]] = {}
    for case in cases:
        by_point.setdefault(tuple(case.point.items()), []).append(case)
    for metric, title in leading(results):
        if len(by_point) > 1:
            yield from _over_sweep(results, by_point, metric, title, relevant)
        else:
            yield from _best(results, cases, metric, title, relevant)


def leading(results: Results) -> Iterator[tuple[Metric, str]]:
    """The measures by which one can be ahead; fairness only where all flows want the same."""
    wishes = {
        json.dumps(flow.get("workload"), sort_keys=True)
        for case in results.cases
        for flow in case["scenario"].get("flow", [])
    }
    for name, title in _TITLES:
        if name != "jain_index" or len(wishes) == 1:
            yield metrics.BY_NAME[name], title


def measured(results: Results, case: Case, metric: Metric) -> str:
    """A case's mean with its interval and unit."""
    text = estimate_text(results.estimate(case.label, metric.name), metric)
    return f"{text} {metric.unit}".strip()


def at(case: Case) -> str:
    """Where in the sweep a case is."""
    return " with ".join(f"{short_key(key)} {value}" for key, value in case.point.items())


def _ranking(results: Results, cases: Sequence[Case], metric: Metric) -> list[tuple[float, Case]]:
    means = [(results.estimate(case.label, metric.name).mean, case) for case in cases]
    known = [(mean, case) for mean, case in means if mean is not None]
    return sorted(known, key=lambda pair: pair[0], reverse=metric.better == "more")


def _best(
    results: Results, cases: Sequence[Case], metric: Metric, title: str, relevant: float
) -> Iterator[str]:
    ranked = [case for _, case in _ranking(results, cases, metric)]
    if len(ranked) < 2:
        return
    texts = {c.name: f"{c.name} ({measured(results, c, metric)})" for c in ranked}
    first, second = ranked[:2]
    best = f"{title}: {first.name} with {measured(results, first, metric)}"
    lead = _lead(results, first, second, metric)
    if lead.estimate.lo is None:
        rest = listed([texts[case.name] for case in ranked[1:]])
        yield f"{best}, before {rest}. With one repeat it is unknown whether the order is chance."
        return
    level = [c for c in ranked[1:] if not _is_ahead(results, first, c, metric, relevant)]
    behind = [texts[case.name] for case in ranked[1:] if case not in level]
    if level:
        names = listed([texts[case.name] for case in (first, *level)])
        rest = f"; behind them {listed(behind)}" if behind else ""
        yield f"{title}: no winner among {names}, which differ by chance or too little{rest}."
        return
    yield f"{best}, before {listed(behind)}. {_by(lead, second, metric)}"


def _lead(results: Results, first: Case, second: Case, metric: Metric) -> Difference:
    return paired_difference(
        results.values(first.label, metric.name), results.values(second.label, metric.name)
    )


def _is_ahead(results: Results, first: Case, second: Case, metric: Metric, relevant: float) -> bool:
    lead = _lead(results, first, second, metric)
    means = [results.estimate(case.label, metric.name).mean or 0.0 for case in (first, second)]
    least = relevant * min(map(abs, means))
    return lead.is_shown and abs(lead.estimate.mean or 0.0) >= least


def _by(lead: Difference, second: Case, metric: Metric) -> str:
    ends = (lead.estimate.lo or 0.0, lead.estimate.hi or 0.0)
    sizes = dict.fromkeys(significant(size) for size in sorted(abs(e) * metric.scale for e in ends))
    return (
        f"It is ahead of {second.name} by {' to '.join(sizes)} {metric.unit} "
        "(95 % interval of the paired difference)."
    )


def _over_sweep(
    results: Results,
    by_point: Mapping[_Point, Sequence[Case]],
    metric: Metric,
    title: str,
    relevant: float,
) -> Iterator[str]:
    contested = {point: own for point, own in by_point.items() if len(own) > 1}
    if not contested:
        yield from _range(results, [case for own in by_point.values() for case in own], metric)
    winners: dict[str, list[str]] = {}
    for point, members in contested.items():
        ranked = [case for _, case in _ranking(results, members, metric)]
        if ranked:
            others = ranked[1:]
            wins = all(_is_ahead(results, ranked[0], c, metric, relevant) for c in others)
            where = " with ".join(f"{short_key(key)} {value}" for key, value in point)
            winners.setdefault(ranked[0].series if wins else "none", []).append(where)
    parts = [f"{who} {_where(points, len(contested))}" for who, points in winners.items()]
    if parts:
        yield f"{title}, where shown and relevant: {'; '.join(parts)}."


def _range(results: Results, cases: Sequence[Case], metric: Metric) -> Iterator[str]:
    """From where to where a measure goes over a sweep of a single stack."""
    ranked = [case for _, case in _ranking(results, cases, metric)]
    if len(ranked) > 1:
        best, worst = ranked[0], ranked[-1]
        yield (
            f"The best {metric.title} is {measured(results, best, metric)} at {at(best)}, "
            f"the worst {measured(results, worst, metric)} at {at(worst)}."
        )


def _where(points: Sequence[str], count: int) -> str:
    if len(points) == count:
        return "at every point of the sweep"
    if len(points) <= _FEW:
        return f"at {listed(points)}"
    return f"at {len(points)} of {count} points"
