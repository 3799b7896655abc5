"""Writes the table of random paths, kind by kind, into the pages that have it.

What `weir run` and others say of kinds below the goal follows it (`weir.validation.agreement`).

weir validate --virtual --random 200 --seed 1 --json > validation.json
python docs/.site/kinds.py validation.json

Several files, of parts of the same paths or of other seeds, are one table. Kinds that none of them
has stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from weir.validation import agreement, spread
from weir.validation.kinds import KINDS

ROOT = Path(__file__).parents[2]
ABREAST = 5
"""Kinds in a line of the short table."""
BLOCK = re.compile(r"(<!-- kinds: generated -->\n).*?(\n<!-- end of kinds -->)", re.S)


def table(spreads: list[spread.Spread], before: str) -> str:
    """The table in Markdown; kinds that no file has keep their lines of the one `before`."""
    shown = [name for name in spread.KINDS_HEADERS if name != "near"]
    kept = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in before.split("\n")]
    lines = {cells[0]: cells for cells in kept if cells[0] in KINDS}
    for line in spread.kinds_table(spreads):
        cells = dict(zip(spread.KINDS_HEADERS, line, strict=True))
        lines[cells["kind"]] = [cells[name] for name in shown]
    rows = [lines[kind] for kind in KINDS if kind in lines]
    paths, values, held = (sum(int(row[column]) for row in rows) for column in (2, 3, 4))
    whole = ["all", "", str(paths), str(values), str(held), f"{100 * held / values:.1f} %"]
    return _markdown(shown, [*rows, [*whole, "" if len(rows) > len(spreads) else lines["all"][-1]]])


def short_table(agreed: Mapping[str, Mapping[str, int]]) -> str:
    """How many rows hold of each kind, several kinds in a line."""
    cells = [cell for kind, each in agreed.items() for cell in (kind, _held(each))]
    sums = {key: sum(each[key] for each in agreed.values()) for key in ("rows", "held")}
    cells += ["all", _held(sums)]
    width = 2 * ABREAST
    rows = [[*cells[at : at + width]] for at in range(0, len(cells), width)]
    rows[-1] += [""] * (width - len(rows[-1]))
    return _markdown(["kind", "hold"] * ABREAST, rows)


def _held(each: Mapping[str, int]) -> str:
    return f"{each['held']} of {each['rows']}"


def _markdown(headers: list[str], rows: list[list[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Rewrites the file of the package, and from it the block of each page."""
    documents = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    spreads = spread.by_kind([row for one in documents for row in one["rows"]])
    if not spreads:
        raise SystemExit("no rows of random paths: weir validate --virtual --random N --json")
    agreed = agreement.joined(agreement.measured(), spreads)
    agreement.FILE.write_text(json.dumps(agreed, indent=2) + "\n", encoding="utf-8")
    _write("README.md", lambda _: short_table(agreed))
    _write("docs/validation/README.md", lambda before: table(spreads, before))


def _write(name: str, written: Callable[[str], str]) -> None:
    path = ROOT / name
    text, changed = BLOCK.subn(
        lambda found: f"{found[1]}\n{written(found[0])}\n{found[2]}",
        path.read_text(encoding="utf-8"),
    )
    if changed != 1:
        raise SystemExit(f"{name}: no block <!-- kinds: generated -->")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
