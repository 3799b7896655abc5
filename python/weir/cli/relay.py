"""`weir relay`: an emulated path between UDP programs."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Annotated, Any

from weir import _native
from weir.base.errors import InputError
from weir.base.grid import Grid
from weir.base.options import NETWORK, Option
from weir.base.quantities import quantity
from weir.cli import options, output, path, screen, table
from weir.cli.help import Verb
from weir.links import emulation
from weir.links.emulation import PathReport
from weir.links.relay import Relay

_HELP = (
    "Clients send to --listen, and the relay forwards to the server at --to and back. The links in "
    "between are the simulator's. Options apply to both directions. [bold]--up[/bold] (to the "
    "server) and [bold]--down[/bold] override them per direction. They take every key of a "
    "scenario's \\[topology.forward], and delay.\n\n"
    "The relay ends with Ctrl-C, SIGTERM or --duration. It then prints counters, and whether it "
    "kept to the configured delay and loss."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir relay --listen 127.0.0.1:9000 --to 127.0.0.1:9001 --loss 5% --delay 20ms

  weir relay --listen :9000 --to server:9001 --rate 10mbit --queue 64p --up loss=10%,jitter=5ms

  weir relay --listen 127.0.0.1:9000 --to 127.0.0.1:9001 --serial --delay 3ms --down delay=0s

  weir relay --listen 127.0.0.1:9000 --to 127.0.0.1:9001 --rate 20mbit --feedback drai

  weir relay --check"""

_CHECK_GAP = "100us"
_CHECK_PPS = 10_000
_CHECK_SIZE = 1_200
_CHECK_DELAY = "20ms"
_CHECK_S = 5.0
_EVERYWHERE = "0.0.0.0"  # noqa: S104 – what a port alone means

_ROWS = (
    ("received", "received"),
    ("sent", "sent"),
    ("lost", "lost"),
    ("queue full or policed", "queue_dropped"),
    ("duplicated", "duplicated"),
    ("corrupted", "corrupted"),
    ("reordered", "reordered"),
    ("marked (ECN)", "marked"),
    ("stamped (feedback)", "stamped"),
    ("lowest index stamped", "lowest_index"),
    ("error: receive buffer full", "overflow"),
    ("error: memory full", "memory_full"),
    ("error: could not be sent", "send_errors"),
    ("error: no known client", "unknown_client"),
)


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(relay)


def _address(about: str) -> Option:
    return Option(about, NETWORK, metavar="HOST:PORT")


_Listen = Annotated[str | None, _address("Address for clients; port 0 lets the system choose.")]
_To = Annotated[str | None, _address("Address of the server.")]
_Duration = Annotated[str | None, Option("Stop after this time.", NETWORK, metavar="TIME")]
_Check = Annotated[bool, Option("Only measure how precise the delay is on this machine.")]


@table.with_options_of(Relay)
def relay(
    listen: _Listen = None,
    to: _To = None,
    *,
    duration: _Duration = None,
    check: _Check = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Relays until stopped, then prints counters."""
    seconds = None if duration is None else quantity("time", "--duration", duration)
    if check:
        _check(given["delay"] or _CHECK_DELAY, seconds or _CHECK_S, as_json=json)
        return
    if listen is None or to is None:
        raise InputError("--listen and --to are required, as in --listen :9000 --to 127.0.0.1:9001")
    address = f"{_EVERYWHERE}{listen}" if listen.startswith(":") else listen
    work = Relay(address, to, **given)
    output.note(f"relay: {work.address} to {to}; Ctrl-C ends it", quiet=quiet)
    began = time.process_time()
    with _stop_signals() as stopped:
        _watch(work, stopped, seconds, quiet=quiet or not sys.stderr.isatty())
    report = work.stop()
    _print(report, time.process_time() - began, as_json=json)


def _watch(work: Relay, stopped: Event, seconds: float | None, *, quiet: bool) -> None:
    """Waits for the end; prints a line of counters every second."""
    began = time.monotonic()
    before: PathReport | None = None
    while not stopped.wait(_pause(began, seconds)):
        if seconds is not None and time.monotonic() - began >= seconds:
            break
        # Raises the error of a relay that has failed.
        now = work.report()
        if not quiet:
            sys.stderr.write(f"\r{_line(now, before)}\x1b[K")
            sys.stderr.flush()
        before = now
    if not quiet:
        sys.stderr.write("\r\x1b[K")


def _pause(began: float, seconds: float | None) -> float:
    left = 1.0 if seconds is None else began + seconds - time.monotonic()
    return max(0.0, min(1.0, left))


def _line(now: PathReport, before: PathReport | None) -> str:
    clients = now["clients"]
    parts = path.last_second(now, before)
    return "; ".join([*parts, f"{clients} client{'' if clients == 1 else 's'}"])


def _print(report: PathReport, cpu_s: float, *, as_json: bool) -> None:
    warnings = report["warnings"]
    if as_json:
        rows = [{"way": direction, **report[direction]} for direction in path.DIRECTIONS]
        output.print_json(
            "relay",
            rows,
            elapsed_s=report["elapsed_s"],
            cpu_s=cpu_s,
            clients=report["clients"],
            healthy=not warnings,
            warnings=warnings,
        )
        return
    up: Mapping[str, object] = report["up"]
    down: Mapping[str, object] = report["down"]
    cells = [(name, _count(up[key]), _count(down[key])) for name, key in _ROWS]
    for name, key in (("P50", "late_ms_p50"), ("P99", "late_ms_p99"), ("worst", "late_ms_max")):
        cells.append((f"late, {name}, ms", _millis(up[key]), _millis(down[key])))
    elapsed = report["elapsed_s"]
    title = f"relay: datagrams in {elapsed:.1f} s, {100 * cpu_s / elapsed:.0f}% of a core"
    note = f"Health: {path.verdict(report)}"
    screen.show(Grid(title, ("", "up", "down"), cells, note=note).rich())


def _check(delay: str, seconds: float, *, as_json: bool) -> None:
    count = int(seconds * _CHECK_PPS)
    if count < 1_000:
        raise InputError(f"--duration {seconds:g}s: a check takes at least 0.1s")
    began = time.process_time()
    with emulation.native_errors():
        found = _native.relay_check(delay, _CHECK_GAP, _CHECK_SIZE, count)
    cpu_s = time.process_time() - began
    relay_ = found.pop("relay")
    late, good = found["added_ms_p99"], found["good_ms"]
    healthy = found["received"] == count and late is not None and late <= good
    row = {"delay": delay, **found, "late_ms_p99": relay_["up"]["late_ms_p99"]}
    if as_json:
        output.print_json("relay", [row], cpu_s=cpu_s, healthy=healthy)
        return
    late_of = (
        ("without a relay, ms", found, "direct_ms"),
        (f"through a relay, beyond {delay}, ms", found, "added_ms"),
        ("left late by the relay's own clock, ms", relay_["up"], "late_ms"),
    )
    cells = [
        (name, *(_millis(source[f"{key}_{of}"]) for of in ("p50", "p99", "max")))
        for name, source, key in late_of
    ]
    title = f"relay: {count} datagrams at {found['rate_pps']:.0f}/s, {found['received']} arrived"
    verdict = (
        f"good: within {good} ms of the configured delay (P99)"
        if healthy
        else f"bad: delays deviate by more than {good} ms (P99); is this machine busy?"
    )
    screen.show(Grid(title, ("", "P50", "P99", "worst"), cells, note=f"Health: {verdict}").rich())


def _count(value: object) -> str:
    return "–" if value is None else str(value)


def _millis(value: object) -> str:
    return "–" if value is None else f"{value:.3f}"


@contextmanager
def _stop_signals() -> Iterator[Event]:
    """Yields an event that Ctrl-C and SIGTERM set: they are the normal end of a relay."""
    stopped = Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    earlier = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
