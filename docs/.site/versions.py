"""The versions of the site in one folder: their list, and a page that leads to the newest.

`versions.py SITE`. `make site` writes each to a folder of its own, so that earlier ones stay.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_VERSION = re.compile(r"\d+(\.\d+)*")
_FIRST = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Weir</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">Weir {newest}</a>
"""


def versions(site: Path) -> list[str]:
    """The folders of `site` that hold a version, the newest first."""
    found = [one.parent.name for one in site.glob("*/index.html")]
    numbered = [name for name in found if _VERSION.fullmatch(name)]
    return sorted(numbered, key=lambda name: [*map(int, name.split("."))], reverse=True)


def write(site: Path) -> None:
    """Writes `versions.json`, from which every page shows a menu, and `index.html`."""
    found = versions(site)
    listed = [{"version": name, "title": name, "aliases": []} for name in found]
    listed[0]["aliases"] = ["latest"]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_FIRST.format(newest=found[0]), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
