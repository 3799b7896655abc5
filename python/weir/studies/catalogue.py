"""The studies there are: folders of this package and modules with a constant `STUDY`."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import MappingProxyType

import weir.studies
from weir.base.disk import write_text
from weir.base.errors import InputError, unknown
from weir.cells.protocol import (
    SIZES,
    OpenStudy,
    Settings,
    Study,
    StudyResult,
    TitledStudy,
    WorldlyStudy,
    capitalised,
)
from weir.results import manifest
from weir.scenario.labels import Named
from weir.scenario.plans import world_words
from weir.scenario.source import SIM
from weir.studies.described import FILE, DescribedStudy

_SUITES = {"ccwg": "bbr rfc9743 ns3", "transperf": "transperf"}
"""Former studies, and the suites that took their place."""


@cache
def studies() -> Mapping[str, Study]:
    """Every study by name. Its descriptions are read once."""
    found: dict[str, Study] = {}
    for module in pkgutil.iter_modules(weir.studies.__path__):
        package, folder = f"weir.studies.{module.name}", files(weir.studies) / module.name
        own = getattr(import_module(package), "STUDY", None)
        if own is None and (folder / FILE).is_file():
            own = DescribedStudy(folder, package)
        if isinstance(own, Study):
            found[own.name] = own
    return MappingProxyType(dict(sorted(found.items())))


def find(name: str) -> Study:
    """The study called `name`.

    Raises:
        InputError: there is none of that name.
    """
    if name in _SUITES:
        raise InputError(f"study {name} is now `weir conform {_SUITES[name]}`")
    known = studies()
    if name not in known:
        raise InputError(unknown("study", name, known))
    return known[name]


def title(name: str, table: str) -> str:
    """The title for readers of what `--json` calls `table` in the study `name`."""
    own = find(name)
    return own.title(table) if isinstance(own, TitledStudy) else capitalised(table)


def possible_worlds(study: Study) -> Sequence[str]:
    """The worlds that a study runs in, first the one where it runs by default."""
    return study.worlds if isinstance(study, WorldlyStudy) else (SIM,)


def run(name: str, settings: Settings) -> StudyResult:
    """Runs a study and writes its cells next to the results, in `study.json`.

    Raises:
        WeirError: there is no such study, size or world, or nothing could be run.
    """
    chosen = find(name)
    possible = possible_worlds(chosen)
    if settings.world not in possible:
        given, *allowed = map(_option, (settings.world, *possible))
        raise InputError(f"{given}: study {name} runs with {' or '.join(allowed)}")
    check_size(settings.size)
    if settings.stacks:
        _check_open(chosen, settings.stacks[0])
    result = chosen.run(settings)
    if settings.stacks:
        added = f"Added to the study: {', '.join(one.written for one in settings.stacks)}."
        result = replace(result, findings=[added, *result.findings])
    cells = {"study": name, "rows": list(result.rows), "findings": list(result.findings)}
    write_text(
        result.results.path / manifest.STUDY, json.dumps(cells, indent=2, ensure_ascii=False)
    )
    return result


def _check_open(study: Study, stack: Named) -> None:
    """Refuses stacks for a study that does not compare a list of them.

    Raises:
        InputError: the message says why, and which studies do.
    """
    if isinstance(study, OpenStudy) and study.compares:
        return
    takes = [one.name for one in studies().values() if isinstance(one, OpenStudy) and one.compares]
    raise InputError(
        f"--stack {stack.written}: study {study.name} repeats an experiment with the stacks of its "
        f"source, and has no place for others; studies that compare stacks: {', '.join(takes)}"
    )


def check_size(size: str) -> None:
    """Refuses a size that no study has.

    Raises:
        InputError: there is no such size.
    """
    if size not in SIZES:
        raise InputError(f"size {size!r}: a study has the sizes {' and '.join(SIZES)}")


def _option(world: str) -> str:
    return " ".join(world_words(world)) or f"--world {SIM}"
