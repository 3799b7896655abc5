"""Programs that a person names on the command line, and our transport as programs next to them.

Both become definition files in the cache folder, named after their text: `contender:program-…`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from weir import _native
from weir.base import bounded, cache
from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.contenders import definition

PREFIX = "program-"
"""What the names of these definitions begin with."""
RECEIVED = "received"
"""Below a flow's folder for outputs: the file that the server received."""

_PLACEHOLDERS = {
    "host": "{server_ip}",
    "port": "{port}",
    "file": "{file}",
    "bytes": "{bytes}",
    "received": f"{{out}}/{RECEIVED}",
}
"""What commands may contain in braces, and what it is in a definition."""
_NEEDED = {"client": ("host", "port", "file"), "server": ("port", "received")}
_SCRIPT = re.compile(r"[\w./-]+\.(py|sh|jar)")
"""A word that is a program's file, and no path of a run: it must exist before."""
_MOST_BYTES = 64 << 20
"""Of a file that is part of a program: larger ones are not hashed."""


def file_of(name: str) -> Path:
    """The definition file of a name."""
    return cache.home() / "contenders" / f"{name}.toml"


def define(client: str, server: str) -> str:
    """Writes the definition of a client that sends `{file}` to a server; returns its stack.

    Words that name a file of the working directory become paths: programs run in another folder.

    Raises:
        InputError: a command is empty, or lacks a placeholder.
    """
    commands = {end: _words(end, text) for end, text in (("client", client), ("server", server))}
    about = f"a program: {client}"
    return _written(about, "program", commands["client"], commands["server"], RECEIVED)


def ours(stack: str) -> str:
    """Writes the definition of `weir send` and `weir recv` with one of our stacks."""
    weir = [sys.executable, "-m", "weir"]
    client = [*weir, "send", "{file}", "{server_ip}:{port}", "--stack", stack, "--quiet"]
    server = [*weir, "recv", "--bind", "{server_ip}:{port}", "--dir", "{out}", "--quiet"]
    return _written(f"weir send --stack {stack}", "weir", client, server, "f")


def is_ours(stack: str) -> bool:
    """Whether a stack is our transport with a recovery scheme that the kernel does not have."""
    project, scheme, _, _ = _native.stack_parts(stack)
    return project == "weir" and scheme.partition("(")[0] != "rack"


def _words(end: str, text: str) -> list[str]:
    option = f"--{end} {text!r}"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    if not words:
        raise InputError(f"{option}: a program and its arguments are missing")
    for name in _NEEDED[end]:
        if not any(f"{{{name}}}" in word for word in words):
            needed = ", ".join(f"{{{known}}}" for known in _NEEDED[end])
            raise InputError(f"{option}: {{{name}}} is missing; its arguments must have {needed}")
    for word in words:
        for name in definition.names_in(word):
            if name not in _PLACEHOLDERS:
                known = ", ".join(f"{{{known}}}" for known in _PLACEHOLDERS)
                raise InputError(f"{option}: {{{name}}} stands for nothing; allowed: {known}")
        if _SCRIPT.fullmatch(word) and not Path(word).is_file():
            raise InputError(f"{option}: {word}: there is no such file")
    return [_placed(word) for word in words]


def _placed(word: str) -> str:
    """A word with its placeholders, or the path of the file that it names."""
    if Path(word).is_file():
        return str(Path(word).absolute())
    return definition.filled(word, _PLACEHOLDERS.get)


def _written(
    about: str, name: str, client: Sequence[str], server: Sequence[str], received: str
) -> str:
    lines = [
        f"name = {_toml(name)}",
        f"about = {_toml(about)}",
        'transport = "udp"',
        'sender = "client"',
        "[server]",
        f"run = {_toml(list(server))}",
        'ready = "port:{port}"',
        *_environment(name, "server"),
        "[client]",
        f"run = {_toml(list(client))}",
        "file = []",
        *_environment(name, "client"),
        "[collect]",
        f"received = {_toml(received)}",
        *_hashes((*client, *server)),
    ]
    text = "\n".join([*lines, ""])
    definition.load(text, about)
    own = f"{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    path = file_of(own)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return f"contender:{own}"


def _toml(value: object) -> str:
    """JSON's texts and lists of texts are TOML's too."""
    return json.dumps(value, ensure_ascii=False)


def _environment(name: str, end: str) -> list[str]:
    """Our own programs are this version of Weir, wherever it was imported from."""
    if name != "weir":
        return []
    package = Path(__file__).parents[2]
    return [f"[{end}.environment]", f"PYTHONPATH = {_toml(str(package))}"]


def _hashes(words: Sequence[str]) -> list[str]:
    """The files of the programs: a changed one is another experiment."""
    files = [Path(word) for word in dict.fromkeys(words) if Path(word).is_absolute()]
    return [
        f"# {file} has SHA-256 {hashlib.sha256(bounded.read_bytes(file)).hexdigest()}"
        for file in files
        if file.suffix and file.is_file() and file.stat().st_size <= _MOST_BYTES
    ]
