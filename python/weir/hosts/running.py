"""One run between hosts: starts at times of their clocks, records afterwards, one set of tables."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from weir import _native
from weir.base.errors import InputError, StoppedError
from weir.hosts.listed import Hosts
from weir.hosts.machine import Exchange, HostError, Machine, best
from weir.scenario.source import Effective
from weir.scenario.sweep import Plan

CLOCKS = {"clock_error_ms": pl.Float64, "clock_drift_ppm": pl.Float64}
"""Columns of `summary` that only runs between machines have."""

_LEAD_NS = 500_000_000
"""From the request to the start of a run."""
_TICK_S = 0.5
_GRACE_S = 1.0
_RECORD_S = 60.0
_MOST_PORT = 65_535

H = TypeVar("H")
R = TypeVar("R")


class Testbed:
    """All hosts, with Weir started on each."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._machines: dict[str, Machine] = {}

    def start(self) -> None:
        """Starts Weir on all hosts.

        Raises:
            HostError: a host cannot be reached, or has no Weir of this version.
        """
        for name, host in self._hosts.hosts.items():
            self._machines[name] = Machine(host)
        _each(self._machines.values(), Machine.hello)

    def close(self) -> None:
        """Ends Weir on all hosts."""
        _each(self._machines.values(), Machine.close)

    def check(self, plan: Plan) -> None:
        """Refuses what a host cannot run.

        Raises:
            InputError: a host has a congestion control, or a setting, that a flow does not allow.
        """
        for case in plan.cases:
            try:
                self._prepare(case.scenario, plan.seed, self._hosts.ends(case.scenario))
            except HostError as error:
                raise InputError(f"{case.label}: {error}") from None

    def run(
        self,
        scenario: Effective,
        seed: int,
        _world: str,
        control: _native.RunControl | None = None,
        _pcap: Path | None = None,
    ) -> dict[str, pl.DataFrame]:
        """One run; returns its tables.

        Raises:
            HostError: a host could not do its part.
            StoppedError: `control` broke it off.
        """
        ends = self._hosts.ends(scenario)
        names = list(dict.fromkeys(name for pair in ends for name in pair))
        try:
            before, records, after = self._recorded(scenario, seed, ends, names, control)
        except HostError:
            self._start_again(names)
            raise
        machines = [self._machines[name] for name in names]
        result = _native.merge_hosts(scenario.checked, seed, records)
        tables = {name: pl.DataFrame(result.table(name)) for name in result.tables}
        tables["summary"] = tables["summary"].with_columns(
            trace_hash=pl.lit(_digest(records)), **_clocks(before, after, machines)
        )
        return tables

    def _recorded(
        self,
        scenario: Effective,
        seed: int,
        ends: Sequence[tuple[str, str]],
        names: Sequence[str],
        control: _native.RunControl | None,
    ) -> tuple[dict[str, Exchange], list[tuple[str, int, str]], dict[str, Exchange]]:
        """The clocks before a run, what each host recorded, and the clocks after it."""
        machines = [self._machines[name] for name in names]
        before = dict(zip(names, _each(machines, Machine.clock), strict=True))
        peers = self._prepare(scenario, seed, ends)
        start = time.monotonic_ns() + _LEAD_NS + max(each.rtt_ns for each in before.values())

        def begin(name: str) -> None:
            at = start + before[name].offset_ns
            self._machines[name].ask(do="start", at=at, peers=peers[name])

        def recorded(name: str) -> str:
            machine = self._machines[name]
            return machine.field(machine.ask(_RECORD_S, do="record"), "record", str)

        _each(names, begin)
        senders = {self._machines[sender] for sender, _ in ends}
        _wait(machines, senders, start, _duration_s(scenario), control)
        _each(machines, lambda machine: machine.ask(do="stop"))
        after = dict(zip(names, _each(machines, Machine.clock), strict=True))
        texts = _each(names, recorded)
        errors = (_error_ns(before[name]) for name in names)
        return before, list(zip(names, errors, texts, strict=True)), after

    def _start_again(self, names: Sequence[str]) -> None:
        """Starts new processes, because a late answer of an old one would look like the next."""
        for name in names:
            self._machines[name].close()
            self._machines[name] = Machine(self._hosts.hosts[name])
            with suppress(HostError):  # the next run finds it, and says so
                self._machines[name].hello()

    def _prepare(
        self, scenario: Effective, seed: int, ends: Sequence[tuple[str, str]]
    ) -> dict[str, dict[str, str]]:
        """Opens all sockets; returns the peers of each host, by flow."""
        sources: dict[str, Any] = {}
        ports: dict[str, Any] = {}
        names = dict.fromkeys(name for pair in ends for name in pair)
        for name in names:
            machine = self._machines[name]
            answer = machine.ask(
                do="prepare",
                scenario=scenario.text,
                seed=seed,
                sends={
                    flow: self._hosts.hosts[receiver].address
                    for flow, (sender, receiver) in enumerate(ends)
                    if sender == name
                },
                receives=[flow for flow, (_, receiver) in enumerate(ends) if receiver == name],
            )
            sources |= machine.field(answer, "sources", dict)
            ports |= machine.field(answer, "ports", dict)
        peers: dict[str, dict[str, str]] = {name: {} for name in names}
        for flow, (sender, receiver) in enumerate(ends):
            port, source = ports.get(str(flow)), sources.get(str(flow))
            if not isinstance(port, int) or not 0 < port <= _MOST_PORT:
                raise self._machines[receiver].another_protocol()
            if not isinstance(source, str):
                raise self._machines[sender].another_protocol()
            address = self._hosts.hosts[receiver].address
            peers[sender][str(flow)] = f"{address}:{port}"
            peers[receiver][str(flow)] = source
        return peers


@contextmanager
def started(hosts: Hosts) -> Iterator[Testbed]:
    """Starts Weir on all hosts, and ends it.

    Raises:
        HostError: a host cannot be reached, or has no Weir of this version.
    """
    testbed = Testbed(hosts)
    try:
        testbed.start()
        yield testbed
    finally:
        testbed.close()


def _each(hosts: Iterable[H], work: Callable[[H], R]) -> list[R]:
    """The results of work that all hosts do at the same time."""
    listed = list(hosts)
    if not listed:
        return []
    with ThreadPoolExecutor(len(listed)) as pool:
        return list(pool.map(work, listed))


def _wait(
    machines: Sequence[Machine],
    senders: set[Machine],
    start: int,
    duration_s: float,
    control: _native.RunControl | None,
) -> None:
    """Waits until all flows have ended, or the time is over."""
    end = start / 1e9 + duration_s + _GRACE_S
    while time.monotonic() < end:
        if control is not None and control.is_stopped:
            raise StoppedError("interrupted")
        _each(machines, Machine.exchange_clocks)
        if all(machine.has_ended for machine in senders):
            return
        time.sleep(_TICK_S)


def _duration_s(scenario: Effective) -> float:
    return _native.parse_quantity("time", str(scenario.fields["measure"]["duration"]))


def _error_ns(exchange: Exchange) -> int:
    """The most by which a start at a time of the host's clock may be off."""
    return max(0, exchange.rtt_ns) // 2


def _digest(records: Sequence[tuple[str, int, str]]) -> str:
    """A hash over all records: no two runs on a real path are the same."""
    digest = hashlib.sha256()
    for _, _, record in records:
        digest.update(record.encode())
    return digest.hexdigest()[:16]


def _clocks(
    before: dict[str, Exchange], after: dict[str, Exchange], machines: Sequence[Machine]
) -> dict[str, pl.Expr]:
    """How well the clocks of the hosts are known: the worst of them."""
    errors, drifts = [], []
    for machine in machines:
        first, last = before[machine.host.name], after[machine.host.name]
        errors.append(best(machine.exchanges).rtt_ns / 2e6)
        drifts.append(1e6 * (last.offset_ns - first.offset_ns) / max(1, last.sent - first.sent))
        machine.exchanges.clear()
    worst = {"clock_error_ms": max(errors), "clock_drift_ppm": max(drifts, key=abs)}
    return {name: pl.lit(worst[name], dtype=kind) for name, kind in CLOCKS.items()}


__all__ = ["CLOCKS", "HostError", "Testbed", "started"]
