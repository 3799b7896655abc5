"""What the numbers say, in sentences: the question, the findings and the cautions."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from weir import _native
from weir.base.grid import counted, listed
from weir.comparison.contrasts import Contrast, has_neighbour
from weir.comparison.neighbour import neighbours, sentences
from weir.comparison.tables import deadlocked, estimate_text
from weir.comparison.verdicts import SAID, verdicts
from weir.dynamics.arrivals import left_out
from weir.graphics.select import FABRICS, Case, shown_over_time
from weir.graphics.theme import MINUS, short_key, significant
from weir.plots.interactive import MOST_CASES
from weir.plots.shares import limited_shares
from weir.report.leaders import at, leaders, leading, measured
from weir.results import metrics
from weir.results.metrics import Metric
from weir.results.results import Results
from weir.results.unheard import unheard
from weir.scenario import labels
from weir.scenario.source import HOSTS
from weir.statistics.intervals import Estimate, mean_interval

FEW_REPEATS = 5
SHORT_IN_RTTS = 200
_FEW = 3
_MANY_PAIRS = 5
_WORTH_A_WORD = 0.01


def title(results: Results, cases: Sequence[Case]) -> str:
    """The heading of the report."""
    names = _names(cases)
    what = str(results.manifest["name"])
    if sources := results.manifest.get("sources"):
        return f"{listed([source['name'] for source in sources])} compared"
    if neighbour := _neighbour(results):
        what = f"{listed(names[1:] or names)} next to {neighbour}"
    elif what == "compare" and len(names) > 1:
        what = f"{listed(names)} compared"
    return " ".join(filter(None, (what, results.where)))


def _names(cases: Sequence[Case]) -> list[str]:
    return list(dict.fromkeys(case.series for case in cases))


def _neighbour(results: Results) -> str:
    """The stack that all others share the bottleneck with; empty if there is none."""
    first = results.cases[0] if results.cases and "sources" not in results.manifest else None
    return str(first["series"]) if first is not None and has_neighbour(first) else ""


def question(results: Results, cases: Sequence[Case]) -> str:
    """What the runs were made to find out, and what the labels of stacks mean."""
    explained = labels.explained(results.cases)
    return " ".join(filter(None, (_question(results, cases), explained and f"{explained}.")))


def _question(results: Results, cases: Sequence[Case]) -> str:
    names = _names(cases)
    scenario = results.cases[0]["scenario"] if results.cases else {}
    networks = {_network(case, results.swept) for case in results.cases}
    # Directories that were joined may have been measured on different paths.
    network = networks.pop() if len(networks) == 1 else ""
    over = [f"{short_key(key)} ({_values(cases, key)})" for key in results.swept]
    where = f"{network}, over {listed(over)}" if over else network
    if scenario.get("description"):
        compared = f" {listed(names)}{where}." if len(names) > 1 else f" Measured{where}."
        return f"{scenario['description'].rstrip('.')}.{compared if names and where else ''}"
    if neighbour := _neighbour(results):
        verb = "do" if len(names) > 2 else "does"
        others = listed(names[1:] or names)
        return f"What {verb} {others} take from a flow of {neighbour}{where}?"
    if len(names) > 1:
        return f"How do {listed(names)} compare{where}?"
    return f"What does {names[0] if names else results.manifest['name']} achieve{where}?"


def _values(cases: Sequence[Case], key: str) -> str:
    return ", ".join(dict.fromkeys(case.point[key] for case in cases if key in case.point))


def findings(
    results: Results, cases: Sequence[Case], contrasts: Sequence[Contrast], relevant: float
) -> list[str]:
    """The results in words, the main ones first."""
    next_to = list(sentences(neighbours(results, relevant)))
    first = [_alone(results, cases[0])] if len(cases) == 1 else next_to or verdicts(contrasts)
    more = (
        leaders(results, cases, relevant) if len(cases) > 1 else (),
        () if next_to else _flow_goodputs(results, cases),
        _differences(contrasts, _said(results, contrasts) if first else ()),
        _limits(results, cases),
    )
    return [*first, *itertools.chain(*more)]


def scope(cases: Sequence[Case]) -> list[str]:
    """Which of many cases the figures show."""
    shown = shown_over_time(cases)
    if len(shown) == len(cases):
        return []
    if shown[0].point:
        more = "Figures over time also have the others."
        return [f"Of the {len(cases)} cases, these are the ones at {at(shown[0])}. {more}"]
    if len(cases) <= MOST_CASES:
        return []
    return [f"Over time, the first {MOST_CASES} of {len(cases)} cases are shown."]


def cautions(results: Results, *, has_intervals: bool = False) -> list[str]:
    """What a reader must know before believing the numbers.

    With `has_intervals` there are intervals also of a single repeat.
    """
    runs = _about_runs(results, has_intervals=has_intervals)
    known = [text for text in (results.mixture, results.silence) if text]
    return [*known, *unheard(results), *runs, *_about_length(results), *_about_flows(results)]


def signed(estimate: Estimate, metric: Metric) -> str:
    """A difference with its sign, as `+0.12 ± 0.03`."""
    text = estimate_text(estimate, metric)
    if text.startswith("-"):
        text = text.replace("-", "" if float(metric.text(estimate.mean)) == 0 else MINUS, 1)
    elif estimate.mean is not None and float(metric.text(estimate.mean)) > 0:
        text = f"+{text}"
    return text


def _network(case: Mapping[str, Any], swept: Sequence[str]) -> str:
    if case.get("world") == HOSTS:  # the scenario's links had no effect
        return ""
    topology = case["scenario"].get("topology", {})
    fixed = {key: value for key, value in topology.items() if f"topology.{key}" not in swept}
    rate, rtt, queue = (fixed.get(key) for key in ("rate", "rtt", "queue"))
    parts = []
    is_graph = topology.get("kind") == "graph"
    if is_graph or topology.get("kind") in FABRICS:
        parts.append(f"the links of a {topology['kind']}")
    elif isinstance(rate, str):
        parts.append(f"a {rate} bottleneck")
    if isinstance(rtt, str) and not is_graph:  # there it is only what queues in BDP refer to
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


def _alone(results: Results, case: Case) -> str:
    """The main measures of the only case."""
    parts = [
        f"{metric.title} {measured(results, case, metric)}"
        for metric, _ in leading(results)
        if results.estimate(case.label, metric.name).mean is not None
    ]
    return f"{case.name}: {listed(parts)}."


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


def _said(results: Results, contrasts: Sequence[Contrast]) -> Collection[str]:
    """The metrics of sentences before. Of one pair who is ahead says how far, too."""
    pairs = {(c.label, c.reference) for c in contrasts}
    return {m.name for m, _ in leading(results)} | SAID if len(pairs) == 1 else SAID


def _differences(contrasts: Sequence[Contrast], said: Collection[str]) -> Iterator[str]:
    """The relevant differences of metrics that no sentence before has."""
    others = [c for c in contrasts if c.metric.name not in said]
    known = [c for c in contrasts if c.verdict != "too few repeats"]
    pairs = list(dict.fromkeys((c.label, c.reference) for c in contrasts))
    if len(pairs) > _MANY_PAIRS:
        shown = sum(c.verdict == "significant" for c in known)
        if known:
            yield (
                f"{shown} of {len(known)} paired comparisons show a difference "
                "after correction for their number; the table below has them all."
            )
        return
    for label, reference in pairs:
        own = [c for c in others if (c.label, c.reference) == (label, reference)]
        changed = [c for c in own if c.verdict == "significant" and c.is_relevant is not False]
        if changed:
            which = listed([_difference(contrast) for contrast in changed])
            yield f"{own[0].series} {'also ' if said else ''}differs from {reference}: {which}."


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


def deadlocks(results: Results) -> Iterator[str]:
    """How many runs ended in a deadlock of pauses, the first of them with its links, and why."""
    said = deadlocked(results.runs)
    if not said:
        return
    yield from said
    found = results.runs.drop_nulls("deadlock")
    ended = found.select("seed", "label", "sim_s", "deadlock")
    for seed, label, end_s, cycle in ended.head(_FEW).iter_rows():
        case = f"{label}, seed" if len(results.cases) > 1 else "Seed"
        first, *others = cycle.split(", ")
        yield f"{case} {seed}, at {significant(end_s)} s: {' → '.join([first, *others, first])}."
    if found.height > _FEW:
        yield "The links of all others are in table summary, column deadlock."
    yield (
        "The port of each of these links waits for the next to let it send, and all had paused for "
        "more than 10 ms at the time given. None could ever send again, so the run ended there."
    )


def _shortened(texts: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f"; and {len(texts) - _FEW} more" if len(texts) > _FEW else ""
    return "; ".join(texts[:_FEW]) + more


def _about_length(results: Results) -> Iterator[str]:
    """Where little more than the start of connections was measured, by the runs' own times."""
    if "rtt_ms_min" not in results.flows.columns or "sim_s" not in results.runs.columns:
        return  # real transfers of other programs
    starts = [(case["label"], _warmup(case)) for case in results.cases if not _is_sized(case)]
    from_s = pl.DataFrame(starts, {"label": pl.String, "from_s": pl.Float64}, orient="row")
    paths = results.flows.group_by("run").agg((pl.col("rtt_ms_min").median() / 1e3).alias("rtt_s"))
    ok = results.runs.filter(pl.col("status") == "ok").join(from_s, on="label")
    lengths = (
        ok.join(paths.filter(pl.col("rtt_s") > 0), on="run")
        .with_columns((pl.col("sim_s") - pl.col("from_s")).alias("s"))
        .with_columns((pl.col("s") / pl.col("rtt_s")).alias("trips"))
    )
    short = lengths.filter(pl.col("s") > 0, pl.col("trips") < SHORT_IN_RTTS).sort("trips", "run")
    if short.is_empty():
        return
    seconds, trips = short.select("s", "trips").row(0)
    labels = short["label"].unique(maintain_order=True).to_list()
    where = "" if len(labels) == len(results.cases) else f" in {_shortened(labels)}"
    yield (
        f"Only {significant(seconds)} s are measured{where}, {significant(trips)} round-trip "
        "times: what is seen is mostly start-up."
    )


def _warmup(case: Mapping[str, Any]) -> float:
    return _seconds(case["scenario"].get("measure", {}).get("warmup")) or 0.0


def _is_sized(case: Mapping[str, Any]) -> bool:
    """Whether a flow has something to transfer, whose whole transfer is then what is measured."""
    workloads = [flow.get("workload") for flow in case["scenario"].get("flow", [])]
    return any(isinstance(kind, Mapping) and "size" in kind for kind in workloads)


def _about_flows(results: Results) -> Iterator[str]:
    flows = results.flows
    yield from left_out(results.fates())
    if "completed" in flows.columns:
        unfinished = flows.filter(~pl.col("completed").fill_null(value=True))
        if unfinished.height:
            stacks = _shortened(unfinished["stack"].unique(maintain_order=True).to_list())
            yield (
                f"{unfinished.height} of {flows.height} flows did not finish what they were asked "
                f"to do ({stacks}): their other numbers are about the part that they did."
            )
    if "failure" in flows.columns:
        failed = flows.drop_nulls("failure").group_by("failure").len().sort("failure")
        for reason, count in failed.rows()[:_FEW]:
            yield f"{count} of {flows.height} flows failed: {reason}."
    if "kind" in results.events.columns:
        cut = results.events.filter(pl.col("kind") == "truncated")["run"].n_unique()
        if cut:
            runs = counted(cut, "run")
            yield f"In {runs} there were more events than are kept: the table ends early."


def _seconds(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return float(_native.parse_quantity("time", text))
    except ValueError:
        return None
