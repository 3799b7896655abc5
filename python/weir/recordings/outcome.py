"""What a validation has found, and what of it is kept next to the results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any

import polars as pl

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.base.options import Option
from weir.recordings import judge
from weir.recordings.judge import Row
from weir.recordings.reduce import reduce
from weir.recordings.truth import Flow, Reference, Values
from weir.results import manifest
from weir.results.results import Results

FILE = manifest.VALIDATION
SERIES = "reference.parquet"
"""Next to the results: the rows, and the kernel's series, so that a report can be drawn again."""


Cases = Annotated[
    Sequence[str],
    Option(
        "Only cases with matching names; may be repeated.",
        metavar="GLOB",
        default_text="all",
        flag="--case",
    ),
]


@dataclass(frozen=True)
class Validation:
    """What was found; `results` are the runs behind it."""

    rows: Sequence[Row]
    score: Mapping[str, Mapping[str, int]]
    results: Results


def keep(rows: Sequence[Row], results: Results, references: Sequence[Reference]) -> Validation:
    """Writes the rows and the kernel's series into the result directory."""
    score = judge.score(rows)
    kept: dict[str, Any] = {"rows": list(rows), "score": score}
    kept["kernels"] = sorted({reference.kernel for reference in references})
    write_text(results.path / FILE, json.dumps(kept, indent=2, ensure_ascii=False))
    series = [
        reference.series.select(pl.lit(reference.name).alias("case"), pl.all())
        for reference in references
        if reference.series is not None
    ]
    if series:
        pl.concat(series).write_parquet(results.path / SERIES)
    return Validation(rows, score, results)


def values(results: Results, run: int, flows: Sequence[Flow], mss: int) -> list[Values]:
    """The metrics of each flow of one of our runs."""
    rows = results.scan("samples").filter(pl.col("run") == run).sort("t_s").collect()
    return reduce([rows.filter(flow=i) for i in range(len(flows))], flows, mss)


def wanted(names: Sequence[str], patterns: Sequence[str]) -> Iterable[str]:
    """The names that one of the patterns matches, all without any.

    Raises:
        InputError: a pattern matches none.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(
                f"--case {pattern}: there is no such case; there are {', '.join(names)}"
            )
    is_any = not patterns
    return [
        name for name in names if is_any or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
