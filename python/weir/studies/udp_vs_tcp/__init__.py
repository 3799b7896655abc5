"""`udp-vs-tcp`: a published course report on TCP, UDP and reliable UDP, measured again.

Real transfers between two processes, over loopback and between namespaces, each checked by hash.
Every published cell stands beside ours; what the source concludes stands beside what ours say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir import netns
from weir.api import RunOptions, run_plan
from weir.results import Results
from weir.studies import Cell, Settings, StudyResult
from weir.studies.udp_vs_tcp.expected import claims
from weir.studies.udp_vs_tcp.experiment import EXTENTS, NAME, Extent, study_plan
from weir.studies.udp_vs_tcp.findings import findings
from weir.studies.udp_vs_tcp.measures import Tables, study_cells
from weir.studies.udp_vs_tcp.published import Source, load
from weir.transfers import Site
from weir.transfers.runs import Carrier

if TYPE_CHECKING:
    from weir.report.model import ReportSection


class UdpVsTcp:
    """The study."""

    name = NAME
    description = (
        "files of 1 B to 110 MB by TCP, UDP and reliable UDP: on one machine, between two hosts, "
        "with delay, with a quarter of all packets lost"
    )

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
            results = run_plan(plan, Carrier(site), **alone)
        rows = study_rows(source, results)
        sentences = findings(rows, source, extent, site.place)
        if obstacle:
            sentences.insert(0, f"Only one machine: {obstacle}, so there are no two hosts.")
        return StudyResult(rows, sentences, results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """Times and complete transfers, setting by setting."""
        from weir.studies.udp_vs_tcp import figures  # drawing libraries load slowly

        return figures.sections(results, rows)


def study_rows(source: Source, results: Results) -> list[Cell]:
    """Every cell; what is claimed comes first."""
    cells = study_cells(source, results)
    return [*claims(Tables(source, cells)), *cells]


STUDY = UdpVsTcp()
