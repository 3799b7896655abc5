"""Results as users see them: tables, with differences, figures and reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import polars as pl

from weir.base.errors import InputError, unknown
from weir.comparison.contrasts import RELEVANT_SHARE, contrasts, share
from weir.comparison.neighbour import neighbours, neighbours_grid, sentences
from weir.comparison.tables import cases_table, results_html
from weir.results import results

if TYPE_CHECKING:
    from weir.plots import Figure, Figures


class Results(results.Results):
    """One result directory. Tables are read at first use, and kept."""

    @classmethod
    def of(cls, found: results.Results) -> Self:
        """The same results."""
        return cls(found.path, found.manifest)

    def differences(self, relevant: str = RELEVANT_SHARE) -> pl.DataFrame:
        """Every case against the first one at its point of the sweep, metric by metric.

        >>> from weir import compare
        >>> results = compare("reno", "bbr", queue="2bdp", duration="20s", repeat=3)
        >>> rows = results.differences().filter(pl.col("metric") == "queue_delay_ms_mean")
        >>> rows["verdict"].to_list()
        ['significant']

        Args:
            relevant: The share of the reference's mean from which on a difference is of practical
                interest.

        Returns:
            Columns `label`, `series`, swept keys, `reference`, `metric`, `difference` with its 95 %
            interval `lo` to `hi`, `relative` (to the reference's mean), `n` pairs, `verdict`
            (corrected for the number of comparisons), `relevant` (null: not known),
            `repeats_needed` (for an inconclusive one), `words` (the verdict for people).

        Raises:
            InputError: `relevant` is no share.
        """
        rows = [c.as_row() for c in contrasts(self, share(relevant))]
        schema: dict[str, Any] = dict.fromkeys(
            ("label", "series", *self.swept, "reference", "metric"), pl.String
        )
        schema |= dict.fromkeys(("difference", "lo", "hi", "relative"), pl.Float64)
        schema |= {"n": pl.Int64, "verdict": pl.String, "relevant": pl.Boolean}
        return pl.DataFrame(rows, {**schema, "repeats_needed": pl.Int64, "words": pl.String})

    @overload
    def plot(self) -> Figures: ...
    @overload
    def plot(self, name: str) -> Figure: ...
    def plot(self, name: str | None = None) -> Figure | Figures:
        """A figure of the report, or all of them; a notebook shows them.

        Args:
            name: Which one, as `cwnd` or `goodput-delay`; all if left out.

        Raises:
            InputError: these results have no such figure.
        """
        from weir.plots import Figures, figures  # drawing libraries load slowly

        found = {figure.name: figure for figure in figures(self)}
        if name is None:
            return Figures(found.values())
        if name not in found:
            raise InputError(unknown("figure", name, found))
        return found[name]

    def report(self, relevant: str = RELEVANT_SHARE) -> Path:
        """Writes `report.html` into the result directory and returns its path.

        Args:
            relevant: The share of the reference's mean from which on a difference is of practical
                interest.

        Raises:
            InputError: `relevant` is no share.
            StoreError: it cannot be written.
        """
        from weir.api.reports import write  # drawing libraries load slowly

        return write(self, relevant=share(relevant))

    def __rich__(self) -> Any:
        """The table that the command line prints."""
        return cases_table(self)

    def _repr_html_(self) -> str:
        """All tables and charts, for a notebook; the charts are pictures, which need no network."""
        rows = neighbours(self)
        grid = neighbours_grid(self, rows)
        tables = results_html(self, list(sentences(rows)), [grid] if grid else [])
        return tables + self.plot()._repr_html_()


def load(directory: str | Path) -> Results:
    """The results in `directory`, a run directory or the `latest` link to one.

    >>> from weir import compare
    >>> compare("reno", duration="5s", repeat=2).path == load("results/compare/latest").path
    True

    Raises:
        InputError: there are none, they are damaged, or a newer version of Weir wrote them.
    """
    return Results.of(results.load(directory))
