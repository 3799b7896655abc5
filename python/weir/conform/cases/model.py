"""Suites as data: cases with their scenarios, and criteria with their bounds and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from weir.conform.cases.bounds import Envelope
from weir.scenario.source import Overrides

Join = Literal["worst", "median", "average", "mean", "not-outside"]
"""How the runs of a check become one verdict; `judge` defines each."""


@dataclass(frozen=True)
class Check:
    """One criterion of a case: what is measured, its bounds, and where they come from."""

    name: str
    measure: str
    arguments: Mapping[str, Any]
    envelope: Envelope
    unit: str
    join: Join
    of: str
    """The variant whose runs are measured."""
    against: Sequence[str]
    """The variants whose runs are the references of a paired measure."""
    is_ours: bool
    """Whether the bound is Weir's and not the source's."""
    is_yes_or_no: bool
    origin: str
    """The derivation of the bound."""
    needs: Sequence[str]
    """What this criterion needs of a stack, besides the needs of the case."""
    known: Mapping[str, str]
    """Why a stack fails, by the name of its controller or of the whole stack."""

    @property
    def criterion(self) -> str:
        """The bounds in words, with their unit."""
        text = "yes" if self.is_yes_or_no else f"{self.envelope.text} {self.unit}".strip()
        text = "none" if self.envelope.is_open else text
        return f"{text} (Weir's bound)" if self.is_ours else text


@dataclass(frozen=True)
class Variant:
    """One scenario of a case."""

    name: str
    text: str
    keys: Overrides
    stack: str
    """A stack other than the one under test; empty for the one under test."""


@dataclass(frozen=True)
class Picture:
    """What the picture of a case shows over time."""

    columns: Sequence[str]
    of: str
    moments: Sequence[tuple[float, str]] = ()
    levels: Mapping[str, tuple[float, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Trigger:
    """The event of a first run that decides a time in the case: the n-th start of a phase."""

    phase: str
    occurrence: int


@dataclass(frozen=True)
class Case:
    """One case of a suite: its scenarios, its criteria, and the stacks that it concerns."""

    suite: str
    id: str
    title: str
    source: str
    procedure: str
    controllers: Sequence[str]
    """Controllers that the case is about; all if empty."""
    needs: Sequence[str]
    seeds: int
    variants: Mapping[str, Variant]
    checks: Sequence[Check]
    picture: Picture
    trigger: Trigger | None
    script: str
    """The name of a packet script; empty for a scenario."""
    stacks: Sequence[str] = ()
    """The stacks that it judges by default; empty for those of its suite."""
    hosts: Sequence[str] = ()
    """What the stacks that it concerns run in, as `quinn`; empty for any."""


@dataclass(frozen=True)
class Suite:
    """The cases of one source or subject."""

    name: str
    title: str
    source: str
    stacks: Sequence[str]
    """The stacks that it judges by default."""
    cases: Sequence[Case]
