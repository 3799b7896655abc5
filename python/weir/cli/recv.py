"""`weir recv`: receives what `weir send` sends."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from weir.base.errors import StoppedError
from weir.base.grid import counted
from weir.base.options import Option
from weir.cli import options, output, screen, table
from weir.cli import transfer as tables
from weir.cli.help import Verb
from weir.transfer import files as transfer
from weir.transfer.files import FailedError
from weir.transfer.key import write_key

_HELP = """\
Any number of senders may send at the same time. A file appears in --dir under its base name only
when its hash is right. A name that is taken gets a number, and a file that is there already is not
sent again. The part of an interrupted transfer that was received stays in hidden files, from which
the next transfer continues.

A key is 32 random bytes in hexadecimal. Anyone with a copy can send to a receiver that requires it,
and decrypt transfers. Copy it over a trusted channel such as ssh."""

_EXAMPLES = """[bold]Examples[/bold]

  weir recv --dir in

  weir recv --dir in --once --json

  weir recv --bind 127.0.0.1:9001 --max-size 2gb --max-files 10

  weir recv --new-key weir.key

  scp weir.key example.org:

  weir recv --dir in --key-file weir.key

  weir recv --dir in --key-dir keys"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(recv)


_NewKey = Annotated[
    Path | None,
    Option("Write a new key to this file, for --key-file, and end.", metavar="FILE"),
]


@table.with_options_of(transfer.receive)
def recv(
    *,
    new_key: _NewKey = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Receives, prints what became of each file."""
    if new_key is not None:
        write_key(new_key)
        output.note(f"new key in {new_key}", quiet=quiet)
        return
    key_file, key_dir = given["key_file"], given["key_dir"]
    key_files = [key_file] if key_dir is None else sorted(key_dir.glob("*.key"))
    for file in key_files:
        tables.warn_of_exposed(file, quiet=quiet)
    tables.restore_interrupts()
    sys.setswitchinterval(_SWITCH_S)
    with (
        tables.bar(show=not quiet) as progress,
        _Sessions(progress, as_json=json, quiet=quiet) as sessions,
    ):
        try:
            with options.as_typed():
                transfer.receive(**given, on_event=sessions.on_event)
        except KeyboardInterrupt:
            sessions.interrupted = True
    if json:
        output.print_json("recv", sessions.rows, omitted=dict(sessions.omitted))
    if sessions.interrupted:
        raise StoppedError("stopped; what has arrived is kept")
    if given["once"]:
        sessions.raise_if_missing()


class _Sessions:
    """What is reported of sessions: printed as they end, or kept for what is printed at the end.

    `on_event` is called by the thread that serves the network, so it only hands over its facts.
    """

    def __init__(self, progress: tables.Bar, *, as_json: bool, quiet: bool) -> None:
        self._printer = _Printer(progress, tables=not as_json, quiet=quiet)
        self._as_json, self._others = as_json, 0
        self.rows: list[dict[str, Any]] = []
        self.omitted: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._failure: str | None = None
        self.interrupted = False

    def __enter__(self) -> Self:
        self._printer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._printer.close()

    def on_event(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Records an event."""
        self._printer.put(kind, facts)
        if kind == "ended":
            self._failure = facts["failure"]
            self._verdicts = Counter(row["verdict"] for row in facts["rows"])
            self._verdicts.update(facts["omitted"])
            if self._as_json:
                self._keep(facts)

    def _keep(self, facts: Mapping[str, Any]) -> None:
        """Every file that arrived is printed at the end, and of all others a bounded number."""
        self.omitted.update(facts["omitted"])
        for row in tables.with_goodput(facts["rows"]):
            if row["verdict"] == "kept" or self._others < _MOST_OTHERS:
                self._others += row["verdict"] != "kept"
                self.rows.append(row)
            else:
                self.omitted[row["verdict"]] += 1

    def raise_if_missing(self) -> None:
        """Fails if anything of the only session is missing."""
        if self._failure:
            raise FailedError(self._failure)
        files = self._verdicts.total()
        missing = files - self._verdicts["kept"] - self._verdicts["already"]
        if missing:
            of = counted(files, "file")
            raise FailedError(f"{missing} of {of} did not arrive")


class _Printer:
    """Draws the bar and tables in a thread of its own, however long a terminal takes for them."""

    def __init__(self, progress: tables.Bar, *, tables: bool, quiet: bool) -> None:
        self._bar, self._tables, self._quiet = progress, tables, quiet
        self._changed = threading.Condition()
        self._latest: Mapping[str, Any] | None = None
        self._waiting: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._rows, self._missed, self._closed = 0, 0, False
        self._thread = threading.Thread(target=self._run, name="weir-printer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Hands something over to be printed. What waits is bounded: sessions and their rows."""
        if kind == "ended":
            facts = _summarised(facts) if self._tables else {**facts, "rows": (), "omitted": {}}
        rows = len(facts.get("rows", ()))
        with self._changed:
            if kind == "progress":
                self._latest = facts
            elif len(self._waiting) < _MOST_WAITING and self._rows + rows <= _MOST_ROWS_WAITING:
                self._waiting.append((kind, facts))
                self._rows += rows
            else:
                self._missed += 1
            self._changed.notify()

    def close(self) -> None:
        """Prints what waits."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._latest or self._missed or self._closed):
                    self._changed.wait()
                waiting, self._waiting, self._rows = self._waiting, deque(), 0
                latest, self._latest = self._latest, None
                missed, self._missed = self._missed, 0
                closed = self._closed
            while waiting:
                began = time.monotonic()
                self._print(*waiting.popleft())
                if waiting and not self._closed:
                    # The thread that serves the network needs this interpreter too.
                    time.sleep(_REST * (time.monotonic() - began))
            if missed:
                self._note(f"{missed} more sessions ended")
            if latest:
                self._bar.show(latest)
            if closed:
                return

    def _print(self, kind: str, facts: Mapping[str, Any]) -> None:
        if kind == "listening":
            self._note(f"listening on {facts['address']}, Ctrl-C ends")
            return
        if kind == "warning":
            self._note(facts["text"])
            return
        sender = f"{facts['key']} ({facts['sender']})" if facts["key"] else facts["sender"]
        rows, omitted, failure = facts["rows"], facts["omitted"], facts["failure"]
        if rows:
            files = len(rows) + sum(omitted.values())
            title = f"{counted(files, 'file')} from {sender}"
            table = tables.table(title, rows, tables.not_shown(omitted))
            with self._bar.hidden():
                screen.show(table.rich())
        if failure:
            self._note(f"{sender}: {failure}; what has arrived is kept")

    def _note(self, text: str) -> None:
        if not self._quiet:
            self._bar.write(text)


def _summarised(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """A session with the rows that its table shows; the others are counted.

    Few of files that did not arrive: announcing them costs an attacker nothing.
    """
    shown: list[Mapping[str, Any]] = []
    omitted, others = Counter(facts["omitted"]), 0
    for row in facts["rows"]:
        is_kept = row["verdict"] == "kept"
        if len(shown) < _MOST_IN_TABLE and (is_kept or others < _MOST_OTHERS_IN_TABLE):
            shown.append(row)
            others += not is_kept
        else:
            omitted[row["verdict"]] += 1
    return {**facts, "rows": shown, "omitted": omitted}


_SWITCH_S = 0.0005
"""For how long at most the thread that draws tables keeps the interpreter from the other."""
_REST = 4
"""For this multiple of the time that a table takes none is drawn, while others wait."""
_MOST_OTHERS = 10_000
"""Files that did not arrive, in what `--json` prints at the end."""
_MOST_WAITING = 100
_MOST_ROWS_WAITING = 2_000
"""A row takes about 1 kB."""
_MOST_IN_TABLE = 200
_MOST_OTHERS_IN_TABLE = 20
