"""Results as tables for people: on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Group, RenderableType

from weir.base.grid import Grid, cautioned, counted, listed, number
from weir.comparison.contrasts import Contrast, caution, compared, contrasts
from weir.comparison.verdicts import verdicts
from weir.dynamics.arrivals import Completions, Spread, left_out
from weir.results import metrics
from weir.scenario.labels import explained
from weir.statistics.intervals import Estimate, mean_interval

if TYPE_CHECKING:
    from weir.dynamics.sharing import Observed
    from weir.results.results import Results
from weir.results.unheard import unheard

_MAX_FLOW_ROWS = 24
_MAX_COMPLETIONS = 48
_SIDE_BY_SIDE = 5
_FEW = 3
_FLOW_METRICS = ("goodput_mbps", "rtt_ms_mean", "retransmit_ratio", "timeouts", "fct_s")


def cases_table(results: Results) -> RenderableType:
    """The cases of `results`, and their flows where there are several."""
    return Group(*(grid.rich() for grid in _grids(results)))


def results_html(results: Results, said: Sequence[str] = (), more: Sequence[Grid] = ()) -> str:
    """All tables for a notebook, with the paired differences and verdicts.

    `said` stands in place of the verdicts, `more` between the tables and the differences.
    """
    found = contrasts(results)
    sentences = "".join(f"<p><b>{escape(text)}</b></p>" for text in said or verdicts(found))
    grids = [*_grids(results), *more]
    if found:
        grids.append(contrasts_grid(found, caution(found), results.caution))
    return sentences + "".join(grid.html() for grid in grids)


def contrasts_grid(found: Sequence[Contrast], note: str, strain: str = "") -> Grid:
    """Paired differences with their intervals and verdicts; `strain` stands in the title."""
    swept = list(dict.fromkeys(key for c in found for key in c.point))
    rows = []
    named: list[str] = []
    for c in found:
        names = [c.series, *(c.point[key] for key in swept)]
        shown = [""] * len(names) if names == named else names
        difference = difference_text(c.difference.estimate, c.metric)
        rows.append([*shown, c.metric.heading, difference, c.words])
        named = names
    title = f"Paired differences to {found[0].reference}, with 95 % intervals" if found else ""
    headers = ("case", *swept, "", "difference", "verdict")
    title = cautioned(title, strain)
    return Grid(title, headers, rows, names=len(headers) - 2, notes=1, note=note)


def estimate_text(estimate: Estimate, metric: metrics.Metric) -> str:
    """`9.52 ± 0.03`, or `9.52 −0.30 +0.02` where the interval is lopsided."""
    mean, low, high = estimate.mean, estimate.lo, estimate.hi
    if mean is None or low is None or high is None:
        return metric.text(mean)
    below, above = _width(mean - low, metric), _width(high - mean, metric)
    spread = f"± {above}" if below == above else f"−{below} +{above}"
    return f"{metric.text(mean)} {spread}"


def difference_text(estimate: Estimate, metric: metrics.Metric) -> str:
    """The same of a difference, with a plus where it has no minus."""
    text = estimate_text(estimate, metric)
    return f"+{text}" if estimate.mean is not None and estimate.mean > 0 else text


def _grids(results: Results) -> Iterable[Grid]:
    many_cases = results.swept or len(results.cases) > _SIDE_BY_SIDE
    yield _one_line_per_case(results) if many_cases else _side_by_side(results)
    flows = results.flows["flow"].n_unique()
    if flows > 1 and flows * len(results.cases) <= _MAX_FLOW_ROWS:
        yield _flows_grid(results)
    came = [(case, done) for case in results.cases for done in results.completions(case["label"])]
    if 0 < len(came) <= _MAX_COMPLETIONS:
        yield _completions_grid(results, came)
    changes = [
        (case, change)
        for case in results.cases[: _MAX_FLOW_ROWS if flows > 1 else 0]
        for change in results.changes(case["label"])
        if change.left or change.newcomers.n
    ]
    if 0 < len(changes) <= _MAX_FLOW_ROWS:
        yield _changes_grid(results, changes)


def _side_by_side(results: Results) -> Grid:
    rows = [
        [metric.heading, *(_estimated(results, case, metric) for case in results.cases)]
        for metric in compared(results)
    ]
    headers = ["", *(case["series"] for case in results.cases)]
    return Grid(_title(results), headers, rows, note=_notes(results))


def _one_line_per_case(results: Results) -> Grid:
    shown = compared(results)
    naming = _Naming(results)
    rows = [
        [*naming.of(case), *(_estimated(results, case, metric) for metric in shown)]
        for case in results.cases
    ]
    headers = [*naming.headers, *(metric.heading for metric in shown)]
    return Grid(_title(results), headers, rows, len(naming.headers), note=_notes(results))


def _estimated(results: Results, case: Mapping[str, Any], metric: metrics.Metric) -> str:
    return estimate_text(results.estimate(case["label"], metric.name), metric)


def _flows_grid(results: Results) -> Grid:
    values = metrics.per_flow(results.flows).join(results.runs.select("run", "label"), on="run")
    shown = [
        metric
        for name in _FLOW_METRICS
        if values[(metric := metrics.BY_NAME[name]).name].is_not_null().any()
    ]
    naming = _Naming(results)
    mixed = values.group_by("label").agg(pl.col("stack").n_unique())["stack"].max() != 1
    rows = []
    for case in results.cases:
        of_case = values.filter(pl.col("label") == case["label"])
        for (_, name, stack), group in of_case.group_by(
            "flow", "name", "stack", maintain_order=True
        ):
            cells = (estimate_text(mean_interval(group[m.name], m.bounds), m) for m in shown)
            names = [*naming.of(case), str(name), *([str(stack)] if mixed else [])]
            rows.append([*names, *cells])
    names = [*naming.headers, "flow", *(["stack"] if mixed else [])]
    title = cautioned("By flow", results.caution)
    return Grid(title, [*names, *(metric.heading for metric in shown)], rows, len(names))


def _completions_grid(
    results: Results, came: Sequence[tuple[Mapping[str, Any], Completions]]
) -> Grid:
    naming = _Naming(results)
    by_flow = len({done.flow for _, done in came}) > 1
    rows = [
        [
            *naming.of(case),
            *([done.flow] if by_flow else []),
            done.sizes.name,
            str(done.n),
            str(done.unfinished + done.failed),
            *_spread_cells(done.fct_ms, metrics.BY_NAME["rtt_ms_mean"]),
            *_spread_cells(done.slowdown, metrics.BY_NAME["slowdown"]),
        ]
        for case, done in came
    ]
    names = [*naming.headers, *(["flow"] if by_flow else []), "size"]
    times = ["mean, ms", "P50, ms", "P99, ms", "slowdown", "its P50", "its P99"]
    note = "Means over the repeats; percentiles of all connections of all repeats together."
    note = " ".join([note, *left_out(results.fates())])
    title = cautioned("Completion times by size", results.caution)
    headers = [*names, "n", "not done", *times]
    return Grid(title, headers, rows, names=len(names), note=note)


def _spread_cells(spread: Spread, metric: metrics.Metric) -> list[str]:
    percentiles = (metric.text(p.value) for p in spread.percentiles)
    return [estimate_text(spread.mean, metric), *percentiles]


def _changes_grid(results: Results, changes: Sequence[tuple[Mapping[str, Any], Observed]]) -> Grid:
    naming = _Naming(results)
    rows = []
    for case, change in changes:
        *_, fair = [None, *change.converged.values()]
        taken, *_ = [*change.reclaimed.values(), None]
        rows.append(
            [
                *naming.of(case),
                change.event,
                number(change.at_s),
                estimate_text(change.jain, metrics.BY_NAME["jain_index"]),
                estimate_text(change.newcomers, metrics.BY_NAME["utilisation"]),
                "–" if fair is None else fair.short(),
                "–" if taken is None else taken.short(),
            ]
        )
    headers = ["change", "at, s", "Jain index", "came, %", "fair after", "taken after"]
    note = (
        "Until the next change. Came: the newcomers' part of what is delivered. Fair: within 20 % "
        "of each other in every second for 5 s. Taken: 90 % of what was left. Medians over the "
        "repeats, and how many get there."
    )
    headers = [*naming.headers, *headers]
    title = cautioned("Coming and going", results.caution)
    return Grid(title, headers, rows, names=len(naming.headers) + 1, note=note)


class _Naming:
    """Names of cases: their series if there are several, and their swept keys."""

    def __init__(self, results: Results) -> None:
        series = {case["series"] for case in results.cases}
        self._with_series = len(series) > 1
        self._swept = results.swept
        self.headers = [*(["case"] if self._with_series else []), *self._swept]

    def of(self, case: Mapping[str, Any]) -> list[str]:
        """The cells that name a case."""
        series = [case["series"]] if self._with_series else []
        return [*series, *(case["point"].get(key, "") for key in self._swept)]


def _title(results: Results) -> str:
    return cautioned(_subject(results), results.caution)


def _subject(results: Results) -> str:
    seeds = results.manifest["seeds"]
    what = " ".join(filter(None, (results.manifest["name"], results.where)))
    if len(seeds) == 1:
        return f"{what}: one run per case, seed {seeds[0]}"
    return (
        f"{what}: mean ± 95 % interval over {len(seeds)} repeats, seeds {seeds[0]} to {seeds[-1]}"
    )


def _notes(results: Results) -> str:
    notes = [f"{text}."] if (text := explained(results.cases)) else []
    notes += [results.mixture] if results.mixture else []
    seeds, ok = results.manifest["seeds"], results.runs.filter(pl.col("status") == "ok")
    repeated = ok.filter(pl.len().over("label") > 1)
    hashes = repeated.group_by("label").agg(pl.col("trace_hash").n_unique())
    same = hashes.filter(pl.col("trace_hash") == 1)["label"].sort().to_list()
    if len(seeds) > 1 and same:
        few = listed(same) if len(same) <= _FEW else f"{len(same)} of {hashes.height} cases"
        where = "this scenario" if len(same) == hashes.height else few
        notes.append(f"Nothing in {where} is random: all repeats are the same run.")
    if results.failures:
        failed = counted(len(results.failures), "run")
        are = "is" if len(results.failures) == 1 else "are"
        notes.append(f"{failed} failed and {are} left out.")
    elif not results.manifest["complete"]:
        notes.append("Not all planned runs are here: the command was interrupted.")
    notes += [results.silence] if results.silence else []
    notes += unheard(results)
    notes += _unfinished(results.flows)
    notes += _strained(results)
    notes += deadlocked(results.runs)
    return " ".join(notes)


def _strained(results: Results) -> list[str]:
    """What to say of runs in real time that the machine could not carry."""
    health = results.manifest["health"]
    warnings = health.get("warnings")
    return [f"Health {health['verdict']}, the first: {warnings[0]}."] if warnings else []


def deadlocked(runs: pl.DataFrame) -> list[str]:
    """What to say of runs that ended because ports of switches paused each other in a cycle."""
    if "deadlock" not in runs.columns:
        return []
    cycles = runs["deadlock"].drop_nulls()
    if cycles.is_empty():
        return []
    return [f"{cycles.len()} of {runs.height} runs ended in a deadlock of pauses: {cycles[0]}."]


def _unfinished(flows: pl.DataFrame) -> list[str]:
    """What to say of flows that broke, or did not deliver all that they had in time."""
    unfinished = flows.filter(~pl.col("completed"))
    if unfinished.is_empty():
        return []
    reasons = unfinished.filter(pl.col("failure").is_not_null()).select("name", "failure").rows()
    why = f"; the first that failed, {reasons[0][0]}: {reasons[0][1]}" if reasons else " in time"
    return [f"{unfinished.height} of {flows.height} flows did not complete{why}."]


def _width(value: float, metric: metrics.Metric) -> str:
    """Half an interval; one that is smaller than a digit is not nothing."""
    smallest = 10.0**-metric.digits
    is_hidden = 0 < value * metric.scale < smallest / 2
    return f"<{smallest:.{metric.digits}f}" if is_hidden else metric.text(value)
