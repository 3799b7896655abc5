"""One run between hosts: starts at times of their clocks, records afterwards, one set of tables."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from weir import _native
from weir.errors import InputError, StoppedError
from weir.hosts.listed import Hosts
from weir.hosts.machine import Exchange, HostError, Machine, best
from weir.scenario import Effective
from weir.sweep import Plan

CLOCKS = {"clock_error_ms": pl.Float64, "clock_drift_ppm": pl.Float64}
"""Columns of `summary` that only runs between machines have."""

_LEAD_NS = 500_000_000
"""From the request to the start of a run."""
_TICK_S = 0.5
_GRACE_S = 1.0
_RECORD_S = 60.0


class Bed:
    """All hosts, with Weir started on each."""

    def __init__(self, hosts: Hosts, machines: Sequence[Machine]) -> None:
        self._hosts = hosts
        self._machines = {machine.host.name: machine for machine in machines}

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
        taking_part = {name: self._machines[name] for pair in ends for name in pair}
        before = dict(zip(taking_part, _each(taking_part.values(), Machine.clock), strict=True))
        peers = self._prepare(scenario, seed, ends)
        senders = {taking_part[sender] for sender, _ in ends}
        try:
            start = time.monotonic_ns() + _LEAD_NS
            for name, machine in taking_part.items():
                at = start + before[name].offset_ns
                machine.ask(do="start", at=at, peers=peers[name])
            _wait(list(taking_part.values()), senders, start, _duration_s(scenario), control)
        except HostError:
            for machine in taking_part.values():
                with suppress(HostError):
                    machine.ask(do="stop")
            raise
        for machine in taking_part.values():
            machine.ask(do="stop")
        after = dict(zip(taking_part, _each(taking_part.values(), Machine.clock), strict=True))
        records = [
            (name, _error_ns(before[name]), str(machine.ask(_RECORD_S, do="record")["record"]))
            for name, machine in taking_part.items()
        ]
        result = _native.merge_hosts(scenario.checked, seed, records)
        tables = {name: pl.DataFrame(result.table(name)) for name in result.tables}
        tables["summary"] = tables["summary"].with_columns(
            trace_hash=pl.lit(_digest(records)), **_clocks(before, after, taking_part.values())
        )
        return tables

    def _prepare(
        self, scenario: Effective, seed: int, ends: Sequence[tuple[str, str]]
    ) -> dict[str, dict[str, str]]:
        """Opens all sockets; returns the peers of each host, by flow."""
        sources: dict[str, str] = {}
        ports: dict[str, int] = {}
        names = dict.fromkeys(name for pair in ends for name in pair)
        for name in names:
            answer = self._machines[name].ask(
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
            sources |= answer["sources"]
            ports |= answer["ports"]
        peers: dict[str, dict[str, str]] = {name: {} for name in names}
        for flow, (sender, receiver) in enumerate(ends):
            address = self._hosts.hosts[receiver].address
            peers[sender][str(flow)] = f"{address}:{ports[str(flow)]}"
            peers[receiver][str(flow)] = sources[str(flow)]
        return peers


@contextmanager
def started(hosts: Hosts) -> Iterator[Bed]:
    """Starts Weir on all hosts, and ends it.

    Raises:
        HostError: a host cannot be reached, or has no Weir of this version.
    """
    with ExitStack() as stack:
        machines = []
        for host in hosts.hosts.values():
            machine = Machine(host, shlex.split(host.program))
            stack.callback(machine.close)
            machines.append(machine)
        for machine in machines:
            machine.hello()
        yield Bed(hosts, machines)


def _each(machines: Any, work: Any) -> list[Any]:
    """The results of work that each host does at the same time."""
    listed = list(machines)
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
        for machine in machines:
            machine.look_at_clock()
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
    before: dict[str, Exchange], after: dict[str, Exchange], machines: Any
) -> dict[str, pl.Expr]:
    """How well the clocks of the hosts are known: the worst of them."""
    errors, drifts = [], []
    for machine in machines:
        first, last = before[machine.host.name], after[machine.host.name]
        errors.append(best([first, last, *machine.exchanges]).rtt_ns / 2e6)
        drifts.append(1e6 * (last.offset_ns - first.offset_ns) / max(1, last.sent - first.sent))
        machine.exchanges.clear()
    worst = {"clock_error_ms": max(errors), "clock_drift_ppm": max(drifts, key=abs)}
    return {name: pl.lit(worst[name], dtype=kind) for name, kind in CLOCKS.items()}


__all__ = ["CLOCKS", "Bed", "HostError", "started"]
