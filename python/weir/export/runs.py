"""What every format needs of a run: its case, its flows, its samples, and a name for its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from ipaddress import IPv4Address
from typing import Any

import polars as pl

from weir import _native
from weir.base.errors import InputError
from weir.results.results import Results
from weir.scenario import capture
from weir.scenario.source import SIM

UDP = "udp"
"""The stack of flows without a transport."""

_SENDERS = IPv4Address("10.0.0.1")
_RECEIVERS = IPv4Address("10.128.0.1")
_FIRST_PORT, _PORTS = 49_152, 16_384


@dataclass(frozen=True)
class ExportedRun:
    """A run that succeeded."""

    results: Results
    index: int
    case: Mapping[str, Any]
    repeat: int
    seed: int
    stem: str
    """The beginning of its files' names, unlike that of all other runs."""

    @property
    def label(self) -> str:
        """The name of its case."""
        return str(self.case["label"])

    @property
    def title(self) -> str:
        """What it is, in words."""
        return f"{self.label}, repeat {self.repeat}, seed {self.seed}"

    @property
    def world(self) -> str:
        """Where it was run."""
        return str(self.case.get("world", SIM))

    @property
    def created(self) -> datetime:
        """When its results were written: what the time 0 stands for in files that need a date."""
        stamp = self.results.manifest["created"]
        return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """Its rows of table `flows`, in order."""
        return self.table("flows").sort("flow").to_dicts()

    @cached_property
    def reliable(self) -> list[dict[str, Any]]:
        """The flows with a connection."""
        return [flow for flow in self.flows if flow["stack"] != UDP]

    def table(self, name: str) -> pl.DataFrame:
        """Its rows of a table.

        Raises:
            InputError: the results have no such table.
        """
        if not (self.results.path / f"{name}.parquet").exists():
            raise InputError(f"{self.results.path}: these results have no table {name}")
        return self.results.scan(name).filter(pl.col("run") == self.index).collect()

    @cached_property
    def samples(self) -> dict[int, list[dict[str, Any]]]:
        """Its samples by flow, in the order of time."""
        rows: dict[int, list[dict[str, Any]]] = {flow["flow"]: [] for flow in self.flows}
        for row in self.table("samples").sort("flow", "t_s").iter_rows(named=True):
            rows[row["flow"]].append(row)
        return rows

    def sampled(self, wanted: str) -> None:
        """Refuses a run whose senders were not looked at over time.

        Raises:
            InputError: there are no samples, or no connections.
        """
        if not self.reliable:
            raise InputError(f"--format {wanted}: {self.label} has no flow with a connection")
        if not any(self.samples[flow["flow"]] for flow in self.reliable):
            raise InputError(
                f"--format {wanted}: {self.label} has no samples; set measure.sample_interval"
            )

    def measure(self, key: str) -> float:
        """A time of the scenario's section `[measure]`, in seconds."""
        return _native.parse_quantity("time", str(self.case["scenario"]["measure"][key]))

    @cached_property
    def mss(self) -> list[int]:
        """The largest payload of a segment, of each flow."""
        return [
            int(_native.parse_quantity("size", f"{mss}b" if isinstance(mss, int) else mss))
            for flow in self.case["scenario"]["flow"]
            for mss in [flow["mss"]] * int(flow.get("count", 1))
        ]


def chosen(results: Results, case: str | None, repeat: int | None) -> list[ExportedRun]:
    """The runs that succeeded, of one case and repeat if these are given.

    Raises:
        InputError: there is none.
    """
    cases = {one["label"]: one for one in results.cases}
    if case is not None and case not in cases:
        raise InputError(f"--case {case}: there is none; there are: {'; '.join(cases)}")
    stems = capture.names(list(cases))
    rows = results.runs.filter(pl.col("status") == "ok").sort("run")
    runs = [
        ExportedRun(
            results,
            row["run"],
            cases[row["label"]],
            row["repeat"],
            row["seed"],
            f"{stems[row['label']]}-{row['repeat']}",
        )
        for row in rows.iter_rows(named=True)
        if case in (None, row["label"]) and repeat in (None, row["repeat"])
    ]
    if not runs:
        which = f"--repeat {repeat}: " if repeat is not None else f"{results.path}: "
        raise InputError(f"{which}no such run succeeded")
    return runs


def addresses(flow: int) -> tuple[str, str, int]:
    """Of a flow in captures: the sender's address, the receiver's, and the port of both."""
    offset = flow & ((1 << 22) - 1)
    return str(_SENDERS + offset), str(_RECEIVERS + offset), _FIRST_PORT + flow % _PORTS


def flow_of(sender: bytes) -> int:
    """The flow whose sender has this address, while flows are fewer than 2^22."""
    return int.from_bytes(sender) - int(_SENDERS)
