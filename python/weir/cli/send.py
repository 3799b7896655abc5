"""`weir send`: files and folders to a `weir recv`, over UDP."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from weir.base.errors import InputError, StoppedError
from weir.base.options import Option
from weir.cli import options, output, screen, table
from weir.cli import transfer as tables
from weir.cli.help import Verb
from weir.transfer import files
from weir.transfer.files import FailedError, Progress, SendSession, Sent, SentFile, Skipped

_STDIN = "-"
_MOST_NAMED = 20
"""Files that a message names."""
_TRACED = ("cwnd_bytes", "srtt_ms", "bytes_done", "segments", "retransmits")

_HELP = """\
A file gets its name at the receiver only after its hash was verified. If either side is stopped or
killed, the same command resumes the transfer. A folder arrives under its own name with all that is
in it: files, folders and symbolic links, with permissions and times. See docs/transfer.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir send big.bin 192.0.2.7:9000

  weir send a.iso b.iso example.org:9000 --rate 50mbit

  weir send photos/ example.org:9000

  weir send big.bin '[2001:db8::7]:9000' --stack rack/cubic --initial-window 64

  weir send big.bin 127.0.0.1:9000 --stack 'go-back-n(30)/none' --mss 1000b --json

  weir send big.bin example.org:9000 --key-file weir.key

  weir send big.bin 127.0.0.1:9000 --stack udp --rate 50mbit

  tar cz photos | weir send - example.org:9000 --name photos.tar.gz

  weir send big.bin 127.0.0.1:9000 --stack newreno/muzha --trace window.csv"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(send)


_What = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE... HOST:PORT",
        help="Files, folders, - for standard input, and last the receiver.",
    ),
]
_Name = Annotated[
    str | None,
    Option("Name of what is read from standard input.", metavar="NAME", default_text="stdin"),
]
_Trace = Annotated[
    Path | None,
    Option("Write time, window, RTT and losses to this file, ten times a second.", metavar="FILE"),
]


@table.with_options_of(files.send)
def send(
    what: _What,
    *,
    name: _Name = None,
    trace: _Trace = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Sends the files, prints the result of each."""
    *paths, target = what
    _check(paths, target, name)
    tables.warn_of_exposed(given["key_file"], quiet=quiet)
    with (
        _standard_input(paths, name or "stdin") as paths,
        tables.bar(show=not quiet) as progress,
        _tracing(trace) as note,
    ):

        def on_progress(report: Progress) -> None:
            progress.show(report)
            note(report)

        with options.as_typed(), _interrupts_reported():
            sent = files.send(paths, target, **given, on_progress=on_progress)
    typed = dict(zip(paths, what, strict=False))
    for row in sent.files:
        row["file"] = typed.get(row["file"], row["file"])
    rows, facts = sent.files, sent.session
    if json:
        output.print_json("send", tables.with_goodput(rows), session=facts)
    elif facts["segments"]:
        shown, rest = tables.shortened(rows)
        note_below = " ".join(filter(None, (rest, _note(rows, facts))))
        screen.show(tables.table(_title(rows, facts), shown, note_below).rich())
    _note_skipped(facts["skipped"], quiet=quiet)
    _finish(sent)


def _check(paths: list[str], target: str, name: str | None) -> None:
    if not paths:
        raise InputError(f"'{target}': FILE... and HOST:PORT are required, as in big.bin host:9000")
    if paths.count(_STDIN) > 1:
        raise InputError(f"'{_STDIN}' is standard input, which can be sent once")
    if name is not None and (_STDIN not in paths or not name or "/" in name):
        raise InputError(f"--name {name}: the name of what is read from '{_STDIN}', without a path")
    for path in paths:
        if path == _STDIN:
            continue
        if not Path(path).exists():
            raise InputError(f"there is no file or folder '{path}'")


@contextmanager
def _standard_input(paths: list[str], name: str) -> Iterator[list[str]]:
    """Yields the paths, with a file of what standard input has in place of `-`.

    All of it is read first: the receiver asks for its hash.
    """
    if _STDIN not in paths:
        yield paths
        return
    with tempfile.TemporaryDirectory(prefix="weir-send-") as folder:
        file = Path(folder) / name
        try:
            with file.open("xb") as spool:
                shutil.copyfileobj(sys.stdin.buffer, spool)
        except OSError as error:
            raise InputError(f"standard input: {error.strerror or error}") from None
        except KeyboardInterrupt:
            raise StoppedError("interrupted before anything was sent") from None
        yield [str(file) if path == _STDIN else path for path in paths]


@contextmanager
def _tracing(file: Path | None) -> Iterator[Callable[[Progress], None]]:
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

        def note(report: Progress) -> None:
            if report["cwnd_bytes"] is not None:
                facts: Mapping[str, object] = report
                values = (facts[key] for key in _TRACED)
                rows.writerow((f"{time.monotonic() - began:.3f}", *values))

        yield note


@contextmanager
def _interrupts_reported() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError("interrupted before anything was sent") from None


def _title(rows: list[SentFile], facts: SendSession) -> str:
    seconds = (facts["ended_ns"] - facts["began_ns"]) / 1e9
    return f"{tables.counted(rows)} to {facts['receiver']}: {seconds:.2f} s"


def _note(rows: list[SentFile], facts: SendSession) -> str:
    if not facts["segments"]:
        return ""
    if any(row["datagrams_sent"] is not None for row in rows):
        sent = sum(row["datagrams_sent"] or 0 for row in rows)
        there = sum(row["datagrams_arrived"] or 0 for row in rows)
        return f"{there} of {sent} datagrams arrived; time is from the offer to the last of them."
    again = 100 * facts["retransmits"] / facts["segments"]
    rtt = "" if facts["srtt_ms"] is None else f", RTT {facts['srtt_ms']:.2f} ms"
    reconnects = f", reconnected {facts['reconnects']} times" if facts["reconnects"] else ""
    size = decimal(facts["sent_bytes"])
    shares = f"{again:.2f} % retransmitted{rtt}{reconnects}"
    return f"{size} sent in {facts['segments']} segments, {shares}."


def _note_skipped(skipped: list[Skipped], *, quiet: bool) -> None:
    for item in skipped[:_MOST_NAMED]:
        output.note(f"not sent: '{item['file']}': {item['reason']}", quiet=quiet)
    if len(skipped) > _MOST_NAMED:
        output.note(f"not sent: {len(skipped) - _MOST_NAMED} more", quiet=quiet)


def _named(texts: list[str], separator: str) -> str:
    """Joins a few of them."""
    more = len(texts) - _MOST_NAMED
    return separator.join(texts[:_MOST_NAMED]) + (f"{separator}{more} more" if more > 0 else "")


def _finish(sent: Sent) -> None:
    problem, missing = sent.session["problem"], sent.missing
    if problem is not None and sent.session["interrupted"]:
        raise StoppedError(problem)
    if problem:
        raise FailedError(problem)
    if missing:
        reasons = _named([f"'{row['file']}': {_why(row)}" for row in missing], "; ")
        of = tables.counted(sent.files)
        raise FailedError(f"{len(missing)} of {of} did not arrive: {reasons}")
    if changed := sent.changed:
        names = _named([f"'{row['file']}'" for row in changed], ", ")
        raise FailedError(
            f"{names} changed during the transfer; the receiver has the content that was there "
            "when it was read first"
        )
    if lost := [item for item in sent.session["skipped"] if item["missing"]]:
        reasons = _named([f"'{item['file']}': {item['reason']}" for item in lost], "; ")
        raise FailedError(f"not all of it was sent: {reasons}")


def _why(row: SentFile) -> str:
    sent, there = row["datagrams_sent"] or 0, row["datagrams_arrived"] or 0
    if there < sent:
        return f"{there} of {sent} datagrams did"
    if row["verdict"] == "mismatch":
        return "the received data has another hash; did the file change during the transfer?"
    return str(row["reason"] or row["verdict"])
