"""The report of a result directory, whatever it is of."""

from __future__ import annotations

from pathlib import Path

from weir.comparison.contrasts import RELEVANT
from weir.graphics.figure import unchecked
from weir.report import Files, write_report
from weir.report.compose import compose
from weir.report.model import Report, cautioned
from weir.results import manifest
from weir.results.results import Results


def write(results: Results, files: Files | None = None, *, relevant: float = RELEVANT) -> Path:
    """Draws the report of results into their directory; returns the path of `report.html`.

    Differences of stacks are of practical interest from `relevant` times the first one's mean on.
    Figures of `files` are also written to `figures/`.

    Raises:
        WeirError: there are no results, or it cannot be written.
    """
    with unchecked():
        report = _composed(results, relevant)
        return write_report(cautioned(report, results.caution), results.path, files)


def _composed(results: Results, relevant: float) -> Report:
    """The report of what is kept next to the tables; that of a comparison imports no other."""
    if (results.path / manifest.STUDY).is_file():
        from weir.studies.report import compose_study

        return compose_study(results)
    if (results.path / manifest.VALIDATION).is_file():
        from weir.validation.report import compose_validation

        return compose_validation(results)
    if (results.path / manifest.RADIO).is_file():
        from weir.radio_validation.report import compose_radio

        return compose_radio(results)
    if (results.path / manifest.CONFORM).is_file():
        from weir.conform.report import compose_conform

        return compose_conform(results)
    return compose(results, relevant)
