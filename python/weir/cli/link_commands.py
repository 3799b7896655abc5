"""`weir link`: what it runs: a server at the far end, and commands in a guest in virtual time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from weir.base.errors import InputError
from weir.base.options import NETWORK, Option, flag
from weir.base.options import of as known
from weir.cli import options, output
from weir.guest.options import GROUP, GuestOptions
from weir.links.link import Link
from weir.processes import ready as readiness
from weir.processes.outputs import Ended
from weir.processes.ready import Ready

if TYPE_CHECKING:
    from weir.guest.programs import Done

Virtual = Annotated[bool, options.virtual("Run", GROUP)]
Server = Annotated[
    str | None,
    Option(
        "Command at the far end of the link, started before; for sh.", NETWORK, metavar="COMMAND"
    ),
]
ReadyOption = Annotated[
    str | None,
    Option(
        "When the server is ready: port:5201 (open), line:TEXT (printed) or delay:1s (default).",
        NETWORK,
        metavar="CONDITION",
    ),
]

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


def check(guest: GuestOptions, command: list[str] | None, *, virtual: bool) -> None:
    """Refuses options of a guest without `--virtual`, and that without a command.

    Raises:
        InputError: there is one.
    """
    if virtual and not command:
        raise InputError("--virtual: give a command; a shell in virtual time would read nothing")
    if virtual:
        return
    for name in known(GuestOptions):
        if getattr(guest, name) != getattr(GuestOptions, name):
            raise InputError(f"{flag(name)} needs --virtual")


def run(
    command: list[str],
    far: FarEnd | None,
    link: Link,
    guest: GuestOptions,
    pcap: Path | None,
    *,
    quiet: bool,
) -> Done:
    """Runs the commands; the client's output is ours, the server's goes to stderr by lines."""
    from weir.guest import programs
    from weir.kernel import cache

    if guest.kernel is not None:
        cache.choose(guest.kernel, virtual_tsc=guest.virtual_tsc)
    shown = OutputPrinter(quiet=quiet)
    done = programs.run(
        command,
        server=None if far is None else ["sh", "-c", far.command],
        ready=readiness.DEFAULT if far is None else far.ready,
        link=link,
        seed=link.seed,
        pcap=pcap,
        show=shown.show,
        **guest.settings(),
    )
    shown.end()
    if done.server is not None:
        note_server(done.server, quiet=quiet)
    if done.files and guest.out is None:
        text = f"link: {len(done.files)} files written are lost without --out: {done.files[0]}"
        output.note(text + (", …" if len(done.files) > 1 else ""), quiet=quiet)
    output.note(f"link: {done.virtual_s:.1f} s of virtual time in {done.wall_s:.1f} s", quiet=quiet)
    return done


class OutputPrinter:
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
