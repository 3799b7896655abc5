"""The scripts of a report: Vega, Vega-Lite and vega-embed in one, as the converter bundles them.

Bundling takes 2 s, and the outcome depends on the version of the converter alone. So it is kept in
the user's cache directory. `make build` puts it there.
"""

from __future__ import annotations

import contextlib
import tempfile
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import vl_convert

from weir.base import cache

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@lru_cache(maxsize=1)
def vega() -> str:
    """Defines `window.vegaEmbed`."""
    path = _path()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    bundle = str(vl_convert.javascript_bundle(_SNIPPET))
    with contextlib.suppress(OSError):  # then it is bundled again next time
        _keep(path, bundle)
    return bundle


def _path() -> Path:
    return cache.home() / f"vega-{version('vl-convert-python')}.js"


def _keep(path: Path, text: str) -> None:
    """Writes the file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        file.write(text)
    temporary.replace(path)
