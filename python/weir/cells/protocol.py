"""What a study is: a published experiment that can be repeated, its settings, its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from weir.results.results import Results
from weir.running.execution import RunOptions
from weir.scenario.labels import Named
from weir.scenario.source import SIM

if TYPE_CHECKING:
    from weir.report.model import ReportSection

Cell = dict[str, Any]
"""`table`, `row`, `column`, `published`, `unit`, then our columns as estimates, and `note`."""

SIZES = ("small", "full")

PUBLISHED = "published"

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
    stacks: Sequence[Named] = ()
    """Stacks to add to those that the study compares."""


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
class OpenStudy(Study, Protocol):
    """A study that may compare a list of stacks, to which others can be added."""

    compares: bool


@runtime_checkable
class DrawnStudy(Study, Protocol):
    """A study that draws its own report instead of one table and one curve per published table."""

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """What stands between its findings and the further ones, from what is on disk."""
        ...


@runtime_checkable
class JudgingStudy(Study, Protocol):
    """A study that names the claims at the top of its report."""

    @property
    def verdicts(self) -> Sequence[str]:
        """Patterns of their sentences, which match ten at most."""
        ...


@runtime_checkable
class TitledStudy(Study, Protocol):
    """A study whose tables have other titles for readers than names in `--json`."""

    def title(self, table: str) -> str:
        """The title of a table."""
        ...


def capitalised(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


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
