"""Writes how many published numbers and claims agree into the pages that say so.

python docs/.site/counts.py results/published.json
python docs/.site/counts.py --check results/published.json

The second, of `make seeds`, prints them and whether each page has the same, and writes nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/studies/README.md")
BLOCK = re.compile(r"(<!-- published: generated -->\n).*?(\n<!-- end of published -->)", re.S)


def sentence(page: dict[str, object]) -> str:
    """The counts as a sentence each for numbers and claims."""
    rows = page["rows"]
    assert isinstance(rows, list)
    once = [row for row in rows if not row["is_reading"]]
    counts = {
        kind: Counter(row["verdict"] for row in once if row["kind"] == kind)
        for kind in ("number", "claim")
    }
    parts = [
        f"{sum(counts[kind].values())} {kind}s: "
        + ", ".join(f"{count} {verdict}" for verdict, count in counts[kind].most_common())
        for kind in counts
    ]
    basis = "; ".join(f"`{study}` {size}" for study, size in dict(page["basis"]).items())  # type: ignore[call-overload]
    items = page["items"]
    assert isinstance(items, list)
    outcomes = Counter(item["outcome"] for item in items)
    described = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return f"{parts[0]}. {parts[1]}. {len(items)} items: {described}. Sizes: {basis}."


def check(counts: str) -> None:
    """Prints the counts, and for each page whether it has them."""
    print(counts)
    for name in PAGES:
        has_them = counts in (ROOT / name).read_text(encoding="utf-8")
        print(f"{name}: {'the same' if has_them else 'other counts, of other results or sizes'}")


def write(counts: str) -> None:
    """Rewrites the block of each page."""
    for name in PAGES:
        path = ROOT / name
        text, changed = BLOCK.subn(
            lambda found: f"{found[1]}\n{counts}\n{found[2]}", path.read_text(encoding="utf-8")
        )
        if changed != 1:
            raise SystemExit(f"{name}: no block <!-- published: generated -->")
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Checks or writes."""
    *options, file = sys.argv[1:]
    counts = sentence(json.loads(Path(file).read_text(encoding="utf-8")))
    if options == ["--check"]:
        check(counts)
    else:
        write(counts)


if __name__ == "__main__":
    main()
