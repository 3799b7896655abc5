"""What MkDocs cannot know: pages outside `docs/`, links to other files, examples to try."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs runs this file as no part of a package
import examples

ROOT = Path(__file__).parents[2]
LABORATORY = ROOT / "web/dist"
"""The page that `make lab` builds, which is part of the site."""
OUTSIDE = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site, and the files that they are."""

_LOG = logging.getLogger("mkdocs.hooks.weir")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_LINES = re.compile(r"^```console lines=\d+$", re.MULTILINE)
"""What tells a test how much output to show; superfences knows no such option."""
_SCHEME = re.compile(r"[a-z]+:")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages outside `docs/`, and the laboratory."""
    for page, source in OUTSIDE.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=content))
    if _has_laboratory():
        for path in sorted(LABORATORY.iterdir()):
            content = path.read_bytes()
            files.append(File.generated(config, f"laboratory/{path.name}", content=content))
    else:
        _LOG.info("no example can be tried: make build and make lab build what that needs")
    return files


def _has_laboratory() -> bool:
    return examples.IS_BUILT and (LABORATORY / "index.html").is_file()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Gives the home page its full width, and adapts what MkDocs reads otherwise."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    source = OUTSIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    here = PurePosixPath(page.file.src_uri).parent

    def lead(link: re.Match[str]) -> str:
        text, path, anchor = link["text"], link["path"], link["anchor"] or ""
        if not path or _SCHEME.match(path):
            return link[0]
        target = ((ROOT / source).parent / path).resolve().relative_to(ROOT).as_posix()
        moved = {file: site for site, file in OUTSIDE.items()} | {"docs": "README.md"}
        to = moved.get(target, target.removeprefix("docs/"))
        if to == target:
            # A file of the sources, which is no page: its name says where it is.
            return text if "`" in text else f"{text} (`{target}`)"
        up = "../" * len(here.parts)
        return f"[{text}]({up}{to}{anchor})"

    adapted = _LINK.sub(lead, _LINES.sub("```console", markdown))
    if not _has_laboratory():
        return adapted
    return examples.linked(adapted, f"{'../' * len(here.parts)}laboratory/index.html")
