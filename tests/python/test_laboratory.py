"""What the page of the laboratory repeats of other sources is equal to them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weir.graphics import theme

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web/src"
CRATE = ROOT / "crates/web/src"


def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_page_has_the_colours_of_the_reports() -> None:
    text = _source(WEB / "theme.ts")
    palette = re.search(r"PALETTE = \[(.*?)\]", text, re.S)
    usual = re.search(r"USUAL: [^=]*= \{(.*?)\}", text, re.S)
    assert palette
    assert usual
    stacks = ["reno", "cubic", "bbr", "vegas", "westwood", "veno", "dctcp", "none"]
    colours = re.findall(r'"(#[0-9a-f]{6})"', palette[1])
    assert dict(zip(stacks, colours, strict=True)) == theme.stack_colours(stacks)
    assert re.findall(r"(\w+): (\d)", usual[1]) == [
        (stack, str(at)) for at, stack in enumerate(stacks)
    ]


@pytest.mark.parametrize(
    ("name", "enum"), [("Kind", "PacketKind"), ("Fate", "Fate")], ids=["kind", "fate"]
)
def test_the_page_has_the_codes_of_the_rust_code(name: str, enum: str) -> None:
    (body,) = re.findall(rf"pub enum {enum} \{{(.*?)\n\}}", _source(CRATE / "recorder.rs"), re.S)
    (listed,) = re.findall(rf"const {name} = \{{(.*?)\}}", _source(WEB / "store.ts"), re.S)
    codes = dict(re.findall(r"(\w+) = (\d+)", body))
    page = dict(re.findall(r"(\w+): (\d+)", listed))
    assert len(page) >= 4
    # The page has one name for the first code of those who drop.
    dropped = page.pop("Dropped", None)
    assert dropped in {None, codes.get("QueueFull")}
    # What a qlog declares lost; the core knows where each packet was dropped.
    assert page.pop("Lost", None) not in codes.values()
    assert {key: codes.get(key) for key in page} == page


def test_the_page_reads_as_many_columns_as_the_rust_code_writes() -> None:
    widths = {
        key: int(value)
        for key, value in re.findall(r"pub const (\w+): usize = (\d+)", _source(CRATE / "rows.rs"))
    }
    steps = dict(re.findall(r"  add(\w+)\(rows.*?at \+= (\d+)\)", _source(WEB / "store.ts"), re.S))
    names = {
        "Packets": "PACKET",
        "Crossings": "CROSSING",
        "Sacks": "SACK",
        "Samples": "SAMPLE",
        "Queues": "QUEUE",
    }
    found = {names[key]: int(value) for key, value in steps.items()}
    frames = re.search(r"const COLUMNS = (\d+);", _source(WEB / "frames.ts"))
    assert frames is not None
    assert {**found, "FRAME": int(frames[1])} == widths
