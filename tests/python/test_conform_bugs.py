"""Public bugs in suite `regressions`: broken controllers fail their cases, mended ones pass."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from conftest import Invoke
from test_conform import BROKEN, observed, rows_of

from weir.conform import measures
from weir.conform.cases import suites
from weir.conform.cases.bounds import FAIL, PASS
from weir.conform.judge import judged
from weir.conform.measures.observed import MSS

BUGS = BROKEN.with_name("bugs.py")


def test_regressions_fail_on_a_broken_controller_only(invoke: Invoke) -> None:
    cases = ("--case", "R1", "--case", "R10")
    options = ("--repeat", "1", "--stack", f"cubic,{BROKEN}:Frozen", "--quiet", "--json")
    result = invoke("conform", "regressions", *cases, *options)
    assert result.exit_code == 1
    outcomes = {(row["case"], row["stack"][:5]): row["outcome"] for row in rows_of(result)}
    broken = str(BROKEN)[:5]
    assert outcomes == {
        ("R1", "cubic"): PASS,
        ("R10", "cubic"): PASS,
        ("R1", broken): FAIL,
        ("R10", broken): FAIL,
    }


@pytest.mark.parametrize(
    ("case", "bug", "has_fix"),
    [
        ("R1c", "QuicheEpoch", True),
        ("R2", "QuicheIdle", True),
        ("R3b", "NeqoSlowStartExit", True),
        ("R4", "NoqPacing", True),
        ("R5", "NoqJitter", True),
        ("R6", "NoqInflightAtLoss", True),
        ("R7", "PicoquicShortRtt", False),
        ("R8", "QuicheProbeRtt", True),
        ("R9", "QuichePersistent", True),
        ("R10", "SegmentPerRtt", False),
        ("R11", "PicoquicFullPipe", True),
        ("R12", "SegmentPerRtt", False),
        ("R13", "MsquicMinRtt", True),
        ("B18", "Ngtcp2Undo", True),
        ("B19", "Ngtcp2Undo", True),
    ],
)
def test_a_public_bug_fails_and_its_fix_passes(
    invoke: Invoke, case: str, bug: str, has_fix: bool
) -> None:
    """Bugs without a fix here are those that Weir's own controllers pass by default."""
    broken, mended = f"{BUGS}:{bug}", f"{BUGS}:{bug}(mended=True)"
    stacks_given = f"{broken},{mended}" if has_fix else broken
    options = ("--stack", stacks_given, "--repeat", "1", "--quiet", "--json", "--no-report")
    suite = "bbr" if case.startswith("B") else "regressions"
    result = invoke("conform", suite, "--case", case, *options)
    assert result.exit_code == 1, result.output
    found = [(row["stack"], row["outcome"]) for row in rows_of(result)]
    assert (broken, FAIL) in found
    assert {outcome for stack, outcome in found if stack == mended} == (
        {PASS} if has_fix else set()
    )


def test_reductions_in_a_row_are_those_below_the_window() -> None:
    """The end of slow start by delay sets the threshold to the window, and is none."""
    run = observed(["none"])
    times = [0.0, 0.1, 0.2, 0.3, 0.4, 2.0]
    windows = [80, 100, 100, 70, 49, 34]
    thresholds = [None, None, 100, 70, 49, 34]
    rows = {"flow": 0, "t_s": times, "cwnd_bytes": windows, "ssthresh_bytes": thresholds}
    run = replace(run, all_samples=pl.DataFrame(rows))
    assert measures.MEASURES["reductions_in_a_row"](run, span_s=0.8) == 2
    assert measures.MEASURES["reductions_in_a_row"](run, span_s=2.0) == 3


def test_the_window_before_the_first_rtt() -> None:
    run = observed(["none"])
    columns = {"flow": 0, "t_s": [0.0, 0.1, 0.2], "cwnd_bytes": [MSS, 4 * MSS, 9 * MSS]}
    late = pl.DataFrame({**columns, "rtt_ms": [None, None, 40.0]})
    early = pl.DataFrame({**columns, "rtt_ms": [40.0, None, 40.0]})
    measure = measures.MEASURES["window_before_rtt"]
    assert measure(replace(run, all_samples=late)) == 4
    assert measure(replace(run, all_samples=early)) is None


def test_persistent_congestion_is_judged_by_the_window() -> None:
    """R9, the bug of cloudflare/quiche#2680: the window stays as it was."""
    (case,) = [case for case in suites.find("quic-recovery").cases if case.id == "R9"]
    (check,) = case.checks
    measure = measures.MEASURES[check.measure]
    run = observed(["none"])
    values = [measure(run, **check.arguments)]
    assert judged(values, check.envelope, check.join).verdict == FAIL
    small = pl.when(pl.col("t_s") > 8).then(2 * 1200).otherwise(pl.col("cwnd_bytes"))
    run = replace(run, all_samples=run.all_samples.with_columns(cwnd_bytes=small))
    values = [measure(run, **check.arguments)]
    assert judged(values, check.envelope, check.join).verdict == PASS
