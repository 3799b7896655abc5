"""Writes the table of random paths, kind by kind, into the pages that have it.

What `weir run` and others say of kinds below the goal follows it (`weir.validation.agreement`).

weir validate --virtual --random 200 --seed 1 --json > validation.json
python docs/.site/kinds.py validation.json

Several files, of parts of the same paths or of other seeds, are one table.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from weir.validation import agreement, spread

ROOT = Path(__file__).parents[2]
ABREAST = 5
"""Kinds in a line of the short table."""
BLOCK = re.compile(r"(<!-- kinds: generated -->\n).*?(\n<!-- end of kinds -->)", re.S)


def table(spreads: list[spread.Spread]) -> str:
    """The table in Markdown."""
    shown = [name for name in spread.KINDS_HEADERS if name != "near"]
    rows = []
    for line in spread.kinds_table(spreads):
        cells = dict(zip(spread.KINDS_HEADERS, line, strict=True))
        rows.append([cells[name] for name in shown])
    return _markdown(shown, rows)


def short_table(spreads: list[spread.Spread]) -> str:
    """How many rows hold of each kind, several kinds in a line."""
    cells = [
        cell for each in spreads for cell in (each["kind"], f"{each['held']} of {each['rows']}")
    ]
    width = 2 * ABREAST
    rows = [[*cells[at : at + width]] for at in range(0, len(cells), width)]
    rows[-1] += [""] * (width - len(rows[-1]))
    return _markdown(["kind", "hold"] * ABREAST, rows)


def _markdown(headers: list[str], rows: list[list[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PAGES = {"README.md": short_table, "docs/validation/README.md": table}


def main() -> None:
    """Rewrites the block of each page."""
    documents = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    spreads = spread.by_kind([row for one in documents for row in one["rows"]])
    if not spreads:
        raise SystemExit("no rows of random paths: weir validate --virtual --random N --json")
    for name, written in PAGES.items():
        path = ROOT / name
        block = rf"\1\n{written(spreads)}\n\2"
        text, changed = BLOCK.subn(block, path.read_text(encoding="utf-8"))
        if changed != 1:
            raise SystemExit(f"{name}: no block <!-- kinds: generated -->")
        path.write_text(text, encoding="utf-8")
    agreement.FILE.write_text(agreement.written(spreads), encoding="utf-8")


if __name__ == "__main__":
    main()
