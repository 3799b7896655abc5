"""The study `udp-vs-tcp`: its data, what it makes of results, and a small part of it for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
import requires
from conftest import PATIENCE_S
from made import assert_top_claims_fit
from prose import crowded, report_texts

from weir.api import reports
from weir.base.disk import write_text
from weir.cells.claims import verdict_of
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.processes import netns
from weir.processes.netns import NamespaceError
from weir.results.results import Results
from weir.running.execution import run_plan
from weir.scenario.source import Effective
from weir.statistics.intervals import Estimate
from weir.studies.catalogue import studies
from weir.studies.udp_vs_tcp import STUDY
from weir.studies.udp_vs_tcp.experiment import (
    CONTENDERS,
    EXTENTS,
    PACKETS,
    READINGS,
    SETTINGS,
    SIZES,
    Extent,
    study_plan,
)
from weir.studies.udp_vs_tcp.findings import findings
from weir.studies.udp_vs_tcp.published import Source, load
from weir.transfer import worker
from weir.transfer.ends import hosts
from weir.transfer.model import JUMBO, LOCAL, Network, Outcome, Transfer
from weir.transfer.runs import GIVEN_UP, TransferRunner, tables
from weir.transfer.site import memory

WAITS = ("1B", "28KB")


@pytest.fixture(scope="module")
def source() -> Source:
    return load()


def made(scenario: Effective, seed: int, *_: object) -> Any:
    """A world in which CUBIC dies of losses, bare UDP loses a quarter, and ours takes 1 s/GB."""
    fields = scenario.fields
    transfer, network = Transfer(**fields["transfer"]), Network(**fields["network"])
    seconds = 1e-3 * seed + transfer.size_bytes / 1e9
    if transfer.stack == "cubic" and network.loss_percent and transfer.size_bytes > 1:
        return tables(transfer, Outcome(None, is_intact=False, received_bytes=0, failure="timeout"))
    if transfer.stack == "udp" and transfer.size_bytes > 28_000:
        arrived = transfer.size_bytes * 3 // 4
        return tables(transfer, Outcome(seconds, False, arrived, failure="incomplete"))
    slower = 2 if transfer.protocol == "tcp" else 1
    return tables(transfer, Outcome(seconds * slower, True, transfer.size_bytes, 0.1, 0.2))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    plan = study_plan(EXTENTS["full"], "full", 2, 1)
    out = tmp_path_factory.mktemp("made")
    return run_plan(plan, made, out=out, jobs=1, show_progress=False)


@pytest.fixture(scope="module")
def rows(source: Source, results: Results) -> list[Cell]:
    return STUDY.measured(source, results)


def at(rows: list[Cell], table: str, row: str, column: str) -> Cell:
    (found,) = (c for c in rows if (c["table"], c["row"], c["column"]) == (table, row, column))
    return found


def test_the_study_is_listed() -> None:
    assert studies()["udp-vs-tcp"] is STUDY


def test_every_table_is_complete(source: Source) -> None:
    assert [(table.id, len(table.rows)) for table in source.tables] == [
        ("004-local", 12),
        ("004-two-hosts", 9),
        ("004-delay", 9),
        ("004-loss", 9),
        ("004-delay-25ms", 0),
        ("004-loss-data", 0),
        ("004-loss-both", 0),
    ]
    for table in source.tables:
        assert table.setting in SETTINGS
        assert table.columns == tuple(SIZES)
        for row in table.rows:
            assert row.packet in PACKETS
            assert row.transport in {contender.transport for contender in CONTENDERS}


def test_cells_say_what_is_printed(source: Source) -> None:
    cells = [cell for table in source.tables for row in table.rows for cell in row.cells.values()]
    assert len(cells) == 195
    assert sum(cell.complete is not None for cell in cells) == 60 + 43 + 22 + 22
    assert sum(cell.seconds is not None for cell in cells) == 60 + 45 + 25 + 28
    loss = source.table("25 % loss")
    row = loss.row("UDPR", "64B")
    assert row is not None
    assert [cell.value for cell in row.cells.values()] == [
        "0.021 / timeout",
        "112.525 / timeout",
        "timeout",
        "timeout",
        "timeout",
    ]
    late = source.table("50 ms delay").row("UDPR", "10KB")
    assert late is not None
    assert [cell.value for cell in late.cells.values()][:3] == [
        0.229,
        25.541,
        "beyond reasonable time",
    ]


def test_times_without_a_count_are_known(source: Source) -> None:
    found = [(table.setting, row.name, size) for table, row, size in source.without_count()]
    assert found == [
        ("two hosts", "TCP (1500B)", "28KB"),
        ("two hosts", "UDPR (1500B)", "14MB"),
        ("50 ms delay", "UDPR (1500B)", "28KB"),
        ("50 ms delay", "UDPR (10KB)", "28KB"),
        ("25 % loss", "TCP (1500B)", "110MB"),
        ("25 % loss", "TCP (10KB)", "14MB"),
        ("25 % loss", "TCP (10KB)", "110MB"),
    ]


@pytest.mark.parametrize("packet", PACKETS.values(), ids=lambda packet: packet.name)
def test_a_datagram_passes_whole(packet: Any) -> None:
    assert packet.mss < packet.packet_bytes <= packet.mtu <= JUMBO


@pytest.mark.parametrize("extent", EXTENTS)
def test_both_sizes_carry_every_file_that_the_source_does(extent: str, source: Source) -> None:
    plan = study_plan(EXTENTS[extent], extent, None, 1)
    labels = {case.label for case in plan.cases}
    assert len(labels) == len(plan.cases)
    for table in source.tables:
        for row in table.rows:
            for size in row.cells:
                assert f"{table.setting}, {row.name}, {size}" in labels


def test_the_small_size_repeats_what_takes_little_time() -> None:
    plan = study_plan(EXTENTS["small"], "small", None, 1)
    often = {case.label: case.scenario.repeat for case in plan.cases}
    assert often["local, TCP (1500B), 1B"] == 4
    assert often["local, TCP (1500B), 110MB"] == 1
    assert often["25 % loss of data, TCP (1500B), 28KB"] == 1
    assert often["25 ms each way, UDP (1500B), 1B"] == 1
    assert not [label for label in often if "both ways" in label and "110MB" in label]
    assert {c.scenario.repeat for c in study_plan(EXTENTS["small"], "small", 2, 1).cases} == {2}


def test_losses_are_read_both_ways_and_one_way_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, tuple[str, str]] = {}
    for setting in READINGS:

        def joined(setting: str = setting, **options: Any) -> Any:
            asked[setting] = (options["up"], options["down"])
            raise NamespaceError("none here")

        monkeypatch.setattr(netns, "joined", joined)
        with pytest.raises(NamespaceError), hosts(SETTINGS[setting]):
            pass
    loss = "loss=25.0%"
    assert asked == {
        "25 % loss": ("", loss),
        "25 % loss of data": (loss, ""),
        "25 % loss both ways": (loss, loss),
    }


def test_rows_with_the_limits_of_the_source_give_up_as_it_does(source: Source) -> None:
    plan = study_plan(EXTENTS["full"], "full", None, 1)
    options = {c.label: c.scenario.fields["transfer"]["options"] for c in plan.cases}
    for row in ("UDPR max 10 (1500B)", "stop-and-wait max 10 (64B)"):
        limited = options[f"25 % loss, {row}, 28KB"]
        assert limited["max_retransmits"] == source.max_retransmits == 10
        assert limited["max_wait_s"] == source.max_wait == 10
    assert "max_wait_s" not in options["25 % loss, UDPR (1500B), 28KB"]


def test_many_packets_may_take_long() -> None:
    plan = study_plan(EXTENTS["full"], "full", None, 1)
    limits = {case.label: case.scenario.fields["limit_s"] for case in plan.cases}
    assert limits["25 % loss, TCP (1500B), 28KB"] == pytest.approx(60, abs=0.1)
    assert limits["25 % loss, UDPR (64B), 110MB"] == pytest.approx(60 + 110e6 / 64 * 40e-6)


def test_every_published_cell_stands_beside_ours(source: Source, rows: list[Cell]) -> None:
    for table in source.tables:
        for row in table.rows:
            for size, printed in row.cells.items():
                cell = at(rows, table.id, row.name, size)
                assert cell["published"] == printed.value
                assert cell["published_complete"] == printed.complete
                assert cell["tried"] == 2
    ours = at(rows, "004-loss", "UDPR (64B)", "2.8MB")
    assert (ours["complete"], ours["ours"]["n"]) == (2, 2)
    assert ours["ours"]["mean"] == pytest.approx(0.0015 + 0.0028)


def test_what_did_not_arrive_is_counted(rows: list[Cell]) -> None:
    dead = at(rows, "004-loss", "TCP (1500B)", "2.8MB")
    assert (dead["complete"], dead["tried"], dead["ours"]["mean"]) == (0, 2, None)
    assert dead["note"] == "timeout"
    torn = at(rows, "004-local", "UDP (1500B)", "14MB")
    assert (torn["complete"], torn["received_percent"]) == (0, 75.0)
    assert torn["ours"]["mean"] == pytest.approx(0.0015 + 0.014)


def test_the_claims_at_the_top_of_the_report_fit(rows: list[Cell]) -> None:
    assert_top_claims_fit(STUDY, rows)


def test_claims_are_judged_by_the_numbers(rows: list[Cell]) -> None:
    verdicts = {cell["row"]: verdict_of(cell) for cell in rows if cell["table"] == "expectations"}
    assert verdicts["UDPR is quite reliable on one machine"] == "agrees"
    assert verdicts["UDP is exceptionally unreliable on one machine beyond 2.8MB"] == "agrees"
    assert verdicts["TCP is much faster than UDPR on one machine"] == "differs"
    assert verdicts["UDPR often breaks with 25 % loss"] == "differs"
    assert verdicts["TCP delivers with 25 % loss"] == "differs"
    ratio = at(rows, "expectations", "TCP is much faster than UDPR on one machine", "value")
    assert ratio["ours"]["mean"] == pytest.approx(0.5)
    assert ratio["published"] == pytest.approx(2.23, abs=0.01)


def test_findings_are_computed(source: Source, rows: list[Cell]) -> None:
    texts = findings(rows, source, EXTENTS["full"], "a box")
    assert texts[1] == (
        "Our reliable UDP delivers every file intact in 140 of 140 cells. Published: all in 40 of "
        "65 cells."
    )
    (directions,) = (text for text in texts if "which way its packets were lost" in text)
    assert "“25 % loss both ways”: 4 of 20 cells whole" in directions
    (limits,) = (text for text in texts if text.startswith("With the source's limits"))
    assert "files arrive under loss" in limits
    assert any("takes at most 0.112 s" in text for text in texts)
    assert any("in the worst 75 % of the bytes" in text for text in texts)
    assert any(text.startswith("The published TCP is faster with 50 ms delay") for text in texts)


def test_the_report_draws_what_there_is(source: Source, rows: list[Cell], results: Results) -> None:
    texts = findings(rows, source, EXTENTS["full"], "a box")
    kept = {"study": "udp-vs-tcp", "rows": rows, "findings": texts}
    write_text(results.path / "study.json", json.dumps(kept))
    text = reports.write(results).read_text(encoding="utf-8")
    for words in ("beyond reasonable time", "(2/2)", "(0/2)", "0.021 / timeout", "Files that"):
        assert words in text
    sections = STUDY.sections(results, rows)
    assert not crowded([*texts, *report_texts(sections, rows)])
    names = [figure.name for section in sections for figure in section.figures]
    assert names == ["complete", *(f"time-{name}" for name in _SLUGS)]


_SLUGS = (
    "local",
    "two-hosts",
    "50-ms-delay",
    "25-loss",
    "25-ms-each-way",
    "25-loss-of-data",
    "25-loss-both-ways",
)


class Hopeless:
    """A site where every transfer takes too long; counts them."""

    def __init__(self) -> None:
        self.carried: list[int] = []

    def run(self, transfer: Transfer, network: Network, limit_s: float) -> Outcome:
        assert network == LOCAL
        assert limit_s == pytest.approx(8.0)
        self.carried.append(transfer.size_bytes)
        return Outcome(None, is_intact=False, received_bytes=0, failure="timeout")


def test_a_row_that_took_too_long_is_not_tried_with_larger_files() -> None:
    site = Hopeless()
    carrier = TransferRunner(site)
    plan = study_plan(EXTENTS["small"], "small", 2, 1)
    own = [run for run in plan.runs if run.case.label.startswith("local, TCP (1500B)")]
    failures = [carrier(run.case.scenario, run.seed)["flows"]["failure"].item() for run in own]
    assert site.carried == [1]
    assert failures == ["timeout", *[GIVEN_UP] * (len(own) - 1)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    settings = ("local", "two hosts", "50 ms delay", "25 % loss")
    names = {"TCP", "TCP dialogue", "UDPR", "UDPR max 10"}
    contenders = tuple(c for c in CONTENDERS if c.name in names)
    extent = Extent(settings, ("1500B",), ("28KB", "2.8MB"), contenders, 1, limit_s=20.0)
    how: Any = {"out": tmp_path_factory.mktemp("small"), "show_progress": False}
    return STUDY.run_extent(extent, Settings(how=how))


def test_real_files_arrive(small: StudyResult) -> None:
    reliable = [c for c in small.rows if str(c["row"]).startswith("UDPR (") and c["tried"]]
    assert len(reliable) >= 2
    for cell in reliable:
        assert (cell["complete"], cell["note"]) == (1, ""), cell
        assert Estimate(**cell["ours"]).mean
    local = [c for c in small.rows if c["table"] == "004-local" and c["tried"]]
    names = ("TCP", "TCP dialogue", "UDPR", "UDPR max 10")
    assert {c["row"] for c in local} == {f"{name} (1500B)" for name in names}


def test_a_dialogue_over_tcp_carries_files_whole(small: StudyResult) -> None:
    """By a program that greets and confirms, without loss only."""
    talked = [c for c in small.rows if str(c["row"]).startswith("TCP dialogue") and c["tried"]]
    assert {c["table"] for c in talked} <= {"004-local", "004-two-hosts", "004-delay"}
    assert {c["column"] for c in talked} == {"28KB", "2.8MB"}
    for cell in talked:
        assert (cell["complete"], cell["note"]) == (1, ""), cell
        assert cell["published"] is None


@requires.namespaces
def test_real_files_arrive_through_links(small: StudyResult) -> None:
    tried = {c["table"] for c in small.rows if c["row"] == "UDPR (1500B)" and c["tried"]}
    assert tried == {"004-local", "004-two-hosts", "004-delay", "004-loss"}
    one_way = [c for c in small.rows if c["table"] == "004-loss" and c["tried"]]
    assert [c["complete"] for c in one_way] == [1] * 6, "TCP too, where only ACKs are lost"
    (late,) = (
        c
        for c in small.rows
        if (c["table"], c["row"], c["column"]) == ("004-delay", "UDPR (1500B)", "28KB")
    )
    assert late["ours"]["mean"] > 0.15, "a round trip for the handshake, half of one for the data"


def test_nothing_is_left_behind(small: StudyResult) -> None:
    assert small.results.path.is_dir()
    places = (memory(), Path(gettempdir()))
    assert not [
        file for place in places if place for file in place.glob(f"weir-transfers-{os.getpid()}-*")
    ]


def test_no_transfer_is_given_up_before_the_time_that_the_source_prints() -> None:
    source = load()
    for extent in EXTENTS.values():
        timed = [(trial, trial.printed_s(source)) for trial in extent.trials()]
        printed = [(trial, seconds) for trial, seconds in timed if seconds is not None]
        assert len(printed) > 50
        for trial, seconds in printed:
            assert extent.limit_of(trial, seconds) >= 1.5 * seconds, trial.label


@pytest.mark.parametrize("protocol", ["tcp", "weir"])
def test_an_end_does_not_survive_its_parent(tmp_path: Path, protocol: str) -> None:
    end = subprocess.Popen(
        [sys.executable, worker.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert end.stdin is not None
    assert end.stdout is not None
    job = {"do": "receive", "protocol": protocol, "listen": "127.0.0.1:0", "stack": "cubic"}
    end.stdin.write(json.dumps({**job, "directory": str(tmp_path)}).encode() + b"\n")
    end.stdin.flush()
    assert b"address" in end.stdout.readline(), "it waits for a sender"
    end.stdin.close()
    assert end.wait(PATIENCE_S) == 0
    end.stdout.close()
