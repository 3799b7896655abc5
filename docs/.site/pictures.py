"""Draws the pictures of the documentation again: `python docs/.site/pictures.py [WORD]`.

A picture says in a comment what it is (`<!-- picture: FILE is FIGURE -->`), and the console block
below it which command draws that. With a word only files that have it in their name are drawn.
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

DOCS = Path(__file__).parents[1]

_PICTURE = re.compile(
    r"^<!-- picture: (?P<file>\S+) is (?P<figure>\S+) -->\n!\[[^\]]+\]\((?P=file)\)\n\n"
    r"```console\n\$ weir (?P<command>[^\n]+)\n```$",
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
    for page in sorted(DOCS.rglob("*.md")):
        for found in _PICTURE.finditer(page.read_text(encoding="utf-8")):
            words = tuple(shlex.split(found["command"]))
            yield Picture(page.parent / found["file"], found["figure"], words)


def draw(wanted: str) -> None:
    """Carries out each command once and takes the figures from its report."""
    weir = (sys.executable, "-m", "weir.cli")
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
