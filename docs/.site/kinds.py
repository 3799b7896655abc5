"""Writes the table of random paths, kind by kind, into the pages that have it.

weir validate --virtual --random 200 --seed 1 --json > validation.json
python docs/.site/kinds.py validation.json

Several files, of parts of the same paths or of other seeds, are one table.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from weir.validation import spread

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/validation/README.md")
BLOCK = re.compile(r"(<!-- kinds: generated -->\n).*?(\n<!-- end of kinds -->)", re.S)


def table(spreads: list[spread.Spread]) -> str:
    """The table in Markdown."""
    shown = [name for name in spread.KINDS_HEADERS if name != "near"]
    lines = [shown, ["---"] * len(shown)]
    for line in spread.kinds_table(spreads):
        cells = dict(zip(spread.KINDS_HEADERS, line, strict=True))
        lines.append([cells[name] for name in shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Rewrites the block of each page."""
    documents = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    spreads = spread.by_kind([row for one in documents for row in one["rows"]])
    if not spreads:
        raise SystemExit("no rows of random paths: weir validate --virtual --random N --json")
    for name in PAGES:
        path = ROOT / name
        text, changed = BLOCK.subn(
            lambda found: f"{found[1]}\n{table(spreads)}\n{found[2]}",
            path.read_text(encoding="utf-8"),
        )
        if changed != 1:
            raise SystemExit(f"{name}: no block <!-- kinds: generated -->")
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
