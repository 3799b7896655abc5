"""The cells of the study: one per bundle, stack and check, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.ccwg import ns3, rfc9743
from weir.studies.ccwg.bundle import Bundle, Observed
from weir.studies.ccwg.experiment import BUNDLES
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.envelopes import judged


def study_cells(results: Results, _: Extent) -> list[Cell]:
    """Every cell, bundle by bundle."""
    checked = [found for bundle in BUNDLES if bundle.checks for found in _of(results, bundle)]
    return [*checked, *_maxima(results), *rfc9743.cells(Contests(results))]


def _maxima(results: Results) -> Iterator[Cell]:
    """Of CUBIC's window beside those that ns-3's comments name."""
    for bundle in ns3.NS3:
        for maximum in ns3.MAXIMA.get(bundle.name, ()):
            for stack in bundle.stacks:
                found = [maximum.found(run) for run in observed(results, bundle.label(stack))]
                known = [one for one in found if one is not None]
                place = f"{bundle.name}: maxima of cwnd", f"{maximum.name} maximum"
                size, time = (mean_interval(one[of] for one in known) for of in (0, 1))
                note = "" if known else "the flow sent nothing then"
                yield cell(*place, "segments", "", size, published=maximum.segments, note=note)
                yield cell(*place, "at, s", "", time, published=maximum.at_s, note=note)


def _of(results: Results, bundle: Bundle) -> Iterator[Cell]:
    for stack in bundle.stacks:
        runs = observed(results, bundle.label(stack))
        for check in bundle.checks:
            place = bundle.name, check.name, stack, check.unit
            values = [check.value(run) for run in runs]
            yield judged(place, values, check.envelope, check.reason(stack))


def observed(results: Results, label: str) -> list[Observed]:
    """The first flow of each run of a case."""
    found = []
    for run in results.runs.filter(label=label, status="ok").sort("seed")["run"]:
        own = pl.col("run") == run
        watched = results.links.filter(own, pl.col("monitored"))["link"].min()
        found.append(
            Observed(
                results.flows.filter(own, pl.col("flow") == 0).row(0, named=True),
                results.scan("samples").filter(own, pl.col("flow") == 0).sort("t_s").collect(),
                results.scan("queues").filter(own, pl.col("link") == watched).sort("t_s").collect(),
                results.curves[run][0],
            )
        )
    return found
