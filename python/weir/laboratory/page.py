"""The files of the page, read once: no request names a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weir.base.errors import InputError

_FOLDERS = (Path(__file__).parent / "built", Path(__file__).parents[3] / "web" / "dist")
"""Where the page is: in an installed wheel, and in the sources after `make lab`."""
_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "lab.js": "text/javascript; charset=utf-8",
}
_ALONE = b"default-src 'none';"
"""The page's own policy: no request. It is replaced by one that allows requests to this server."""
_SERVED = b"default-src 'none'; connect-src 'self';"
_HEAD = b"<head>"
_ENGINE = b'<head><meta name="weir-engine" content="native">'


@dataclass(frozen=True)
class PageFile:
    """A file as it is served."""

    content: bytes
    type: str


def read() -> dict[str, PageFile]:
    """The files by the path of their address.

    Raises:
        InputError: the page was not built, or by another version.
    """
    folder = _folder()
    files = {
        f"/{name}": PageFile((folder / name).read_bytes(), kind)
        for name, kind in _TYPES.items()
        if (folder / name).is_file()
    }
    index = files["/index.html"].content
    for expected in (_ALONE, _HEAD):
        if index.count(expected) != 1:
            raise InputError(f"{folder}: not the page of this version; build it with make lab")
    index = index.replace(_ALONE, _SERVED).replace(_HEAD, _ENGINE)
    files["/"] = files["/index.html"] = PageFile(index, _TYPES["index.html"])
    return files


def texts() -> tuple[str, str]:
    """The page and its script, to be written as one file.

    Raises:
        InputError: the page was not built.
    """
    folder = _folder()
    index, script = folder / "index.html", folder / "lab.js"
    return index.read_text(encoding="utf-8"), script.read_text(encoding="utf-8")


def _folder() -> Path:
    folder = next((f for f in _FOLDERS if (f / "index.html").is_file()), None)
    if folder is None:
        raise InputError(
            "the laboratory's page was not built; run make lab in a clone of Weir's sources, "
            "then repeat the command"
        )
    return folder
