"""`weir send`: files to a `weir recv`, over UDP."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.filesize import decimal

from weir import _native
from weir.cli import complete, options, output, transfer
from weir.errors import InputError, StoppedError

DEFAULT_STACK = "rack/bbr(overflow=avoid)"
"""Stack of a transfer without --stack."""
DEFAULT_MSS, DEFAULT_SEALED_MSS = "1420b", "1396b"
"""Datagrams fit packets of 1500 bytes, over IPv6 too."""

_TRACED = ("cwnd_bytes", "srtt_ms", "bytes_done", "segments", "retransmits")

_HELP = """Send files to [bold]weir recv[/bold] over UDP, with any of Weir's transports.

A file gets its name at the receiver only after its hash was verified. If either side is stopped or
killed, the same command resumes the transfer. See docs/transfer.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir send big.bin 192.0.2.7:9000

  weir send a.iso b.iso example.org:9000 --rate 50mbit

  weir send big.bin '[2001:db8::7]:9000' --stack rack/cubic --initial-window 64

  weir send big.bin 127.0.0.1:9000 --stack 'go-back-n(30)/none' --mss 1000b --json

  weir send big.bin example.org:9000 --key-file weir.key

  weir send big.bin 127.0.0.1:9000 --stack udp --rate 50mbit

  weir send big.bin 127.0.0.1:9000 --stack newreno/muzha --trace window.csv"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(send)


def send(
    what: Annotated[
        list[str],
        typer.Argument(metavar="FILE... HOST:PORT", help="Files, and last the receiver."),
    ],
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="RECOVERY/CONTROLLER",
            help="Transport: weir list names all; FILE.py:CLASS is your own controller. udp: plain "
            "datagrams, to count losses.",
            show_default=DEFAULT_STACK,
            autocompletion=complete.stacks,
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Upper limit of the send rate, as in 50mbit.")
    ] = None,
    pacing: Annotated[
        Literal["on", "off"],
        typer.Option(
            help="Spread a window over the RTT; off sends with each acknowledgement. "
            "Controllers that set a rate (bbr) always pace."
        ),
    ] = "on",
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Fixed window in segments, for go-back-n, selective-repeat and none."
        ),
    ] = None,
    initial_window: Annotated[
        int, typer.Option(min=1, max=65535, help="Initial window in segments; paced above 10.")
    ] = 10,
    mss: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="File bytes per segment, 64b to 65447b.",
            show_default=f"{DEFAULT_MSS}, {DEFAULT_SEALED_MSS} with a key",
        ),
    ] = None,
    max_retransmits: Annotated[
        int, typer.Option(min=0, help="Give up after this many consecutive timeouts.")
    ] = 100,
    max_wait: Annotated[
        str, typer.Option(metavar="TIME", help="Give up after this long without progress.")
    ] = "30s",
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write time, window, RTT and losses to this file, ten times a second.",
        ),
    ] = None,
    key_file: transfer.KeyFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Sends the files, prints the result of each."""
    *paths, target = what
    if not paths:
        raise InputError(f"'{target}': FILE... and HOST:PORT are required, as in big.bin host:9000")
    for path in paths:
        if Path(path).is_dir():
            raise InputError(f"'{path}' is a directory; name the files in it, as in {path}/*")
        if not Path(path).exists():
            raise InputError(f"there is no file '{path}'")
    default_mss = DEFAULT_MSS if key_file is None else DEFAULT_SEALED_MSS
    transfer.warn_of_exposed(key_file, quiet=quiet)
    with transfer.bar(show=not quiet) as progress, _tracing(trace) as note:

        def on_event(_kind: str, report: dict[str, Any]) -> None:
            progress.show(report)
            note(report)

        rows, facts = _send(
            paths,
            target,
            stack=_stack(stack, window),
            mss=round(transfer.quantity("size", "--mss", mss or default_mss)),
            initial_window=initial_window,
            max_rate_bps=None if rate is None else round(transfer.quantity("rate", "--rate", rate)),
            pacing=pacing == "on",
            max_retransmits=max_retransmits,
            max_wait_s=transfer.quantity("time", "--max-wait", max_wait),
            key_file=key_file,
            tell=on_event,
        )
    if json:
        output.print_json("send", transfer.with_goodput(rows), session=facts)
    elif facts["segments"]:
        output.show(transfer.table(_title(rows, facts), rows, _note(rows, facts)).rich())
    _finish(rows, facts)


@contextmanager
def _tracing(file: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that writes a progress report as a row of the trace."""
    if file is None:
        yield lambda _report: None
        return
    try:
        # Line buffered: the rows of a killed sender are kept.
        opened = file.open("w", buffering=1, newline="")
    except OSError as error:
        raise InputError(f"--trace {file}: {error.strerror}") from None
    with opened:
        rows = csv.writer(opened)
        rows.writerow(("time_s", *_TRACED))
        began = time.monotonic()

        def note(report: dict[str, Any]) -> None:
            if report["cwnd_bytes"] is not None:
                values = (report[key] for key in _TRACED)
                rows.writerow((f"{time.monotonic() - began:.3f}", *values))

        yield note


def _send(paths: list[str], target: str, **how: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    try:
        with transfer.errors_mapped():
            return _native.send_files(paths, target, **how)
    except KeyboardInterrupt:
        raise StoppedError("interrupted before anything was sent") from None


def _stack(stack: str | None, window: int | None) -> str:
    """Returns the stack with its fixed window, if given."""
    if window is None:
        return stack or DEFAULT_STACK
    if stack == "udp":
        raise InputError(f"--window {window}: udp has none; --rate limits it")
    recovery, _, controller = (stack or "rack/none").rpartition("/")
    if recovery in {"go-back-n", "selective-repeat"}:
        return f"{recovery}({window})/{controller}"
    if controller == "none":
        return f"{recovery or 'rack'}/none({window})"
    raise InputError(
        f"--window {window}: '{stack}' computes its window; a fixed one is allowed with the "
        "controller none or the recoveries go-back-n and selective-repeat"
    )


def _title(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    seconds = (facts["ended_ns"] - facts["began_ns"]) / 1e9
    return f"{transfer.counted(rows)} to {facts['receiver']}: {seconds:.2f} s"


def _note(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    if not facts["segments"]:
        return ""
    counted_rows = [row for row in rows if row["datagrams_sent"] is not None]
    if counted_rows:
        sent, there = (
            sum(row[key] for row in counted_rows) for key in ("datagrams_sent", "datagrams_arrived")
        )
        return f"{there} of {sent} datagrams arrived; time is from the offer to the last of them."
    again = 100 * facts["retransmits"] / facts["segments"]
    rtt = "" if facts["srtt_ms"] is None else f", RTT {facts['srtt_ms']:.2f} ms"
    reconnects = f", reconnected {facts['reconnects']} times" if facts["reconnects"] else ""
    sent = decimal(facts["sent_bytes"])
    shares = f"{again:.2f} % retransmitted{rtt}{reconnects}"
    return f"{sent} sent in {facts['segments']} segments, {shares}."


def _finish(rows: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    if facts["interrupted"]:
        raise StoppedError(facts["problem"])
    if facts["problem"]:
        raise transfer.FailedError(facts["problem"])
    missing = [row for row in rows if not transfer.is_there(row)]
    if missing:
        reasons = "; ".join(f"'{row['file']}': {_why(row)}" for row in missing)
        of = transfer.counted(rows)
        raise transfer.FailedError(f"{len(missing)} of {of} did not arrive: {reasons}")


def _why(row: dict[str, Any]) -> str:
    if row["datagrams_sent"] and row["datagrams_arrived"] < row["datagrams_sent"]:
        return f"{row['datagrams_arrived']} of {row['datagrams_sent']} datagrams did"
    if row["verdict"] == "mismatch":
        return "the received data has another hash; did the file change during the transfer?"
    return str(row["reason"] or row["verdict"])
