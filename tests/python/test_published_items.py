"""What the five sources describe: the list of items, its commands, and the rule of its outcomes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weir.cells.cells import cell, interval_text
from weir.cells.claims import claim
from weir.cells.protocol import Cell
from weir.cells.tables import study_table, verdict_table
from weir.statistics.intervals import Estimate
from weir.studies import catalogue, items, sources
from weir.studies.items import Item

ROOT = Path(__file__).parents[2]
ITEMS = items.load()


def test_the_list_has_every_item_of_the_sources() -> None:
    found = [item.source for item in ITEMS]
    assert {name: found.count(name) for name in sorted(set(found))} == {
        "000": 19, "001": 71, "002": 30, "003": 23, "004": 16,
    }  # fmt: skip
    assert len({(item.source, item.says) for item in ITEMS}) == len(ITEMS)
    known = catalogue.studies()
    for item in ITEMS:
        assert item.study in known
        assert sum(map(bool, (item.table, item.claims, item.measured, item.shown))) == 1, item
        lists = (*item.claims, *item.measured, *item.each)
        for pattern in (item.table, item.rows, item.columns, *lists):
            re.compile(pattern)


@pytest.mark.parametrize("command", sorted({item.shown for item in ITEMS if item.shown}))
def test_a_command_names_what_there_is(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "pytest":
        assert (ROOT / words[1]).is_file()
    elif words[:2] == ["cargo", "test"]:
        crate = ROOT / "crates" / words[words.index("-p") + 1].removeprefix("weir-")
        assert crate.is_dir()
        folder = crate / "src"
        if "--test" in words:
            folder = crate / "tests" / words[words.index("--test") + 1]
        assert any(words[-1] in name for name in rust_tests(folder)), command
    else:
        assert words[0] == "weir"
        assert (ROOT / "python/weir/cli" / f"{words[1]}.py").is_file()
        if words[1] == "study":
            assert words[2] in catalogue.studies()


def rust_tests(folder: Path) -> Iterator[str]:
    """The names of the tests of a crate's folder, as `cargo test` filters them."""
    for file in sorted(folder.rglob("*.rs")):
        module = "::".join(file.relative_to(folder).with_suffix("").parts)
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"#\[test\]\n(?:\s*(?:#\[|//).*\n)*\s*fn (\w+)", text):
            yield f"{module}::{name}"


def judged(item: dict[str, Any], cells: list[Cell]) -> items.Judged:
    study = "lab-udp"
    known = {study: cells}
    entries = list(sources.entries(sources.load(), known))
    (found,) = items.judge([Item("000", study, "x", **item)], entries, known)
    return found


def row(name: str, printed: float, mean: float, low: float, high: float) -> Cell:
    ours = Estimate(mean, low, high, 5).as_json()
    return {"table": "000-loss", "row": name, "column": "1%", "published": printed, "unit": "s",
            "serial": ours, "note": ""}  # fmt: skip


def test_numbers_hold_if_they_are_off_by_little_on_average() -> None:
    near, inside = row("W=8", 10.0, 11.0, 10.9, 11.1), row("W=16", 10.0, 14.0, 9.0, 19.0)
    own = judged({"table": "000-loss"}, [near, inside])
    assert own.outcome == items.HOLDS
    assert own.error == pytest.approx(0.05), "a number in the interval is not off"


def test_an_item_that_is_off_is_explained_by_a_run_only() -> None:
    off = row("Reno", 10.0, 2.0, 1.9, 2.1)
    shown = row("Reno, if at 10 ms", 10.0, 9.0, 8.9, 9.1)
    assert judged({"table": "000-loss", "rows": "Reno"}, [off, shown]).outcome == items.EXPLAINED
    own = judged({"table": "000-loss", "rows": "Reno"}, [off])
    assert own.outcome == items.UNEXPLAINED, "the cells that show it are not in these results"


def test_claims_hold_if_all_agree() -> None:
    claims = [
        claim(f"a window of 16 is slower than one of 8 under {what} (report 000)", "x",
              Estimate(5.0, None, None, 5), holds=holds)
        for what, holds in (("loss", True), ("delay", True))
    ]  # fmt: skip
    assert judged({"claims": ["a window of 16 .*"]}, claims).outcome == items.HOLDS
    assert judged({"claims": ["a window of 32 .*"]}, claims).outcome == items.MISSING


def test_what_is_measured_needs_a_value() -> None:
    empty = cell("levels", "w", "3", "kbit/s", Estimate(None, None, None, 0))
    full = cell("levels", "w", "4", "kbit/s", Estimate(1.0, None, None, 1))
    item = {"measured": ["levels"]}
    assert judged(item, [empty]).outcome == items.MISSING
    assert judged(item, [empty, full]).outcome == items.HOLDS


def test_what_is_measured_needs_each_kind_that_it_names() -> None:
    known = [
        cell("mixed", f"{name}, a", "share", "", Estimate(0.5, None, None, 1)) for name in "xy"
    ]
    item = {"measured": ["mixed"], "each": ["x, .*", "y, .* / share"]}
    assert judged(item, known).outcome == items.HOLDS
    assert judged(item, known[:1]).outcome == items.MISSING


def test_another_reading_decides_only_items_that_name_it() -> None:
    printed = row("W=8", 10.0, 15.0, 14.9, 15.1)
    reading = {**row("W=8, no timer", 10.0, 10.0, 9.9, 10.1), "reading": True}
    assert judged({"table": "000-loss"}, [printed, reading]).error == pytest.approx(0.5)
    named = judged({"table": "000-loss", "rows": "W=8, no timer"}, [printed, reading])
    assert named.outcome == items.HOLDS


def test_the_summary_counts_each_item_once() -> None:
    own = items.judge(ITEMS, [], {})
    table = items.summary(own)
    total = next(row for row in table["rows"] if row[0] == "all")
    assert [int(count) for count in total[1:]] == [
        *(sum(one.outcome == outcome for one in own) for outcome in items.OUTCOMES),
        len(ITEMS),
    ]


def test_a_report_begins_with_at_most_ten_verdicts() -> None:
    claims = [
        claim(f"{n}", "x", Estimate(float(n), None, None, 5), holds=n != 11, published=2.0)
        for n in range(12)
    ]
    rows = verdict_table(claims).cells
    assert len(rows) == 10
    assert [cell.text for cell in rows[0]] == ["11", "x", "2", "11", "5.50", "differs"]
    assert (rows[0][5].tone, rows[1][5].tone) == ("bad", "good")
    chosen = verdict_table(claims, ["3", "1"], {"1": "of the seeds"}).cells
    assert [(row[0].text, row[-1].text) for row in chosen] == [("3", ""), ("1", "of the seeds")]


def test_a_printed_number_stands_with_ours_their_ratio_and_a_verdict() -> None:
    cells = [row("W=8", 10.0, 15.0, 14.0, 16.0), row("W=16", 10.0, 11.0, 0.0, 4_071_590.0)]
    texts = [(c.text, c.tone) for line in study_table("t", cells).cells for c in line]
    assert ("15.0 ± 1.0 (1.50, factor 2)", "fair") in texts
    assert ("11.0 (1.10, few)", "open") in texts


def test_an_interval_that_says_nothing_is_not_shown() -> None:
    assert interval_text(Estimate(11.0, 0.0, 4_071_590.0, 3)) == "11 (too few repeats)"
    assert interval_text(Estimate(11.0, 0.0, 40.0, 3)) == "11 (0 to 40)"


def test_a_table_without_cells_is_empty() -> None:
    assert study_table("t", []).rows == []
    assert verdict_table([]).rows == []
