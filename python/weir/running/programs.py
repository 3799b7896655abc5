"""The programs of a run: their files and commands before it, and what they leave behind."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from weir import _native
from weir.contenders import catalogue, definition, qlog
from weir.contenders.catalogue import Contender
from weir.contenders.definition import Process
from weir.scenario.source import GUESTS, KERNEL, Effective

FOLDER = "programs"
"""In the folder of a guest's job."""

_ENDLESS = 1 << 36
"""Bytes of the file of workload bulk: more than a run carries. It consists of a hole."""
_LONGER_S = 5
_LOCAL_PORTS = 1000
"""The port for helpers is this much higher than the server's."""
_CERTIFICATE = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
    *("-keyout", "{key}", "-out", "{cert}", "-days", "365", "-subj", "/CN=server"),
    *("-addext", "subjectAltName=DNS:server,IP:{server_ip}"),
)
_SYSCTL = "/proc/sys/net/ipv4/tcp_congestion_control"
_WRITE = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow between programs, and its folder."""

    index: int
    contender: Contender
    size: int | None
    """Bytes of the file; None for bulk."""
    seed: int
    duration_s: float
    seen: Path
    """Its folder, by the path that the programs know."""

    @property
    def port(self) -> int:
        """The server's port."""
        return _native.kernel_ends()[2] + self.index

    def values(self) -> dict[str, str]:
        """What the placeholders stand for."""
        sender, receiver, _ = _native.kernel_ends()
        is_sender = self.contender.definition.sender == "server"
        return {
            "server_ip": sender if is_sender else receiver,
            "port": str(self.port),
            "local_port": str(self.port + _LOCAL_PORTS),
            "bytes": str(_ENDLESS if self.size is None else self.size),
            "seconds": str(int(self.duration_s) + _LONGER_S),
            "file": str(self.seen / "www/f"),
            **{name: str(self.seen / name) for name in ("www", "work", "out")},
            "cert": str(self.seen / "cert.pem"),
            "key": str(self.seen / "key.pem"),
            "seed": str(self.seed),
            "bin": str(catalogue.bin_folder()),
            **self.contender.arguments,
        }


def run(
    scenario: Effective,
    seed: int,
    world: str,
    control: _native.RunControl | None = None,
    pcap: Path | None = None,
) -> dict[str, pl.DataFrame]:
    """One run of a scenario with contenders; its tables.

    Raises:
        InputError: a contender cannot be had.
        KernelError: there is no guest kernel, or the guest failed.
        RuntimeError: a program did not start, or failed before it delivered anything.
    """
    with tempfile.TemporaryDirectory(prefix="weir-programs-") as name:
        folder = Path(name)
        if world in GUESTS:
            from weir.guest import init
            from weir.guest.world import run as run_guest

            flows = list(flows_of(scenario, seed, init.MOUNTED / FOLDER))
            job = Job(folder, flows)
            tables = run_guest(scenario.text, seed, KERNEL, control, pcap, job)
        else:
            flows = list(flows_of(scenario, seed, folder / FOLDER))
            programs = [prepare(flow, folder / FOLDER) for flow in flows]
            result = scenario.checked.run(seed, world, control, pcap, programs=programs)
            tables = {name: pl.DataFrame(result.table(name)) for name in result.tables}
        return collect(tables, flows, folder / FOLDER)


@dataclass(frozen=True, slots=True)
class Job:
    """The programs of a run in a guest."""

    folder: Path
    flows: list[Flow]

    def prepare(self, job: Path) -> list[dict[str, Any]]:
        """Writes the files of the programs into the job's folder; returns the commands."""
        return [prepare(flow, job / FOLDER) for flow in self.flows]

    def keep(self, job: Path) -> None:
        """Keeps what the programs wrote for [`collect`][weir.running.programs.collect]."""
        shutil.move(job / FOLDER, self.folder / FOLDER)


def flows_of(scenario: Effective, seed: int, seen: Path) -> Iterator[Flow]:
    """The flows between programs of a scenario."""
    index = 0
    duration_s = _native.parse_quantity("time", scenario.fields["measure"]["duration"])
    for section in scenario.fields["flow"]:
        contender = catalogue.of(section["stack"])
        for number in range(index, index + section["count"]):
            if contender is not None:
                size = section["workload"].get("size")
                bytes_ = None if size is None else int(_native.parse_quantity("size", size))
                yield Flow(number, contender, bytes_, seed, duration_s, seen / str(number))
        index += section["count"]


def prepare(flow: Flow, folder: Path) -> dict[str, Any]:
    """Writes the files of a flow's programs below `folder`; returns their commands."""
    own, values = folder / str(flow.index), flow.values()
    wanted = flow.contender.definition
    for name in ("www", "work", "out", "log"):
        (own / name).mkdir(parents=True, exist_ok=True)
    with (own / "www/f").open("wb") as file:
        if wanted.received is not None and flow.size is not None:
            file.write(hashlib.shake_256(str(flow.seed).encode()).digest(flow.size))
        file.truncate(int(values["bytes"]))
    for name, text in wanted.files.items():
        (own / "work" / name).write_text(definition.filled(text, values.get), encoding="utf-8")
    before = [
        _process(flow, Process(end, command, {}, None), f"before{i}", ("ended", ""))
        for i, (end, command) in enumerate(_first(flow))
    ]
    for end in ("server", "client"):
        helpers = [helper for helper in wanted.helpers if helper.end == end]
        before += [_process(flow, helper, f"{end}-helper{i}") for i, helper in enumerate(helpers)]
        if end == "server":
            before.append(_process(flow, wanted.server, "server"))
    kind = "bulk" if flow.size is None else "file"
    client = wanted.client
    ended = Process("client", (*client.command, *wanted.workloads[kind]), client.environment, None)
    return {
        "flow": flow.index,
        "sender": wanted.sender,
        "before": before,
        "client": _process(flow, ended, "client", ("ended", "")),
    }


def _first(flow: Flow) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Commands that run to their end before all others, each with the end where it runs."""
    wanted = flow.contender.definition
    if wanted.via == "sysctl":
        write = (sys.executable, "-I", "-S", "-c", _WRITE, _SYSCTL, "{cc}")
        yield wanted.sender, write
    if definition.used(wanted) & {"cert", "key"}:
        yield "server", _CERTIFICATE
    for command in wanted.prepare:
        yield "server", command


def _process(
    flow: Flow, process: Process, name: str, ready: tuple[str, str] | None = None
) -> dict[str, Any]:
    values = flow.values()
    condition = process.ready
    if ready is None and condition is not None:
        ready = (condition.kind, definition.filled(condition.value, values.get))
    environment = {k: definition.filled(v, values.get) for k, v in process.environment.items()}
    logs = flow.seen / "log"
    return {
        "name": name,
        "end": process.end,
        "command": [definition.filled(word, values.get) for word in process.command],
        "environment": sorted({**environment, "HOME": str(flow.seen / "work")}.items()),
        "folder": str(flow.seen / "work"),
        "outputs": [str(logs / f"{name}.out"), str(logs / f"{name}.err")],
        "ready": ready,
    }


def collect(
    tables: dict[str, pl.DataFrame], flows: list[Flow], folder: Path
) -> dict[str, pl.DataFrame]:
    """The tables, with what qlogs tell, and null where nothing does."""
    for flow in flows:
        wanted = flow.contender.definition
        state = None
        if wanted.qlog is not None:
            log = qlog.largest(folder / str(flow.index) / "out", wanted.qlog)
            state = None if log is None else qlog.metrics(log, wanted.rtt_unit)
        tables = qlog.merged(tables, flow.index, wanted.transport, state)
        if wanted.received is not None and flow.size is not None:
            own = folder / str(flow.index)
            wrong = _difference(own / "www/f", own / "out" / wanted.received)
            tables["flows"] = _failed(tables["flows"], flow.index, wrong)
    return tables


def _difference(sent: Path, received: Path) -> str:
    """How the received file differs from the one that was sent; empty if it does not."""
    if not received.is_file():
        return "the server wrote no file"
    wanted, found = sent.read_bytes(), received.read_bytes()
    if wanted == found:
        return ""
    same = next((i for i, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), None)
    if same is None:
        return (
            f"the server's file has {len(found)} of {len(wanted)} bytes; a server that still runs "
            "when the client ends must have written all of them to the disk"
        )
    return f"the server's file differs from the one sent, from byte {same} on"


def _failed(flows: pl.DataFrame, flow: int, why: str) -> pl.DataFrame:
    """The flows with a failure of a flow that seemed complete."""
    if not why:
        return flows
    own = (pl.col("flow") == flow) & pl.col("completed")
    return flows.with_columns(
        pl.when(own).then(pl.lit(why)).otherwise(pl.col("failure")).alias("failure"),
        (pl.col("completed") & ~own).alias("completed"),
    ).cast(flows.schema)
