"""Named studies: published experiments, repeated, with published and measured values.

A study is a folder of this package with a `study.toml` (`described`), or a module with a constant
`STUDY`. Adding it is all it takes.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from weir.api import RESULTS, RunOptions, world_words
from weir.base.disk import write_text
from weir.base.errors import InputError, unknown
from weir.results import manifest
from weir.results.results import Results
from weir.scenario.arguments import suggesting
from weir.scenario.source import SIM

if TYPE_CHECKING:
    from weir.report.model import ReportSection

Cell = dict[str, Any]
"""`table`, `row`, `column`, `published`, `unit`, then our columns as estimates, and `note`."""

SIZES = ("small", "full")


PUBLISHED = "published"

_SUITES = {"ccwg": "bbr rfc9743 ns3", "transperf": "transperf"}
"""Former studies, and the suites that took their place."""

_NO_VALUES = frozenset({"table", "row", "column", "unit", "note", PUBLISHED})


@dataclass(frozen=True)
class Settings:
    """What a caller may choose about a study."""

    size: str = "small"
    repeat: int | None = None
    """How many seeds per cell; the study's own number for its size when None."""
    seed: int = 1
    how: RunOptions = field(default_factory=RunOptions)
    world: str = SIM


@dataclass(frozen=True)
class StudyResult:
    """The cells of a study, what they mean in words, and the runs behind them."""

    rows: Sequence[Cell]
    findings: Sequence[str]
    results: Results


@runtime_checkable
class Study(Protocol):
    """A published experiment that can be repeated."""

    name: str
    description: str

    def run(self, settings: Settings) -> StudyResult:
        """Runs it."""
        ...


@runtime_checkable
class WorldlyStudy(Study, Protocol):
    """A study that also runs in other worlds than the simulator."""

    worlds: Sequence[str]


@runtime_checkable
class DrawnStudy(Study, Protocol):
    """A study that draws its own report instead of one table and one curve per published table."""

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """What stands between its findings and the further ones, from what is on disk."""
        ...


@runtime_checkable
class TitledStudy(Study, Protocol):
    """A study whose tables have other titles for readers than names in `--json`."""

    def title(self, table: str) -> str:
        """The title of a table."""
        ...


def title(name: str, table: str) -> str:
    """The title for readers of what `--json` calls `table` in the study `name`."""
    own = find(name)
    return own.title(table) if isinstance(own, TitledStudy) else capitalised(table)


def capitalised(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _option(world: str) -> str:
    return " ".join(world_words(world)) or f"--world {SIM}"


def studies() -> dict[str, Study]:
    """Every study by name."""
    from weir.studies.described import FILE, DescribedStudy

    found: dict[str, Study] = {}
    for module in pkgutil.iter_modules(__path__):
        package, folder = f"{__name__}.{module.name}", files(__name__) / module.name
        own = getattr(import_module(package), "STUDY", None)
        if own is None and (folder / FILE).is_file():
            own = DescribedStudy(folder, package)
        if isinstance(own, Study):
            found[own.name] = own
    return dict(sorted(found.items()))


def sources(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that hold values: the published one, if there is any, then ours in order."""
    has_published = any(cell.get(PUBLISHED) is not None for cell in cells)
    ours = (
        key
        for cell in cells
        for key, value in cell.items()
        if key not in _NO_VALUES and isinstance(value, Mapping)
    )
    return [*([PUBLISHED] if has_published else []), *dict.fromkeys(ours)]


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


@suggesting
def study(
    name: str,
    *,
    size: str = Settings.size,
    repeat: int | None = Settings.repeat,
    seed: int = Settings.seed,
    world: str | None = None,
    out: str | Path = RESULTS,
    jobs: int | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    dask: str | None = None,
    show_progress: bool = True,
) -> StudyResult:
    """Runs a study and writes its cells next to the results, in `study.json`.

    Args:
        name: The study; `weir list studies` names them.
        size: `small` or `full`.
        repeat: Runs per cell; the study's own number by default.
        seed: Seed of the first repeat.
        world: One that the study runs in, in place of its first: most run in `sim` only.
        out: Where result directories are made.
        jobs: Runs at a time; one per core by default, in real time one.
        resume: Go on with an interrupted call of the same arguments.
        executor: What runs the simulations, in place of threads of this process.
        dask: The address of a Dask scheduler, or the file in which it has left that.
        show_progress: Whether to show a bar on a terminal or in a notebook.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError: there is no such study, size or world, or nothing could be run.
    """
    chosen = find(name)
    possible = chosen.worlds if isinstance(chosen, WorldlyStudy) else (SIM,)
    world = possible[0] if world is None else world
    if world not in possible:
        given, *allowed = map(_option, (world, *possible))
        raise InputError(f"{given}: study {name} runs with {' or '.join(allowed)}")
    if size not in SIZES:
        raise InputError(f"size {size!r}: a study has the sizes {' and '.join(SIZES)}")
    how = RunOptions(
        out=out,
        jobs=jobs,
        resume=resume,
        executor=executor,
        dask=dask,
        show_progress=show_progress,
    )
    result = chosen.run(Settings(size, repeat, seed, how, world))
    cells = {"study": name, "rows": list(result.rows), "findings": list(result.findings)}
    write_text(
        result.results.path / manifest.STUDY, json.dumps(cells, indent=2, ensure_ascii=False)
    )
    return result
