"""Figures over time: what the page gets, and what its reader can do with it."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from browser import Series, opened
from made import compared

import weir
from weir import _native
from weir.api import reports
from weir.graphics import explore
from weir.graphics.chart import Chart, inline
from weir.graphics.explore import Explorer, ExplorerPanel, Line
from weir.graphics.figure import Figure
from weir.plots import figures
from weir.report.html import render
from weir.report.model import Provenance, Report, ReportSection


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = compared(tmp_path_factory.mktemp("plain"), "reno", "cubic", duration="20s", loss="1%")
    return reports.write(results)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sweep = {"topology.queue": ("0.5bdp", "1bdp", "2bdp", "4bdp")}
    results = compared(tmp_path_factory.mktemp("swept"), "reno", "cubic", sweep=sweep)
    return reports.write(results)


def series(path: Path) -> dict[str, Any]:
    """The data of the figures over time of a page."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(
        r'<script type="application/json" id="series-([a-z-]+)">(.*?)</script>', text
    )
    return {name: json.loads(data) for name, data in found}


def unpacked(column: dict[str, Any]) -> list[float | None]:
    """Values as the page reads them."""
    whole = np.frombuffer(base64.b64decode(column["data"]), "<u2")
    return [None if n == 0xFFFF else column["low"] + n * column["unit"] for n in whole.tolist()]


def test_a_page_has_every_sample_of_every_repeat(plain: Path) -> None:
    results = weir.load(plain.parent)
    (panel, _) = series(plain)["cwnd"]["panels"]
    lines = [line for line in panel["lines"] if line["name"] != "ssthresh"]
    assert [line["repeat"] for line in lines] == [0, 1]
    for line in lines:
        run = results.runs.filter(label="reno", repeat=line["repeat"])["run"].item()
        rows = results.samples.filter(pl.col("run") == run, pl.col("cwnd_bytes") > 0)
        assert unpacked(line["v"]) == pytest.approx(
            (rows["cwnd_bytes"] / 1000).to_list(), abs=line["v"]["unit"]
        )
        assert line["t"]["n"] == rows.height
        assert line["t"]["first"] == rows["t_s"][0]


def test_values_are_kept_to_a_fraction_of_their_range() -> None:
    values = pl.Series([0.0, 0.1, None, 123.456])
    found = unpacked(explore.scaled(values))
    assert found[2] is None
    assert [found[0], found[1], found[3]] == pytest.approx(
        [0.0, 0.1, 123.456], abs=123.456 / 65_000
    )
    assert unpacked(explore.scaled(pl.Series([5, 7, 65_000]))) == [5.0, 7.0, 65_000.0]
    assert unpacked(explore.scaled(pl.Series([float("nan")]))) == [None]


def test_irregular_instants_are_kept_too() -> None:
    t = pl.Series([0.0, 1.0, 1.5, 60.0])
    packed = explore.times(t)
    whole = np.frombuffer(base64.b64decode(packed["data"]), "<u4")
    assert (packed["first"] + whole * packed["unit"]).tolist() == pytest.approx(
        t.to_list(), abs=1e-7
    )
    regular = explore.times(pl.Series([0.1, 0.2, 0.3]))
    assert regular == pytest.approx({"first": 0.1, "step": 0.1, "n": 3})


def test_millions_of_points_fit_a_page_with_their_peaks() -> None:
    t = np.arange(2_000_000) / 1000
    value = np.where(np.arange(t.size) % 99_991 == 7, 9.0, np.sin(t))
    line = Line("a", "#0072b2", pl.Series(t), pl.Series(value))
    data = Explorer([ExplorerPanel("p", "y", [line] * 8)], 2000.0, "g").data
    assert len(json.dumps(data)) < 6_000_000
    assert "smallest and its largest value" in data["note"]
    (_, kept) = explore.thinned(pl.Series(t), pl.Series(value), 10_000)
    assert len(kept) <= 10_000
    assert (kept == 9.0).sum() == (value == 9.0).sum()


def test_more_repeats_than_a_page_holds_are_left_out_and_named() -> None:
    short = pl.Series([0.0, 1.0])
    lines = [Line("a", "#0072b2", short, short, repeat=repeat) for repeat in range(3000)]
    data = Explorer([ExplorerPanel("p", "y", lines, typical=2999)], 1.0, "g").data
    (panel,) = data["panels"]
    assert [line["repeat"] for line in panel["lines"]] == [*range(1500), 2999]
    assert data["note"].startswith("Only repeats 1 to 1500 and the typical ones")


def test_a_page_does_not_draw_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("the converter was called")

    monkeypatch.setattr("vl_convert.vegalite_to_svg", refuse)
    results = compared(tmp_path, "reno")
    reports.write(results)
    (found,) = [figure for figure in figures(results) if figure.name == "cwnd"]
    with pytest.raises(AssertionError, match="converter"):
        found.svg()


def test_the_benchmark_of_reports_measures_each_part(chromium: Any) -> None:
    assert chromium.is_connected()
    command = [sys.executable, "-m", "bench.report", "--rounds", "1", "--json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (row,) = json.loads(printed)["rows"]
    assert row.pop("round") == 1
    assert set(row) == {"write_cpu_s", "open_s", "open_cpu_s"}
    assert all(value > 0 for value in row.values())


@pytest.fixture(scope="module")
def pages(chromium: Any, plain: Path, swept: Path) -> Iterator[tuple[Any, Any]]:
    """The page of a comparison and that of a sweep, for all tests below."""
    with opened(chromium, plain) as one, opened(chromium, swept) as other:
        yield one, other


@pytest.fixture
def page(pages: tuple[Any, Any]) -> Any:
    """The page of a comparison, at all times."""
    Series(pages[0], "cwnd").root.get_by_text("Reset").click()
    pages[0].wait_for_timeout(100)
    return pages[0]


def test_hover_shows_values_in_every_linked_diagram(page: Any) -> None:
    cwnd, rtt = Series(page, "cwnd"), Series(page, "rtt")
    rtt.hover(0.5)
    assert all(float(value) > 0 for value in cwnd.values)
    assert all(value for value in rtt.values)
    assert rtt.at(0.5) == pytest.approx(10, abs=0.1)
    before = cwnd.values
    rtt.hover(0.6)
    assert cwnd.values != before


def test_wheel_brush_pan_and_double_click_move_all_axes_of_time(page: Any) -> None:
    goodput, cwnd = Series(page, "goodput"), Series(page, "cwnd")
    assert cwnd.range == pytest.approx((0, 20), abs=0.1)
    cwnd.wheel(-100)
    zoomed = cwnd.range
    assert zoomed == pytest.approx((2, 18), abs=0.1)
    assert goodput.range == pytest.approx(zoomed, abs=0.1)
    goodput.drag(0.25, 0.5)
    assert goodput.range == pytest.approx((6, 10), abs=0.1)
    page.keyboard.down("Shift")
    goodput.drag(0.25, 0.5)
    page.keyboard.up("Shift")
    assert goodput.range == pytest.approx((5, 9), abs=0.1)
    goodput.root.locator(".u-over").first.dblclick()
    page.wait_for_timeout(100)
    assert cwnd.range == pytest.approx((0, 20), abs=0.1)


def test_the_wheel_scrolls_a_page_that_shows_all_times(page: Any) -> None:
    cwnd = Series(page, "cwnd")
    cwnd.hover(0.5)
    before = page.evaluate("scrollY")
    cwnd.wheel(100)
    assert page.evaluate("scrollY") > before
    assert cwnd.range == pytest.approx((0, 20), abs=0.1)


def test_repeats_can_be_chosen(page: Any) -> None:
    cwnd, rtt = Series(page, "cwnd"), Series(page, "rtt")
    found = []
    for repeat in ("0", "1"):
        cwnd.choose("Repeat", repeat)
        cwnd.hover(0.51)
        found.append(cwnd.values)
    assert found[0] != found[1]
    assert rtt.root.locator("select").input_value() == "1"
    options = rtt.root.locator("option").all_text_contents()
    assert options == ["median goodput", "all", "1 (seed 1)", "2 (seed 2)"]


def test_a_dashed_line_has_a_dashed_name(page: Any) -> None:
    names = Series(page, "cwnd").root.locator(".panel").first.locator(".values > span")
    found = {
        name.text_content().split()[0]: "gradient" in name.locator("i").evaluate(_BACKGROUND)
        for name in names.all()
    }
    assert found == {"flow0": False, "ssthresh": True}


_BACKGROUND = "e => getComputedStyle(e).backgroundImage"


_KEEP_TEXTS = """() => {
    window.texts = {};
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const place = this.textAlign === "center" ? "below" : "left";
        if (/^[0-9.,]+$/.test(text)) (texts[place] ??= []).push(text);
        return fill.apply(this, arguments);
    };
}"""
"""Keeps the numbers that a page writes onto its canvases: those centred below an axis of time."""


@pytest.mark.parametrize("duration", ["3ms", "70us", "20s"])
def test_no_two_ticks_of_an_axis_have_the_same_label(
    duration: str, chromium: Any, tmp_path: Path
) -> None:
    """An axis of time also after a zoom, and axes of values as small as a queue of nothing."""
    at = _native.parse_quantity("time", duration)
    t_s = pl.Series([at * n / 50 for n in range(51)])
    small = Line("a", "#0072b2", t_s, pl.Series([n * 4e-5 for n in range(51)]))
    explorer = Explorer([ExplorerPanel("a", "delay, ms", [small])], at, "g")
    chart = Chart(inline(pl.DataFrame()))
    figure = Figure("delay", "Delay", "", chart, pl.DataFrame(), explorer=lambda: explorer)
    section = ReportSection("Figures", figures=[figure])
    path = tmp_path / "page.html"
    page_text = render(Report("Delay", "", [section], Provenance("", "", "")))
    path.write_text(page_text, encoding="utf-8")
    with opened(chromium, path) as page:
        page.evaluate(_KEEP_TEXTS)
        shown = Series(page, "delay")
        for _ in range(6):
            page.evaluate("for (const place in texts) delete texts[place]")
            shown.root.get_by_title("Zoom in").click()
            page.wait_for_timeout(100)
            ticks = page.evaluate("texts").items()
            assert len(ticks) == 2, "a line of time, and a column of values"
            for place, labels in ticks:
                assert len(labels) > 2, place
                assert len(set(labels)) == len(labels), labels


def test_points_of_a_sweep_can_be_chosen(pages: tuple[Any, Any]) -> None:
    cwnd = Series(pages[1], "cwnd")
    assert cwnd.titles == ["reno", "cubic"]
    assert cwnd.root.locator("select[data-choice='queue']").input_value() == "1bdp"
    cwnd.hover(0.9)
    before = cwnd.values
    cwnd.choose("queue", "4bdp")
    cwnd.hover(0.91)
    assert cwnd.values != before
    cwnd.choose("queue", "all")
    assert len(cwnd.titles) == 8
    assert cwnd.titles[0] == "reno, queue 0.5bdp"


def test_other_figures_are_drawn_when_they_come_into_view(page: Any) -> None:
    figure = page.locator("#figure-limits")
    figure.scroll_into_view_if_needed()
    figure.locator("svg").first.wait_for()
    assert "congestion window" in (figure.text_content() or "")


def test_keys_move_the_cursor_and_are_spoken(page: Any) -> None:
    cwnd = Series(page, "cwnd")
    cwnd.hover(0.5)
    page.mouse.move(0, 0)
    cwnd.panels.first.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    text = cwnd.root.locator("[aria-live]").text_content()
    found = re.fullmatch(r"([\d.]+) s: flow0 ([\d.]+), ssthresh [\d.]*", text)
    assert found
    assert float(found[1]) == pytest.approx(12, abs=0.1)
    assert float(found[2]) > 0
    page.keyboard.press("+")
    page.wait_for_timeout(100)
    assert cwnd.range == pytest.approx((2.4, 18.4), abs=0.1)


def test_two_fingers_zoom_and_one_moves(chromium: Any, plain: Path) -> None:
    with opened(chromium, plain, width=400, has_touch=True) as page:
        cwnd, goodput = Series(page, "cwnd"), Series(page, "goodput")
        # From 8 and 12 s to a quarter and three quarters: the page has 8 s, around 10 s.
        cwnd.touch([(0.4, 0.6), (0.35, 0.65), (0.25, 0.75)])
        assert cwnd.range == pytest.approx((6, 14), abs=0.3)
        # A quarter of 8 s to the left shows later times, of the same length.
        cwnd.touch([(0.6,), (0.5,), (0.35,)])
        assert goodput.range == pytest.approx((8, 16), abs=0.3)
        for _ in range(4):
            cwnd.touch([(0.9,), (0.5,), (0.1,)])
        assert goodput.range == pytest.approx((12, 20), abs=0.3)
        before = page.evaluate("scrollY")
        cwnd.touch([(0.5,)] * 4, upwards=40)
        assert page.evaluate("scrollY") > before
        assert goodput.range == pytest.approx((12, 20), abs=0.3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_overflow(chromium: Any, plain: Path, scheme: str) -> None:
    with opened(chromium, plain, width=400, color_scheme=scheme) as page:
        Series(page, "cwnd")
        # A study may have longer titles.
        page.evaluate("document.querySelector('nav a').textContent = 'a long title '.repeat(9)")
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_narrow_page_shows_whole_figures(chromium: Any, plain: Path) -> None:
    """In two columns on a wide page, else in one; no mark is beyond the edge."""
    places = """all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.right])"""
    spread = []
    for width in (1280, 400):
        with opened(chromium, plain, width=width) as page:
            figure = page.locator("#figure-metrics")
            figure.scroll_into_view_if_needed()
            figure.locator("svg.marks").wait_for()
            marks = figure.locator(
                "[aria-roledescription='point'], [aria-roledescription='circle']"
            )
            found = marks.evaluate_all(places)
            assert len(found) >= 10
            assert all(0 <= left < right <= width for left, right in found)
            ((_, edge),) = figure.locator("svg.marks").evaluate_all(places)
            assert edge <= width
            axes = figure.locator(".role-axis-title").evaluate_all(places)
            lefts = [left / width for left, _ in axes]
            spread.append(max(lefts) - min(lefts))
            assert figure.get_by_text("scroll it sideways").count() == 0
    # The titles of the axes are in two places, or below each other.
    assert spread[0] > 0.25 > spread[1]
