"""`weir link`: a command behind an emulated link."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from weir.base.options import OUTPUT, Option, chosen
from weir.cli import link_commands, options, output, path, table
from weir.cli.help import Verb
from weir.cli.link_commands import FarEnd
from weir.guest.options import GuestOptions
from weir.links.emulation import PathReport
from weir.links.link import Link, resolvers_are_local, terminate_behind
from weir.links.server import Server
from weir.processes.outputs import Ended
from weir.scenario import capture

_HELP = (
    "The command runs in its own network namespace, and the link is its only route. It reaches "
    "this host at the address in [bold]$WEIR_LINK_HOST[/bold], and through it the host's "
    "networks. Links can be nested. Without a command, your shell runs. Requires root. Under sudo "
    "the command runs as the calling user.\n\n"
    "Options apply to both directions. [bold]--up[/bold] (from the command) and "
    "[bold]--down[/bold] override them per direction. They take every key of a scenario's "
    "\\[topology.forward], and delay.\n\n"
    "With [bold]--virtual[/bold] the command runs in a guest in virtual time: without root, never "
    "late, and with the same output each time.\n\n"
    "The link carries IPv6 too, and [bold]$WEIR_LINK_HOST6[/bold] is the address of its far "
    "end.\n\n"
    "The link ends when the command does. The exit code is the command's, or 128 plus the number "
    "of the signal that killed it. See docs/link.md."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir link --rate 20mbit --rtt 40ms --queue 1bdp -- iperf3 -c 192.0.2.7

  weir link --rtt 100ms --loss 1% -- curl -O http://192.0.2.7/big.bin

  weir link --up rate=1mbit --down rate=10mbit,queue=256kb -- firefox

  weir link --trace cellular.trace --rtt 60ms --queue 500p

  weir link --tc 'netem delay 50ms 10ms rate 5mbit limit 100' -- firefox

  weir link --loss 1% --pcap captures -- curl -O http://192.0.2.7/big.bin

  weir link --virtual --rtt 40ms --server 'iperf3 -s -1' -- sh -c 'iperf3 -c $WEIR_LINK_HOST'"""

_POLL_S = 1.0
_LINE_EVERY = 10
"""Number of polls between two lines of counters."""
_RELAYED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def register(app: Verb) -> None:
    """Adds the verb."""
    # Everything after the command is an argument of it, with or without `--`.
    settings = {"allow_interspersed_args": False}
    app.command(help=_HELP, epilog=_EXAMPLES, context_settings=settings)(link)


_Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMAND...", help="Command to run.", show_default="$SHELL"),
]
_Report = Annotated[
    Path | None, Option("Write the link's counters to this file, as JSON.", OUTPUT, metavar="FILE")
]
_Pcap = Annotated[
    Path | None,
    Option(
        "Record the packets at both ends of the link, in DIR/link-PID.pcapng.",
        OUTPUT,
        metavar="DIR",
        flag="--pcap",
    ),
]


@table.with_options_of(Link, GuestOptions)
def link(
    command: _Command = None,
    virtual: link_commands.Virtual = False,
    *,
    report: _Report = None,
    pcap_folder: _Pcap = None,
    server: link_commands.Server = None,
    ready: link_commands.ReadyOption = None,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the command, reports the link's counters on stderr, exits with the command's code."""
    with options.as_typed():
        far = link_commands.FarEnd.of(server, ready)
        packets = None if pcap_folder is None else _file_in(pcap_folder)
        described = Link(**chosen(Link, given), pcap=packets, isolated=far is not None)
    options.check_output(report)
    guest = GuestOptions(**chosen(GuestOptions, given))
    link_commands.check(guest, command, virtual=virtual)
    if virtual:
        done = link_commands.run(command or [], far, described, guest, packets, quiet=quiet)
        found, code, server_ended = done.report, done.client.code, done.server
    else:
        found, code, server_ended = _run_live(described, command, far, quiet=quiet)
    _conclude(found, packets, quiet=quiet)
    if report is not None:
        _write(report, found, code, server_ended)
    raise typer.Exit(code if code >= 0 else 128 - code)


def _run_live(
    link_: Link, command: list[str] | None, far: FarEnd | None, *, quiet: bool
) -> tuple[PathReport, int, Ended | None]:
    """Runs the commands in real time; returns the link's counters and how they ended."""
    words = command or [os.environ.get("SHELL") or "/bin/sh"]
    # An interactive shell owns the terminal: print no counters in between.
    watched = not quiet and bool(command) and sys.stderr.isatty()
    with _SignalForwarder() as relay, link_ as work:
        _introduce(work, quiet=quiet)
        if far is None:
            process = relay.begin(lambda: work.start(words))
            code = _attend(process, work, show=watched)
            return work.report(), code, None
        shown = link_commands.OutputPrinter(quiet=quiet)
        server = Server(work, far.command, far.ready, shown.show, check=relay.check)
        with server:
            process = relay.begin(lambda: work.start(words))
            code = _attend(process, work, show=watched)
            found = work.report()
        shown.end()
        link_commands.note_server(server.ended, quiet=quiet)
        return found, code, server.ended


class _SignalForwarder:
    """Forwards signals to the command; the link ends when the command does."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def __enter__(self) -> _SignalForwarder:
        self._earlier = {number: signal.signal(number, self._on_signal) for number in _RELAYED}
        return self

    def __exit__(self, *_: object) -> None:
        # If the link failed, end the processes behind it.
        if self._process is not None and self._process.poll() is None:
            terminate_behind(self._process)
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    def begin(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Starts the command, unless a signal to stop has already arrived."""
        self.check()
        self._process = process = start()
        # Signals that arrived during the start.
        for number in self._early:
            self._hand_on(process, number)
        return process

    def check(self) -> None:
        """Ends this program if a signal to stop has arrived before the command's start."""
        if self._early:
            raise typer.Exit(128 + self._early[0])

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._hand_on(self._process, number)

    def _hand_on(self, process: subprocess.Popen[bytes], number: int) -> None:
        # The terminal sends Ctrl-C to the command directly.
        if number not in {signal.SIGINT, signal.SIGQUIT} or not _is_foreground():
            process.send_signal(number)


def _is_foreground() -> bool:
    """Whether the terminal's Ctrl-C reaches us and the command."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def _introduce(work: Link, *, quiet: bool) -> None:
    reach = "the host's networks" if work.confined is None else f"this host only: {work.confined}"
    output.note(f"link: {work.inside}; the host is {work.host}; reaches {reach}", quiet=quiet)
    if resolvers_are_local():
        text = "link: the host's DNS server is on its loopback, out of reach: use addresses"
        output.note(text, quiet=quiet)


def _attend(process: subprocess.Popen[bytes], work: Link, *, show: bool) -> int:
    """Waits for the end; prints a line of counters every few seconds.

    A line that is redrawn in place would overwrite the command's output.
    """
    before: PathReport | None = None
    polls = 0
    while True:
        try:
            return process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            # Raises the error of a link that has failed.
            now = work.report()
        polls += 1
        if show and polls % _LINE_EVERY == 0:
            output.note(f"link: {'; '.join(path.last_second(now, before))}", quiet=False)
        before = now


def _conclude(found: PathReport, packets: Path | None, *, quiet: bool) -> None:
    """Prints a line per direction, the verdict (in any case if it is bad), where packets are."""
    elapsed = found["elapsed_s"]
    for direction in path.DIRECTIONS:
        counts = found[direction]
        mbit = counts["sent_bytes"] * 8e-6 / elapsed
        text = (
            f"link: {direction} {counts['sent']} packets, {mbit:.2f} Mbit/s over {elapsed:.1f} s; "
            f"{counts['queue_dropped']} dropped by the queue, {counts['lost']} lost"
        )
        output.note(text, quiet=quiet)
    output.note(f"link: health {path.verdict(found)}", quiet=quiet and not found["warnings"])
    if packets is not None:
        output.note(f"link: packets recorded in {packets}", quiet=quiet)


def _write(file: Path, found: PathReport, code: int, server: Ended | None) -> None:
    rows = [{"way": direction, **found[direction]} for direction in path.DIRECTIONS]
    warnings = found["warnings"]
    document: dict[str, Any] = {
        "schema": output.SCHEMA,
        "command": "link",
        "elapsed_s": found["elapsed_s"],
        "exit_code": code,
        "healthy": not warnings,
        "warnings": warnings,
        "rows": rows,
    }
    if server is not None:
        stdout, stderr = (text.decode(errors="replace") for text in (server.stdout, server.stderr))
        document["server"] = {"exit_code": server.code, "stdout": stdout, "stderr": stderr}
    from weir.base.disk import write_text  # slow to import

    write_text(file, json.dumps(document, ensure_ascii=False))


def _file_in(folder: Path) -> Path:
    """Returns the capture file of this link, so that several can record at the same time."""
    capture.prepare(folder)
    return folder.absolute() / f"link-{os.getpid()}{capture.SUFFIX}"
