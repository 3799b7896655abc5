"""What the numbers say, in sentences: the question, the findings and the cautions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from weir import _native
from weir.comparison.contrasts import Contrast
from weir.comparison.tables import estimate_text
from weir.comparison.verdicts import verdicts
from weir.graphics.select import Case, shown_over_time
from weir.graphics.theme import MINUS, short_key, significant
from weir.plots.interactive import MOST_CASES
from weir.plots.shares import limited_shares
from weir.results import metrics
from weir.results.metrics import Metric
from weir.results.results import Results
from weir.scenario.source import HOSTS
from weir.statistics.intervals import Estimate, mean_interval, paired_difference

FEW_REPEATS = 5
SHORT_IN_RTTS = 200
_FEW = 3
_MANY_PAIRS = 5
_WORTH_A_WORD = 0.01
_LEADERS = (
    ("goodput_mbps", "Highest goodput"),
    ("fct_s", "Shortest completion time"),
    ("queue_delay_ms_mean", "Lowest queueing delay"),
    ("jain_index", "Fairest, by Jain's index"),
)


def title(results: Results, cases: Sequence[Case]) -> str:
    """The heading of the report."""
    names = list(dict.fromkeys(case.series for case in cases))
    what = str(results.manifest["name"])
    if sources := results.manifest.get("sources"):
        return f"{listed([source['name'] for source in sources])} compared"
    if what == "compare" and len(names) > 1:
        what = f"{listed(names)} compared"
    return " ".join(filter(None, (what, results.where)))


def question(results: Results, cases: Sequence[Case]) -> str:
    """What the runs were made to find out."""
    names = list(dict.fromkeys(case.series for case in cases))
    scenario = results.cases[0]["scenario"] if results.cases else {}
    networks = {_network(case, results.swept) for case in results.cases}
    # Directories that were joined may have been measured on different paths.
    network = networks.pop() if len(networks) == 1 else ""
    over = [f"{short_key(key)} ({_values(cases, key)})" for key in results.swept]
    where = f"{network}, over {listed(over)}" if over else network
    if scenario.get("description"):
        compared = f" {listed(names)}{where}." if len(names) > 1 else f" Measured{where}."
        return f"{scenario['description'].rstrip('.')}.{compared if names and where else ''}"
    if len(names) > 1:
        return f"How do {listed(names)} compare{where}?"
    return f"What does {names[0] if names else results.manifest['name']} achieve{where}?"


def _values(cases: Sequence[Case], key: str) -> str:
    return ", ".join(dict.fromkeys(case.point[key] for case in cases if key in case.point))


def findings(results: Results, cases: Sequence[Case], contrasts: Sequence[Contrast]) -> list[str]:
    """The results in words, the main ones first."""
    by_point: dict[tuple[tuple[str, str], ...], list[Case]] = {}
    for case in cases:
        by_point.setdefault(tuple(case.point.items()), []).append(case)
    if len(by_point) > 1:
        leaders = list(_leaders_over_sweep(results, by_point))
    elif len(cases) == 1:
        leaders = [_alone(results, cases[0])]
    else:
        leaders = list(_leaders(results, cases))
    more = (_flow_goodputs(results, cases), _differences(contrasts), _limits(results, cases))
    return [*verdicts(contrasts), *leaders, *itertools.chain(*more)]


def scope(cases: Sequence[Case]) -> list[str]:
    """Which of many cases the figures show."""
    shown = shown_over_time(cases)
    if len(shown) == len(cases):
        return []
    if shown[0].point:
        more = "Figures over time also have the others."
        return [f"Of the {len(cases)} cases, these are the ones at {_at(shown[0])}. {more}"]
    if len(cases) <= MOST_CASES:
        return []
    return [f"Over time, the first {MOST_CASES} of {len(cases)} cases are shown."]


def cautions(results: Results, *, has_intervals: bool = False) -> list[str]:
    """What a reader must know before believing the numbers.

    With `has_intervals` there are intervals also of a single repeat.
    """
    runs = _about_runs(results, has_intervals=has_intervals)
    return [*runs, *_about_length(results), *_about_flows(results)]


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def signed(estimate: Estimate, metric: Metric) -> str:
    """A difference with its sign, as `+0.12 ± 0.03`."""
    text = estimate_text(estimate, metric)
    if text.startswith("-"):
        text = text.replace("-", "" if float(metric.text(estimate.mean)) == 0 else MINUS, 1)
    elif estimate.mean is not None and float(metric.text(estimate.mean)) > 0:
        text = f"+{text}"
    return text


def measured(results: Results, case: Case, metric: Metric) -> str:
    """A case's mean with its interval and unit."""
    text = estimate_text(results.estimate(case.label, metric.name), metric)
    return f"{text} {metric.unit}".strip()


def _network(case: Mapping[str, Any], swept: Sequence[str]) -> str:
    if case.get("world") == HOSTS:  # the scenario's links had no effect
        return ""
    topology = case["scenario"].get("topology", {})
    fixed = {key: value for key, value in topology.items() if f"topology.{key}" not in swept}
    rate, rtt, queue = (fixed.get(key) for key in ("rate", "rtt", "queue"))
    parts = []
    if isinstance(rate, str):
        parts.append(f"a {rate} bottleneck")
    if isinstance(rtt, str):
        parts.append(f"a round-trip time of {rtt}")
    if isinstance(queue, str):
        parts.append(f"a queue of {queue}")
    elif isinstance(queue, Mapping) and not any(key.startswith("topology.queue") for key in swept):
        parts.append(f"a queue under {queue['kind']}")
    loss = topology.get("forward", {}).get("loss")
    is_swept = "topology.forward.loss" in swept
    if isinstance(loss, str) and loss.strip("0.% ") and not is_swept:
        parts.append(f"{loss} random loss")
    return f" on a path with {listed(parts)}" if parts else ""


def _ranking(results: Results, cases: Sequence[Case], metric: Metric) -> list[tuple[float, Case]]:
    means = [(results.estimate(case.label, metric.name).mean, case) for case in cases]
    known = [(mean, case) for mean, case in means if mean is not None]
    return sorted(known, key=lambda pair: pair[0], reverse=metric.better == "more")


def _leading(results: Results) -> Iterator[tuple[Metric, str]]:
    """The measures by which one can be ahead; fairness only where all flows want the same."""
    wishes = {
        json.dumps(flow.get("workload"), sort_keys=True)
        for case in results.cases
        for flow in case["scenario"].get("flow", [])
    }
    for name, title in _LEADERS:
        if name != "jain_index" or len(wishes) == 1:
            yield metrics.BY_NAME[name], title


def _alone(results: Results, case: Case) -> str:
    """The main measures of the only case."""
    parts = [
        f"{metric.title} {measured(results, case, metric)}"
        for metric, _ in _leading(results)
        if results.estimate(case.label, metric.name).mean is not None
    ]
    return f"{case.name}: {listed(parts)}."


def _leaders(results: Results, cases: Sequence[Case]) -> Iterator[str]:
    for metric, title in _leading(results):
        ranked = [case for _, case in _ranking(results, cases, metric)]
        if len(ranked) > 1:
            first, second = ranked[:2]
            rest = listed([f"{c.name} ({measured(results, c, metric)})" for c in ranked[1:]])
            best = f"{first.name} with {measured(results, first, metric)}"
            yield f"{title}: {best}, before {rest}. {_lead(results, first, second, metric)}"


def _flow_goodputs(results: Results, cases: Sequence[Case]) -> Iterator[str]:
    """What each of a few flows got of a shared link."""
    metric = metrics.BY_NAME["goodput_mbps"]
    values = metrics.per_flow(results.flows)
    for case in cases if len(cases) <= _FEW else ():
        own = values.filter(pl.col("run").is_in(list(case.runs))).sort("flow")
        if own["flow"].n_unique() not in range(2, _MANY_PAIRS):
            continue
        parts = []
        for (_, name), group in own.group_by("flow", "name", maintain_order=True):
            estimate = mean_interval(group[metric.name], metric.bounds)
            parts.append(f"{name} {estimate_text(estimate, metric)}")
        yield f"Goodput by flow in {case.name}, {metric.unit}: {', '.join(parts)}."


def _lead(results: Results, first: Case, second: Case, metric: Metric) -> str:
    difference = paired_difference(
        results.values(first.label, metric.name), results.values(second.label, metric.name)
    )
    low, high = difference.estimate.lo, difference.estimate.hi
    if low is None or high is None:
        return "With one repeat it is unknown whether the order is chance."
    if low == high == 0:
        return f"It is no different from {second.name} in any repeat."
    if difference.is_shown:
        sizes = sorted(abs(end) * metric.scale for end in (low, high))
        ends = [significant(size) for size in sizes]
        return (
            f"It is ahead of {second.name} by {ends[0]} to {ends[1]} {metric.unit} "
            "(95 % interval of the paired difference)."
        )
    between = f"{significant(low * metric.scale)} to {significant(high * metric.scale)}"
    return (
        f"Its lead over {second.name} is not shown: the 95 % interval of the paired difference, "
        f"{between} {metric.unit}, includes zero."
    )


def _leaders_over_sweep(
    results: Results, by_point: Mapping[tuple[tuple[str, str], ...], Sequence[Case]]
) -> Iterator[str]:
    contested = {point: own for point, own in by_point.items() if len(own) > 1}
    for metric, title in _leading(results):
        if not contested:
            yield from _range(results, [case for own in by_point.values() for case in own], metric)
        winners: dict[str, list[str]] = {}
        for point, members in contested.items():
            ranked = _ranking(results, members, metric)
            if ranked:
                where = " with ".join(f"{short_key(key)} {value}" for key, value in point)
                winners.setdefault(ranked[0][1].series, []).append(where)
        parts = [f"{who} {_where(points, len(contested))}" for who, points in winners.items()]
        if parts:
            yield f"{title}, going by the means: {'; '.join(parts)}."


def _range(results: Results, cases: Sequence[Case], metric: Metric) -> Iterator[str]:
    """From where to where a measure goes over a sweep of a single stack."""
    ranked = [case for _, case in _ranking(results, cases, metric)]
    if len(ranked) > 1:
        best, worst = ranked[0], ranked[-1]
        yield (
            f"The best {metric.title} is {measured(results, best, metric)} at {_at(best)}, "
            f"the worst {measured(results, worst, metric)} at {_at(worst)}."
        )


def _at(case: Case) -> str:
    return " with ".join(f"{short_key(key)} {value}" for key, value in case.point.items())


def _where(points: Sequence[str], count: int) -> str:
    if len(points) == count:
        return "at every point of the sweep"
    if len(points) <= _FEW:
        return f"at {listed(points)}"
    return f"at {len(points)} of {count} points"


def _differences(contrasts: Sequence[Contrast]) -> Iterator[str]:
    shown = [c for c in contrasts if c.verdict == "significant"]
    alike = [c for c in contrasts if c.verdict not in ("significant", "too few repeats")]
    pairs = list(dict.fromkeys((c.label, c.reference) for c in contrasts))
    if len(pairs) > _MANY_PAIRS:
        if shown or alike:
            yield (
                f"{len(shown)} of {len(shown) + len(alike)} paired comparisons show a difference "
                "after correction for their number; the table below has them all."
            )
        return
    for label, reference in pairs:
        own = [c for c in shown if (c.label, c.reference) == (label, reference)]
        if own:
            which = listed([_difference(contrast) for contrast in own])
            yield f"{own[0].series} differs from {reference}: {which}."
        same = [c for c in alike if (c.label, c.reference) == (label, reference)]
        if same:
            names = listed([c.metric.title for c in same])
            yield f"No difference shown between {same[0].series} and {reference} in {names}."


def _difference(contrast: Contrast) -> str:
    mean = contrast.difference.estimate.mean or 0.0
    direction = "higher" if mean > 0 else "lower"
    if contrast.relative is not None and contrast.relative >= 1:
        return f"{contrast.metric.title} {significant(1 + contrast.relative)} times as high"
    if contrast.relative is None:
        amount = f"{significant(abs(mean) * contrast.metric.scale)} {contrast.metric.unit}".strip()
    else:
        amount = f"{significant(abs(contrast.relative) * 100)} %"
    return f"{contrast.metric.title} {amount} {direction}"


def _limits(results: Results, cases: Sequence[Case]) -> Iterator[str]:
    """What held each stack back, unless it was the congestion window all the time."""
    shares = limited_shares(results, cases)
    if shares.is_empty():
        return
    others = shares.filter((pl.col("position") > 0) & (pl.col("share") >= _WORTH_A_WORD))
    if others.is_empty():
        yield "The congestion window limited the senders nearly all of the time."
        return
    if len(cases) > _MANY_PAIRS:
        return
    for case in cases:
        own = shares.filter((pl.col("case") == case.name) & (pl.col("share") >= _WORTH_A_WORD))
        parts = [
            f"{limit} {share:.0%}"
            for limit, share in own.sort("share", descending=True)
            .select("limit", "share")
            .iter_rows()
        ]
        if parts:
            yield f"What held {case.name} back, by time: {', '.join(parts)}."


def _about_runs(results: Results, *, has_intervals: bool) -> Iterator[str]:
    repeats, failed = len(results.manifest["seeds"]), results.failures
    if repeats == 1 and not has_intervals:
        yield (
            "There is one repeat only, so no interval and no verdict: give --repeat 10 to see how "
            "much is chance."
        )
    elif 1 < repeats < FEW_REPEATS:
        yield f"With {repeats} repeats the intervals are wide and may be far off; 10 are usual."
    if failed:
        runs = [f"{run}: {error}" for run, error in failed.items()]
        yield f"Left out because they failed: {_shortened(runs)}."
    elif not results.manifest["complete"]:
        yield "Not all planned runs are here: the command was interrupted."
    ok = results.runs.filter(pl.col("status") == "ok")
    if repeats > 1 and "trace_hash" in ok.columns and ok.height:
        repeated = ok.filter(pl.len().over("label") > 1)
        hashes = repeated.group_by("label").agg(pl.col("trace_hash").n_unique())
        same = hashes.filter(pl.col("trace_hash") == 1)["label"].sort().to_list()
        if same:
            where = "here" if len(same) == hashes.height else f"in {_shortened(same)}"
            yield (
                f"Nothing is random {where}: all repeats are the same run, and their intervals "
                "have no width."
            )
    health = results.manifest.get("health", {})
    verdict, warnings = health.get("verdict", "good"), health.get("warnings", [])
    if verdict != "good":
        why = f" ({warnings[0]})" if warnings else ""
        yield f"The machine's own verdict on these runs is: {verdict}{why}."


def _shortened(texts: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f"; and {len(texts) - _FEW} more" if len(texts) > _FEW else ""
    return "; ".join(texts[:_FEW]) + more


def _about_length(results: Results) -> Iterator[str]:
    for case in results.cases[:1]:
        measure = case["scenario"].get("measure", {})
        rtt = case["scenario"].get("topology", {}).get("rtt")
        seconds = _seconds(measure.get("duration"))
        warmup = _seconds(measure.get("warmup")) or 0.0
        path = None if case.get("world") == HOSTS else _seconds(rtt)
        is_sized = any(
            isinstance(flow.get("workload"), Mapping) and "size" in flow["workload"]
            for flow in case["scenario"].get("flow", [])
        )
        if seconds and path and not is_sized and (seconds - warmup) / path < SHORT_IN_RTTS:
            yield (
                f"Only {significant(seconds - warmup)} s are measured, "
                f"{significant((seconds - warmup) / path)} round-trip times: what is seen is "
                "mostly start-up."
            )


def _about_flows(results: Results) -> Iterator[str]:
    flows = results.flows
    if "completed" in flows.columns:
        unfinished = flows.filter(~pl.col("completed").fill_null(value=True))
        if unfinished.height:
            stacks = _shortened(unfinished["stack"].unique(maintain_order=True).to_list())
            yield (
                f"{unfinished.height} of {flows.height} flows did not finish what they were asked "
                f"to do ({stacks}): their other numbers are about the part that they did."
            )
    if "failure" in flows.columns:
        reasons = flows.filter(pl.col("failure").is_not_null())["failure"].unique().sort()
        for reason in reasons.to_list()[:_FEW]:
            yield f"A connection failed: {reason}."
    if "kind" in results.events.columns:
        cut = results.events.filter(pl.col("kind") == "truncated")["run"].n_unique()
        if cut:
            yield f"In {cut} runs there were more events than are kept: the table ends early."


def _seconds(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return float(_native.parse_quantity("time", text))
    except ValueError:
        return None
