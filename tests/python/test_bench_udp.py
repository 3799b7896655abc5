"""`make bench-udp`: that it judges what it measures, never how fast anything was."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.udp import measure, show
from bench.udp import peers as others
from bench.udp.cases import BEST, QUIC, SRT, Case, Goal, cases
from weir.transfer.ends import Programs
from weir.transfer.model import LOCAL, Network, Outcome, Transfer
from weir.transfer.site import Site

ALL = (*QUIC, SRT)
ROOT = Path(__file__).parents[2]


def outcome(seconds: float | None, cpu_s: float = 0.1) -> Outcome:
    failure = None if seconds else "timeout"
    return Outcome(seconds, seconds is not None, 8, cpu_s, cpu_s, failure)


def two(goal: Goal, network: Network = LOCAL) -> Case:
    transfers = {name: Transfer("tcp", "cubic", 1_000_000) for name in ("TCP", "ours")}
    return Case("case", 1_000_000, network, transfers, (goal,))


def judged(case: Case, *rounds: tuple[float | None, float | None]) -> measure.Row:
    turns = [{"TCP": outcome(tcp), "ours": outcome(ours, 0.3)} for tcp, ours in rounds]
    (row,) = [row for row in measure.rows(case, turns) if row["goals"]]
    (goal,) = row["goals"]
    return dict(goal)


def test_every_goal_is_about_contenders_that_there_are() -> None:
    found = cases()
    assert len({case.name for case in found}) == len(found)
    for case in found:
        there = {**case.contenders, **case.with_peers(ALL).contenders}
        assert case.goals
        for goal in case.goals:
            assert goal.contender in case.contenders
            assert goal.against in {*there, BEST} or goal.quantity in ("round trips", "sent again")
        assert next(iter(case.contenders)).startswith("TCP")
        assert all(transfer.size_bytes == case.size_bytes for transfer in there.values())


def test_peers_join_every_case() -> None:
    for case in cases():
        own = {transfer.protocol for transfer in case.with_peers(ALL).contenders.values()}
        assert own >= {"tcp", "weir", *QUIC}
        assert (SRT in own) == (case.network.rate_mbit is not None)


def test_what_is_missing_is_skipped_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", "")
    programs, reasons = others.find()
    assert programs == {}
    quic, srt = reasons
    assert "bench/peers is not here" in quic
    assert "srt-tools" in srt
    fat = cases()[-1]
    assert fat.with_peers(programs) == fat


def test_the_best_other_is_none_of_ours() -> None:
    case = two(Goal("ours", BEST, 1.0))
    case = replace(case, contenders={**case.contenders, "ours": Transfer("weir", "rack/bbr", 1)})
    quick = replace(case, contenders={**case.contenders, "SRT": Transfer(SRT, "file", 1)})
    turns = {"TCP": outcome(2.0), "ours": outcome(1.0), "SRT": outcome(0.8)}
    goals = [goal for row in measure.rows(quick, [turns]) for goal in row["goals"]]
    assert [goal["ratio"] for goal in goals] == [pytest.approx(1.25)]


def test_what_is_sent_again_is_judged_in_percent() -> None:
    case = two(Goal("ours", "", 2.0, "sent again"))
    turns = {"TCP": outcome(1.0), "ours": replace(outcome(1.0), resent=0.03)}
    rows = measure.rows(case, [turns])
    (goal,) = rows[1]["goals"]
    assert (goal["ratio"], goal["held"]) == (pytest.approx(3.0), False)
    (grid,) = show.grids(rows)
    assert grid.rows[1][5] == "3 %"
    assert grid.rows[1][-1] == "≤ 2 % sent again: missed (3)"


def test_ratios_are_taken_within_a_round() -> None:
    case = two(Goal("ours", "TCP", 1.5))
    goal = judged(case, (1.0, 1.2), (10.0, 12.0), (2.0, 8.0))
    assert goal["ratio"] == pytest.approx(1.2)
    assert (goal["ratio_min"], goal["ratio_max"]) == (pytest.approx(1.2), pytest.approx(4.0))
    assert goal["held"] is True
    assert judged(case, (1.0, 1.6))["held"] is False


def test_a_file_that_did_not_arrive_misses_the_goal() -> None:
    case = two(Goal("ours", "TCP", 1.5))
    assert judged(case, (1.0, 1.0), (1.0, None))["held"] is False
    assert judged(case, (1.0, None))["held"] is None


def test_a_contender_that_ran_out_of_time_bounds_the_ratio() -> None:
    case = two(Goal("ours", "TCP", 1.5))
    goal = judged(case, (None, 3.0), (None, 6.0), (4.0, 2.0))
    assert (goal["ratio"], goal["ratio_max"]) == (pytest.approx(6 / case.limit_s), 0.5)
    assert (goal["ratio_is_bound"], goal["held"]) == (True, True)
    impatient = replace(case, limit_s=0.5)
    assert judged(impatient, (None, 1.0))["held"] is None, "the other may take three times as long"
    assert judged(impatient, (None, None))["held"] is None
    assert judged(impatient, (None, 1.0), (None, None))["held"] is False
    assert judged(two(Goal("ours", "TCP", 2.0, "CPU time")), (None, 1.0))["held"] is None


def test_cpu_time_and_round_trips_have_goals_of_their_own() -> None:
    goal = judged(two(Goal("ours", "TCP", 2.0, "CPU time")), (1.0, 1.0))
    assert (goal["ratio"], goal["held"]) == (pytest.approx(3.0), False)
    link = Network(delay_ms=25)
    goal = judged(two(Goal("ours", "", 4.0, "round trips"), link), (1.0, 0.19))
    assert (goal["ratio"], goal["held"]) == (pytest.approx(3.8), True)


def test_tables_say_what_was_asked_and_found() -> None:
    case = two(Goal("ours", "TCP", 1.5))
    rows = measure.rows(case, [{"TCP": outcome(1.0), "ours": outcome(1.2)}])
    (grid,) = show.grids(rows)
    assert grid.rows[0][:4] == ("TCP", "1000", "1000..1000", "1/1")
    assert grid.rows[1][-1] == "≤ 1.5 × TCP: held (1.2)"
    assert show.held(rows) == (1, 0, 0)
    unknown = measure.rows(
        two(Goal("ours", "quinn cubic", 1.0)), [{"TCP": outcome(1.0), "ours": outcome(1.0)}]
    )
    assert show.held(unknown) == (0, 0, 1)
    late = measure.rows(case, [{"TCP": outcome(None), "ours": outcome(1.2)}])
    (grid,) = show.grids(late)
    assert grid.rows[1][6] == "< 0.04"
    assert grid.rows[1][-1] == "≤ 1.5 × TCP: held (< 0.04)"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def test_a_file_over_tcp_arrives_intact(site: Site) -> None:
    found = site.run(Transfer("tcp", "cubic", 300_000, {"write_size": 1000}), LOCAL, 20)
    assert (found.is_intact, found.received_bytes, found.failure) == (True, 300_000, None)
    assert found.seconds
    assert found.send_cpu_s is not None


def test_what_an_end_says_is_what_failed(site: Site) -> None:
    found = site.run(Transfer("tcp", "warp", 1), LOCAL, 20)
    assert not found.is_intact
    assert "no congestion control 'warp'" in str(found.failure)


def test_ends_that_die_or_hang_are_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = Programs([sys.executable, "-c", "raise SystemExit('no more')"], ["cat", "/dev/null"])
    found = site.run(Transfer("tcp", "cubic", 1), LOCAL, 20, dying)
    assert found.failure == "it ended with exit code 0"
    answer = 'print(\'{"address": "127.0.0.1:9"}\', flush=True); import time; time.sleep(60)'
    silent = Programs(["sleep", "60"], [sys.executable, "-c", answer])
    monkeypatch.setattr("weir.transfer.site._PUBLISH_S", 0.1)
    assert site.run(Transfer("tcp", "cubic", 1), LOCAL, 0.1, silent).failure == "timeout"


def test_only_a_whole_file_is_given_time_to_close(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of five bytes at the limit are out of time at once; all five wait for the answer."""
    receiver = """
import json, pathlib, sys, time
job = json.loads(sys.stdin.readline())
print(json.dumps({"address": "127.0.0.1:9"}), flush=True)
pathlib.Path(job["directory"], "file").write_bytes(bytes(%d))
ended = time.monotonic_ns()
time.sleep(2)
print(json.dumps({"ended_ns": ended, "cpu_s": 0.1}), flush=True)
"""
    sender = """
import json, sys, time
sys.stdin.readline()
print(json.dumps({"began_ns": time.monotonic_ns(), "cpu_s": 0.1}), flush=True)
"""
    monkeypatch.setattr("weir.transfer.site._PUBLISH_S", 0.1)
    monkeypatch.setattr("weir.transfer.site._CLOSE_S", 20.0)

    def carry(arrived: int) -> Outcome:
        programs = Programs(
            [sys.executable, "-c", sender], [sys.executable, "-c", receiver % arrived]
        )
        return site.run(Transfer("tcp", "cubic", 5), LOCAL, 0.5, programs)

    assert carry(3).failure == "timeout"
    whole = carry(5)
    assert (whole.received_bytes, whole.failure) == (5, "incomplete")


def test_another_file_is_not_what_was_sent(site: Site) -> None:
    receiver = """
import json, pathlib, sys, time
job = json.loads(sys.stdin.readline())
print(json.dumps({"address": "127.0.0.1:9"}), flush=True)
pathlib.Path(job["directory"], "file").write_bytes(b"other")
print(json.dumps({"ended_ns": time.monotonic_ns(), "cpu_s": 0.1}), flush=True)
"""
    sender = """
import json, sys, time
sys.stdin.readline()
print(json.dumps({"began_ns": time.monotonic_ns(), "cpu_s": 0.1}), flush=True)
"""
    programs = Programs([sys.executable, "-c", sender], [sys.executable, "-c", receiver])
    found = site.run(Transfer("tcp", "cubic", 5), LOCAL, 20, programs)
    assert (found.is_intact, found.received_bytes, found.failure) == (False, 5, "incomplete")


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.udp", "--rounds", "1", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_json_has_a_row_per_contender() -> None:
    ended = bench("--json", "--only", "28 KB")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["schema"], document["command"]) == (1, "bench-udp")
    assert [row["contender"] for row in document["rows"]] == ["TCP", "ours"]
    for row in document["rows"]:
        assert (row["intact"], row["rounds"]) == (1, 1)
        assert row["seconds_min"] <= row["seconds"] <= row["seconds_max"]


def test_a_case_that_does_not_exist_is_refused() -> None:
    ended = bench("--only", "token ring")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "token ring" in ended.stderr
