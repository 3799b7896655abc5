"""The prose of documents and of `--help`, sentence by sentence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text
from typer.main import get_command

from weir.cli.app import app
from weir.cli.help import Group

_GENERATED = re.compile(
    r"<!-- (?P<what>[\w ]+): written by a test.*?<!-- end of (?P=what) -->", re.DOTALL
)
_CODE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"<!--.*?-->|</?\w[^>]*>|\[(?P<text>[^\]]*)\]\([^)]*\)|[*]", re.DOTALL)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|et al|vs|cf|No|Fig)\.$")


def paragraphs(document: Path) -> Iterator[str]:
    """Paragraphs, items, headings and cells of a Markdown document, without blocks of code.

    What a test generates from sources is left out: its words are those of the sources.
    """
    text = _GENERATED.sub("", document.read_text(encoding="utf-8"))
    text = _MARKUP.sub(lambda found: found["text"] or "", _CODE.sub("", text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-+#|]|\d+\.)\s?)|(?<!\\)\|", text):
        if paragraph := " ".join(block.split()).lstrip("-+# "):
            yield paragraph


def helps() -> Iterator[tuple[str, str]]:
    """Every paragraph of every `--help`, each with the command and option that it explains."""
    yield from _helps(get_command(app), "weir")


def _helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    about = Text.from_markup(inspect.cleandoc(command.help or "")).plain
    for paragraph in about.split("\n\n"):
        yield path, " ".join(paragraph.split())
    for parameter in command.params:
        if text := getattr(parameter, "help", None):
            yield f"{path} {parameter.opts[0]}", " ".join(text.split())
    if isinstance(command, Group):
        context = command.make_context(path, [], resilient_parsing=True)
        for name in command.list_commands(context):
            yield from _helps(command.get_command(context, name), f"{path} {name}")


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph; a colon or semicolon ends none."""
    begun = ""
    for part in re.split(r"(?<=[.!?])[\"'»)]*\s+", paragraph):
        begun = f"{begun} {part}".lstrip()
        if not _ABBREVIATION.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun
