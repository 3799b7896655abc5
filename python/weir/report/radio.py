"""What a report says about a radio network: the flows' ways, the map, and every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weir.comparison.tables import estimate_text
from weir.graphics.select import Case, has_rows, shown_over_time
from weir.plots import Figure
from weir.plots.topology import CAUSES
from weir.report.model import Cell, ReportSection, ReportTable
from weir.results.metrics import Metric
from weir.results.results import Results
from weir.statistics.intervals import mean_interval

_SHOWN_NODES = 40
_MAX_FLOWS = 32

_WAYS = (
    ("hops_mean", "hops", "", 2),
    ("delay_ms_mean", "delay", "ms", 1),
    ("delay_ms_p95", "delay P95", "ms", 1),
    ("route_changes", "route changes", "", 1),
)
_COUNTS = {
    "rts": "RTS",
    "cts": "CTS",
    "data_frames": "data",
    "ack_frames": "ACK",
    "broadcasts": "broadcast",
    "lost_frames": "not read",
    "collisions": "collisions",
}
_SHARES = {
    "airtime_ratio": "sent, %",
    "medium_busy_ratio": "medium busy, %",
    "service_busy_ratio": "MAC utilisation, %",
}


def section(
    results: Results, cases: Sequence[Case], anchors: Mapping[str, str], figures: Sequence[Figure]
) -> ReportSection:
    """The map and the tables; empty over links. `anchors` leads from a case to its provenance."""
    tables: list[ReportTable] = []
    if has_rows(
        results, "nodes", ("node", *_COUNTS, "short_retries", "long_retries", *_SHARES, *CAUSES)
    ):
        flows = _flows(results, cases, anchors)
        tables += [flows] if flows else []
        tables += [_nodes(results, case) for case in shown_over_time(cases)]
    return ReportSection("Radio network", tables=tables, figures=list(figures))


def _flows(
    results: Results, cases: Sequence[Case], anchors: Mapping[str, str]
) -> ReportTable | None:
    """How far packets of each flow went, how long that took, and how often the way changed."""
    flows = results.flows
    if not {"from_node", "to_node", *(name for name, *_ in _WAYS)} <= set(flows.columns):
        return None
    if flows["flow"].n_unique() > _MAX_FLOWS:
        return None
    shown = [_metric(*way) for way in _WAYS if flows[way[0]].is_not_null().any()]
    rows: list[list[Cell | str]] = []
    for case in cases:
        own = flows.filter(pl.col("run").is_in(list(case.runs))).sort("flow", "run")
        for (_, name, stack), group in own.group_by("flow", "name", "stack", maintain_order=True):
            ways = group.select("from_node", "to_node").unique(maintain_order=True).rows()
            way = f"{ways[0][0]} to {ways[0][1]}" if len(ways) == 1 else "differs by run"
            cells = [
                Cell(
                    estimate_text(mean_interval(group[m.name].cast(pl.Float64), m.bounds), m),
                    link=anchors[case.label],
                )
                for m in shown
            ]
            rows.append([Cell(case.name, "name"), str(name), str(stack), way, *cells])
    note = (
        "Mean ± half of the 95 % interval. Hops and delay are those of data packets that arrived, "
        "one way. A route counts as changed at either end of the flow."
    )
    headers = ["case", "flow", "stack", "nodes", *(metric.heading for metric in shown)]
    return ReportTable("Routes of the flows", headers, rows, note=note)


def _metric(name: str, title: str, unit: str, digits: int) -> Metric:
    return Metric(name, title, unit, title, "less", "flows", pl.col(name).first(), digits=digits)


def _nodes(results: Results, case: Case) -> ReportTable:
    """Every node in the run that stands for the case."""
    nodes = results.scan("nodes").filter(run=case.typical).sort("node").collect()
    causes = {column: word for column, word in CAUSES.items() if nodes[column].sum()}
    rows: list[list[Cell | str]] = []
    for node in nodes.iter_rows(named=True):
        retries = node["short_retries"] + node["long_retries"]
        counts = [node[column] for column in _COUNTS]
        drops = [node[column] for column in causes]
        numbers = [Cell(str(count)) for count in (*counts, retries, *drops)]
        shares = [Cell(f"{node[column] * 100:.1f}") for column in _SHARES]
        rows.append(
            [
                Cell(str(node["node"]), "name"),
                *numbers,
                *shares,
                Cell(str(node["queue_packets_max"])),
            ]
        )
    headers = [
        "node",
        *_COUNTS.values(),
        "retries",
        *(f"dropped: {word}" for word in causes.values()),
        *_SHARES.values(),
        "longest queue",
    ]
    note = (
        f"Run {case.typical}, whose goodput is the median. Frames that a node sent, by kind; of "
        "these, those that their reader could not read; receptions lost to each other; retries: "
        "RTS without CTS, and data frames without acknowledgement. MAC utilisation: "
        "share of time in which its MAC had a packet to send. Causes of drops that are missing did "
        "not happen; docs/results.md says exactly what each column is."
    )
    return ReportTable(
        f"Nodes: {case.name}", headers, rows, note=note, is_folded=len(rows) > _SHOWN_NODES
    )
