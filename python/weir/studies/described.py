"""Studies that a folder describes: cases, cells, claims and figures as data, findings as a text.

`study.toml` names everything; scenario files and `findings.txt` lie next to it. What a measure
needs beyond expressions is a function of the folder's `measures.py`, which `functions` names.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from weir.base.errors import InputError
from weir.cells import claims
from weir.cells.cells import Cells, cell
from weir.cells.protocol import Cell, Settings, StudyResult, capitalised
from weir.cells.texts import Entry, Scope, evaluated, expanded, filled, sentences
from weir.experiments.contest import Contests
from weir.results.results import Results
from weir.running.execution import run_plan
from weir.scenario.labels import Named
from weir.scenario.plans import world_words
from weir.scenario.source import SIM, Source, is_stack
from weir.scenario.sweep import Plan, plan

if TYPE_CHECKING:
    from weir.report.model import ReportSection

FILE = "study.toml"
_FINDINGS = "findings.txt"


class DescribedStudy:
    """A study as its folder describes it."""

    def __init__(self, folder: Traversable, package: str) -> None:
        self._folder, self._package = folder, package
        self.data: dict[str, Any] = tomllib.loads(self._text(FILE))
        self.name: str = self.data["name"]
        self.description: str = self.data["description"]

    @property
    def worlds(self) -> Sequence[str]:
        """The worlds that it runs in, first the one where it runs by default."""
        named: Sequence[str] = self.data.get("worlds", (SIM,))
        return named

    @property
    def verdicts(self) -> Sequence[str]:
        """Patterns of the claims at the top of its report."""
        named: Sequence[str] = self.data.get("verdicts", ())
        return named

    @property
    def compares(self) -> bool:
        """Whether it compares a list of stacks."""
        sizes: Mapping[str, Mapping[str, Any]] = self.data.get("sizes", {})
        known = [{**own, **own.get("derived", {})} for own in sizes.values()]
        return bool(known) and all("stacks" in names for names in known)

    def run(self, settings: Settings) -> StudyResult:
        """Runs every case, and measures and judges the results."""
        scope = self.scope(settings)
        results = run_plan(self.plan(settings), **settings.how)
        rows = self.rows(results, scope)
        return StudyResult(rows, self.findings(rows, scope), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """Its tables and figures."""
        from weir.studies.pictures import sections  # drawing libraries load slowly

        entries = self.data.get("section", [])
        return sections(entries, results, _with_cells(self.constants, rows))

    def title(self, table: str) -> str:
        """The title of the first pattern that the whole name matches; groups are names in it."""
        titles: Mapping[str, str] = self.data.get("titles", {})
        for pattern, text in titles.items():
            if found := re.fullmatch(pattern, table):
                return filled(text, {**self.constants, **found.groupdict()})
        return capitalised(table)

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Names with the same value in every run of the study."""
        published = {
            name: tomllib.loads(self._text(file))
            for name, file in self.data.get("published", {}).items()
        }
        measures = self.data.get("functions", [])
        functions = {name: self._function(name) for name in measures}
        found = {**functions, **published, **self.data.get("constants", {})}
        for name, text in self.data.get("derived", {}).items():
            found[name] = evaluated(text, found)
        return found

    def scope(self, settings: Settings) -> dict[str, Any]:
        """The same with what a size sets."""
        sizes: Mapping[str, Mapping[str, Any]] = self.data["sizes"]
        own = {**sizes[settings.size], "size": settings.size, "seed": settings.seed}
        if settings.repeat is not None:
            own["repeat"] = settings.repeat
        scope = {**self.constants, **own}
        for name, text in own.get("derived", {}).items():
            scope[name] = evaluated(text, scope)
        if settings.stacks:
            scope["stacks"] = [*scope["stacks"], *_added(scope["stacks"], settings.stacks)]
        return scope

    def plan(self, settings: Settings) -> Plan:
        """Every run."""
        scope = self.scope(settings)
        words = ["weir", "study", self.name, "--size", settings.size]
        words += ["--repeat", str(scope["repeat"]), "--seed", str(settings.seed)]
        words += [word for one in settings.stacks for word in ("--stack", one.written)]
        words += world_words(settings.world)
        return plan(self.name, shlex.join(words), self.sources(settings), {})

    def rows(self, results: Results, scope: Scope) -> list[Cell]:
        """What is claimed, then what was measured."""
        own = {**scope, "results": results, "contests": Contests(results)}
        measured = [found for entry in self.data["cell"] for found in _measured(entry, own)]
        return [*self.claims(measured, scope), *measured]

    def claims(self, measured: Sequence[Cell], scope: Scope | None = None) -> list[Cell]:
        """The claims that these cells can test, each with its verdict."""
        known = _with_cells(self.constants if scope is None else scope, measured)
        return list(_stated(self.data.get("claim", []), known))

    def findings(self, rows: Sequence[Cell], scope: Scope) -> list[str]:
        """What the cells say, in sentences."""
        own = Cells(rows).table(claims.TABLE).all
        judged = {
            "claims": own,
            "summary": claims.summary,
        }
        return sentences(self._text(_FINDINGS), {**_with_cells(scope, rows), **judged})

    def sources(self, settings: Settings) -> dict[str, Source]:
        """The scenario of every case by its label."""
        stacks = {one.name: one.stack for one in settings.stacks}
        return dict(self._sources(self.scope(settings), settings.world, stacks))

    def _sources(
        self, scope: Scope, world: str, stacks: Mapping[str, str]
    ) -> Iterator[tuple[str, Source]]:
        """`stacks` has the stacks of labels."""
        common = self.data.get("set", {})
        for entry in self.data["case"]:
            for own in expanded(entry, scope):
                file = filled(entry["scenario"], own)
                seeds = {"measure.repeat": "{{ repeat }}", "measure.seed": "{{ seed }}"}
                more = evaluated(entry.get("with", {}), own)
                keys = {**seeds, **common, **entry.get("set", {}), **more}
                texts = ((filled(key, own), filled(text, own)) for key, text in keys.items())
                overrides = tuple(
                    (key, stacks.get(text, text) if is_stack(key) else text)
                    for key, text in texts
                    if text
                )
                origin = f"study {self.name}"
                source = Source(self._text(file), origin, overrides, world=world)
                yield filled(entry["label"], own), source

    def _text(self, file: str) -> str:
        return (self._folder / file).read_text(encoding="utf-8")

    def _function(self, name: str) -> Any:
        return getattr(import_module(f"{self._package}.measures"), name)


def _stated(entries: Sequence[Entry], scope: Scope) -> Iterator[Cell]:
    """The claims of a description that can be tested, each with the number that tests it."""
    for entry in entries:
        for own in expanded({**entry, "when": True}, scope):
            own["ours"] = evaluated(entry["ours"], own)
            if not evaluated(entry.get("when", "ours.mean is not none"), own):
                continue
            yield claims.claim(
                filled(entry["says"], own),
                filled(entry["measured"], own),
                own["ours"],
                evaluated(entry["holds"], own),
                filled(entry.get("note", ""), own),
                evaluated(entry.get("published"), own),
            )


def _measured(entry: Entry, scope: Scope) -> Iterator[Cell]:
    """The cells of one entry: of its parts, of an expression, or one per iteration."""
    for own in expanded(entry, scope):
        if "parts" in entry:
            yield from (found for part in entry["parts"] for found in _measured(part, own))
            continue
        if "cells" in entry:
            yield from evaluated(entry["cells"], own)
            continue
        place = [filled(entry[part], own) for part in ("table", "row", "column", "unit")]
        more = {name: evaluated(text, own) for name, text in entry.get("more", {}).items()}
        yield cell(
            place[0],
            place[1],
            place[2],
            place[3],
            evaluated(entry["ours"], own),
            published=evaluated(entry.get("published"), own),
            note=filled(entry.get("note", ""), own),
            **more,
        )


def _with_cells(scope: Scope, rows: Sequence[Cell]) -> dict[str, Any]:
    cells = Cells(rows)
    return {**scope, "cells": cells, "table": cells.table}


def _added(compared: Sequence[str], stacks: Sequence[Named]) -> list[str]:
    """The names of further stacks.

    Raises:
        InputError: the study compares one already.
    """
    for one in stacks:
        if one.name in compared or one.stack in compared:
            raise InputError(f"--stack {one.written}: the study compares {', '.join(compared)}")
    return [one.name for one in stacks]
