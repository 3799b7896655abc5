"""`weir link`: what it runs: a server at the far end, and commands in a guest in virtual time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weir._native import parse_quantity
from weir.base.errors import InputError
from weir.base.options import NETWORK
from weir.cli import output, path
from weir.links.emulation import seconds
from weir.links.options import LinkOptions
from weir.processes import ready as readiness
from weir.processes.outputs import Ended
from weir.processes.ready import Ready

if TYPE_CHECKING:
    from weir.guest.programs import Done

PANEL = "Virtual time"

Virtual = Annotated[
    bool,
    typer.Option(
        "--virtual",
        help="Run in a guest in virtual time, without root. `weir kernel build` builds its kernel.",
        rich_help_panel=PANEL,
    ),
]
Server = Annotated[
    str | None,
    path.option("Command at the far end of the link, started before; for sh.", "COMMAND", NETWORK),
]
ReadyOption = Annotated[
    str | None,
    path.option(
        "When the server is ready: port:5201 (open), line:TEXT (printed) or delay:1s (default).",
        "CONDITION",
        NETWORK,
    ),
]
Out = Annotated[
    Path | None,
    path.option("Keep what was written in the working folder, in this folder.", "DIR", PANEL),
]
TimeLimit = Annotated[
    str | None,
    path.option("End the commands after this virtual time: 10min by default.", "TIME", PANEL),
]
WallLimit = Annotated[str | None, path.option("End the guest after this real time.", "TIME", PANEL)]
Memory = Annotated[str | None, path.option("Memory of the guest: 768mb by default.", "SIZE", PANEL)]
KernelOption = Annotated[
    str | None, path.option("Version of the guest kernel, as in 6.12.", "VERSION", PANEL)
]

Date = Annotated[
    str | None,
    path.option("The guest's date, as in 2026-11-25: 2017-07-14 by default.", "DATE", PANEL),
]

VirtualTsc = Annotated[
    bool,
    typer.Option(
        "--virtual-tsc",
        help="The instructions rdtsc and rdtscp read virtual time; all programs are slower.",
        rich_help_panel=PANEL,
    ),
]

_NAMES = ("out", "time-limit", "wall-limit", "memory", "kernel", "date", "virtual-tsc")
_TIME_LIMIT = "10min"
_MEGABYTE = 10**6
_FIRST_YEAR, _LAST_YEAR = 1971, 2200
_STDOUT = 1


@dataclass(frozen=True, slots=True)
class FarEnd:
    """A server at the far end."""

    command: str
    """For `sh`."""
    ready: Ready

    @classmethod
    def of(cls, server: str | None, ready: str | None) -> FarEnd | None:
        """Reads the options; None without a server.

        Raises:
            InputError: there is a condition without a server, or it cannot be read.
        """
        if server is None:
            if ready is not None:
                raise InputError(f"--ready {ready}: there is no --server")
            return None
        return cls(server, readiness.DEFAULT if ready is None else Ready.parse(ready))


@dataclass(frozen=True, slots=True)
class Guest:
    """The options that need `--virtual`."""

    far: FarEnd | None
    out: Path | None
    time_limit: str | None
    wall_limit: str | None
    memory: str | None
    kernel: str | None
    date: str | None
    virtual_tsc: bool

    def check(self, command: list[str] | None, *, virtual: bool) -> None:
        """Refuses them without `--virtual`, and that without a command."""
        if virtual and not command:
            message = "--virtual: give a command; a shell in virtual time would read nothing"
            raise InputError(message)
        if virtual:
            return
        given = (self.out, self.time_limit, self.wall_limit, self.memory, self.kernel, self.date)
        values = (*given, self.virtual_tsc)
        for name in (name for name, value in zip(_NAMES, values, strict=True) if value):
            raise InputError(f"--{name} needs --virtual")

    def run(
        self,
        command: list[str],
        link: LinkOptions,
        seed: int,
        pcap: Path | None,
        *,
        quiet: bool,
    ) -> Done:
        """Runs the commands; the client's output is ours, the server's goes to stderr by lines."""
        from weir.guest import programs
        from weir.kernel import cache

        if self.kernel is not None:
            cache.choose(self.kernel, virtual_tsc=self.virtual_tsc)
        limit = None if self.wall_limit is None else seconds("--wall-limit", self.wall_limit)
        shown = Shown(quiet=quiet)
        done = programs.run(
            command,
            server=None if self.far is None else ["sh", "-c", self.far.command],
            ready=readiness.DEFAULT if self.far is None else self.far.ready,
            link=link,
            seed=seed,
            time_limit_s=seconds("--time-limit", self.time_limit or _TIME_LIMIT),
            wall_limit_s=limit,
            memory_mb=_megabytes(self.memory),
            start_s=_seconds_of(self.date),
            virtual_tsc=self.virtual_tsc,
            out=self.out,
            pcap=pcap,
            show=shown.show,
        )
        shown.end()
        if done.server is not None:
            note_server(done.server, quiet=quiet)
        if done.files and self.out is None:
            text = f"link: {len(done.files)} files written are lost without --out: {done.files[0]}"
            output.note(text + (", …" if len(done.files) > 1 else ""), quiet=quiet)
        took = f"{done.virtual_s:.1f} s of virtual time in {done.wall_s:.1f} s"
        output.note(f"link: {took}", quiet=quiet)
        return done


class Shown:
    """Passes outputs on while the commands run."""

    def __init__(self, *, quiet: bool) -> None:
        """Without a line so far."""
        self._quiet = quiet
        self._line = b""

    def show(self, name: str, stream: int, new: bytes) -> None:
        """Writes new output: that of the server to stderr, by lines with a prefix."""
        if name == "client":
            to = sys.stdout if stream == _STDOUT else sys.stderr
            to.buffer.write(new)
            to.flush()
            return
        *lines, self._line = (self._line + new).split(b"\n")
        for line in lines:
            output.note(f"server: {line.decode(errors='replace')}", quiet=self._quiet)

    def end(self) -> None:
        """Writes what has no end of line."""
        if self._line:
            output.note(f"server: {self._line.decode(errors='replace')}", quiet=self._quiet)


def note_server(ended: Ended, *, quiet: bool) -> None:
    """Says how the server ended."""
    code = ended.code
    how = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
    output.note(f"link: server {how}", quiet=quiet)


def _seconds_of(date: str | None) -> int:
    """The beginning of a day (UTC), in seconds since 1970; the usual date without one.

    Raises:
        InputError: it is no date, or the guest's clock cannot have it.
    """
    from weir.guest.machine import START_S

    if date is None:
        return START_S
    try:
        day = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise InputError(f"--date {date}: write YEAR-MONTH-DAY, as 2026-11-25") from None
    if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise InputError(f"--date {date}: use a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    return int(day.timestamp())


def _megabytes(text: str | None) -> int:
    """The guest's memory in MB.

    Raises:
        InputError: it is no size, or too small for a guest.
    """
    from weir.guest.machine import LEAST_MEMORY_MB, MEMORY_MB

    if text is None:
        return MEMORY_MB
    try:
        size = parse_quantity("size", text)
    except ValueError as error:
        raise InputError(f"--memory {text}: {error}") from None
    if size < LEAST_MEMORY_MB * _MEGABYTE:
        raise InputError(f"--memory {text}: a guest needs {LEAST_MEMORY_MB}mb or more")
    return int(size // _MEGABYTE)
