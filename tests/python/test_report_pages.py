"""Reports of validations and studies in headless Chromium: hover, zoom, linked axes, selectors."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Series, opened

from weir import load
from weir.api import reports
from weir.api.studies import study
from weir.cells.protocol import Settings
from weir.graphics import theme
from weir.studies import catalogue
from weir.studies.described import DescribedStudy
from weir.studies.report import write_study
from weir.validation import validate

TRUTH = Path(__file__).parents[1] / "truth"

pytestmark = pytest.mark.timeout(600)
"""The studies run in seconds, but a machine may have other things to do."""


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = ("10m-q34-reno", "10m-q34-vegas")
    out = tmp_path_factory.mktemp("validation")
    ran = validate(TRUTH, cases=cases, out=out, show_progress=False)
    return reports.write(ran.results)


@pytest.fixture(scope="module")
def muzha(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = catalogue.find("muzha")
    assert isinstance(study, DescribedStudy)
    study.data["sizes"]["small"] = {"lengths": [4], "seconds": 7, "repeat": 2}
    out = tmp_path_factory.mktemp("muzha")
    done = study.run(Settings(how={"out": out, "show_progress": False}))
    sections = study.sections(done.results, done.rows)
    return write_study(done.results, "muzha", "", sections)


@pytest.fixture(scope="module")
def coexist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("coexist")
    return reports.write(study("coexist", repeat=2, out=out, show_progress=False).results)


def _names(page: Any) -> list[str]:
    """The figures over time of a page."""
    found = page.locator("[data-series]").evaluate_all("all => all.map(e => e.dataset.series)")
    return [name.removeprefix("series-") for name in found]


def _is_explored(figure: Series) -> None:
    """Hover shows values, the wheel zooms all its diagrams, a double click shows everything."""
    figure.hover(0.5)
    assert any(re.search(r"\d", value) for value in figure.values)
    before = figure.range
    figure.wheel(-100)
    left, right = figure.range
    assert before[0] < left < right < before[1]
    figure.drag(0.25, 0.75)
    inner = figure.range
    assert left < inner[0] < inner[1] < right
    figure.root.locator(".u-over").first.dblclick()
    figure.page.wait_for_timeout(100)
    assert figure.range == pytest.approx(before, abs=0.05 * (before[1] - before[0]))


def test_a_validation_shows_both_over_time(chromium: Any, validation: Path) -> None:
    with opened(chromium, validation) as page:
        names = _names(page)
        assert len(names) == 2
        for name in names:
            figure = Series(page, name)
            labels = figure.root.locator(".values").first.text_content()
            assert "Linux" in labels
            _is_explored(figure)
        # A case has its own time, which no other follows.
        one, other = (Series(page, name) for name in names)
        whole = other.range
        one.wheel(-100)
        assert other.range == pytest.approx(whole, abs=0.1)


def test_windows_of_muzha_are_linked_within_their_figure(chromium: Any, muzha: Path) -> None:
    with opened(chromium, muzha) as page:
        names = _names(page)
        assert "dynamics" in names
        figure = Series(page, "dynamics")
        assert figure.panels.count() > 1
        _is_explored(figure)
        figure.hover(0.6)
        per_panel = figure.root.locator(".panel").evaluate_all(
            "all => all.map(p => [...p.querySelectorAll('.values output')].map(o => o.textContent))"
        )
        assert len(per_panel) == figure.panels.count()
        assert all(any(values) for values in per_panel)


def test_every_figure_of_a_study_is_drawn_without_warnings(chromium: Any, muzha: Path) -> None:
    """`opened` fails on any message of Vega."""
    with opened(chromium, muzha) as page:
        figures = page.locator("[data-spec]")
        assert figures.count() >= 5
        for figure in figures.all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg.marks").first.wait_for()


def test_many_further_findings_are_folded(
    coexist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "coexist"
    shutil.copytree(coexist.parent, folder)
    folded = re.compile(r"<summary>Show all (\d+)</summary>")
    assert not folded.findall(coexist.read_text(encoding="utf-8"))
    monkeypatch.setattr("weir.studies.report._MOST_SHOWN", 3)
    (count,) = folded.findall(reports.write(load(folder)).read_text(encoding="utf-8"))
    assert int(count) > 3


@pytest.fixture(params=["light", "dark"])
def heat(request: pytest.FixtureRequest, chromium: Any, coexist: Path) -> Iterator[Any]:
    with opened(chromium, coexist, color_scheme=request.param) as page:
        figure = page.locator("#figure-share")
        figure.scroll_into_view_if_needed()
        figure.locator("svg.marks").wait_for()
        yield figure


def test_numbers_of_a_heat_map_can_be_read_in_light_and_dark(heat: Any) -> None:
    """A contrast of at least 4.5 with the cell below (WCAG 2.2, 1.4.3)."""
    cells = heat.locator("[aria-roledescription='rect mark']").evaluate_all(_FILLS)
    texts = heat.locator("[aria-roledescription='text mark']").evaluate_all(_FILLS)
    assert len(cells) == len(texts) == 3 * 16
    for cell, text in zip(cells, texts, strict=True):
        one, other = (theme.luminance(tuple(part / 255 for part in c)) for c in (cell, text))
        contrast = (max(one, other) + 0.05) / (min(one, other) + 0.05)
        assert contrast >= 4.5, (cell, text)


def test_the_cell_of_a_heat_map_that_is_pointed_at_is_shown(heat: Any) -> None:
    tip = heat.page.locator("#vg-tooltip-element")
    shown = []
    for at in (1, 7):
        # A reader points at the number, which lies on the cell.
        text = heat.locator("[aria-roledescription='text mark']").nth(at)
        text.hover()
        words = tip.text_content()
        assert text.text_content() in words
        label = (
            heat.locator("[aria-roledescription='rect mark']").nth(at).get_attribute("aria-label")
        )
        for part in label.split("; "):
            assert part.partition(": ")[2] in words
        shown.append(words)
    assert shown[0] != shown[1]


_FILLS = """all => all.map(e => getComputedStyle(e).fill.match(/\\d+/g).slice(0, 3).map(Number))"""
