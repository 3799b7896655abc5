"""Which controllers in Python may run.

A scenario can hold the text of a program, in `[controllers]` or in a file next to it, and so can
the manifest of a result directory. Such a program would run with the user's rights, so the native
module asks `refuse_untrusted` before it executes one. Allowed are files that the user has named as
a stack himself, and what he allows with `--trust-controllers`, at a prompt, or with
`trust_controllers=True`. A permission is for one text, by its SHA-256, and lasts as long as the
process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

from weir.base.options import MEASUREMENT, Option
from weir.controllers.congestion import LoadError

TrustControllers = Annotated[
    bool,
    Option(
        "Run Python controllers that the scenario or the results contain or name. "
        "They are programs and run with your permissions.",
        MEASUREMENT,
    ),
]
Decide = Callable[[str], bool]
"""Says whether a program may run, which the text names with its SHA-256."""

_trusted: set[str] = set()
"""SHA-256 of the texts that may run."""


def trust_all(_program: str) -> bool:
    """Lets every program run."""
    return True


_decide: ContextVar[Decide] = ContextVar("decide", default=lambda _program: False)


@contextmanager
def deciding(decide: Decide | None) -> Iterator[None]:
    """Asks `decide` about unknown programs within the block; None leaves that as it is."""
    token = _decide.set(decide or _decide.get())
    try:
        yield
    finally:
        _decide.reset(token)


def refuse_untrusted(file: str, text: str) -> None:
    """Returns if a text of a scenario may be executed.

    Raises:
        LoadError: it may not.
    """
    digest = sha256(text)
    if digest in _trusted:
        return
    program = f"{file} (SHA-256 {digest})"
    if not _decide.get()(program):
        raise LoadError(
            f"{program} is a program of a scenario or of results, which would run with your "
            "rights: read it, then allow it with --trust-controllers, in Python with "
            "trust_controllers=True"
        )
    _trusted.add(digest)


def trust_named(controllers: Mapping[str, str], stacks: Iterable[str]) -> None:
    """Trusts the files that the user has named in `stacks`, as in `newreno/mine.py:Mine`.

    A scenario may hold another text under the name of such a file, or have one of that name next to
    it. Trusted is a text only if the user's own file, seen from the working directory, has it.
    """
    named = [stack.partition(":")[0] for stack in stacks]
    for file, text in controllers.items():
        if any(f"/{name}".endswith(f"/{file}") for name in named) and _is_text_of(file, text):
            _trusted.add(sha256(text))


def trusted_in(controllers: Mapping[str, str]) -> frozenset[str]:
    """Of the texts of a scenario those that may run, for another process: see `trust`."""
    return frozenset(map(sha256, controllers.values())) & _trusted


def trust(digests: Iterable[str]) -> None:
    """Trusts the texts with these SHA-256."""
    _trusted.update(digests)


def sha256(text: str) -> str:
    """The SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _is_text_of(file: str, text: str) -> bool:
    path, content = Path(file), text.encode()
    try:
        if not path.is_file():
            return False
        with path.open("rb") as opened:
            return opened.read(len(content) + 1) == content
    except OSError:
        return False
