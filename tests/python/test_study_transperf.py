"""transperf's scores and nsperf's tests: what is required, what is run, and the verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir import report, studies
from weir.studies import StudyResult, envelopes
from weir.studies.cells import Cells
from weir.studies.described import DescribedStudy
from weir.studies.envelopes import Envelope, judged
from weir.studies.schemes import KINDS, present
from weir.studies.transperf.measures import highest_rtt_ms, queue_packets

PLACE = ("table", "row", "column", "")

pytestmark = pytest.mark.timeout(600)
"""Each study runs in seconds, but a machine may have other things to do."""


def _study() -> DescribedStudy:
    found = studies.find("transperf")
    assert isinstance(found, DescribedStudy)
    return found


TESTS = _study().constants["tests"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """The study at its small size, with one seed."""
    out = tmp_path_factory.mktemp("transperf")
    return studies.study("transperf", repeat=1, out=out, show_progress=False)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([80.0, 90.0], envelopes.PASS),
        ([79.9, 90.0], envelopes.FAIL),
        ([90.0, None], envelopes.INCONCLUSIVE),
        ([], envelopes.INCONCLUSIVE),
    ],
)
def test_an_envelope_must_be_kept_by_every_run(values: list[float | None], verdict: str) -> None:
    found = judged(PLACE, values, Envelope(80.0), "of its nature")
    assert envelopes.verdict(found) == verdict
    assert str(found["note"]).startswith(verdict)
    assert ("of its nature" in found["note"]) == (verdict != envelopes.PASS)
    assert found["published"] == "at least 80"


def test_envelopes_are_said_in_words() -> None:
    assert Envelope(48, 49).text == "48 to 49"
    assert Envelope(high=0.1).text == "at most 0.1"
    assert not Envelope(48, 49).holds(49.001)


def test_the_sample_is_transperfs() -> None:
    sample = TESTS[0]
    assert (sample["flows"], sample["bdps"]) == (4, 1.0)
    wanted = {"tput": 80, "rtt_med": 40, "lock_on_bw": 35, "loss_avoid": 99}
    assert sample["scores"] == {**wanted, "fairness": 70, "convergence_fairness": 50}
    # 50 Mbit/s times 40 ms in packets of 1514 bytes.
    assert queue_packets(sample) == 165
    assert highest_rtt_ms(sample) == pytest.approx(88, abs=0.1), "1.1 times 40 ms and a full buffer"


def test_defaults_follow_the_kind_of_test() -> None:
    single, several, shallow, policed = TESTS[1:]
    assert single["scores"] == {"tput": 80, "rtt_med": 30, "lock_on_bw": 80, "loss_avoid": 100}
    several_of = ("loss_avoid", "fairness", "convergence_fairness")
    assert [several["scores"][name] for name in several_of] == [96, 96, 90]
    assert queue_packets(shallow) < 0.1 * queue_packets(single), "what transperf calls shallow"
    assert [shallow["scores"][name] for name in several_of] == [96, 80, 70]
    assert [policed["scores"][name] for name in several_of] == [70, 96, 85]


def test_every_score_has_a_verdict(done: StudyResult) -> None:
    cells = Cells(done.rows)
    for test in TESTS:
        own = cells.table(f"transperf, {test['name']}")
        assert own.rows() == list(present(KINDS))
        for stack in own.rows():
            scored = {found["column"] for found in own.all if found["row"] == stack}
            assert scored >= set(test["scores"]) - {"lock_on_bw"}
            assert ("lock_on_bw" in scored) == stack.startswith("bbr"), "who has a STARTUP locks on"
        for found in own.all:
            if found["ours"]["mean"] is None:  # who carries nothing is neither fair nor unfair
                assert found["holds"] is None
                assert str(found["note"]).startswith(envelopes.INCONCLUSIVE)
                continue
            assert found["holds"] == Envelope(found["low"], found["high"]).holds(
                found["ours"]["mean"]
            ), "of a single run the mean is the value, to the digits that are printed"


def test_scores_are_between_0_and_100(done: StudyResult) -> None:
    for test in TESTS:
        for found in Cells(done.rows).table(f"transperf, {test['name']}").all:
            if found["column"] in test["scores"] and found["column"] != "lock_on_bw":
                assert 0 <= (found["ours"]["mean"] or 0) <= 101, found


def test_nsperfs_five_tests_are_there(done: StudyResult) -> None:
    names = {str(row["table"]) for row in done.rows}
    sizes = _study().data["sizes"]
    for test in sizes["small"]["values"]:
        assert any(name.startswith(f"nsperf {test},") for name in names), test
    full = sizes["full"]["values"]
    assert len(full["random_loss"]) == 13
    assert full["coexist"] == [0.1, 1, 2, 4, 8, 16]


def test_a_share_of_two_is_a_share(done: StudyResult) -> None:
    own = Cells(done.rows).table("nsperf coexist, share beside CUBIC")
    assert "cubic" not in own.rows()
    for stack in own.rows():
        for column in own.columns():
            share = own.mean(stack, column)
            assert share is not None
            assert 0 < share < 1


def test_the_report_can_be_drawn_again_from_disk(done: StudyResult) -> None:
    text = Path(report.write(done.results.path)).read_text(encoding="utf-8")
    assert "Who reaches the required scores" in text
    assert "nsperf ecn_bulk" in text


def test_findings_are_sentences(done: StudyResult) -> None:
    assert len(done.findings) > 10
    for finding in done.findings:
        assert finding.endswith("."), finding
        assert not {"nan", "None"} & set(finding.split()), finding
