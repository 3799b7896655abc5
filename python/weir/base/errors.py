"""Errors and their exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class WeirError(Exception):
    """Any failure that is reported in one line and without a traceback."""

    exit_code = 1


class InputError(WeirError):
    """Invalid input; nothing has been run."""

    exit_code = 2


class RunError(WeirError):
    """At least one run failed; the others are on disk."""


class ClusterError(WeirError):
    """A cluster failed; the finished runs are on disk."""


class StoreError(WeirError):
    """Results cannot be written or read."""


class StoppedError(WeirError):
    """Someone pressed Ctrl-C."""

    exit_code = 130


class RunInterruptedError(StoppedError):
    """Ctrl-C during runs; the finished ones have been kept in `path`."""

    def __init__(self, path: Path | None, done: int, total: int) -> None:
        self.path, self.done, self.total = path, done, total
        if path is None:
            text = "interrupted before the first run ended; nothing was written"
        else:
            text = (
                f"interrupted after {done} of {total} runs, which are kept in {path}; "
                "give the same command with --resume to go on"
            )
        super().__init__(text)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Returns the message about an unknown name, with the nearest and all known names."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}? There" if near else "there"
    return f"there is no {kind} {name!r}; {hint} are: {', '.join(names)}"
