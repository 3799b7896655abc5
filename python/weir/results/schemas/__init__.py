"""JSON schemas (draft 2020-12) of every JSON document that Weir writes, one file per document.

`compare.json` is what `weir compare --json` prints, and so on for every verb; `manifest.json` is
that of a result directory; `flent.json`, `iperf3.json` and `qlog.json` are exported files. They
refer to `common.json` for what they share.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def names() -> list[str]:
    """The names of the schemas, without `.json`."""
    return sorted(file.stem for file in _HERE.glob("*.json"))


def read(name: str) -> dict[str, Any]:
    """The schema of that name.

    Raises:
        KeyError: there is none.
    """
    if name not in names():
        raise KeyError(f"there is no schema {name!r}; there are {', '.join(names())}")
    schema: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))
    return schema
