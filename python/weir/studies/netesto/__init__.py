"""`netesto`: the tests of the Network Test Toolkit, with which the chapter of `book` was measured.

Its own timings, request mixes and buffers. Netesto publishes scripts, not results; what its author
and its scripts say of them is in the claims of its description.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from weir.cells.protocol import Cell, Settings
from weir.cells.texts import Scope
from weir.results.results import Results
from weir.scenario.sweep import Plan
from weir.studies.described import DescribedStudy
from weir.studies.netesto import measures
from weir.studies.netesto.experiment import EXTENTS, study_plan


class Netesto(DescribedStudy):
    """The study: cases and measures in Python, the rest as described."""

    def scope(self, settings: Settings) -> dict[str, Any]:
        """The names of the description, and what a size has."""
        return {**self.constants, "extent": EXTENTS[settings.size]}

    def plan(self, settings: Settings) -> Plan:
        """Every run."""
        extent = EXTENTS[settings.size]
        return study_plan(extent, settings.size, settings.repeat, settings.seed)

    def rows(self, results: Results, scope: Scope) -> list[Cell]:
        """Every cell; the verdicts on what is expected come first."""
        extent = scope["extent"]
        measured: Sequence[Cell] = [
            *measures.stream_cells(results, extent),
            *measures.rate_cells(results, extent),
            *measures.size_cells(results, extent),
        ]
        sensitivity = measures.start_sensitivity(results, extent)
        return [*self.claims(measured, {**scope, "sensitivity": sensitivity}), *measured]


STUDY = Netesto(files(__name__), __name__)
