"""A server for one test, started over ssh and ended with it.

OpenSSH's client starts `weir test --server --key-file -` there. The key is made for this test, and
goes to the server's standard input. The server listens on a free port. It ends when that input
ends: when the test is over, or the ssh connection is lost.
"""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Annotated, cast
from urllib.parse import SplitResult, urlsplit

from weir.base.errors import InputError, WeirError
from weir.base.options import Option
from weir.base.plain import plain
from weir.probes.channel import KEY_BYTES

SCHEME = "ssh://"
SERVE = ("test", "--server", "--key-file", "-", "--listen", ":0")
"""What is started there, after the program's name."""

_GROUP = "Over ssh"
_LISTENING = re.compile(r"listening on \S*:(?P<port>\d+), TCP and UDP")
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
NOT_FOUND = 127
"""Exit code of a shell that finds no such program."""
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a server waits, and its key."""

    host: str
    key: bytes


@contextmanager
def started(
    url: str,
    *,
    ssh: Annotated[
        str, Option("With `ssh://`: OpenSSH's client and its options.", _GROUP, metavar="COMMAND")
    ] = "ssh",
    remote: Annotated[
        str, Option("With `ssh://`: Weir on that host.", _GROUP, metavar="PROGRAM")
    ] = "weir",
) -> Iterator[Remote]:
    """Starts a server on the host of `ssh://[USER@]HOST[:PORT]`, and ends it.

    Raises:
        InputError: the URL is none, or there is no such client.
        WeirError: no server started there; the reason is ssh's, or the server's.
    """
    client, options = shlex.split(ssh), _target(split(url))
    name = _name([*client, "-G", *options])
    there = shlex.join([*shlex.split(remote), *SERVE])
    key = secrets.token_bytes(KEY_BYTES)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*client, *options, there], stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe
    )
    stdin, stderr = cast("tuple[IO[bytes], IO[bytes]]", (process.stdin, process.stderr))
    try:
        with suppress(BrokenPipeError):  # its reason is on stderr
            stdin.write(key.hex().encode() + b"\n")
            stdin.flush()
        port = _port(process, stderr, url, remote)
        yield Remote(f"[{name}]:{port}" if ":" in name else f"{name}:{port}", key)
    finally:
        with suppress(OSError):
            stdin.close()  # which ends the server, and ssh with it
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()


def client_command(url: str, command: str, there: Sequence[str]) -> list[str]:
    """The command that runs `there` on the host of a URL, with OpenSSH's client `command`.

    Raises:
        InputError: the URL is none.
    """
    return [*shlex.split(command), *_target(split(url)), shlex.join(there)]


def _target(parts: SplitResult) -> list[str]:
    host = f"{parts.username}@{parts.hostname}" if parts.username else str(parts.hostname)
    return [*_OPTIONS, *(["-p", str(parts.port)] if parts.port else []), "--", host]


def split(url: str) -> SplitResult:
    """The parts of `ssh://[USER@]HOST[:PORT]`.

    Raises:
        InputError: it is something else.
    """
    try:
        parts = urlsplit(url)
        is_host = parts.scheme == "ssh" and bool(parts.hostname)
        is_host = is_host and not (parts.path or parts.query or parts.password)
        _ = parts.port
    except ValueError:
        is_host = False
    if not is_host or str(parts.hostname).startswith("-"):
        raise InputError(f"HOST {url}: write it as ssh://[USER@]HOST[:PORT]")
    return parts


def _name(command: Sequence[str]) -> str:
    """The host's name or address as ssh's configuration has it."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"--ssh: {command[0]}: {error.strerror}") from None
    found = re.search(r"^hostname (\S+)$", done.stdout, re.MULTILINE)
    if found is None:
        raise InputError(f"--ssh: {plain(_last(done.stderr) or 'no OpenSSH client')}")
    return found[1]


def _port(process: subprocess.Popen[bytes], stream: IO[bytes], url: str, program: str) -> int:
    """Waits for the server's first line; its later ones are discarded."""
    said = ""
    for line in stream:
        text = line.decode(errors="replace").strip()
        found = _LISTENING.fullmatch(text)
        if found:
            threading.Thread(target=lambda: [None for _ in stream], daemon=True).start()
            return int(found["port"])
        said = text or said
    code = process.wait()
    if code == NOT_FOUND:
        raise WeirError(f"{url}: there is no {program} there; name the program with --remote")
    raise WeirError(f"{url}: no server started there: {plain(said) or f'exit code {code}'}")


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
