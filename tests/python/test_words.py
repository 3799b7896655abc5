"""Documents and `--help` are in plain words: no word of `words.toml`, no long sentence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from prose import helps, paragraphs, sentences

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("crates/*/*.md")),
    *sorted(ROOT.glob("adapters/*/*.md")),
]
"""Pages where no word of the list may be."""

SOURCES = (
    "adapters",
    "bench",
    *(f"crates/{path.name}" for path in sorted((ROOT / "crates").iterdir()) if path.is_dir()),
    "docs/.site",
    "fuzz",
    "python",
    "tests/python",
    "web/src",
    "web/tests",
)
"""Folders of sources where none may be, in names, comments and texts."""

LISTS = {Path(__file__), Path(__file__).with_name("words.toml")}
"""The files that quote the words."""

SHORT = [ROOT / "README.md", ROOT / "docs/README.md"]
"""Documents whose sentences are short."""

MOST_WORDS = 30
"""In a sentence of `SHORT` and of `--help`."""


_LISTS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_WORDS = {
    re.compile(rf"(?<![^\W_])(?:{word})(?![^\W_])", re.I): use
    for word, use in _LISTS["words"].items()
}
"""Whole words, also those that are joined by `_` in a name."""
_NAMES = {re.compile(rf"\b{name}\b"): use for name, use in _LISTS["names"].items()}
_ANY = re.compile(
    rf"(?<![^\W_])(?i:{'|'.join(_LISTS['words'])})(?![^\W_])|\b(?:{'|'.join(_LISTS['names'])})\b"
)
"""Any of them: a search for each by itself takes ten times as long."""
_STREAM = re.compile(r'\b(?:stream|Machine::new)\([^"\n]*"[^"\n]*"')
"""The name of a random stream, which may not change: the numbers depend on it."""
_QUOTED = re.compile(r"`[^`]*`")
"""Inline code, which may quote what a program prints."""


def _found(paragraph: str) -> list[str]:
    prose = _QUOTED.sub("", paragraph)
    searches = [
        *((word.search(prose), use) for word, use in _WORDS.items()),
        *((name.search(paragraph), use) for name, use in _NAMES.items()),
    ]
    return [f"«{match[0]}» (write: {use}) in: {paragraph}" for match, use in searches if match]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_has_no_banned_word(document: Path) -> None:
    read = list(paragraphs(document))
    assert read
    assert [found for paragraph in read for found in _found(paragraph)] == []


@pytest.mark.parametrize("folder", SOURCES)
def test_a_source_has_no_banned_word(folder: str) -> None:
    sources = [
        path
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".rs", ".py", ".pyi", ".ts", ".toml", ".json", ".txt"}
        and "target" not in path.parts
        and path not in LISTS
    ]
    assert sources
    for source in sources:
        text = _STREAM.sub("", source.read_text(encoding="utf-8"))
        lines = text.replace("`", "").splitlines()
        texts = filter(_ANY.search, [source.stem, *lines])
        assert [found for text in texts for found in _found(text)] == [], source


@pytest.mark.parametrize("document", SHORT, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_sentence_of_the_first_pages_is_short(document: Path) -> None:
    read = [sentence for paragraph in paragraphs(document) for sentence in sentences(paragraph)]
    assert len(read) >= 20
    assert [sentence for sentence in read if _is_long(sentence)] == []


def test_help_has_no_banned_word() -> None:
    assert [(place, _found(text)) for place, text in helps() if _found(text)] == []


def test_a_sentence_of_help_is_short() -> None:
    read = [(place, sentence) for place, text in helps() for sentence in sentences(text)]
    assert len(read) >= 200
    assert [found for found in read if _is_long(found[1])] == []


def _is_long(sentence: str) -> bool:
    return len(sentence.split()) > MOST_WORDS


def test_banned_words_are_found() -> None:
    bad = ["Bad luck.", "luck_of", "lucky", "a `Door`", "A packet under way."]
    assert [len(_found(text)) for text in bad] == [1] * len(bad)
    assert all(map(_ANY.search, bad))
    good = ["The door.", "it prints `cannot be said`", "plucked", "mushroom"]
    assert [len(_found(text)) for text in good] == [0] * len(good)


def test_prose_leaves_out_code_and_keeps_cells_and_items(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\nTwo [three](x.md)\n**four**.\n\n- five\n- `six`\n\n"
        "| a | b |\n|---|---|\n| c | d |\n\n"
        "```\nhidden\n```\n<!-- table: written by a test -->\nhidden\n<!-- end of table -->\n",
        encoding="utf-8",
    )
    found = [text for text in paragraphs(page) if set(text) - set("-")]
    assert found == ["One", "Two three four.", "five", "`six`", "a", "b", "c", "d"]
    assert list(sentences("One (et al. 2009). Two? Three")) == [
        "One (et al. 2009).",
        "Two?",
        "Three",
    ]
