"""How well an emulated link does: kernel TCP's use of it, the delay that ping sees, the ceiling.

Two namespaces are joined by the link; what is measured is measured with the kernel's own sockets
and `ping`. Run it on a machine that does nothing else: ``make bench-link``. What a hypervisor takes
from this machine meanwhile stands next to each figure: it makes routers late.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench import command
from weir.base.errors import RunError, unknown
from weir.base.grid import Grid
from weir.cli import output, screen
from weir.processes import netns

_SECONDS = 15.0
_RTT_MS = 40
_MTU, _MSS = 1500, 1448
_PARTS = ("share", "ping", "ceiling")
_ALGORITHMS = ("reno", "cubic", "bbr")
_RATES_MBPS = (10, 100, 500, 1000)
_PORT = 5201
KNOWN = (*_PARTS, *map(str, _RATES_MBPS))
"""What --only takes: a kind of measurement, or the rate of one share in Mbit/s."""
_COLUMNS = ("figure", "value", "goal", "verdict", "late P50, µs", "late P99, µs", "stolen")

_RECEIVE = """
import socket, sys, time
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    print("ready", flush=True)
    stream, _ = server.accept()
    total, buffer = 0, bytearray(1 << 20)
    began = time.monotonic()
    while got := stream.recv_into(buffer):
        total += got
    print(total / (time.monotonic() - began))
"""
_SEND = """
import socket, sys, time
with socket.socket() as stream:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[3].encode())
    stream.connect((sys.argv[1], int(sys.argv[2])))
    block, end = bytes(1 << 18), time.monotonic() + float(sys.argv[4])
    while time.monotonic() < end:
        stream.send(block)
"""
_BUFFERS = (
    "cd /proc/sys/net/ipv4; echo 4096 131072 33554432 > tcp_rmem; "
    "echo 4096 131072 33554432 > tcp_wmem; echo 1 > tcp_no_metrics_save"
)
"""No window shall limit a flow, and none starts with what is remembered of another."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured next to the goals."""

    what: str
    value: float
    goal: str
    holds: bool
    late_ms: tuple[float | None, float | None]
    """The router's lateness: median and 99th percentile."""
    stolen: float
    """The share of this machine's processor time that its hypervisor gave to others."""

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        late = ("" if ms is None else f"{ms * 1e3:.0f}" for ms in self.late_ms)
        verdict = "holds" if self.holds else "missed"
        return (self.what, f"{self.value:.3f}", self.goal, verdict, *late, f"{self.stolen:.1%}")


def bench(
    only: Annotated[
        str,
        typer.Option(metavar="PARTS", help=f"These parts, comma-separated: {', '.join(KNOWN)}."),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures emulated links: use by the kernel's TCP, added delay, lateness, highest rate."""
    parts = set(only.split(",")) if only else set()
    for part in parts:
        if part not in KNOWN:
            raise typer.BadParameter(f"--only: {unknown('part', part, KNOWN)}")
    if (lacking := netns.missing()) is not None:
        raise RunError(f"no link can be emulated here: {lacking}")
    figures = []
    for figure in _figures(parts):
        output.note(figure.what, quiet=not sys.stderr.isatty())
        figures.append(figure)
    if json:
        output.print_json("bench-link", [asdict(figure) for figure in figures])
    else:
        screen.show(Grid("Emulated links", _COLUMNS, [figure.cells() for figure in figures]).rich())


def _figures(only: set[str]) -> Iterator[Figure]:
    """All figures, or those of the parts `only`; a rate is the share at that rate."""
    for rate in _RATES_MBPS:
        if not only or "share" in only or str(rate) in only:
            yield from (_share(rate, algorithm) for algorithm in _ALGORITHMS)
    if not only or "ping" in only:
        yield from _ping()
    if not only or "ceiling" in only:
        yield from (_ceiling(offload) for offload in ("off", "on"))


def _share(rate_mbps: int, algorithm: str) -> Figure:
    """What a flow makes of its share of the rate: payload of full packets, slow start included."""
    delay = f"{_RTT_MS / 2}ms"
    up = f"rate={rate_mbps}mbit,queue=1bdp"
    stolen = _stolen()
    with netns.joined(up=up, offload="auto", delay=delay) as link:
        mbps = _transfer(link, algorithm, _SECONDS)
        late = _lateness(link)
    value = mbps / (rate_mbps * _MSS / _MTU)
    what = f"{algorithm} at {rate_mbps} Mbit/s, share"
    return Figure(what, value, ">= 0.97", value >= 0.97, late, stolen())


def _ceiling(offload: str) -> Figure:
    """A flow over a link without rate and delay."""
    stolen = _stolen()
    with netns.joined(offload=offload) as link:
        gbps = _transfer(link, "cubic", 5.0) / 1e3
        late = _lateness(link)
    goal = 8.0 if offload == "on" else 0.0
    what = f"no rate, superpackets {offload}, Gbit/s"
    return Figure(what, gbps, f">= {goal}" if goal else "none", gbps >= goal, late, stolen())


def _ping() -> Iterator[Figure]:
    """Ping over a link of its own next to one that a flow loads."""
    delay = f"{_RTT_MS / 2}ms"
    stolen = _stolen()
    with (
        netns.joined(delay=delay) as quiet,
        netns.joined(delay=delay, up="rate=100mbit,queue=1bdp") as loaded,
    ):
        flow = _start_flow(loaded, "bbr", 12.0)
        time.sleep(1.0)
        command = ["ping", "-q", "-i", "0.02", "-c", "450", quiet.right.address]
        printed = quiet.left.run(command, capture_output=True, text=True).stdout
        for process in flow:
            process.wait()
        late = _lateness(quiet)
    found = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms", printed)
    if found is None:
        raise RuntimeError(f"ping said: {printed}")
    extra, spread = float(found[2]) - _RTT_MS, float(found[4])
    share = stolen()
    yield Figure("ping next to a load, added ms", extra, "<= 0.15", extra <= 0.15, late, share)
    yield Figure("ping next to a load, mdev ms", spread, "< 0.1", spread < 0.1, late, share)


def _transfer(link: netns.Link, algorithm: str, seconds: float) -> float:
    """Goodput of one flow in Mbit/s."""
    receiver, sender = _start_flow(link, algorithm, seconds)
    sender.wait()
    printed, _ = receiver.communicate()
    return float(printed) * 8e-6


def _start_flow(
    link: netns.Link, algorithm: str, seconds: float
) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    for end in link:
        end.run(["sh", "-c", _BUFFERS])
    where = [link.right.address, str(_PORT)]
    receive = [sys.executable, "-c", _RECEIVE, *where]
    receiver = link.right.start(receive, stdout=subprocess.PIPE, text=True)
    if receiver.stdout is not None:
        receiver.stdout.readline()
    send = [sys.executable, "-c", _SEND, *where, algorithm, str(seconds)]
    return receiver, link.left.start(send)


def _lateness(link: netns.Link) -> tuple[float | None, float | None]:
    up = link.report()["up"]
    return up["late_ms_p50"], up["late_ms_p99"]


def _stolen() -> Callable[[], float]:
    """From now on: the share of processor time that a hypervisor takes away (proc_stat(5))."""

    def read() -> tuple[int, int]:
        ticks = [int(text) for text in Path("/proc/stat").read_text().split()[1:9]]
        return ticks[7], sum(ticks)

    before = read()

    def since() -> float:
        stolen, whole = (now - then for now, then in zip(read(), before, strict=True))
        return stolen / whole if whole else 0.0

    return since


if __name__ == "__main__":
    command.run(bench, "bench.link")
