"""Files over reliable UDP: `weir send` and `weir recv` from Python.

>>> import tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "numbers.txt").write_text("1 2 3")
>>> with Receiver(folder / "in", "127.0.0.1:0") as receiver:
...     sent = send([folder / "numbers.txt"], receiver.address, stack="rack/cubic")
>>> [(file["verdict"], file["size_bytes"]) for file in sent.files]
[('kept', 5)]
>>> (folder / "in" / "numbers.txt").read_text()
'1 2 3'
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict

from weir import _native
from weir.base.errors import InputError, WeirError
from weir.base.options import Option, documented
from weir.transfer.options import (
    DEFAULT_FOLDER,
    DEFAULT_MSS,
    DEFAULT_PORT,
    DEFAULT_SEALED_MSS,
    DEFAULT_STACK,
    KeyDir,
    KeyFile,
    Memory,
    Mss,
    Pacing,
    PartialExpiry,
    Quota,
    StackName,
    Window,
)

Verdict = Literal["kept", "already", "mismatch", "refused", "incomplete"]
"""Result of a file: arrived, was there already, wrong hash, refused, or not complete."""


class FileRow(TypedDict):
    """A file of a session, with its result. Times are `CLOCK_MONOTONIC` of this machine."""

    file: str
    """Name or path."""
    kind: Literal["file", "folder", "link"]
    size_bytes: int
    verdict: Verdict
    saved_as: str | None
    """Name at the receiver, if it is there."""
    reason: str | None
    """Why it was refused."""
    resumed_from_bytes: int | None
    """Where the session began, if a part was there."""
    arrived_bytes: int
    began_ns: int
    time_s: float | None
    """Seconds from the start of the session to its last byte, if that arrived."""
    datagrams_sent: int | None
    """With the stack `udp`: datagrams sent, as the sender has counted them."""
    datagrams_arrived: int | None
    datagrams_again: int | None
    """Datagrams that arrived more than once."""


class SentFile(FileRow):
    """A file as its sender reports it."""

    receiver: str
    blake3: str | None
    """Hash of a file's content, in hexadecimal."""
    changed: bool
    """Whether the file has changed since it was first read. `blake3` is what the receiver has."""
    ended_ns: int | None


class ReceivedFile(FileRow):
    """A file as its receiver reports it."""

    sender: str
    key: str | None
    """Name of the sender's key, with `key_dir`."""
    arrived_ns: int | None
    verified_ns: int | None


class Skipped(TypedDict):
    """Something in a folder that was not sent."""

    file: str
    reason: str
    missing: bool
    """Whether it belongs to the content of the folder. A socket, a pipe and a device do not."""


class SendSession(TypedDict):
    """Totals of a sender."""

    complete: bool
    """Whether the receiver has all files."""
    interrupted: bool
    problem: str | None
    """Why the transfer ended early, if it did."""
    receiver: str
    skipped: list[Skipped]
    began_ns: int
    ended_ns: int
    segments: int
    retransmits: int
    sent_bytes: int
    timeouts: int
    reconnects: int
    srtt_ms: float | None


class ReceiveSession(TypedDict):
    """A session that a receiver has ended."""

    sender: str
    key: str | None
    failure: str | None
    rows: list[ReceivedFile]
    omitted: dict[Verdict, int]
    """Number of files without a row, by result."""


class Progress(TypedDict):
    """Progress of a sender or receiver."""

    name: str
    """The file being transferred."""
    hashing: bool
    files_done: int
    files: int
    bytes_done: int
    bytes: int
    peers: int
    cwnd_bytes: int | None
    srtt_ms: float | None
    pacing_mbps: float | None
    segments: int
    retransmits: int
    reconnects: int


class FailedError(WeirError):
    """A transfer that failed completely or in part."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Result of `send`."""

    files: list[SentFile]
    session: SendSession

    @property
    def missing(self) -> list[SentFile]:
        """The files that the receiver does not have."""
        return [file for file in self.files if file["verdict"] not in {"kept", "already"}]

    @property
    def changed(self) -> list[SentFile]:
        """The files that have changed while they were sent, of which the receiver has a state."""
        return [file for file in self.files if file["changed"] and file not in self.missing]


@documented()
def send(
    files: Sequence[str | PathLike[str]],
    to: str,
    *,
    stack: StackName = None,
    rate: Annotated[
        str | None, Option("Upper limit of the send rate, as in `50mbit`.", metavar="RATE")
    ] = None,
    pacing: Pacing = True,
    window: Window = None,
    initial_window: Annotated[
        int, Option("Initial window in segments; paced above 10.", min=1, max=65535)
    ] = 10,
    mss: Mss = None,
    max_retransmits: Annotated[
        int, Option("Give up after this many consecutive timeouts.", min=0)
    ] = 1000,
    max_wait: Annotated[
        str, Option("Give up after this long without progress.", metavar="TIME")
    ] = "30s",
    key_file: KeyFile = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Sent:
    """Sends files and folders to a receiver and returns the result of each.

    A transfer that a peer or the network ends early returns too: `session["problem"]` says why, and
    the same call continues it.

    Args:
        files: Paths of files and folders.
        to: The receiver, `HOST:PORT`.
        on_progress: Called several times a second. An exception that it raises ends the transfer.

    Raises:
        InputError: an argument is not valid; the message names it.
        FailedError: a file cannot be read, or no receiver answers.
    """
    default_mss = DEFAULT_MSS if key_file is None else DEFAULT_SEALED_MSS
    stack = _stack(stack, window)
    report = on_progress or (lambda _progress: None)
    with _native_errors():
        rows, session = _native.send_files(
            files,
            to,
            stack=stack,
            mss=mss or default_mss,
            initial_window=initial_window,
            rate=rate,
            pacing=pacing,
            max_retransmits=max_retransmits,
            max_wait=max_wait,
            on_event=lambda _kind, progress: report(progress),
            key_file=key_file,
        )
    return Sent(rows, session)


@documented()
def receive(
    dir: Annotated[  # noqa: A002 – as in `tempfile`
        str | PathLike[str], Option("Where files go; made if need be.", metavar="DIR")
    ] = DEFAULT_FOLDER,
    bind: Annotated[
        str, Option("Where to listen; port 0 takes any.", metavar="ADDR:PORT")
    ] = DEFAULT_PORT,
    *,
    once: Annotated[bool, Option("End after the first session.")] = False,
    max_size: Annotated[
        str | None, Option("Refuse larger files.", metavar="SIZE", default_text="free disk space")
    ] = None,
    max_files: Annotated[
        int, Option("Refuse more files of one sender, with folders and links.", min=1)
    ] = 100_000,
    folders: Annotated[bool, Option("Take folders and links, or only files.")] = True,
    quota: Quota = None,
    partial_expiry: PartialExpiry = "168h",
    memory: Memory = "40mb",
    key_file: KeyFile = None,
    key_dir: KeyDir = None,
    on_event: Callable[[str, Mapping[str, Any]], object],
) -> None:
    """Receives files until Ctrl-C, an exception of `on_event`, or with `once` the end of a session.

    Args:
        on_event: Called in this thread with `listening` (its `address`), `progress` (`Progress`,
            several times a second), `warning` (its `text`) and `ended` (`ReceiveSession`).

    Raises:
        InputError: an argument is not valid; the message names it.
        FailedError: the folder or the port cannot be used.
    """
    if key_file is not None and key_dir is not None:
        raise InputError(f"key_file='{key_file}', key_dir='{key_dir}': only one of them")
    with _native_errors():
        _native.receive_files(
            dir,
            bind,
            max_size=max_size,
            max_files=max_files,
            folders=folders,
            quota=quota,
            partial_expiry=partial_expiry,
            memory=memory,
            once=once,
            key_file=key_file,
            key_dir=key_dir,
            on_event=on_event,
        )


class Receiver:
    """A receiver in a thread of its own. It is a context manager, whose end stops it.

    The arguments are those of `receive`. `files` has the result of each file once its session has
    ended. The end of the context waits for no session.
    """

    def __init__(
        self,
        dir: str | PathLike[str] = DEFAULT_FOLDER,  # noqa: A002 – as `receive`
        bind: str = DEFAULT_PORT,
        **options: Any,
    ) -> None:
        """Describes it. `options` are the keywords of `receive` without `on_event`."""
        self._arguments = (Path(dir), bind, options)
        self._thread = threading.Thread(target=self._run, name="weir-receiver", daemon=True)
        self._listening, self._stop = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self.address = ""
        """Where it listens, once it has been started."""
        self.files: list[ReceivedFile] = []
        """Files of the sessions that have ended."""
        self.warnings: list[str] = []
        """What its operator should look at."""

    def __enter__(self) -> Self:
        """Starts it.

        Raises:
            InputError, FailedError: as `receive` does.
        """
        self._thread.start()
        self._listening.wait()
        if not self.address and self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        folder, bind, options = self._arguments
        try:
            receive(folder, bind, on_event=self._on_event, **options)
        except _StopReceivingError:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._listening.set()

    def _on_event(self, kind: str, facts: Mapping[str, Any]) -> None:
        if kind == "listening":
            self.address = facts["address"]
            self._listening.set()
        elif kind == "warning":
            self.warnings.append(facts["text"])
        elif kind == "ended":
            self.files += facts["rows"]
        if self._stop.is_set():
            raise _StopReceivingError


class _StopReceivingError(Exception):
    """Ends a receiver."""


@contextmanager
def _native_errors() -> Iterator[None]:
    """Turns errors of the native module into input errors and transfer errors."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
    except _native.TransferError as error:
        raise FailedError(str(error)) from error


def _stack(stack: str | None, window: int | None) -> str:
    """Returns the stack with its fixed window, if given."""
    if window is None:
        return stack or DEFAULT_STACK
    if stack == "udp":
        raise InputError(f"window='{window}': udp has none; rate limits it")
    _, recovery, controller, _ = _native.stack_parts(stack or "none")
    if recovery in {"go-back-n", "selective-repeat"}:
        return f"{recovery}({window})/{controller}"
    if controller == "none":
        return f"{recovery}/none({window})"
    raise InputError(
        f"window='{window}': '{stack}' computes its window; a fixed one is allowed with the "
        "controller none or the recoveries go-back-n and selective-repeat"
    )
