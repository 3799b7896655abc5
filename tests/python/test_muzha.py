"""The study muzha: what is published, what is run, and what is made of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browser import Series, assert_explorable, figures_over_time, opened
from made import assert_top_claims_fit, described
from prose import crowded, report_texts

from weir.cells import claims
from weir.cells.cells import Cells, cell, digits
from weir.cells.protocol import Settings, StudyResult
from weir.dynamics.fairness import jain
from weir.experiments.contest import Contests
from weir.report.model import ReportSection
from weir.running.execution import run_plan
from weir.scenario.source import Source
from weir.scenario.sweep import Plan, plan
from weir.statistics.intervals import Estimate
from weir.studies import muzha
from weir.studies.described import DescribedStudy
from weir.studies.muzha.measures import (
    index_of_printed,
    longest_slow_start,
    printed_range,
    reached,
    slow_start,
)
from weir.studies.report import write_study

TINY = {"lengths": [4], "seconds": 7, "repeat": 2}
SPEEDS = [2, 30]
WINDOWS = (4, 8, 32)


STUDY = described("muzha")
SLIDES = STUDY.constants["slides"]
PROTOCOLS = STUDY.constants["protocols"]


pytestmark = pytest.mark.timeout(600)
"""The study runs in seconds, but a machine may have other things to do."""


@pytest.fixture(scope="module")
def tiny() -> DescribedStudy:
    """Every part with the shortest chain, the ends of the speeds and two seconds that count."""
    study = described("muzha")
    study.data["sizes"]["small"] = TINY
    study.data["constants"]["speeds"] = SPEEDS
    (moving,) = (entry for entry in study.data["case"] if entry["label"].startswith("mobility"))
    moving["set"]["measure.repeat"] = "{{ repeat }}"
    return study


@pytest.fixture(scope="module")
def done(tiny: DescribedStudy, tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Its results with two seeds, for all tests below."""
    out = tmp_path_factory.mktemp("muzha")
    return tiny.run(Settings(how={"out": out, "show_progress": False}))


@pytest.fixture(scope="module")
def sections(tiny: DescribedStudy, done: StudyResult) -> Sequence[ReportSection]:
    """The parts of its report."""
    return tiny.sections(done.results, done.rows)


@pytest.fixture(scope="module")
def full() -> Plan:
    return STUDY.plan(Settings("full"))


def test_the_full_size_has_the_lengths_and_times_of_the_slides() -> None:
    sizes = STUDY.data["sizes"]["full"]
    assert sizes["lengths"] == [4, 5, 6, 7, 8, 9, 10, 13, 16, 32]
    assert (sizes["repeat"], sizes["seconds"]) == (10, 50)
    assert STUDY.constants["speeds"] == [2, 10, 20, 30]


# What is published.


def test_the_index_comparison_is_as_the_slides_print_it() -> None:
    rows = {
        4: ((175, 214, 186), (14, 6, 10), (0.925, 0.99)),
        6: ((54, 89, 65), (16, 6, 10), (0.74, 0.99)),
        8: ((34, 35, 37), (25, 9, 18), (0.89, 0.99)),
    }
    assert {index["hops"] for index in SLIDES["index"]} == set(rows)
    for index in SLIDES["index"]:
        throughput, resent, fairness = rows[index["hops"]]
        assert tuple(index["throughput"].values()) == throughput
        assert tuple(index["retransmissions"].values()) == resent
        assert tuple(index["fairness"].values()) == fairness
        assert list(index["throughput"]) == ["NewReno", "Vegas", "Muzha"]


@pytest.mark.parametrize(
    ("hops", "own", "throughput", "delay", "aggregate", "fairness", "computed"),
    [
        (4, "Vegas", (35.7, 118.0), (72.4, 100.4), 153.7, 0.72, 0.777),
        (4, "Muzha", (106.0, 102.0), (63.9, 65.3), 208, 0.99, 1.000),
        (6, "Vegas", (23.2, 89.9), (264.0, 101.6), 113.1, 0.74, 0.742),
        (6, "Muzha", (65.3, 53.6), (119.5, 112.4), 118.9, 0.99, 0.990),
        (8, "Vegas", (20.2, 41.7), (91.9, 168.0), 61.9, 0.89, 0.892),
        (8, "Muzha", (43.7, 36.8), (97.2, 112.4), 80.5, 0.99, 0.993),
    ],
)
def test_the_cross_is_as_the_slides_print_it(
    hops: int,
    own: str,
    throughput: tuple[float, float],
    delay: tuple[float, float],
    aggregate: float,
    fairness: float,
    computed: float,
) -> None:
    (row,) = (r for r in SLIDES["cross"] if (r["hops"], r["pair"]) == (hops, [own, "NewReno"]))
    assert (tuple(row["throughput"]), tuple(row["delay"])) == (throughput, delay)
    assert (row["aggregate"], row["fairness"]) == (aggregate, fairness)
    assert jain(row["throughput"]) == pytest.approx(computed, abs=5e-4)
    assert sum(row["throughput"]) == pytest.approx(row["aggregate"], abs=0.11)


def test_rows_that_cannot_be_what_they_say_are_flagged() -> None:
    assert {index["hops"] for index in SLIDES["index"] if index.get("ambiguous")} == {6, 8}
    assert all(index["note"] for index in SLIDES["index"])
    # Where the printed index is not that of the throughputs next to it, a note says so.
    for row in SLIDES["cross"]:
        is_off = abs((jain(row["throughput"]) or 0.0) - row["fairness"]) > 0.011
        assert ("note" in row) == is_off, row
    assert index_of_printed(SLIDES) == sum("note" not in row for row in SLIDES["cross"])


# What is run.


def test_every_scenario_has_the_settings_of_the_source(full: Plan) -> None:
    assert len(full.cases) > 500
    for case in full.cases:
        assert case.scenario.repeat >= 10 or case.label.startswith("trace"), case.label
        assert case.scenario.repeat == 20 or not case.label.startswith("mobility"), case.label
        for flow in case.scenario.fields["flow"]:
            assert flow["initial_window"] == 2, case.label
            assert (flow["delayed_ack"], flow["timestamps"]) == ("off", False), case.label
            slow = ("timeouts from 1 s", "AODV of RFC 3561", "nearest, ")
            is_slow = any(text in case.label for text in slow)
            assert (flow["min_rto"] == "1s") == is_slow, case.label


def test_all_that_the_source_names_is_run(full: Plan) -> None:
    labels = {case.label for case in full.cases}
    assert len(labels) == len(full.cases)
    for window in WINDOWS:
        for hops in STUDY.data["sizes"]["full"]["lengths"]:
            for protocol in (*PROTOCOLS, "Muzha, memory 1 RTT"):
                assert f"chain, {protocol}, {hops} hops, window {window}" in labels
            for limit in STUDY.constants["limits"]:
                assert f"limit, {limit}, {hops} hops" in labels
        for hops, pair in itertools.product((4, 6, 8), STUDY.constants["pairs"]):
            assert f"cross, {' + '.join(pair)}, {hops} hops, window {window}" in labels
    assert sum(label.startswith("grid,") for label in labels) == 36 * 2
    assert STUDY.constants["level_counts"] == [3, 4, 5, 6, 7]
    assert STUDY.constants["rates"] == [0, 1, 2, 5, 10]
    families = STUDY.constants["mobile"].values()
    policies = {family.get("policy", "none").partition("(")[0] for family in families}
    assert policies == {"none", "tcp-f", "elfn", "atcp", "bus"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_limit_is_a_receivers_window_to_the_controller_too(
    protocol: str, tmp_path: Path
) -> None:
    """A run with `window_limit` equals one whose receiver offers that window."""
    cases = STUDY.sources(Settings("full", repeat=2))
    sources: dict[str, Source] = {}
    for window, hops in itertools.product(WINDOWS, (4, 8)):
        own = cases[f"chain, {protocol}, {hops} hops, window {window}"]
        own = own.with_override("measure.duration", "10s")
        kept = tuple(pair for pair in own.overrides if pair[0] != "flow.*.window_limit")
        assert len(kept) == len(own.overrides) - 1
        receiver = replace(own, overrides=kept)
        sources |= {
            f"limit {window} {hops}": own,
            f"receiver {window} {hops}": receiver.with_override(
                "flow.0.recv_buffer", f"{window * 1000}B"
            ),
        }
    results = run_plan(plan("window", "window", sources, {}), out=tmp_path, show_progress=False)
    flows = Contests(results)
    for window, hops in itertools.product(WINDOWS, (4, 8)):
        for column in ("goodput_mbps", "retransmits", "timeouts"):
            limited = flows.flow(f"limit {window} {hops}", "flow", column)
            assert limited == flows.flow(f"receiver {window} {hops}", "flow", column)
            assert len(limited) == 2


# What is found.


def test_every_cell_has_a_place_and_a_value_or_says_why_not(done: StudyResult) -> None:
    assert not done.results.failures
    assert len(done.rows) > 500
    for row in done.rows:
        assert set(row) >= {"table", "row", "column", "published", "unit", "ours", "note"}
    places = [(row["table"], row["row"], row["column"]) for row in done.rows]
    assert len(places) == len(set(places))
    own = Cells(done.rows)
    for window in WINDOWS:
        for protocol in PROTOCOLS:
            ours = own.table(f"throughput, window {window}").ours(protocol, "4 hops")
            assert ours.n == 2
            assert ours.mean is not None
            assert 0 < ours.mean < 264, "a quarter of what one hop carries"


def test_published_values_stand_beside_ours(done: StudyResult) -> None:
    own = Cells(done.rows)
    for window in WINDOWS:
        found = own.table(f"cross of 4 hops, window {window}").at(
            "Muzha beside NewReno", "throughput"
        )
        assert found is not None
        assert found["published"] == 106.0
        index = own.table(f"index comparison, window {window}").at("4 hops, throughput", "Vegas")
        assert index is not None
        assert index["published"] == 214
        assert index["ambiguous"] is False


@pytest.mark.parametrize("setting", ["window 32", "window 4, AODV of RFC 3561"])
def test_every_row_of_the_index_comparison_stands_beside_ours(
    done: StudyResult, setting: str
) -> None:
    own = Cells(done.rows).table(f"index comparison, {setting}")
    assert own.rows() == [
        "4 hops, throughput",
        "4 hops, retransmissions",
        "4 hops, fairness beside NewReno",
    ]
    found = own.at("4 hops, fairness beside NewReno", "Vegas")
    assert found is not None
    assert found["published"] == 0.925
    assert 0.5 <= found["ours"]["mean"] <= 1


def test_printed_ranges_are_those_of_the_index_comparison() -> None:
    assert printed_range(SLIDES, "throughput") == pytest.approx((186 / 175, 65 / 54))
    assert printed_range(SLIDES, "retransmissions") == pytest.approx((10 / 16, 18 / 25))


@pytest.mark.parametrize(
    ("ours", "holds"),
    [
        (Estimate(1.1, 1.04, 1.16, 10), True),
        (Estimate(1.04, 1.02, 1.07, 10), None),
        (Estimate(1.02, 1.0, 1.04, 10), False),
        (Estimate(1.4, 1.3, 1.5, 10), False),
        (Estimate(1.1, None, None, 1), None),
    ],
)
def test_a_printed_range_asks_for_the_mean_and_rules_out_by_the_interval(
    ours: Estimate, holds: bool | None
) -> None:
    assert claims.within(ours, 1.06, 1.2) is holds


def test_the_index_of_mean_throughputs_is_not_the_mean_of_indices(done: StudyResult) -> None:
    own = Cells(done.rows).table("cross of 4 hops, window 32")
    row = "NewReno + NewReno"
    each, means = own.mean(row, "Jain"), own.mean(row, "Jain of means")
    assert each is not None
    assert means is not None
    assert each != means
    assert 0.5 <= means <= 1


def test_queues_mark_and_atcp_sees_congestion(tmp_path: Path) -> None:
    study = described("muzha")
    study.data["sizes"]["small"] = {**TINY, "seconds": 50, "repeat": 1}
    for kind, key, start in (("case", "label", "marking"), ("cell", "table", "RED")):
        study.data[kind] = [e for e in study.data[kind] if e.get(key, "").startswith(start)]
    settings = Settings()
    results = run_plan(study.plan(settings), out=tmp_path, show_progress=False)
    own = Cells(study.rows(results, study.scope(settings))).table("RED and ECN, 4 hops")
    assert "ATCP, RED and ECN" in own.rows()
    for row in own.rows():
        marks, congested = own.mean(row, "marks"), own.mean(row, "times congested")
        assert marks is not None
        assert congested is not None
        assert marks == 0 or row.endswith("RED and ECN"), row
        assert (congested > 0) == (row == "ATCP, RED and ECN"), row
        assert marks > 0 or congested == 0, row


def test_windows_by_the_length_of_the_route_resend_less(done: StudyResult) -> None:
    own = Cells(done.rows).table("window limits, resent")
    rows = own.rows()
    assert rows[-4:] == ["cwl", "cwl(1/8)", "receiver-cwl", "receiver-drai"]
    resent = [own.mean(row, "all lengths") for row in rows]
    assert own.mean("window 32", "all lengths") == 1
    assert all(value is not None and value < 1 for value in resent[-4:])


def test_slow_start_takes_a_share_of_the_time(done: StudyResult) -> None:
    own = Cells(done.rows).table("slow start")
    shares = [own.mean(row, column) for row in own.rows() for column in own.columns()]
    assert shares
    assert all(share is not None and 0 <= share < 1 for share in shares)
    assert all(cell["largest"] >= cell["ours"]["mean"] for cell in own.all)


def test_the_first_slow_start_is_not_one_after_a_timeout(tmp_path: Path) -> None:
    """A window that the receiver bounds below any loss stays in it, as 4 segments over 32 hops."""
    chain = (Path(muzha.__file__).parent / "chain.toml").read_text(encoding="utf-8")
    common = [
        ("flow.0.stack", "newreno/reno"),
        ("measure.duration", "12s"),
        ("measure.repeat", "1"),
    ]
    own = [*common, ("measure.sample_interval", "50ms"), ("topology.radio.hops", "6")]
    lossy = [("topology.radio.packet_error", "5%"), ("flow.0.window_limit", "32")]
    sources = {
        "phases, quiet": Source(chain, "test", (*own, ("flow.0.window_limit", "1"))),
        "phases, lossy": Source(chain, "test", (*own, *lossy)),
    }
    results = run_plan(plan("phases", "", sources, {}), out=tmp_path, show_progress=False)
    samples = results.scan("samples").collect()
    quiet = results.runs.filter(label="phases, quiet")["run"]
    assert set(samples.filter(pl.col("run").is_in(quiet.implode()))["phase"]) == {"slow_start"}
    assert slow_start(results, "phases, quiet").mean == 0
    lossy_share = slow_start(results, "phases, lossy").mean
    assert lossy_share is not None
    assert lossy_share > 0
    assert longest_slow_start(results, "phases, lossy") == pytest.approx(lossy_share)


def test_crosses_are_pooled_by_repeat(done: StudyResult) -> None:
    """At one length the pooled share is that of the length."""
    cells = Cells(done.rows)
    own = cells.table("crosses together")
    assert own.rows() == ["Vegas beside NewReno", "Muzha beside NewReno"]
    assert "window 8, DSR" in own.columns()
    for row in own.rows():
        one = cells.table("cross of 4 hops, window 8").ours(row, "share")
        assert own.ours(row, "window 8") == one


@pytest.mark.parametrize(
    ("largest", "connections", "verdict"),
    [([0.1, 0.43], 10, True), ([0.1, 0.3], 60, False), ([0.1, 0.3], 10, None), ([], 0, None)],
)
def test_up_to_is_about_the_largest_connection(
    largest: list[float], connections: int, verdict: bool | None
) -> None:
    each = connections // len(largest) if largest else 0
    known = [
        cell("t", "r", str(i), "share", Estimate(0.1, None, None, each), largest=value)
        for i, value in enumerate(largest)
    ]
    assert reached(Cells(known), "largest", 0.4) is verdict


def test_muzha_is_marked_by_its_routers(done: StudyResult) -> None:
    """Were it not, it would be NewReno, and no setting would matter."""
    own = Cells(done.rows).table("sensitivity")
    heading = "throughput, window 32"
    assert len({own.mean(row, heading) for row in own.rows()}) > 5


def test_findings_are_sentences_made_from_the_cells(done: StudyResult) -> None:
    assert len(done.findings) > 15
    for finding in done.findings:
        assert finding[0].isupper() or finding[0].isdigit(), finding
        assert finding.endswith("."), finding
        assert not {"nan", "None", "nan,", "None,"} & set(finding.split()), finding
    own = Cells(done.rows)
    resent = [
        own.table(f"resent, window {window}").mean("Muzha", "all lengths") or 0
        for window in WINDOWS
    ]
    assert f"{digits(min(resent))} to {digits(max(resent))} times" in done.findings[2]


def test_no_sentence_has_more_numbers_than_a_reader_can_hold(
    done: StudyResult, sections: Sequence[ReportSection]
) -> None:
    assert not crowded([*done.findings, *report_texts(sections, done.rows)])


@pytest.mark.parametrize(
    ("low", "high", "verdict", "answer"),
    [
        (1.06, 1.2, "agrees", "Yes, at every window."),
        (0.7, 0.9, "differs", "No, all lengths: it carries less"),
        (
            0.9,
            1.2,
            "inconclusive",
            "No, all lengths: inconclusive with this number of seeds",
        ),
        (
            1.01,
            1.04,
            "differs",
            "No, all lengths: it carries more, but less than is claimed",
        ),
    ],
)
def test_the_claim_of_more_throughput_needs_the_whole_interval(
    low: float, high: float, verdict: str, answer: str, tiny: DescribedStudy, done: StudyResult
) -> None:
    ours = Estimate((low + high) / 2, low, high, 10)
    gains = [f"gain, window {window}" for window in WINDOWS]
    made = [
        cell(gain, "Muzha", column, "× NewReno", ours)
        for gain in gains
        for column in ("4 hops", "all lengths")
    ]
    stated = tiny.claims(made)
    own = [c for c in stated if "NewReno on a chain, all lengths," in str(c["row"])]
    assert len(own) == len(WINDOWS)
    assert all(str(c["note"]).startswith(verdict) for c in own)
    others = [row for row in done.rows if row["table"] not in gains or row["row"] != "Muzha"]
    assert answer in tiny.findings([*made, *others], tiny.constants)[1]


def test_the_report_can_be_drawn_again_from_disk(sections: Sequence[ReportSection]) -> None:
    titles = [section.title for section in sections]
    assert len(titles) == len(set(titles)) > 8
    figures = [figure for section in sections for figure in section.figures]
    assert len(figures) > 12
    for figure in figures:
        assert figure.runs, figure.name


# What a reader sees.


def test_the_claims_at_the_top_of_the_report_fit(tiny: DescribedStudy, done: StudyResult) -> None:
    assert_top_claims_fit(tiny, done.rows)


@pytest.fixture(scope="module")
def report(done: StudyResult, sections: Sequence[ReportSection]) -> Path:
    return write_study(done.results, "muzha", "", sections)


def test_windows_of_muzha_are_linked_within_their_figure(chromium: Any, report: Path) -> None:
    with opened(chromium, report) as page:
        names = figures_over_time(page)
        assert "dynamics" in names
        figure = Series(page, "dynamics")
        assert figure.panels.count() > 1
        assert_explorable(figure)
        figure.hover(0.6)
        per_panel = figure.root.locator(".panel").evaluate_all(
            "all => all.map(p => [...p.querySelectorAll('.values output')].map(o => o.textContent))"
        )
        assert len(per_panel) == figure.panels.count()
        assert all(any(values) for values in per_panel)


def test_every_figure_of_a_study_is_drawn_without_warnings(chromium: Any, report: Path) -> None:
    """`opened` fails on any message of Vega."""
    with opened(chromium, report) as page:
        figures = page.locator("[data-spec]")
        assert figures.count() >= 5
        for figure in figures.all():
            figure.scroll_into_view_if_needed()
            figure.locator("svg.marks").first.wait_for()
