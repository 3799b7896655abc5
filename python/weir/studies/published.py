"""One page of all published numbers next to ours, from results on disk or made for it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from weir._native import version
from weir.base import bounded
from weir.base.disk import write_text
from weir.base.errors import WeirError
from weir.cells import verdicts
from weir.cells.protocol import SIZES, Cell, Settings, StudyResult
from weir.report.html import render_published, slug
from weir.results import manifest
from weir.results.results import Results, load
from weir.studies import items, sources
from weir.studies.items import Judged
from weir.studies.sources import Entry, Source

PAGE = "published.html"
DATA = "published.json"

_OLD = timedelta(days=30)
_OUTCOME_TONES = {
    items.HOLDS: "good",
    items.EXPLAINED: "fair",
    items.UNEXPLAINED: "bad",
    items.MISSING: "open",
}

Run = Callable[[str, Settings], StudyResult]


@dataclass(frozen=True)
class Published:
    """Every printed number and claim next to ours, and where the page is."""

    entries: Sequence[Entry]
    items: Sequence[Judged]
    """What the sources describe, with outcomes."""
    warnings: Sequence[str]
    """What is missing, small or old."""
    path: Path


def compose(settings: Settings, run: Run) -> Published:
    """Writes the page into the folder of the results, running each study that has none there."""
    out = Path(settings.how.get("out", "results"))
    known, warnings = sources.load(), list[str]()
    bases: dict[str, Results] = {}
    for study in dict.fromkeys(source.study for source in known):
        results = newest(out, study, settings.size)
        if results is None:
            try:
                results = run(study, settings).results
            except WeirError as error:
                warnings.append(f"study {study}: no results: {error}")
                continue
        bases[study] = results
        warnings += _cautions(study, results)
    cells = {study: _cells(results) for study, results in bases.items()}
    found = list(sources.entries(known, cells))
    judged = items.judge(items.load(), found, cells)
    path = out / PAGE
    out.mkdir(parents=True, exist_ok=True)
    write_text(path, render_published(_values(known, found, judged, bases, warnings, out)))
    sizes = {study: size_of(results) for study, results in bases.items()}
    data = {
        "basis": sizes,
        "warnings": warnings,
        "rows": [entry.as_json() for entry in found],
        "items": [own.as_json() for own in judged],
    }
    write_text(out / DATA, json.dumps(data, indent=1, ensure_ascii=False))
    return Published(found, judged, warnings, path)


def newest(out: Path, study: str, size: str) -> Results | None:
    """The newest complete results of a study, of the full size before any of a smaller one."""
    kept = []
    for folder in sorted((out / study).glob("*")):
        if folder.is_symlink() or not (folder / manifest.STUDY).is_file():
            continue
        results = load(folder)
        if results.manifest["complete"]:
            rank = SIZES.index(size_of(results))
            kept.append((rank, str(results.manifest["created"]), results))
    fitting = [own for own in kept if own[0] >= SIZES.index(size)]
    return max(fitting, key=lambda own: own[:2])[2] if fitting else None


def size_of(results: Results) -> str:
    """The size of the study that the results are of."""
    words = shlex.split(str(results.manifest["command"]))
    given = words[words.index("--size") + 1] if "--size" in words else ""
    return given if given in SIZES else SIZES[0]


def _cautions(study: str, results: Results) -> Iterator[str]:
    own = results.manifest
    if size_of(results) == SIZES[0]:
        yield (
            f"study {study}: small size, few repeats: run "
            f"`weir study {study} --size full` and then this command again"
        )
    created = datetime.fromisoformat(str(own["created"]))
    if datetime.now(UTC) - created > _OLD or own["version"] != version():
        yield f"study {study}: old results, of {own['created']} by Weir {own['version']}"
    if failed := sum(own["runs"]["failed"].values()):
        yield f"study {study}: {failed} of {own['runs']['planned']} runs failed"


def _cells(results: Results) -> list[Cell]:
    kept: Mapping[str, Any] = bounded.read_json(results.path / manifest.STUDY)
    return [dict(cell) for cell in kept["rows"]]


def summaries(found: Sequence[Entry], judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """How often each verdict occurs: a table for numbers, one for claims, one for all items."""
    counted = sources.counts(found)
    shown = (("number", "Numbers", verdicts.NUMBERS), ("claim", "Claims", verdicts.CLAIMS))
    tables = []
    for kind, title, columns in shown:
        rows = [[name, *_row(own, columns)] for name, own in sorted(counted[kind].items())]
        total = [sum(own[v] for own in counted[kind].values()) for v in columns]
        rows.append(["all", *map(str, total), str(sum(total))])
        tables.append({"title": title, "headers": ["source", *columns, "all"], "rows": rows})
    return [*tables, items.summary(judged)]


def _row(own: Mapping[str, int], columns: Sequence[str]) -> list[str]:
    return [*(str(own.get(verdict, 0)) for verdict in columns), str(sum(own.values()))]


def _values(
    known: Sequence[Source],
    found: Sequence[Entry],
    judged: Sequence[Judged],
    bases: Mapping[str, Results],
    warnings: Sequence[str],
    out: Path,
) -> dict[str, Any]:
    return {
        "version": version(),
        "warnings": warnings,
        "sources": known,
        "verdicts": dict.fromkeys((*verdicts.NUMBERS, *verdicts.CLAIMS)),
        "tones": {v: verdicts.TONES.get(v, "open") for v in (*verdicts.NUMBERS, *verdicts.CLAIMS)},
        "summaries": summaries(found, judged),
        "items": judged,
        "outcomes": _OUTCOME_TONES,
        "groups": list(_groups(known, found, bases, out)),
    }


def _groups(
    known: Sequence[Source], found: Sequence[Entry], bases: Mapping[str, Results], out: Path
) -> Iterator[dict[str, Any]]:
    for source in known:
        results = bases.get(source.study)
        report = None if results is None else results.path / "report.html"
        has_report = report is not None and report.is_file()
        text = report.read_text(encoding="utf-8") if report is not None and has_report else ""
        link = os.path.relpath(report, out) if report is not None and has_report else ""
        basis = "no results"
        if results is not None:
            basis = f"{size_of(results)} size, {results.manifest['created'][:10]}"
        for part in source.parts:
            place = (source.id, part.place, part.title)
            own = [e for e in found if (e.source, e.place, e.part) == place]
            anchor = slug(part.section)
            section = f"{link}#{anchor}" if anchor and f'id="{anchor}"' in text else link
            yield {"source": source, "part": part, "entries": own, "link": section, "basis": basis}
