"""From results to a report: which tables, which figures, in which order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from weir.base.grid import counted
from weir.comparison.contrasts import (
    RELEVANT,
    Contrast,
    caution,
    compared,
    compared_cases,
    contrasts,
)
from weir.comparison.neighbour import HEADERS, NOTE, neighbours, texts
from weir.comparison.tables import estimate_text
from weir.graphics.select import Case, cases
from weir.graphics.theme import short_key
from weir.plots import figures, topology
from weir.plots import sharing as sharing_plot
from weir.report import radio, sharing, summary
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable, ranges
from weir.results import metrics
from weir.results.metrics import Metric
from weir.results.results import Results
from weir.statistics.intervals import mean_interval

_MAX_FLOWS = 16
_MAX_RUNS = 2_000
_SHOWN_RUNS = 60
_SHOWN_ITEMS = 100
"""Of a list in the scenario."""
_FLOW_METRICS = ("goodput_mbps", "rtt_ms_mean", "retransmit_ratio", "timeouts", "fct_s")
_HASH_LENGTH = 12


def compose(
    results: Results,
    relevant: float = RELEVANT,
    chosen: Sequence[str] = (),
    cautions: Sequence[str] = (),
) -> Report:
    """The report of a comparison, a scenario or a sweep, with the usual metrics or those chosen.

    `cautions` stand in the summary with those of the results themselves.

    Raises:
        InputError: no run has one of these metrics.
    """
    found = cases(results)
    shown = compared(results, chosen)
    names = {case["label"] for case in compared_cases(results.cases)}
    rivals = [case for case in found if case.label in names]
    differences = contrasts(results, relevant, chosen) if found else []
    drawn = figures(results, shown)
    curves = [figure for figure in drawn if figure.name.startswith("sweep")]
    fairness = [figure for figure in drawn if figure.name == sharing_plot.NAME]
    maps = [figure for figure in drawn if figure.name == topology.NAME]
    others = [figure for figure in drawn if figure not in (*curves, *fairness, *maps)]
    sections = [
        ReportSection(
            "Summary",
            points=summary.findings(results, rivals, differences, relevant),
            warnings=[*summary.cautions(results), *cautions],
        ),
        ReportSection("Over the sweep", figures=curves),
        ReportSection("Results", tables=list(_tables(results, found, differences, shown))),
        _next_to(results, relevant),
        radio.section(results, found, _anchors(results), maps),
        sharing.section(results, found, _anchors(results), fairness),
        ReportSection("Figures", summary.scope(found) if others else (), figures=others),
        provenance_section(results, shown),
    ]
    full = [section for section in sections if not section.is_empty]
    return Report(
        summary.title(results, rivals),
        summary.question(results, rivals),
        full,
        provenance(results),
        list(summary.deadlocks(results)),
    )


def with_provenance(
    results: Results, title: str, question: str, sections: Sequence[ReportSection]
) -> Report:
    """A report of given sections, with the provenance of all runs added."""
    return Report(title, question, [*sections, provenance_section(results)], provenance(results))


def provenance(results: Results) -> Provenance:
    """The command, the version and the seed of every run."""
    manifest = results.manifest
    seeds = dict(results.runs.select("run", "seed").iter_rows())
    return Provenance(manifest["command"], manifest["version"], manifest["created"], seeds)


def provenance_section(results: Results, shown: Sequence[Metric] | None = None) -> ReportSection:
    """Every case with the hash of its configuration, every run with its seed and metrics."""
    shown = compared(results) if shown is None else shown
    again = (
        "The same version with the same configuration and the same seed gives the same trace hash "
        "on every machine."
    )
    if "trace_hash" not in results.runs.columns:
        again = "Time was real: no run can be repeated exactly."
    elif results.runs.filter(status="ok")["trace_hash"].has_nulls():
        again = f"{again} Runs without a hash were in real time and cannot be repeated exactly."
    text = (
        f"Every number above comes from the runs listed here. {again} The complete configuration "
        "is in manifest.json, and each run's rows are in the Parquet tables, both next to this "
        "file: weir.load(directory) reads them."
    )
    scenario = results.cases[0]["scenario"] if results.cases else {}
    return ReportSection(
        "Provenance",
        paragraphs=[text],
        tables=[*_sources_table(results), _cases_table(results), _runs_table(results, shown)],
        code=json.dumps(_shortened(scenario), indent=2, ensure_ascii=False),
    )


def _shortened(value: Any) -> Any:
    """A scenario whose long lists, such as a trace or the connections of a file, end early."""
    if isinstance(value, Mapping):
        return {key: _shortened(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    first = [_shortened(inner) for inner in value[:_SHOWN_ITEMS]]
    more = len(value) - len(first)
    return [*first, f"and {more} more, in manifest.json"] if more else first


def _sources_table(results: Results) -> Iterator[ReportTable]:
    """The directories that were joined, if any were."""
    if sources := results.manifest.get("sources"):
        keys = ("name", "command", "created", "version", "path")
        rows = [[Cell(source[key], "text") for key in keys] for source in sources]
        yield ReportTable("Directories", keys, rows)


def anchor(results: Results, label: str) -> str:
    """Where the provenance of a case stands."""
    return _anchors(results)[label]


def _anchors(results: Results) -> dict[str, str]:
    return {case["label"]: f"case-{position}" for position, case in enumerate(results.cases)}


def _tables(
    results: Results,
    found: Sequence[Case],
    differences: Sequence[Contrast],
    shown: Sequence[Metric],
) -> Iterator[ReportTable]:
    if found and shown:
        yield _estimates(results, found, shown)
    if results.flows.height and results.flows["flow"].n_unique() in range(2, _MAX_FLOWS + 1):
        yield _flows(results, found)
    if differences:
        yield _differences(results, differences, shown)


def _next_to(results: Results, relevant: float) -> ReportSection:
    """What each stack takes from its neighbour, and how long they take to fair shares."""
    rows = []
    for row in (found := neighbours(results, relevant)):
        more: Contrast | None = row["more"]
        link = anchor(results, row["label"])
        cells = [Cell(text, link=link) for text in texts(row)]
        names = _names(results, row["series"], row["point"])
        rows.append([*names, *cells, Cell("" if more is None else more.words, "text")])
    headers = ["case", *map(short_key, results.swept), *HEADERS, "verdict on the harm"]
    title = f"Next to {found[0]['neighbour']}" if found else ""
    tables = [ReportTable("Share, harm and convergence", headers, rows, note=NOTE)] if rows else []
    return ReportSection(title, tables=tables)


def _estimates(results: Results, found: Sequence[Case], shown: Sequence[Metric]) -> ReportTable:
    rows: list[list[Cell | str]] = []
    for case in found:
        link = anchor(results, case.label)
        cells = [
            Cell(estimate_text(results.estimate(case.label, m.name), m), link=link) for m in shown
        ]
        repeats = Cell(str(len(case.runs)), link=link)
        names = [*_names(results, case.series, case.point), *_world(results, case.label)]
        rows.append([*names, *cells, repeats])
    note = (
        "Mean ± half of the 95 % interval over the repeats; where the interval is lopsided, how "
        "far it reaches below and above. Each number leads to the runs it was made from. "
        f"{' '.join(f'{m.title[:1].upper()}{m.title[1:]}: {m.meaning}.' for m in shown)}"
    )
    what = "stack" if len({case.series for case in found}) > 1 else "case"
    headers = [
        what,
        *map(short_key, results.swept),
        *(["world"] if results.mixture else []),
        *(metric.heading for metric in shown),
        "repeats",
    ]
    return ReportTable("Measures", headers, rows, note=note, anchor="measures")


def _world(results: Results, label: str) -> list[Cell | str]:
    """The world of a case, where there are several."""
    names = (world for world, labels in results.worlds.items() if label in labels)
    return [Cell(next(names), "text")] if results.mixture else []


def _names(results: Results, series: str, point: Mapping[str, str]) -> list[Cell | str]:
    values: list[Cell | str] = [Cell(point.get(key, ""), "text") for key in results.swept]
    return [Cell(series, "name"), *values]


def _flows(results: Results, found: Sequence[Case]) -> ReportTable:
    values = metrics.per_flow(results.flows)
    shown = [metrics.BY_NAME[name] for name in _FLOW_METRICS if values[name].is_not_null().any()]
    rows: list[list[Cell | str]] = []
    for case in found:
        own = values.filter(pl.col("run").is_in(list(case.runs)))
        link = anchor(results, case.label)
        by_flow = own.sort("flow").group_by("flow", "name", "stack", maintain_order=True)
        for (_, name, stack), group in by_flow:
            cells = [
                Cell(estimate_text(mean_interval(group[m.name], m.bounds), m), link=link)
                for m in shown
            ]
            rows.append([Cell(case.name, "name"), str(name), str(stack), *cells])
    headers = ["case", "flow", "stack", *(metric.heading for metric in shown)]
    return ReportTable("By flow", headers, rows, note="Mean ± half of the 95 % interval.")


def _differences(
    results: Results, found: Sequence[Contrast], shown: Sequence[Metric]
) -> ReportTable:
    """One row per pair, one column per metric; bold where a difference is shown."""
    by_pair: dict[tuple[str, str], dict[str, Contrast]] = {}
    for contrast in found:
        pair = by_pair.setdefault((contrast.label, contrast.reference), {})
        pair[contrast.metric.name] = contrast
    rows = []
    for (label, reference), pair in by_pair.items():
        first = next(iter(pair.values()))
        names = _names(results, f"{first.series} against {reference}", first.point)
        link = anchor(results, label)
        cells = [_difference(pair.get(metric.name), link) for metric in shown]
        rows.append([*names, *cells])
    note = (
        "The first stack minus the second, mean ± half of the 95 % interval. Repeats with the same "
        "seed are compared with each other, so that the seed has no effect. Bold: "
        "significant and relevant. In brackets: significant only before the correction for the "
        "number of comparisons (Holm). Grey: not significant, or not relevant. "
        f"{caution(found)}"
    )
    headers = ["pair", *map(short_key, results.swept), *(metric.heading for metric in shown)]
    return ReportTable("Paired differences", headers, rows, note=note.strip(), anchor="differences")


def _difference(contrast: Contrast | None, link: str) -> Cell:
    if contrast is None:
        return Cell("–")
    text = summary.signed(contrast.difference.estimate, contrast.metric)
    if contrast.verdict == "significant" and contrast.is_relevant:
        return Cell(text, link=link, tone="strong")
    if contrast.verdict == "significant only before correction":
        return Cell(f"({text})", link=link, tone="faint")
    return Cell(text, link=link, tone="faint")


def _cases_table(results: Results) -> ReportTable:
    rows = []
    for case in results.cases:
        own = results.runs.filter((pl.col("label") == case["label"]) & (pl.col("status") == "ok"))
        rows.append(
            [
                Cell(case["label"], "name", anchor=anchor(results, case["label"])),
                case["stack"],
                *_world(results, case["label"]),
                config_hash(case["scenario"]),
                ranges(sorted(own["run"].to_list())) or "none",
                ranges(sorted(own["seed"].to_list())) or "none",
            ]
        )
    worlds = ["world"] if results.mixture else []
    headers = ["case", "stack", *worlds, "configuration hash", "runs", "seeds"]
    return ReportTable("Cases", headers, rows, is_folded=len(rows) > _SHOWN_RUNS)


def config_hash(scenario: Any) -> str:
    """A short name for a complete configuration: equal exactly when the configuration is."""
    text = json.dumps(scenario, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def _runs_table(results: Results, shown: Sequence[Metric]) -> ReportTable:
    names = [metric.name for metric in shown]
    values = results.per_run.select("run", pl.col(names).fill_nan(None))
    runs = results.runs.join(values, on="run", how="left", suffix="_of_run").head(_MAX_RUNS)
    rows = []
    for row in runs.sort("run").iter_rows(named=True):
        if row["status"] == "ok":
            cells = [Cell(m.text(row.get(f"{m.name}_of_run", row[m.name]))) for m in shown]
        else:
            cells = [Cell("–") for _ in shown]
        rows.append(
            [
                Cell(str(row["run"]), anchor=f"run-{row['run']}"),
                row["label"],
                Cell(str(row["seed"])),
                row["status"] if row["error"] is None else f"{row['status']}: {row['error']}",
                *cells,
                row.get("trace_hash") or "–",
            ]
        )
    headers = ["run", "case", "seed", "status", *(metric.heading for metric in shown), "trace hash"]
    left_out = results.runs.height - len(rows)
    note = f"Not shown: {counted(left_out, 'more run')}, in runs.parquet." if left_out else ""
    is_long = len(rows) > _SHOWN_RUNS
    return ReportTable("Runs", headers, rows, note=note, anchor="runs", is_folded=is_long)
