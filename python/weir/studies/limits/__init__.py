"""`limits`: whether `weir read` finds what limited a flow, by where the capture was made.

Twelve scenarios have a configured limit. Each is captured at the sender and at the receiver, and
once more over two hops, in the middle. `weir read` divides the time of each capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from weir import reading
from weir.base.errors import InputError
from weir.cells.cells import cell
from weir.cells.protocol import Cell, Settings, StudyResult, capitalised
from weir.experiments import captured
from weir.results.results import Results
from weir.scenario.source import SIM, VIRTUAL
from weir.scenario.sweep import Plan
from weir.statistics.intervals import mean_interval
from weir.studies.limits.cases import CASES

if TYPE_CHECKING:
    from weir.report.model import ReportSection

SENDER, RECEIVER, MIDDLE = "sender", "receiver", "middle"
SUMMARY = "time with the right limit"
RIGHT_PLACE = "place recognised"
_SLOW_START = "slow-start"
_GOAL = 95.0
_HOPS = {"topology.kind": "chain", "topology.hops": "2"}
_PLACES = {SENDER: ("one hop", 0), RECEIVER: ("one hop", 1), MIDDLE: ("two hops", 1)}
"""The network of each place, and the interface of its capture."""


@dataclass(frozen=True)
class Found:
    """What was found in the captures of one scenario at one place."""

    case: str
    place: str
    limit: str
    """The configured one."""
    shares: Mapping[str, float]
    """Of the time of each limit, the mean over the flows."""
    places: tuple[str, ...]
    """Where the captures were made, as `weir read` says."""

    @property
    def right(self) -> float:
        """The share of time that has the configured limit."""
        return self.shares.get(self.limit, 0.0)


class LimitsStudy:
    """The study."""

    name = "limits"
    description = "whether a capture shows what limited a flow, at the sender and elsewhere"
    worlds = (SIM, VIRTUAL)

    def run(self, settings: Settings) -> StudyResult:
        """Captures all scenarios at all places, and reads them."""
        own = self.plan(settings)
        with captured.captured(own, settings) as (results, files):
            by_label: dict[str, list[File]] = {}
            for run in own.runs:
                by_label.setdefault(run.case.label, []).append(files[run.index])
            found = [
                _found(case, place, by_label[captured.label(case, network)], interface, settings)
                for case in CASES[settings.size]
                for place, (network, interface) in _PLACES.items()
            ]
        rows = [*_summary(found), *_confusions(found)]
        return StudyResult(rows, list(_findings(found)), results)

    def title(self, table: str) -> str:
        """The title of a table."""
        return table if table == SUMMARY else capitalised(table)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """A confusion matrix for each place, and the table."""
        from weir.cells.confusion import Captions, matrix
        from weir.cells.tables import study_table
        from weir.report.model import ReportSection

        summary = [row for row in rows if row["table"] == SUMMARY]
        sections = [
            ReportSection(
                "Shares", tables=[study_table(SUMMARY, summary, interval="over the scenarios")]
            )
        ]
        for place in _PLACES:
            own = [row for row in rows if row["table"] == confusion(place)]
            words = Captions(
                name=f"{self.name}-{place}",
                title=f"Captured at the {place}",
                true="configured limit",
                found="limit found",
                share="time, %",
                caption="Shares of the time, in percent, by the configured limit. Time of slow "
                "start does not count, unless it is the limit.",
            )
            figure = matrix(own, words, tuple(results.runs["run"]))
            sections.append(ReportSection(f"At the {place}", figures=[figure]))
        return sections

    def plan(self, settings: Settings) -> Plan:
        """Every run: each scenario over one hop and over two."""
        sources = {}
        for name, case in CASES[settings.size].items():
            stack = case.keys.get("flow.0.stack", "cubic")
            for network, more in (("one hop", {}), ("two hops", _HOPS)):
                keys = {**case.keys, **more, "measure.duration": "20s"}
                source = captured.source(self.name, keys, stack, settings)
                sources[captured.label(name, network)] = source.in_world(settings.world)
        return captured.plan_of(self.name, sources, settings)


def confusion(place: str) -> str:
    """The name of the table of a place."""
    return f"time by configured limit and by limit found, captured at the {place}"


def _found(
    case: str, place: str, files: Sequence[File], interface: int, settings: Settings
) -> Found:
    limit = CASES[settings.size][case].limit
    rows = [row for file in files for row in _rows(case, file, interface)]
    if not rows:
        raise InputError(f"study limits: {case}, {place} has no flow with data")
    places = tuple(row["capture_point"] for row in rows)
    return Found(case, place, limit, mean_shares(rows, limit), places)


def mean_shares(rows: Sequence[dict[str, Any]], limit: str) -> dict[str, float]:
    """The share of time of each limit, the mean over flows with a configured limit."""
    all_shares = [_shares(row, limit) for row in rows]
    names = dict.fromkeys(name for shares in all_shares for name in shares)
    return {name: sum(one.get(name, 0.0) for one in all_shares) / len(rows) for name in names}


def _rows(case: str, file: File, interface: int) -> Iterator[dict[str, Any]]:
    own = captured.existing(STUDY.name, case, file)
    for row in reading.read([own]).connections.iter_rows(named=True):
        if row["interface"] == interface and row["limit"] is not None:
            yield row


def _shares(row: dict[str, Any], limit: str) -> dict[str, float]:
    """The shares of time without slow start, unless that is the limit."""
    pairs = zip(reading.LIMITS, reading.COLUMNS, strict=True)
    times = {name: row[column] for name, column in pairs}
    if limit != _SLOW_START:
        del times[_SLOW_START]
    whole = sum(times.values())
    return {name: time / whole for name, time in times.items() if time > 0} if whole else {}


def _summary(found: Sequence[Found]) -> Iterator[Cell]:
    """The share of right time, and whether the place was recognised, of all and by scenario."""
    for place in _PLACES:
        own = [one for one in found if one.place == place]
        for case in ("all", *dict.fromkeys(one.case for one in own)):
            some = [one for one in own if case in ("all", one.case)]
            right = mean_interval([100 * one.right for one in some], (0.0, 100.0))
            yield cell(SUMMARY, case, place, "%", right)
        places = [100.0 * (at == place) for one in own for at in one.places]
        yield cell(SUMMARY, RIGHT_PLACE, place, "%", mean_interval(places, (0.0, 100.0)))


def _confusions(found: Sequence[Found]) -> Iterator[Cell]:
    """Per place and configured limit, the mean share of each limit that was found."""
    for place in _PLACES:
        for limit in dict.fromkeys(one.limit for one in found):
            own = [one for one in found if (one.place, one.limit) == (place, limit)]
            names = dict.fromkeys(name for one in own for name in one.shares)
            for name in names:
                shares = [100 * one.shares.get(name, 0.0) for one in own]
                yield cell(confusion(place), limit, name, "%", mean_interval(shares, (0.0, 100.0)))


def _findings(found: Sequence[Found]) -> Iterator[str]:
    for place in _PLACES:
        own = [one for one in found if one.place == place]
        right = 100 * sum(one.right for one in own) / len(own)
        largest = sum(
            max(one.shares, key=one.shares.__getitem__, default="") == one.limit for one in own
        )
        reached = "reached" if right >= _GOAL else "not reached"
        yield (
            f"Captured at the {place}: {right:.1f} % of the time has the configured limit (goal: "
            f"{_GOAL:.0f} %, {reached}). It takes the largest share in {largest} of {len(own)} "
            "scenarios."
        )
        for one in own:
            if one.right < _GOAL / 100:
                others = sorted(one.shares.items(), key=lambda pair: -pair[1])
                texts = [f"{name} {share:.0%}" for name, share in others[:3]]
                yield f"Not right at the {place}: {one.case} ({one.limit}) is {', '.join(texts)}."


STUDY = LimitsStudy()
