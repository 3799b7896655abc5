"""What MkDocs cannot know: pages that lie beside `docs/`, and links which leave it."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
BESIDE = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site, and the files that they are."""

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_SCHEME = re.compile(r"[a-z]+:")


def on_files(files: Files, config: Any) -> Files:
    """Adds what lies beside `docs/`."""
    for page, source in BESIDE.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links to pages that moved, and turns those to no page into their text."""
    source = BESIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    here = PurePosixPath(page.file.src_uri).parent

    def lead(link: re.Match[str]) -> str:
        text, path, anchor = link["text"], link["path"], link["anchor"] or ""
        if not path or _SCHEME.match(path):
            return link[0]
        target = ((ROOT / source).parent / path).resolve().relative_to(ROOT).as_posix()
        moved = {beside: site for site, beside in BESIDE.items()} | {"docs": "README.md"}
        to = moved.get(target, target.removeprefix("docs/"))
        if to == target:
            # A file of the sources, which is no page: its name says where it is.
            return text if "`" in text else f"{text} (`{target}`)"
        up = "../" * len(here.parts)
        return f"[{text}]({up}{to}{anchor})"

    return _LINK.sub(lead, markdown)
