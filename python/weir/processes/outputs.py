"""What commands print, in files that are followed while they run, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

Show = Callable[[str, int, bytes], None]
"""Called with new output: name of the command, 1 (standard output) or 2 (standard error), text."""

Files = tuple[Path, Path]
"""A command's standard output and error."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A command at its end."""

    code: int
    """Its exit code, or the negative number of the signal that ended it."""
    stdout: bytes
    stderr: bytes

    @classmethod
    def read(cls, files: Files, code: int) -> Ended:
        """With all that it has printed."""
        out, err = (path.read_bytes() for path in files)
        return cls(code, out, err)


@dataclass(slots=True)
class Follower:
    """Passes on what commands print."""

    files: Mapping[str, Files]
    show: Show
    _seen: dict[Path, int] = field(default_factory=dict)
    """Bytes of each file that have been passed on."""

    def poll(self) -> None:
        """Passes on what is new since the last call."""
        for name, files in self.files.items():
            for stream, path in enumerate(files, start=1):
                with suppress(FileNotFoundError), path.open("rb") as file:
                    file.seek(self._seen.get(path, 0))
                    new = file.read()
                    self._seen[path] = file.tell()
                    if new:
                        self.show(name, stream, new)
