"""The study muzha: what is published, what is run, and what is made of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from weir.api import run_plan
from weir.fairness import jain
from weir.scenario import Source
from weir.stats import Estimate
from weir.studies import Settings, StudyResult
from weir.studies import find as find_study
from weir.studies.cells import Cells, cell, interval_text
from weir.studies.contest import Contests, Extent
from weir.studies.muzha import (
    STUDY,
    chain,
    cross,
    expected,
    levels,
    limits,
    losses,
    marking,
    mobility,
    sensitivity,
    slowstart,
)
from weir.studies.muzha.experiment import (
    EXTENTS,
    HOPS,
    MUZHA,
    MUZHA_RTT,
    NEWRENO,
    STACKS,
    VEGAS,
    WINDOWS,
    Radio,
    Sender,
    scenario,
)
from weir.studies.muzha.findings import throughput as answer_on_throughput
from weir.studies.muzha.measures import cases
from weir.studies.muzha.published import printed
from weir.sweep import plan

TINY = Extent(tuple(STACKS), 7, 2, values=(4,))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Every part of the study with the shortest chain, two seeds and two seconds that count."""
    tiny = replace(STUDY, extents={"small": TINY})
    out = tmp_path_factory.mktemp("muzha")
    return tiny.run(Settings(how={"out": out, "show_progress": False}))


def test_the_study_is_found_by_its_name() -> None:
    assert find_study("muzha").name == STUDY.name
    full = STUDY.extents["full"]
    assert full.repeat >= 10
    assert list(full.values) == list(HOPS)
    assert full.seconds == 50


# What is published.


def test_the_index_comparison_is_as_the_slides_print_it() -> None:
    rows = {
        4: ((175, 214, 186), (14, 6, 10), (0.925, 0.99)),
        6: ((54, 89, 65), (16, 6, 10), (0.74, 0.99)),
        8: ((34, 35, 37), (25, 9, 18), (0.89, 0.99)),
    }
    assert {index.hops for index in printed().indices} == set(rows)
    for hops, (throughput, resent, fairness) in rows.items():
        index = printed().index(hops)
        assert index is not None
        assert tuple(index.throughput[who] for who in (NEWRENO, VEGAS, MUZHA)) == throughput
        assert tuple(index.retransmissions[who] for who in (NEWRENO, VEGAS, MUZHA)) == resent
        assert tuple(index.fairness[who] for who in (VEGAS, MUZHA)) == fairness


@pytest.mark.parametrize(
    ("hops", "own", "throughput", "delay", "aggregate", "fairness", "computed"),
    [
        (4, VEGAS, (35.7, 118.0), (72.4, 100.4), 153.7, 0.72, 0.777),
        (4, MUZHA, (106.0, 102.0), (63.9, 65.3), 208, 0.99, 1.000),
        (6, VEGAS, (23.2, 89.9), (264.0, 101.6), 113.1, 0.74, 0.742),
        (6, MUZHA, (65.3, 53.6), (119.5, 112.4), 118.9, 0.99, 0.990),
        (8, VEGAS, (20.2, 41.7), (91.9, 168.0), 61.9, 0.89, 0.892),
        (8, MUZHA, (43.7, 36.8), (97.2, 112.4), 80.5, 0.99, 0.993),
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
    row = printed().cross(hops, (own, NEWRENO))
    assert row is not None
    assert (row.throughput, row.delay) == (throughput, delay)
    assert (row.aggregate, row.fairness) == (aggregate, fairness)
    assert jain(list(row.throughput)) == pytest.approx(computed, abs=5e-4)
    assert sum(row.throughput) == pytest.approx(row.aggregate, abs=0.11)


def test_rows_that_cannot_be_what_they_say_are_flagged() -> None:
    assert {index.hops for index in printed().indices if index.is_ambiguous} == {6, 8}
    assert all(index.note for index in printed().indices)
    # Where the printed index is not that of the throughputs beside it, a note says so.
    for row in printed().crosses:
        is_off = abs((jain(list(row.throughput)) or 0.0) - row.fairness) > 0.011
        assert bool(row.note) == is_off, row


# What is run.


def test_every_scenario_can_be_read_and_has_the_settings_of_the_source() -> None:
    texts = cases(EXTENTS["full"])
    assert len(texts) > 500
    for label, text in texts.items():
        effective = Source(text, label).effective()
        assert effective.repeat >= 10 or label.startswith("trace"), label
        for setting in ("initial_window = 2", 'delayed_ack = "off"', "timestamps = false"):
            assert setting in text, label
        assert ('min_rto = "1s"' in text) == ("timeouts from 1 s" in label), label


def test_all_that_the_source_names_is_run() -> None:
    texts = cases(EXTENTS["full"])
    for window in WINDOWS:
        for hops in HOPS:
            assert all(chain.label(protocol, hops, window) in texts for protocol in STACKS)
        for hops in cross.HOPS:
            assert all(
                cross.label(pair, hops, cross.SETTINGS[window]) in texts for pair in cross.PAIRS
            )
            assert chain.label(MUZHA_RTT, hops, window) in texts
            assert window != WINDOWS[-1] or all(
                limits.label(name, hops) in texts for name in limits.SENDERS
            )
    grid = {label for label in texts if label.startswith("grid,")}
    assert len(grid) == 36 * len(levels.GRID_HOPS)
    assert levels.LEVELS == (3, 4, 5, 6, 7)
    assert list(losses.RATES) == [0, 1, 2, 5, 10]
    policies = {family.policy.partition("(")[0] for family in mobility.SENDERS.values()}
    assert policies == {"none", "tcp-f", "elfn", "atcp", "bus"}


def test_labels_are_names_of_one_case_each() -> None:
    parts = (*(chain, cross, levels, limits, losses, marking, mobility, sensitivity, slowstart),)
    labels = [label for part in parts for label in part.cases(EXTENTS["full"])]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize("protocol", STACKS)
def test_the_limit_is_a_receivers_window_to_the_controller_too(
    protocol: str, tmp_path: Path
) -> None:
    """A run with `window_limit` equals one whose receiver offers that window."""
    extent = replace(TINY, seconds=10.0, values=(4, 8))
    sources: dict[str, Source] = {}
    for window, hops in itertools.product(WINDOWS, extent.values):
        text = scenario(Radio(int(hops)), [Sender(STACKS[protocol], window)], extent)
        limit = f"window_limit = {window}"
        assert limit in text
        receiver = text.replace(limit, f'recv_buffer = "{window * Sender.mss}B"')
        sources |= {
            f"limit {window} {hops}": Source(text, "limit"),
            f"receiver {window} {hops}": Source(receiver, "receiver"),
        }
    results = run_plan(plan("window", "window", sources, {}), out=tmp_path, show_progress=False)
    flows = Contests(results)
    for window, hops in itertools.product(WINDOWS, extent.values):
        for column in ("goodput_mbps", "retransmits", "timeouts"):
            limited = flows.flow(f"limit {window} {hops}", "flow", column)
            assert limited == flows.flow(f"receiver {window} {hops}", "flow", column)
            assert len(limited) == extent.repeat


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
        for protocol in STACKS:
            ours = own.table(chain.table("throughput", window)).ours(protocol, "4 hops")
            assert ours.n == 2
            assert ours.mean is not None
            assert 0 < ours.mean < 264, "a quarter of what one hop carries"


def test_published_values_stand_beside_ours(done: StudyResult) -> None:
    own = Cells(done.rows)
    for window in WINDOWS:
        found = own.table(cross.table(4, cross.SETTINGS[window])).at(
            cross.flow_name(MUZHA, NEWRENO), "throughput"
        )
        assert found is not None
        assert found["published"] == 106.0
        index = own.table(chain.index_table(window)).at("4 hops, throughput", VEGAS)
        assert index is not None
        assert index["published"] == 214
        assert index["ambiguous"] is False


def test_every_row_of_the_index_comparison_stands_beside_ours(done: StudyResult) -> None:
    own = Cells(done.rows).table(chain.index_table(32))
    assert own.rows() == [
        "4 hops, throughput",
        "4 hops, retransmissions",
        "4 hops, fairness beside NewReno",
    ]
    found = own.at("4 hops, fairness beside NewReno", VEGAS)
    assert found is not None
    assert found["published"] == 0.925
    assert 0.5 <= found["ours"]["mean"] <= 1


def test_printed_ranges_are_those_of_the_index_comparison() -> None:
    ranges = printed().ranges(MUZHA, NEWRENO)
    assert ranges["throughput"] == pytest.approx((186 / 175, 65 / 54))
    assert ranges["retransmissions"] == pytest.approx((10 / 16, 18 / 25))


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
    assert expected.within(ours, 1.06, 1.2) is holds


def test_the_index_of_mean_throughputs_is_not_the_mean_of_indices(done: StudyResult) -> None:
    own = Cells(done.rows).table(cross.table(4, cross.SETTINGS[32]))
    row = cross.pair_name((NEWRENO, NEWRENO))
    each, means = own.mean(row, cross.FAIRNESS), own.mean(row, cross.FAIRNESS_OF_MEANS)
    assert each is not None
    assert means is not None
    assert each != means
    assert 0.5 <= means <= 1


def test_queues_mark_and_atcp_sees_congestion(tmp_path: Path) -> None:
    extent = replace(TINY, seconds=50, repeat=1)
    sources = {name: Source(text, name) for name, text in marking.cases(extent).items()}
    results = run_plan(plan("red", "red", sources, {}), out=tmp_path, show_progress=False)
    cells = list(marking.cells(results, Contests(results), extent))
    own = Cells(cells).table(marking.table(4))
    assert "ATCP, RED and ECN" in own.rows()
    for row in own.rows():
        marks, congested = own.mean(row, marking.MARKS), own.mean(row, marking.CONGESTED)
        assert marks is not None
        assert congested is not None
        assert marks == 0 or row.endswith("RED and ECN"), row
        assert (congested > 0) == (row == "ATCP, RED and ECN"), row
        assert marks > 0 or congested == 0, row


def test_windows_by_the_length_of_the_route_resend_less(done: StudyResult) -> None:
    own = Cells(done.rows).table(limits.RESENT)
    rows = limits.rows()
    assert rows[-3:] == ["cwl", "cwl(1/8)", "receiver-cwl"]
    resent = [own.mean(row, chain.ALL_HOPS) for row in rows]
    assert own.mean("window 32", chain.ALL_HOPS) == 1
    assert all(value is not None and value < 1 for value in resent[-3:])


def test_slow_start_takes_a_share_of_the_time(done: StudyResult) -> None:
    own = Cells(done.rows).table(slowstart.TABLE)
    shares = [own.mean(row, column) for row in own.rows() for column in own.columns()]
    assert shares
    assert all(share is not None and 0 <= share < 1 for share in shares)


def test_muzha_is_marked_by_its_routers(done: StudyResult) -> None:
    """Were it not, it would be NewReno, and no setting would matter."""
    own = Cells(done.rows).table(sensitivity.TABLE)
    heading = sensitivity.column("throughput", sensitivity.WINDOWS[-1])
    assert len({own.mean(row, heading) for row in own.rows()}) > 5


def test_findings_are_sentences_made_from_the_cells(done: StudyResult) -> None:
    assert len(done.findings) > 15
    for finding in done.findings:
        assert finding[0].isupper() or finding[0].isdigit(), finding
        assert finding.endswith("."), finding
        assert not {"nan", "None", "nan,", "None,"} & set(finding.split()), finding
    own = Cells(done.rows)
    for window in WINDOWS:
        gain = own.table(chain.table(chain.GAIN, window)).ours(MUZHA, chain.ALL_HOPS)
        assert f"{interval_text(gain)} at window {window}" in done.findings[1]
        short = own.table(chain.table(chain.RESENT, window)).ours(MUZHA, chain.SHORT)
        assert f"{interval_text(short)} at window {window}" in done.findings[0]


@pytest.mark.parametrize(
    ("low", "high", "verdict", "answer"),
    [
        (1.06, 1.2, "agrees", "Yes, at every window."),
        (0.7, 0.9, "differs", "No: it carries less"),
        (0.9, 1.2, "inconclusive", "No: inconclusive with this number of seeds"),
        (1.01, 1.04, "differs", "No: it carries more, but less than is claimed"),
    ],
)
def test_the_claim_of_more_throughput_needs_the_whole_interval(
    low: float, high: float, verdict: str, answer: str
) -> None:
    ours = Estimate((low + high) / 2, low, high, 10)
    made = [
        cell(chain.table(chain.GAIN, window), MUZHA, column, chain.TIMES, ours)
        for window in WINDOWS
        for column in ("4 hops", chain.ALL_HOPS)
    ]
    every = expected.claims(Cells(made))
    claims = [c for c in every if f"NewReno on a chain, {chain.ALL_HOPS}," in str(c["row"])]
    assert len(claims) == len(WINDOWS)
    assert all(str(c["note"]).startswith(verdict) for c in claims)
    assert answer in answer_on_throughput(Cells(made))


def test_the_report_can_be_drawn_again_from_disk(done: StudyResult) -> None:
    sections = STUDY.sections(done.results, done.rows)
    titles = [section.title for section in sections]
    assert len(titles) == len(set(titles)) > 8
    figures = [figure for section in sections for figure in section.figures]
    assert len(figures) > 12
    for figure in figures:
        assert figure.svg().startswith("<svg"), figure.name
        assert figure.runs, figure.name
