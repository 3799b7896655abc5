"""Draws the pictures of the documentation again: `python docs/.site/pictures.py [WORD]`.

A comment names the picture and its figure in a report (`<!-- picture: FILE is FIGURE -->`), and the
first command of the console block below draws it. With WORD, draws only files whose name has it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_PICTURE = re.compile(
    r"^<!-- picture: (?P<file>\S+) is (?P<figure>\S+) -->\n!\[[^\]]+\]\((?P=file)\)\n\n"
    r"```console[^\n]*\n\$ weir (?P<command>[^\n]+)\n",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Picture:
    """A file in the documentation, and the figure of a command's report that it is."""

    file: Path
    figure: str
    command: tuple[str, ...]


def pictures() -> Iterator[Picture]:
    """All pictures of all pages."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for found in _PICTURE.finditer(page.read_text(encoding="utf-8")):
            words = tuple(shlex.split(found["command"]))
            yield Picture(page.parent / found["file"], found["figure"], words)


def draw(wanted: str) -> None:
    """Runs each command once and takes the figures from its report."""
    weir = (sys.executable, "-m", "weir")
    by_command: dict[tuple[str, ...], list[Picture]] = {}
    for picture in pictures():
        if wanted in picture.file.name:
            by_command.setdefault(picture.command, []).append(picture)
    for command, drawn in by_command.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*weir, *command, "--out", folder, "--quiet"], check=True)
            (latest,) = Path(folder).glob("*/latest")
            subprocess.run([*weir, "report", str(latest.resolve()), "--png"], check=True)
            for picture in drawn:
                picture.file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(latest / picture.figure, picture.file)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "")
