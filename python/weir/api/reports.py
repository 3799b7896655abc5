"""The report of a result directory, whatever it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from weir.base.errors import InputError
from weir.comparison.contrasts import RELEVANT
from weir.report import Files, write_report
from weir.report.compose import compose
from weir.report.model import Report, cautioned
from weir.results import manifest
from weir.results.results import Results
from weir.validation import agreement


def write(
    results: Results,
    files: Files | None = None,
    *,
    relevant: float = RELEVANT,
    metrics: Sequence[str] = (),
) -> Path:
    """Draws the report of results into their directory; returns the path of `report.html`.

    Differences of stacks are of practical interest from `relevant` times the first one's mean on.
    Figures of `files` are also written to `figures/`. `metrics` are those of the tables and
    figures, in place of the usual ones.

    Raises:
        WeirError: there are no results, or it cannot be written.
    """
    report = _composed(results, relevant, metrics)
    return write_report(cautioned(report, results.caution), results.path, files)


def _composed(results: Results, relevant: float, metrics: Sequence[str]) -> Report:
    """The report of what is kept next to the tables; that of a comparison imports no other."""
    for file, (what, composed) in _OTHERS.items():
        if (results.path / file).is_file():
            if metrics:
                raise InputError(
                    f"--metric {metrics[0]}: the report of {what} has tables of its own; leave it "
                    "out"
                )
            return composed(results)
    return compose(results, relevant, metrics, agreement.cautions(results))


def _of_study(results: Results) -> Report:
    from weir.studies.report import compose_study

    return compose_study(results)


def _of_validation(results: Results) -> Report:
    from weir.validation.report import compose_validation

    return compose_validation(results)


def _of_radio(results: Results) -> Report:
    from weir.radio_validation.report import compose_radio

    return compose_radio(results)


def _of_conformance(results: Results) -> Report:
    from weir.conform.report import compose_conform

    return compose_conform(results)


_OTHERS: Mapping[str, tuple[str, Callable[[Results], Report]]] = {
    manifest.STUDY: ("a study", _of_study),
    manifest.VALIDATION: ("a validation", _of_validation),
    manifest.RADIO: ("a validation of the radio network", _of_radio),
    manifest.CONFORM: ("a check of conformance", _of_conformance),
}
"""By the file that is kept next to the tables."""
