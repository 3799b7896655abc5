"""Several result directories as one, so that one report compares them.

The new directory is complete: its tables hold the rows of all, with their runs numbered anew. Cases
are named after their directories: `A: cubic`, `B: cubic`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weir import _native
from weir.base import version
from weir.base.errors import InputError
from weir.results import manifest, store
from weir.results.results import TABLES, Results, load

LETTERS = "ABCDEFGH"
"""Names of directories, and so how many there can be."""

_OTHERS = {
    manifest.STUDY: "a study",
    manifest.VALIDATION: "a validation",
    manifest.RADIO: "a validation of the radio network",
    manifest.CONFORM: "a check of conformance",
}


def join(directories: Sequence[Path], root: Path) -> Results:
    """Writes a directory `root/report/<UTC time>` with the runs of all `directories`, in order.

    Raises:
        InputError: too few or too many directories, no results, or results of something else than
            `weir run` and `weir compare`.
        StoreError: the directory cannot be written.
    """
    if not 2 <= len(directories) <= len(LETTERS):
        raise InputError(f"{len(directories)} directories: 2 to {len(LETTERS)} can be joined")
    sources = [load(directory) for directory in directories]
    for source in sources:
        source.verify()
        # Rows of one that lack a column would get nulls from the others.
        _ = source.per_run
        for file, what in _OTHERS.items():
            if (source.path / file).exists():
                raise InputError(
                    f"{source.path}: {what}, which has a report of its own; only results of "
                    "'weir run' and 'weir compare' can be joined"
                )
    named = list(zip(LETTERS, sources, strict=False))
    tables = {name: _table(name, sources) for name in TABLES}
    tables["runs"] = _runs(named, tables["runs"])
    words = shlex.join(["weir", "report", *map(str, directories)])
    return load(store.write_joined(root, "report", tables, _manifest(words, named)))


def _table(name: str, sources: Sequence[Results]) -> pl.LazyFrame:
    """The rows of all, with runs numbered after those of the directories before."""
    parts, first = [], 0
    for source in sources:
        number = (pl.col("run") + first).cast(pl.UInt32)
        parts.append(source.scan(name).with_columns(number))
        first += _runs_of(source)
    # Controllers have columns of their own, and so has every sweep.
    return pl.concat(parts, how="diagonal_relaxed")


def _runs_of(source: Results) -> int:
    """One more than its largest number of a run."""
    largest: Any = source.runs["run"].max()
    return 0 if largest is None else int(largest) + 1


def _runs(named: Sequence[tuple[str, Results]], joined: pl.LazyFrame) -> pl.LazyFrame:
    letters = [letter for letter, source in named for _ in range(source.runs.height)]
    prefix = pl.lit(pl.Series(letters) + ": ")
    return joined.with_columns((prefix + pl.col("label")).alias("label"))


def _manifest(words: str, named: Sequence[tuple[str, Results]]) -> dict[str, Any]:
    manifests = [(letter, source.manifest) for letter, source in named]
    own = [found for _, found in manifests]
    failed = {
        f"{letter}: {label}": error
        for letter, found in manifests
        for label, error in found["runs"]["failed"].items()
    }
    worst = next((found for found in own if found["health"].get("warnings")), own[0])
    controllers = {k: v for found in own for k, v in found.get("controllers", {}).items()}
    return {
        "schema": manifest.SCHEMA,
        "name": "report",
        "command": words,
        "created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "version": _native.version(),
        "build": version.build(),
        "complete": all(found["complete"] for found in own),
        "runs": {
            "planned": sum(found["runs"]["planned"] for found in own),
            "ok": sum(found["runs"]["ok"] for found in own),
            "failed": failed,
        },
        "repeat": max(found["repeat"] for found in own),
        "seeds": sorted({seed for found in own for seed in found["seeds"]}),
        "sweep": list(dict.fromkeys(key for found in own for key in found["sweep"])),
        "cases": list(_cases(manifests)),
        "health": {**worst["health"], "wall_s": sum(found["health"]["wall_s"] for found in own)},
        "host": own[0]["host"],
        "sources": [
            {
                "name": letter,
                "path": str(source.path),
                **{key: source.manifest[key] for key in ("command", "created", "version")},
            }
            for letter, source in named
        ],
        **({"controllers": controllers} if controllers else {}),
    }


def _cases(manifests: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    for letter, found in manifests:
        for case in found["cases"]:
            names = {key: f"{letter}: {case[key]}" for key in ("label", "series")}
            labels = {f"{letter}: {name}": stack for name, stack in case.get("labels", {}).items()}
            yield {**case, **names, **({"labels": labels} if labels else {})}
