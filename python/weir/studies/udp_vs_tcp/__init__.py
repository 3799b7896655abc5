"""`udp-vs-tcp`: a published course report on TCP, UDP and reliable UDP, measured again.

Real transfers between two processes, over loopback and between namespaces, each checked by hash.
Every published cell stands beside ours; what the source concludes stands beside what ours say.
"""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files
from typing import Any

from weir.cells.protocol import Cell, Settings, StudyResult
from weir.processes import netns
from weir.results.results import Results
from weir.running.execution import RunOptions, run_plan
from weir.scenario.sweep import Plan
from weir.studies.described import DescribedStudy
from weir.studies.udp_vs_tcp.experiment import EXTENTS, Extent, study_plan
from weir.studies.udp_vs_tcp.findings import findings as transfer_findings
from weir.studies.udp_vs_tcp.measures import Tables, study_cells
from weir.studies.udp_vs_tcp.published import Source, load
from weir.transfer.runs import TransferRunner
from weir.transfer.site import Site


class UdpVsTcp(DescribedStudy):
    """The study: transfers of its own, claims and figures as described."""

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The names of the description, and what is published."""
        return {**super().constants, "source": load()}

    def title(self, table: str) -> str:
        """What a table shows and where the source prints it."""
        tables = {own.id: f"Time {own.title} ({own.printed})" for own in load().tables}
        return tables.get(table) or super().title(table)

    def plan(self, settings: Settings) -> Plan:
        """Every transfer, where there are two hosts."""
        return study_plan(EXTENTS[settings.size], settings.size, settings.repeat, settings.seed)

    def run(self, settings: Settings) -> StudyResult:
        """Carries every file."""
        return self.run_extent(EXTENTS[settings.size], settings)

    def run_extent(self, extent: Extent, settings: Settings) -> StudyResult:
        """Carries the files of `extent`, one at a time: two at once would measure each other."""
        source, obstacle = load(), netns.missing()
        if obstacle:
            extent = extent.on_one_machine()
        plan = study_plan(extent, settings.size, settings.repeat, settings.seed)
        alone: RunOptions = {**settings.how, "jobs": 1}
        with Site() as site:
            results = run_plan(plan, TransferRunner(site), **alone)
        rows = self.measured(source, results)
        sentences = transfer_findings(rows, source, extent, site.place)
        if obstacle:
            sentences.insert(0, f"Only one machine: {obstacle}, so there are no two hosts.")
        return StudyResult(rows, sentences, results)

    def measured(self, source: Source, results: Results) -> list[Cell]:
        """Every cell; what is claimed comes first."""
        cells = study_cells(source, results)
        scope = {**self.constants, "tables": Tables(source, cells)}
        return [*self.claims(cells, scope), *cells]


STUDY = UdpVsTcp(files(__name__), __name__)
