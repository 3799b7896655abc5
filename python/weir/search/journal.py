"""The answers of a search on disk, one line each, so that a killed one goes on where it was.

A search that is resumed asks the same questions again and finds their answers here. So its result
is that of a search without an interruption. Where time is the budget, the time spent at the end of
each batch is kept too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from weir import _native
from weir.base.disk import write_errors, write_text
from weir.base.errors import InputError

_FILE = "journal.jsonl"
ANSWER = "answer.json"
"""The result; where it is missing the search is not over."""


@dataclass(frozen=True)
class Answer:
    """The values of a question, or why there are none."""

    values: Sequence[float | None]
    error: str = ""

    @property
    def value(self) -> float | None:
        """The first of them."""
        return self.values[0] if self.values else None


def _age(path: Path) -> tuple[str, int, str]:
    """What to sort by: the time in the name, and of equal ones the number behind it."""
    return path.name.partition("Z")[0], len(path.name), path.name


class Journal:
    """The answers of one search, in a directory of its own."""

    def __init__(self, path: Path) -> None:
        """Opens the one in an existing directory; the last line of its file may be cut off."""
        self.path = path
        self.answers: dict[str, Answer] = {}
        self.elapsed: list[float] = []
        """The time spent at the end of each batch, in seconds."""
        file = path / _FILE
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        if whole != lines:
            write_text(file, "".join(whole).rstrip("\n"))
        for line in filter(str.strip, whole):
            self._read(line)
        self._file: IO[str] | None = None

    @classmethod
    def open(cls, root: Path, verb: str, identity: Mapping[str, Any], *, resume: bool) -> Journal:
        """A new directory `root/VERB/TIME-HASH`, or the newest unfinished one of the same search.

        Raises:
            InputError: there is nothing to resume.
            StoreError: it cannot be written.
        """
        text = json.dumps({"version": _native.version(), **identity}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        home = root / verb
        if resume:
            unfinished = (one for one in home.glob(f"*-{digest}*") if not (one / ANSWER).exists())
            found = sorted(unfinished, key=_age)
            if not found:
                raise InputError(
                    f"nothing to resume: {home} holds no unfinished search of exactly this command"
                )
            return cls(found[-1])
        stamp = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{digest}"
        path, number = home / stamp, 1
        with write_errors(root):
            while path.exists():
                number += 1
                path = home / f"{stamp}-{number}"
            path.mkdir(parents=True)
        return cls(path)

    def keep(self, key: str, answer: Answer) -> None:
        """Adds an answer."""
        self.answers[key] = answer
        self._write({"key": key, "values": list(answer.values), "error": answer.error})

    def end_batch(self, number: int, elapsed_s: float) -> float:
        """Brings a batch to the disk; returns the time spent until then, also by earlier calls."""
        if number < len(self.elapsed):
            return self.elapsed[number]
        self.elapsed.append(elapsed_s)
        self._write({"elapsed_s": elapsed_s}, is_last=True)
        return elapsed_s

    def finish(self, answer: Mapping[str, Any]) -> None:
        """Writes the result."""
        self.close()
        write_text(self.path / ANSWER, json.dumps(answer, indent=2, ensure_ascii=False))

    def close(self) -> None:
        """Writes what is in memory."""
        if self._file is not None:
            self._file.close()

    def _write(self, row: Mapping[str, Any], *, is_last: bool = False) -> None:
        with write_errors(self.path):
            if self._file is None:
                self._file = (self.path / _FILE).open("a", encoding="utf-8")
            self._file.write(json.dumps(row) + "\n")
            if is_last:
                self._file.flush()
                os.fsync(self._file.fileno())

    def _read(self, line: str) -> None:
        try:
            row = json.loads(line)
        except ValueError:
            file = self.path / _FILE
            raise InputError(f"{file}: damaged: {line[:40]!r} is no line of a journal") from None
        if "elapsed_s" in row:
            self.elapsed.append(float(row["elapsed_s"]))
        else:
            self.answers[row["key"]] = Answer(row["values"], row["error"])
