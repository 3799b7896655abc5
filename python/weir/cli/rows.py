"""Results as the rows of `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir.comparison.contrasts import Contrast
from weir.comparison.neighbour import neighbours
from weir.dynamics.criteria import COARSE_BIN_S
from weir.results import metrics
from weir.results.results import Results
from weir.statistics.intervals import mean_interval

Row = dict[str, Any]


def case_rows(results: Results) -> list[Row]:
    """One row per case: its swept keys and every metric that has a value."""
    return [
        {
            "label": case["label"],
            "stack": case["stack"],
            **case["point"],
            **_health(results, case["label"]),
            **_measured(results, case["label"]),
            **_changes(results, case["label"]),
            **_connections(results, case["label"]),
        }
        for case in results.cases
    ]


def comparison_rows(results: Results, found: Sequence[Contrast]) -> list[Row]:
    """One row per case: its stack as given, and the paired difference to the first case."""
    rows = []
    shares = {own["label"]: own for own in neighbours(results)}
    for case in results.cases:
        row = {
            "stack": case["series"],
            "effective_stack": case["stack"],
            **case["point"],
            **_health(results, case["label"]),
            **_measured(results, case["label"]),
            **_changes(results, case["label"]),
            **_connections(results, case["label"]),
        }
        if case["label"] in shares:
            row["next_to"] = _next_to(shares[case["label"]])
        own = [contrast for contrast in found if contrast.label == case["label"]]
        if own:
            row["difference"] = {
                "reference": own[0].reference,
                **{c.metric.name: _contrast_json(c) for c in own},
            }
        rows.append(row)
    return rows


def _next_to(row: Row) -> Row:
    estimates = {name: row[name].as_json() for name in ("share", "harm")}
    fair = row["fair"]
    return {
        "neighbour": row["neighbour"],
        **estimates,
        "neighbour_goodput_mbps": row["goodput"].as_json(),
        "fair_after": None if fair is None else {"bin_s": COARSE_BIN_S, **fair.as_json()},
    }


def flow_rows(results: Results) -> dict[str, list[Row]]:
    """By case: one row per flow, with the metrics of a single flow."""
    values = metrics.per_flow(results.flows).join(results.runs.select("run", "label"), on="run")
    rows: dict[str, list[Row]] = {}
    for (label, flow, name, stack), group in values.group_by(
        "label", "flow", "name", "stack", maintain_order=True
    ):
        measured = {
            metric.name: mean_interval(group[metric.name], metric.bounds).as_json()
            for metric in metrics.METRICS
            if metric.name in group.columns and group[metric.name].is_not_null().any()
        }
        rows.setdefault(str(label), []).append(
            {"flow": flow, "name": name, "stack": stack, **measured}
        )
    return rows


def _measured(results: Results, label: str) -> Row:
    return {
        metric.name: results.estimate(label, metric.name).as_json() for metric in results.measured()
    }


def _health(results: Results, label: str) -> Row:
    """The machine's verdict, where time is real."""
    verdict = results.health(label)
    return {} if verdict is None else {"health": verdict}


def _changes(results: Results, label: str) -> Row:
    """Returns what followed when flows started or ended next to others."""
    found = [change.as_json() for change in results.changes(label)]
    return {"changes": found} if found else {}


def _connections(results: Results, label: str) -> Row:
    """Completion times by size, if a flow makes connections."""
    found = [completion.as_json() for completion in results.completions(label)]
    return {"arrivals": found} if found else {}


def _contrast_json(contrast: Contrast) -> Row:
    return {
        **contrast.difference.estimate.as_json(),
        "verdict": contrast.verdict,
        "relevant": contrast.is_relevant,
        "repeats_needed": contrast.needed,
    }
