"""`weir run --hosts`: what it refuses, and how it runs a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from weir.base.errors import InputError
from weir.cli import output, plans
from weir.hosts import listed, running
from weir.hosts.listed import Hosts
from weir.results.results import Results
from weir.running.execution import RunOptions
from weir.scenario.source import HOSTS, Source
from weir.scenario.sweep import Plan

_NETWORK = "topology"
"""Section of a scenario that describes the network."""


def chosen(
    file: Path, options: Mapping[str, object], sets: Sequence[str], sweep: Sequence[str]
) -> Hosts:
    """The hosts of a file.

    Args:
        file: The file.
        options: Other options, of which none may be given.
        sets: The values of `--set`.
        sweep: The values of `--sweep`.

    Raises:
        InputError: something in the file, or next to it, is not allowed.
    """
    for option, value in options.items():
        if value:
            raise InputError(f"{option} has no effect with --hosts; leave it out")
    for option, items in (("--set", sets), ("--sweep", sweep)):
        for item in items:
            _refuse_network(item.partition("=")[0].strip(), f"{option} {item}")
    return listed.read(file)


def source_of(source: Source, hosts: Hosts) -> Source:
    """A scenario between hosts.

    Raises:
        InputError: it sweeps the network.
    """
    for key in source.effective().sweep:
        _refuse_network(key, f"{source.origin}: [sweep] {key}")
    return replace(source.in_world(HOSTS), hosts=hosts.as_text())


def check(plan: Plan, hosts: Hosts) -> None:
    """Refuses a plan with a flow that has no hosts.

    Raises:
        InputError: there is one.
    """
    for case in plan.cases:
        hosts.ends(case.scenario)


def run_plan(
    plan: Plan, hosts: Hosts, report: plans.Reporting, *, quiet: bool, **how: Unpack[RunOptions]
) -> Results:
    """Runs a plan between hosts.

    Raises:
        HostError: a host cannot be reached.
        InputError: a host cannot run a flow.
    """
    output.note(
        "The links of the scenario have no effect: the network is the one between the hosts.",
        quiet=quiet,
    )
    with running.started(hosts) as bed:
        bed.check(plan)
        return plans.run_plan(plan, report, bed.run, **how)


def _refuse_network(key: str, place: str) -> None:
    if key.partition(".")[0] == _NETWORK:
        raise InputError(
            f"{place}: it has no effect with --hosts, where the network is the one between the "
            "hosts; leave it out"
        )
