"""The bundles of the study `ccwg`: their scenarios, their checks, and the verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from weir import report, studies
from weir.curves import Curve
from weir.studies import StudyResult, envelopes
from weir.studies.ccwg.measures import MSS, Observed, after_startup, alpha
from weir.studies.cells import Cells
from weir.studies.described import DescribedStudy

pytestmark = pytest.mark.timeout(600)
"""Each study runs in seconds, but a machine may have other things to do."""


def _study() -> DescribedStudy:
    found = studies.find("ccwg")
    assert isinstance(found, DescribedStudy)
    return found


CONSTANTS = _study().constants
BUNDLES = CONSTANTS["bundles"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """The study at its small size, with two seeds."""
    out = tmp_path_factory.mktemp("ccwg")
    return studies.study("ccwg", repeat=2, out=out, show_progress=False)


def _observed(phases: list[str], marked: float) -> Observed:
    """Ten seconds at 10 ms and 1448 bytes per millisecond, this share of the packets marked."""
    times = np.arange(1, 1001) / 100
    samples = pl.DataFrame(
        {
            "t_s": times,
            "srtt_ms": np.full(1000, 10.0),
            "cwnd_bytes": np.full(1000, 10 * MSS),
            "phase": [phases[place * len(phases) // 1000] for place in range(1000)],
        }
    )
    queues = pl.DataFrame({"t_s": times, "marks": np.floor(times * 1000 * marked)})
    curve = Curve(0, "flow", np.array([0.0, 10.0]), np.array([0.0, 1e4 * MSS * 8e-6]))
    return Observed({}, samples, queues, curve)


def test_alpha_begins_at_one_and_decays_by_a_sixteenth_per_round_trip() -> None:
    times, values = alpha(_observed(["x"], 0.0))
    rounds = np.round((times - times[0]) / 0.01)
    assert values == pytest.approx((15 / 16) ** rounds)


@pytest.mark.parametrize("marked", [0.1, 0.5, 1.0])
def test_alpha_comes_to_the_share_of_marked_packets(marked: float) -> None:
    _, values = alpha(_observed(["x"], marked))
    # 10 packets per round trip, so counts are whole to one of ten.
    assert float(values[-300:].mean()) == pytest.approx(marked, abs=0.02)


def test_phases_are_spans() -> None:
    phases = _observed(["startup", "drain", "probe_bw", "probe_rtt"], 0).phases()
    assert [name for name, _, _ in phases] == ["startup", "drain", "probe_bw", "probe_rtt"]
    assert phases[0][1:] == pytest.approx((0.01, 2.51))
    assert phases[1][1:] == pytest.approx((2.51, 5.01))


def test_the_draft_is_checked_by_what_follows_startup() -> None:
    assert after_startup(_observed(["startup", "drain", "probe_bw"], 0)) == 1
    assert after_startup(_observed(["startup", "probe_bw"], 0)) == 0
    assert after_startup(_observed(["startup"], 0)) is None


def test_the_bundles_have_names_of_their_own() -> None:
    names = [bundle["name"] for bundle in (*BUNDLES, *CONSTANTS["comparisons"])]
    assert len(names) == len(set(names)) == 15


def test_ns3s_bounds_are_those_of_its_program() -> None:
    bounds = {
        (bundle["name"], check["name"]): (check.get("low"), check.get("high"))
        for bundle in BUNDLES
        for check in bundle["checks"]
    }
    wanted = {
        ("ns-3 dctcp-10ms", "least goodput per 200 ms, from 5.6 s on"): (48, 49),
        ("ns-3 dctcp-80ms", "most alpha, from 34 s on"): (0.015, 0.025),
        ("ns-3 cubic-50ms-no-ecn", "least cwnd, 5.43 to 5.465 s"): (500, None),
        ("ns-3 cubic-50ms-ecn", "most cwnd, 5.795 to 6 s"): (None, 190),
    }
    assert {key: bounds[key] for key in wanted} == wanted


def test_every_check_of_every_stack_has_a_verdict(done: StudyResult) -> None:
    cells = Cells(done.rows)
    for bundle in BUNDLES:
        own = cells.table(bundle["name"]).all
        assert len(own) == len(CONSTANTS["versions"][bundle["stacks"]]) * len(bundle["checks"])
    for bundle in CONSTANTS["comparisons"]:
        assert len(cells.table(bundle["name"]).all) > 0
    judged = [found for found in done.rows if envelopes.is_judged(found)]
    assert {True, False} <= {found["holds"] for found in judged}
    for found in judged:
        assert str(found["note"]).startswith(envelopes.verdict(found))


def test_what_is_outside_ns3s_bounds_says_why(done: StudyResult) -> None:
    outside = [
        found
        for found in done.rows
        if str(found["table"]).startswith("ns-3") and found.get("holds") is False
    ]
    assert outside, "ours is Linux's TCP, not ns-3's"
    for found in outside:
        assert ";" in found["note"], found


def test_ns3s_maxima_stand_beside_ours(done: StudyResult) -> None:
    own = Cells(done.rows).table("ns-3 cubic-50ms-no-ecn: maxima of cwnd")
    second = own.at("second maximum", "segments")
    assert second is not None
    assert second["published"] == 236
    # Where slow start no longer matters the two sawtooths are alike: within a tenth.
    assert second["ours"]["mean"] == pytest.approx(236, rel=0.1)


def test_the_report_can_be_drawn_again_from_disk(done: StudyResult) -> None:
    text = Path(report.write(done.results.path)).read_text(encoding="utf-8")
    for bundle in (*BUNDLES, *CONSTANTS["comparisons"]):
        assert bundle["name"][1:] in text


def test_findings_name_what_fails(done: StudyResult) -> None:
    failed = [found for found in done.rows if found.get("holds") is False]
    text = " ".join(done.findings)
    for found in failed:
        assert f"{found['row']}, {found['column']}: " in text
    for finding in done.findings:
        assert finding.endswith("."), finding
        assert not {"nan", "None"} & set(finding.split()), finding
