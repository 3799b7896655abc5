"""The studies of small contests: coexist, rtt-fairness, random-loss and steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from made import described

from weir.api import reports
from weir.api.studies import study
from weir.cells import claims
from weir.cells.cells import Cells, cell
from weir.cells.protocol import StudyResult
from weir.statistics.intervals import Estimate
from weir.studies.random_loss import measures as laws
from weir.studies.steps import measures as steps

NAMES = ("coexist", "random-loss", "rtt-fairness", "steps")


Ran = Callable[[str], StudyResult]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Runs a study at its small size, with two seeds; a second call has the same results."""

    @cache
    def run(name: str) -> StudyResult:
        out = tmp_path_factory.mktemp(name)
        return study(name, repeat=2, out=out, show_progress=False)

    return run


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


def test_the_report_can_be_drawn_again_from_disk(done: StudyResult) -> None:
    path = reports.write(done.results)
    text = Path(path).read_text(encoding="utf-8")
    assert "What was expected" in text
    assert text.count("vega-embed") or text.count("<svg"), "no figure at all"


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
