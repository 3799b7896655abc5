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
"""Unless measured otherwise."""
DEFAULT_MSS, DEFAULT_SEALED_MSS = "1420b", "1396b"
"""Datagrams that pass wherever packets of 1500 bytes do, over IPv6 too."""

_TRACED = ("cwnd_bytes", "srtt_ms", "bytes_done", "segments", "retransmits")

_HELP = """Send files to a [bold]weir recv[/bold], over UDP and any of Weir's transports.

A file appears at the receiver under its name only when its hash is right. If either side is stopped
or killed, the same command goes on from what has arrived. docs/transfer.md says what is protected
and what is not."""

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
        typer.Argument(metavar="FILE... HOST:PORT", help="What to send, and last where to."),
    ],
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="RECOVERY/CONTROLLER",
            help="The transport; weir list names all, FILE.py:CLASS is yours. udp: bare datagrams, "
            "to count what is lost.",
            show_default=DEFAULT_STACK,
            autocompletion=complete.stacks,
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Never send faster, as in 50mbit.")
    ] = None,
    pacing: Annotated[
        Literal["on", "off"],
        typer.Option(
            help="Spread a window over the round trip; off sends as acknowledgements come in. "
            "Controllers with a rate of their own (bbr) always pace."
        ),
    ] = "on",
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="A fixed window in segments, for go-back-n, selective-repeat and none."
        ),
    ] = None,
    initial_window: Annotated[
        int, typer.Option(min=1, max=65535, help="The first window in segments; paced above 10.")
    ] = 10,
    mss: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Bytes of a file in a segment, 64b to 65447b.",
            show_default=f"{DEFAULT_MSS}, {DEFAULT_SEALED_MSS} with a key",
        ),
    ] = None,
    max_retransmits: Annotated[
        int, typer.Option(min=0, help="Timeouts in a row after which a connection is given up.")
    ] = 100,
    max_wait: Annotated[
        str, typer.Option(metavar="TIME", help="Time without progress after which it is.")
    ] = "30s",
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write time, window, RTT and losses here, ten times a second."
        ),
    ] = None,
    key_file: transfer.KeyFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Sends the files, prints what became of them."""
    *paths, target = what
    if not paths:
        raise InputError(f"'{target}': FILE... and HOST:PORT are needed, as in big.bin host:9000")
    for path in paths:
        if Path(path).is_dir():
            raise InputError(f"'{path}' is a directory; name the files in it, as in {path}/*")
        if not Path(path).exists():
            raise InputError(f"there is no file '{path}'")
    default_mss = DEFAULT_MSS if key_file is None else DEFAULT_SEALED_MSS
    transfer.warn_of_exposed(key_file, quiet=quiet)
    with transfer.bar(show=not quiet) as progress, _tracing(trace) as note:

        def tell(_kind: str, report: dict[str, Any]) -> None:
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
            tell=tell,
        )
    if json:
        output.print_json("send", transfer.with_goodput(rows), session=facts)
    elif facts["segments"]:
        output.show(transfer.table(_title(rows, facts), rows, _note(rows, facts)).rich())
    _finish(rows, facts)


@contextmanager
def _tracing(file: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Takes a row of the trace from each progress report of a connection."""
    if file is None:
        yield lambda _report: None
        return
    try:
        # Line by line: a sender that is killed leaves what it has noted.
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
        with transfer.errors_told():
            return _native.send_files(paths, target, **how)
    except KeyboardInterrupt:
        raise StoppedError("interrupted before anything was sent") from None


def _stack(stack: str | None, window: int | None) -> str:
    """The stack with its fixed window, where it takes one."""
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
        f"--window {window}: '{stack}' sizes its window itself; a fixed one goes with the "
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
        return (
            f"{there} of {sent} datagrams arrived; a time is from the offer to the last of these."
        )
    again = 100 * facts["retransmits"] / facts["segments"]
    rtt = "" if facts["srtt_ms"] is None else f", RTT {facts['srtt_ms']:.2f} ms"
    reconnects = f", reconnected {facts['reconnects']} times" if facts["reconnects"] else ""
    sent = decimal(facts["sent_bytes"])
    return f"{sent} sent in {facts['segments']} segments, {again:.2f} % again{rtt}{reconnects}."


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
        return "what arrived has another hash; did the file change meanwhile?"
    return str(row["reason"] or row["verdict"])
