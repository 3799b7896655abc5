"""Studies of a flow or two over one bottleneck: their scenarios, and what each flow got."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weir.api import run_plan
from weir.results import Results
from weir.scenario import Source
from weir.studies import Cell, Settings, StudyResult
from weir.studies.cells import Cells
from weir.sweep import Plan, plan

if TYPE_CHECKING:
    from weir.report.model import ReportSection

SEVEN = ("reno", "cubic", "bbr", "vegas", "veno", "westwood", "dctcp")
"""The controllers that full studies compare."""

FOUR = SEVEN[:4]
"""Those that small ones compare."""

_TOPOLOGY = """
name = "{name}"

[topology]
rate = "{rate}"
rtt = "{rtt}"
queue = {queue}
"""

_FLOW = """
[[flow]]
name = "{name}"
stack = "{stack}"
start_jitter = "{wait}"
rtt = "{rtt}"
"""

_MEASURE = """
[measure]
duration = "{seconds:g}s"
warmup = "{warmup:g}s"
sample_interval = "0s"
repeat = {repeat}
seed = {seed}
"""

WARMUP_SHARE = 4
"""1 / this part of each run is left out, until the shares have settled."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of a study."""

    stacks: Sequence[str]
    seconds: float
    repeat: int
    seed: int = 1
    values: Sequence[float] = ()
    """Of what the study varies, where its sizes differ in that."""


@dataclass(frozen=True)
class ContestStudy:
    """A study of contests, from its parts."""

    name: str
    description: str
    extents: Mapping[str, Extent]
    cases: Callable[[Extent], Mapping[str, str]]
    """Scenarios by label."""
    cells: Callable[[Results, Extent], list[Cell]]
    claims: Callable[[Cells], Iterable[Cell]]
    """What the literature expects, tested by those cells."""
    findings: Callable[[Cells], list[str]]
    draw: Callable[[Results, Cells], Sequence[ReportSection]]

    def run(self, settings: Settings) -> StudyResult:
        """Runs it."""
        extent = replace(self.extents[settings.size], seed=settings.seed)
        if settings.repeat is not None:
            extent = replace(extent, repeat=settings.repeat)
        results = run_plan(self._plan(extent, settings.size), **settings.how)
        measured = self.cells(results, extent)
        rows = [*self.claims(Cells(measured)), *measured]
        return StudyResult(rows, self.findings(Cells(rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """Its tables and figures."""
        return self.draw(results, Cells(rows))

    def _plan(self, extent: Extent, size: str) -> Plan:
        words = ["weir", "study", self.name, "--size", size, "--repeat", str(extent.repeat)]
        origin = f"study {self.name}"
        sources = {label: Source(text, origin) for label, text in self.cases(extent).items()}
        return plan(self.name, shlex.join([*words, "--seed", str(extent.seed)]), sources, {})


def topology(name: str, rate: str, rtt: str, queue: str) -> str:
    """The head of a scenario with a dumbbell; `queue` is TOML."""
    return _TOPOLOGY.format(name=name, rate=rate, rtt=rtt, queue=queue)


def flow(name: str, stack: str, wait: str, rtt: str) -> str:
    """A bulk flow that waits a random time up to `wait` before it starts."""
    return _FLOW.format(name=name, stack=stack, wait=wait, rtt=rtt)


def measure(extent: Extent) -> str:
    """What is measured: totals, no series."""
    return _MEASURE.format(
        seconds=extent.seconds,
        warmup=extent.seconds / WARMUP_SHARE,
        repeat=extent.repeat,
        seed=extent.seed,
    )


class Contests:
    """What every flow of every run got, by case and by seed."""

    def __init__(self, results: Results) -> None:
        runs = results.runs.filter(status="ok").select("run", "label", "seed")
        self._flows = {
            (str(label), str(name)): own
            for (label, name), own in results.flows.join(runs, on="run")
            .partition_by("label", "name", as_dict=True)
            .items()
        }
        links = results.links.filter("monitored").sort("run", "link").unique("run", keep="first")
        self._links = {
            str(label): own
            for (label,), own in links.join(runs, on="run")
            .partition_by("label", as_dict=True)
            .items()
        }

    def flow(self, label: str, name: str, column: str) -> Mapping[int, float | None]:
        """A column of table `flows` for one flow of a case, by seed."""
        own = self._flows.get((label, name))
        return {} if own is None else dict(zip(own["seed"], own[column], strict=True))

    def link(self, label: str, column: str) -> Mapping[int, float | None]:
        """A column of table `links` for the bottleneck of a case, by seed."""
        own = self._links.get(label)
        return {} if own is None else dict(zip(own["seed"], own[column], strict=True))
