"""The studies of small contests: coexist, rtt-fairness, random-loss and steps."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from made import described
from prose import crowded

from weir import load
from weir.api import reports
from weir.api.studies import study
from weir.cells import claims
from weir.cells.cells import Cells, cell
from weir.cells.protocol import StudyResult
from weir.graphics import theme
from weir.statistics.intervals import Estimate
from weir.studies.random_loss import measures as laws
from weir.studies.steps import measures as steps

NAMES = ("coexist", "random-loss", "rtt-fairness", "steps")


Ran = Callable[[str], StudyResult]
Drawn = Callable[[str], Path]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Runs a study at its small size, with one seed; a second call has the same results."""

    @cache
    def run(name: str) -> StudyResult:
        out = tmp_path_factory.mktemp(name)
        return study(name, repeat=1, out=out, show_progress=False)

    return run


@pytest.fixture(scope="module")
def drawn(ran: Ran) -> Drawn:
    """Draws the report of a study from disk, once."""
    return cache(lambda name: reports.write(ran(name).results))


@pytest.fixture(scope="module", params=NAMES)
def done(request: pytest.FixtureRequest, ran: Ran) -> StudyResult:
    return ran(request.param)


def test_every_cell_has_a_value_or_says_why_not(done: StudyResult) -> None:
    assert len(done.rows) > 20
    for row in done.rows:
        assert set(row) >= {"table", "row", "column", "published", "unit", "ours", "note"}
        assert row["ours"]["mean"] is not None or row["note"], row
        assert row["ours"]["n"] <= 2


def test_findings_are_sentences(done: StudyResult) -> None:
    assert len(done.findings) >= 4
    for finding in done.findings:
        assert finding[0].isupper() or finding[0].isdigit(), finding
        assert finding.endswith("."), finding
        assert not {"nan", "None"} & set(finding.split()), finding
    assert not crowded(done.findings)


@pytest.mark.parametrize("name", NAMES)
def test_the_report_can_be_drawn_again_from_disk(name: str, drawn: Drawn) -> None:
    text = drawn(name).read_text(encoding="utf-8")
    assert "What was expected" in text
    assert re.search(r"<div class=\"plot (spec|series)\"", text), "no figure at all"


def test_the_two_shares_of_a_pair_add_up_to_one(ran: Ran) -> None:
    result = Cells(ran("coexist").rows)
    stacks = ("reno", "cubic", "bbr", "vegas")
    for buffer, (one, other) in itertools.product(
        described("coexist").constants["buffers"], itertools.combinations(stacks, 2)
    ):
        own = result.table(f"share, {buffer} BDP")
        there, back = own.mean(one, other), own.mean(other, one)
        assert there is not None
        assert back is not None
        assert there + back == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "pair", "verdict"),
    [
        (0.6, 0.8, ("bbr", "cubic", "0.5"), "agrees"),
        (0.2, 0.4, ("bbr", "cubic", "0.5"), "differs"),
        (0.4, 0.8, ("bbr", "cubic", "0.5"), "inconclusive"),
        (0.2, 0.4, ("bbr", "cubic", "4"), "agrees"),
        (0.45, 0.6, ("veno", "reno", "1"), "agrees"),
        (0.7, 0.8, ("veno", "reno", "1"), "differs"),
    ],
)
def test_a_claim_about_a_share_needs_the_whole_interval(
    low: float, high: float, pair: tuple[str, str, str], verdict: str
) -> None:
    one, other, buffer = pair
    share = cell(f"share, {buffer} BDP", one, other, "share", _within(low, high))
    (found,) = described("coexist").claims([share])
    assert claims.verdict_of(found) == verdict


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        ((1.0, 2.0), (4.0, 5.0), 0.2, 0.5),
        ((-2.0, -1.0), (4.0, 5.0), -0.5, -0.2),
        ((-1.0, 2.0), (4.0, 5.0), -0.25, 0.5),
        ((1.0, 2.0), (-5.0, -4.0), -0.5, -0.2),
        ((1.0, 2.0), (0.0, 5.0), 0.2, None),
        ((1.0, 2.0), (-0.5, 5.0), None, None),
        ((-1.0, 2.0), (0.0, 5.0), None, None),
    ],
)
def test_the_interval_of_a_ratio_holds_every_quotient_of_both_intervals(
    one: tuple[float, float], other: tuple[float, float], low: float | None, high: float | None
) -> None:
    """Where the denominator may be zero, a quotient has no bound on at least one side."""
    found = claims.ratio(_within(*one), _within(*other))
    assert found.lo == pytest.approx(low)
    assert found.hi == pytest.approx(high)
    assert found.n == 5


@pytest.mark.parametrize(
    ("over_drop_tail", "verdict"),
    [
        ((1.8, 2.2), "agrees"),
        ((0.3, 0.4), "differs"),
        ((0.4, 2.0), "inconclusive"),
        ((-0.15, 1.85), "inconclusive"),
    ],
)
def test_a_claim_about_a_part_of_an_exponent_needs_the_whole_interval(
    over_drop_tail: tuple[float, float], verdict: str
) -> None:
    estimates = {"drop-tail": _within(*over_drop_tail), "fq-codel": _within(0.2, 0.22)}
    cells = [cell("exponent", "reno", queue, "", ours) for queue, ours in estimates.items()]
    *_, last = described("rtt-fairness").claims(cells)
    assert claims.verdict_of(last) == verdict


def _within(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 5)


def test_the_laws_are_those_of_their_sources() -> None:
    # Mathis et al.: √(3/2p) segments per RTT; at 1 % that is 12.25 of 1448 bytes in 100 ms.
    assert laws.reno(0.01) == pytest.approx(12.247 * 1448 * 8e-6 / 0.1, rel=1e-3)
    # RFC 9438 §5.2, table 1: at p = 10^-4 and 100 ms CUBIC's own window is 187 segments.
    assert laws.cubic(1e-4) == pytest.approx(187 * 1448 * 8e-6 / 0.1, rel=0.01)
    assert laws.reno(1e-9) == laws.ceiling(1e-9), "no law promises more than the link"


def test_the_phases_of_a_link_follow_each_other() -> None:
    links = described("steps").constants["links"]
    assert list(steps.phases(links[0])) == [
        (0, 20, "", 15),
        (15, 5, "down to a quarter", 30),
        (30, 20, "up fourfold", 45),
    ]
    for link in links:
        ats = [at for at, *_ in link["changes"]]
        assert ats == sorted(ats)
        assert ats[0] == 0
        assert ats[-1] < link["seconds"]


# What a reader sees.


@pytest.fixture(scope="module")
def coexist(drawn: Drawn) -> Path:
    return drawn("coexist")


def test_many_further_findings_are_folded(
    coexist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "coexist"
    shutil.copytree(coexist.parent, folder)
    folded = re.compile(r"<summary>Show all (\d+)</summary>")
    assert not folded.findall(coexist.read_text(encoding="utf-8"))
    monkeypatch.setattr("weir.studies.report._MOST_SHOWN", 2)
    (count,) = folded.findall(reports.write(load(folder)).read_text(encoding="utf-8"))
    assert int(count) > 2


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
    for below, text in zip(cells, texts, strict=True):
        one, other = (theme.luminance(tuple(part / 255 for part in c)) for c in (below, text))
        contrast = (max(one, other) + 0.05) / (min(one, other) + 0.05)
        assert contrast >= 4.5, (below, text)


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
