"""The prose of documents and of `--help`, sentence by sentence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text
from typer.main import get_command

from weir.cli.app import app
from weir.cli.help import Group
from weir.report.model import ReportSection

_GENERATED = re.compile(
    r"<!-- (?P<what>[\w ]+): written by a test.*?<!-- end of (?P=what) -->", re.DOTALL
)
_CODE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"<!--.*?-->|</?\w[^>]*>|\[(?P<text>[^\]]*)\]\([^)]*\)|[*]", re.DOTALL)
_NAMED = re.compile(
    r"“[^”]*”"
    r"|\bRFC \d+|\b802\.11\w*"
    r"|\b\d-flow|(?<=[A-Za-z.,] )(?:19|20)\d\d(?=[;:,.)])|\((?:19|20)\d\d\)"
    r"|(?:§|\b(?:[Ss]ources?|[Rr]eports?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Pp]arts?) )\d[\d.]*"
    r"(?:(?:, | and | to )\d[\d.]*)*"
)
_NUMBER = re.compile(r"(?<![\w.])(?<!\w-)\d[\d,]*(?:\.\d+)?")
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


def numbers(sentence: str) -> int:
    """How many numbers a reader meets in a sentence.

    Each end of an interval counts, so a mean with its interval is three. Digits that belong to a
    name do not: RFC 9438, 802.11, source 002, figures 18 and 19, §3.4, 2-flow, the year of a
    publication, what follows a letter as in P99 or ns-2, and all that stands in “quotation marks”,
    as the name of a row or of a table does.
    """
    return len(_NUMBER.findall(_NAMED.sub("", sentence)))


def crowded(texts: Iterable[str], most: int = 3) -> list[str]:
    """The sentences with more numbers than a reader can hold."""
    own = (sentence for text in texts for sentence in sentences(text))
    return [sentence for sentence in own if numbers(sentence) > most]


def report_texts(
    sections: Sequence[ReportSection], cells: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """What else a study's report says: text, notes and captions, and notes on cells.

    A note that stands in the place of a value, as “1 of 2 crossed within 19 s”, is a value.
    """
    for section in sections:
        yield from (*section.paragraphs, *section.points, *section.warnings)
        for table in section.tables:
            yield table.note
        for figure in section.figures:
            yield figure.caption
    for found in (c for c in cells if c.get("ours", {"mean": 0})["mean"] is not None):
        yield from (str(found["note"]), str(found.get("measured", "")))
