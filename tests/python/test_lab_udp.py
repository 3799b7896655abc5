"""The study `lab-udp`: its data, its constants, and what it finds."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made import assert_top_claims_fit
from prose import crowded, report_texts

from weir.cells import claims
from weir.cells.protocol import Settings, StudyResult
from weir.statistics.intervals import Estimate
from weir.studies.catalogue import studies
from weir.studies.lab_udp import STUDY, calibrated
from weir.studies.lab_udp.calibration import time_and_timeout
from weir.studies.lab_udp.cells import Measured, StudyCell
from weir.studies.lab_udp.claims import CLAIMS, counted
from weir.studies.lab_udp.experiment import STACKS, Experiment, experiments
from weir.studies.lab_udp.findings import WINDOWED, Cells, findings, mean_error
from weir.studies.lab_udp.published import SOURCES, Mismatch, Source, load, mismatches

Rows = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return [load(name) for name in SOURCES]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    out = tmp_path_factory.mktemp("lab-udp")
    return STUDY.run(Settings("small", None, 1, {"out": out, "show_progress": False}))


@pytest.fixture(scope="module")
def rows(result: StudyResult) -> Rows:
    return {(cell["table"], cell["row"], cell["column"]): cell for cell in result.rows}


def serial(cell: dict[str, Any]) -> float:
    return float(cell["serial"]["mean"])


def line(cell: dict[str, Any]) -> float:
    return float(cell["delay_line"]["mean"])


def test_the_study_is_listed() -> None:
    assert studies()["lab-udp"] is STUDY


def test_every_table_is_complete(sources: list[Source]) -> None:
    cells = {
        table.id: sum(len(row.times) for row in table.rows)
        for source in sources
        for table in source.tables
    }
    assert cells == {
        "000-loss": 30,
        "000-delay": 20,
        "000-size": 6,
        "002-loss": 66,
        "002-delay": 36,
    }
    for source in sources:
        for table in source.tables:
            for row in table.rows:
                assert len(row.times) == len(table.columns), (table.id, row.name)
                assert len(row.throughputs) in (0, len(row.times)), (table.id, row.name)
                assert row.experiment in STACKS[source.id]


def test_cells_of_the_same_experiment_agree(
    sources: list[Source],
) -> None:
    times: dict[Experiment, set[float]] = {}
    for source in sources:
        for table in source.tables:
            for row in table.rows:
                for column, time in enumerate(row.times):
                    under = table.measured_under(row, column)
                    key = Experiment(source.id, row.experiment, under)
                    times.setdefault(key, set()).add(time)
    assert all(len(values) == 1 for values in times.values())
    assert set(times) == set(experiments(sources))


def test_the_row_without_congestion_control_of_source_000_repeats_the_delay_row(
    sources: list[Source],
) -> None:
    source = next(source for source in sources if source.id == "000")
    wrong = source.table("loss").row("no CC, as printed")
    assert wrong.times == source.table("delay").row("W=8").times
    assert wrong.times != source.table("loss").row("W=8").times
    assert wrong.repeats_row == ("000-delay", "W=8")
    delays = [source.table("loss").measured_under(wrong, i).delay_ms for i in range(5)]
    assert delays == [0, 10, 20, 30, 40]


def test_every_printed_throughput_but_one_is_the_file_over_the_time(
    sources: list[Source],
) -> None:
    found = [wrong for source in sources for wrong in mismatches(source)]
    assert found == [Mismatch("002-delay", "Reno", "40ms", 103.5, 1857353 / 17.931 / 1000)]


def test_the_constants_follow_from_the_cells_named(sources: list[Source]) -> None:
    models = calibrated(sources)
    model = models["002"]
    assert (model.payload_bytes, model.datagrams, model.timeout_ms) == (15_000, 124, 2_000)
    idle = (0.620 + 0.610 + 0.620 + 0.641) / 4
    assert model.send_ms == pytest.approx(idle * 1e3 / 124)
    assert model.send_ms + 2 * model.relay_ms == pytest.approx(1.121 * 1e3 / 124)
    other = models["000"]
    assert (other.payload_bytes, other.datagrams) == (8_000, 233)
    assert other.send_ms + 2 * other.relay_ms == pytest.approx(9.36, abs=0.01)
    assert other.timeout_ms == pytest.approx(331, abs=1)


def test_the_relay_of_source_000_needs_its_time_and_delays_besides(sources: list[Source]) -> None:
    models = calibrated(sources)
    turn = models["000"].turn_ms
    assert turn is not None
    assert turn == pytest.approx(23.3, abs=0.1)
    for delay in (10, 40):
        assert models["000"].needs_ms(delay) == models["000"].relay_ms + turn
        assert models["000"].later_ms(delay) == delay
        assert models["002"].needs_ms(delay) == models["002"].relay_ms + delay
        assert models["002"].later_ms(delay) == 0
    assert models["000"].needs_ms(0) == models["000"].relay_ms


def testtime_and_timeout_are_found_again() -> None:
    """Of cells that follow from 5 ms per exchange and 400 ms per loss."""
    cells = [(n, losses, n * (5 + losses * 400)) for n in (100, 300) for losses in (0.01, 0.2)]
    assert time_and_timeout(cells) == pytest.approx((5, 400))


def test_every_published_cell_has_one_of_ours_with_an_interval(result: StudyResult) -> None:
    assert len(result.rows) == 128 + 82 + 2 * 30 + len(CLAIMS)
    for cell in result.rows[: -len(CLAIMS)]:
        for ours in (cell["serial"], cell["delay_line"]):
            if cell["reading"] and "no timer" in cell["row"]:
                least = 0 if cell["row"].startswith("Reno") else 1
                assert least <= ours["n"] <= 5, cell
                continue
            assert ours["n"] == 5, cell
            assert ours["lo"] <= ours["mean"] <= ours["hi"], cell
    assert not result.results.failures


def test_every_published_throughput_has_one_of_ours_from_the_same_mean_time(
    rows: Rows, sources: list[Source]
) -> None:
    printed = {
        (f"{table.id}-throughput", row.name, table.heading(column)): value
        for source in sources
        for table in source.tables
        for row in table.rows
        for column, value in enumerate(row.throughputs)
    }
    assert len(printed) == 82 + 30
    assert {key: cell["published"] for key, cell in rows.items() if key in printed} == printed
    for (table, row, column), scale, unit in (
        (("002-delay", "W=30", "100ms"), 1000, "kB/s"),
        (("000-loss", "W=8", "10%"), 1, "B/s"),
    ):
        time, speed = rows[table, row, column], rows[f"{table}-throughput", row, column]
        assert speed["unit"] == unit
        for ours in ("serial", "delay_line"):
            expected = 1857353 / scale / time[ours]["mean"]
            assert speed[ours]["mean"] == pytest.approx(expected, rel=1e-3)


def test_the_report_has_the_figures_of_the_sources_with_time_and_throughput(
    result: StudyResult, sources: list[Source]
) -> None:
    sections = STUDY.sections(result.results, result.rows)
    assert [len(section.tables) for section in sections] == [2, 2, 2, 1, 1, 1]
    figures = [figure for section in sections for figure in section.figures]
    drawings = [drawing for source in sources for drawing in source.drawings]
    assert len(figures) == len(drawings) == 6 + 7
    for figure in figures[:6]:
        assert set(figure.data["unit"]) == {"s", "kB/s"}, figure.name
        assert set(figure.data["source"]) == {"published", "serial", "delay_line"}, figure.name
        assert figure.runs, figure.name
    for source in sources:
        for drawing in source.drawings:
            (table,) = (table for table in source.tables if table.id == drawing.table)
            assert {table.row(name).name for name in drawing.rows} == set(drawing.rows)


def test_the_claims_at_the_top_of_the_report_fit(rows: Rows) -> None:
    assert_top_claims_fit(STUDY, list(rows.values()))


def test_bursts_make_the_larger_window_of_source_000_slower(rows: Rows) -> None:
    """8 datagrams of 8000 B fit into the 64 KiB of the relay's socket, 16 do not."""
    for column in ("1%", "2%", "3%", "4%", "10%"):
        narrow, wide = rows["000-loss", "W=8", column], rows["000-loss", "W=16", column]
        assert serial(wide) > 1.2 * serial(narrow), column
    for text in ("under loss", "under delay"):
        says = f"a window of 16 is slower than one of 8 {text} (report 000)"
        cell = rows[claims.TABLE, says, claims.COLUMN]
        assert claims.verdict_of(cell) == "agrees", cell


def test_rows_that_no_constant_of_source_000_comes_from_are_near(rows: Rows) -> None:
    for table, row, most in (
        ("000-loss", "W=8", 0.25),
        ("000-delay", "W=8", 0.25),
        ("000-delay", "Reno", 0.12),
        ("000-loss", "Reno, if at 10 ms", 0.15),
        ("000-size", "W=8", 0.25),
    ):
        own = [cell for (t, r, _), cell in rows.items() if (t, r) == (table, row)]
        errors = [abs(serial(cell) / cell["published"] - 1) for cell in own]
        assert sum(errors) / len(errors) <= most, (table, row)


def test_losses_of_a_transfer_begin_after_its_handshake(sources: list[Source]) -> None:
    """Where a table has the times of the transfer, a lost SYN would cost two seconds."""
    models = calibrated(sources)
    lossy = Experiment("002", "window-5", sources[0].table("loss").conditions(5))
    text = lossy.scenario("serial", models["002"], repeat=1, seed=1)
    assert 'loss_steps = [{ at = "7.5333ms", loss = "10%" }]' in text
    whole = Experiment("000", "window-8", sources[1].table("loss").conditions(4))
    assert 'loss = "10%"\n' in whole.scenario("serial", models["000"], repeat=1, seed=1)


def test_the_serial_relay_repeats_the_windowed_delay_cells(rows: Rows) -> None:
    errors = [
        abs(serial(cell) / cell["published"] - 1)
        for (table, row, column), cell in rows.items()
        if table == "002-delay" and row in WINDOWED and column != "0ms"
    ]
    assert len(errors) == 20
    assert sum(errors) / len(errors) <= 0.12


def test_the_serial_relay_repeats_the_delay_row_of_reno_as_source_002_prints_it(rows: Rows) -> None:
    row = [rows["002-delay", "Reno", f"{delay}ms"] for delay in (20, 40, 60, 80, 100)]
    errors = [abs(serial(cell) / cell["published"] - 1) for cell in row]
    assert sum(errors) / len(errors) <= 0.10


def test_a_true_delay_favours_larger_windows(rows: Rows) -> None:
    for delay in ("20ms", "40ms", "60ms", "80ms", "100ms"):
        times = [line(rows["002-delay", row, delay]) for row in WINDOWED]
        assert times[-1] < times[0]
        assert all(later < 1.01 * earlier for earlier, later in pairwise(times))
    strict = [line(rows["002-delay", row, "100ms"]) for row in WINDOWED]
    assert strict == sorted(strict, reverse=True)


def test_under_loss_stop_and_wait_is_far_behind_and_reno_falls_back(rows: Rows) -> None:
    for loss in ("4%", "6%", "8%", "10%"):
        waiting = serial(rows["002-loss", "stop-and-wait", loss])
        for row in WINDOWED:
            assert waiting >= 5 * serial(rows["002-loss", row, loss]), (row, loss)
    for loss in ("8%", "10%"):
        reno = serial(rows["002-loss", "Reno", loss])
        for row in WINDOWED:
            assert reno > serial(rows["002-loss", row, loss]), (row, loss)


def test_without_loss_and_delay_the_hosts_set_the_pace(rows: Rows) -> None:
    for row in ("stop-and-wait", *WINDOWED):
        cell = rows["002-delay", row, "0ms"]
        assert serial(cell) == pytest.approx(cell["published"], rel=0.05)


def test_runs_in_which_no_timer_ends_take_what_is_printed(
    sources: list[Source], rows: Rows
) -> None:
    table = next(source for source in sources if source.id == "002").table("loss")
    for name in WINDOWED:
        quiet, every = f"{name}, no timer", table.row(name)
        assert table.row(quiet).times == every.times
        assert table.row(quiet).is_reading
        assert not every.is_reading
        for column in ("0%", "2%", "10%"):
            cell = rows["002-loss", quiet, column]
            assert cell["reading"]
            assert serial(cell) <= serial(rows["002-loss", name, column])
            assert serial(cell) < 1.1, "no timer of 2 s"


def test_runs_of_reno_without_a_timer_take_what_is_printed_up_to_6_percent(rows: Rows) -> None:
    for column in ("2%", "4%"):
        cell = rows["002-loss", "Reno, no timer", column]
        assert cell["reading"]
        assert serial(cell) == pytest.approx(cell["published"], rel=0.25)
        assert re.search(r"[1-5] of 5 runs\.", cell["note"])


def test_the_same_seeds_give_the_same_cells(tmp_path: Path) -> None:
    one, other = (
        STUDY.run(Settings("small", 1, 7, {"out": tmp_path, "jobs": jobs, "show_progress": False}))
        for jobs in (1, 3)
    )
    assert json.dumps(one.rows) == json.dumps(other.rows)
    assert list(one.findings) == list(other.findings)


def made(sources: list[Source], serial_of: float, line_of: float) -> list[StudyCell]:
    """Cells whose times are the published ones times a factor."""

    def measured(seconds: float) -> Measured:
        time = Estimate(seconds, seconds, seconds, 5)
        return Measured(time, 124.0, 0.0, 0.0, 0, 5, time, {1: seconds})

    return [
        StudyCell(
            source.id,
            table,
            row,
            column,
            {
                "serial": measured(row.times[column] * serial_of),
                "delay_line": measured(row.times[column] * line_of),
            },
        )
        for source in sources
        for table in source.tables
        for row in table.rows
        for column in range(len(table.columns))
    ]


def test_no_sentence_has_more_numbers_than_a_reader_can_hold(result: StudyResult) -> None:
    sections = STUDY.sections(result.results, result.rows)
    assert not crowded([*result.findings, *report_texts(sections, result.rows)])


def test_the_words_follow_the_numbers(sources: list[Source]) -> None:
    models = calibrated(sources)
    exact = made(sources, 1.0, 1.0)
    assert mean_error(Cells(exact).windowed_delay()) == 0
    words = " ".join(findings(exact, sources, models))
    assert "is off by 0.0% on average" in words
    assert "Rows that the serial relay misses" not in words
    assert "Where ours is faster" not in words
    slow = " ".join(findings(made(sources, 1.5, 1.0), sources, models))
    assert "is off by 50.0% on average" in slow
    assert "on average, loss, report 002: “stop-and-wait”, “W=5”" in slow


def test_claims_are_counted_cell_by_cell(sources: list[Source]) -> None:
    cells = made(sources, 1.0, math.nan)
    for claim in CLAIMS:
        counts = counted(claim, cells)
        assert counts["serial"] == counts["published"]
        assert counts["delay_line"].agreeing == 0
        assert counts["published"].cells >= 4
