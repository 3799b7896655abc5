"""The page of published numbers: the rule of its verdicts, its registry, and gaps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke
from made import described
from prose import crowded

from weir.api.studies import published
from weir.base.errors import RunError
from weir.cells import verdicts
from weir.cells.cells import cell
from weir.cells.claims import claim, decided
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.running.execution import RunOptions
from weir.statistics.intervals import Estimate
from weir.studies import catalogue, sources
from weir.studies.lab_udp.published import load as lab_source
from weir.studies.published import compose
from weir.studies.udp_vs_tcp.published import load as report_004


def ours(mean: float | None, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return Estimate(mean, low, high, 5).as_json()


@pytest.mark.parametrize(
    ("printed", "own", "verdict"),
    [
        (10.0, ours(12.0, 9.0, 15.0), verdicts.IN_INTERVAL),
        (10.0, ours(12.0, 5.0, 19.0), verdicts.TOO_FEW),
        (10.0, ours(11.0, 10.9, 11.1), verdicts.NEAR),
        (10.0, ours(9.0), verdicts.CLOSE),
        (10.0, ours(20.0), verdicts.FACTOR),
        (10.0, ours(4.9), verdicts.OFF),
        (10.0, ours(None), verdicts.MISSING),
        (10.0, None, verdicts.MISSING),
        ("timeout", ours(3.0), verdicts.WORDS),
        ("timeout", ours(None), verdicts.MISSING),
        (0.0, ours(1.0), verdicts.OFF),
    ],
)
def test_one_rule_for_all_numbers(printed: Any, own: Any, verdict: str) -> None:
    assert verdicts.of_number(printed, own) == verdict


def test_the_registry_names_studies_tables_and_claims_that_exist() -> None:
    known = catalogue.studies()
    tables = {
        "lab-udp": {table.id for name in ("000", "002") for table in lab_source(name).tables},
        "udp-vs-tcp": {table.id for table in report_004().tables},
        "muzha": {
            *(f"cross of {hops} hops, window 8, AODV of RFC 3561" for hops in (4, 6, 8)),
            "index comparison, window 4, AODV of RFC 3561",
        },
    }
    tables["lab-udp"] |= {f"{name}-throughput" for name in ("000-loss", "002-loss", "002-delay")}
    found = [(source, part) for source in sources.load() for part in source.parts]
    assert [source.id for source in sources.load()] == ["000", "001", "002", "003", "004"]
    for source, part in found:
        assert source.study in known
        assert part.tables or part.claims, part
        for pattern in part.tables:
            names = tables[source.study]
            assert any(re.fullmatch(pattern, name) for name in names), pattern
        for pattern in (*part.claims, *(reason.rows for reason in part.reasons)):
            re.compile(pattern)


def test_every_published_table_of_a_study_is_in_the_registry() -> None:
    patterns = [p for source in sources.load() for part in source.parts for p in part.tables]
    named = [table.id for name in ("000", "002") for table in lab_source(name).tables]
    named += [table.id for table in report_004().tables if not table.id.count("-") > 1]
    named += ["cross of 6 hops, window 8, AODV of RFC 3561"]
    named += ["index comparison, window 4, AODV of RFC 3561"]
    assert described("muzha").constants["slides"]["cross"]
    for name in named:
        assert any(re.fullmatch(pattern, name) for pattern in patterns), name


CELLS: list[Cell] = [
    claim("a window of 16 is slower than one of 8 under loss (report 000)", "x",
          Estimate(5.0, None, None, 5), True),
    {"table": "000-loss", "row": "W=16", "column": "1%", "published": 5.4, "unit": "s",
     "serial": ours(16.2, 16.0, 16.4), "note": "<b>"},
    {"table": "000-loss", "row": "W=8", "column": "1%", "published": 3.0, "unit": "s",
     "serial": ours(2.9, 2.8, 3.1), "note": ""},
]  # fmt: skip


def test_entries_have_verdicts_and_reasons_and_gaps_show_as_missing() -> None:
    found = list(sources.entries(sources.load(), {"lab-udp": CELLS}))
    by_row = {entry.row: entry for entry in found if entry.row}
    assert by_row["W=8"].verdict == verdicts.IN_INTERVAL
    assert by_row["W=16"].verdict == verdicts.OFF
    assert by_row["W=16"].ratio == pytest.approx(3.0)
    assert by_row["W=16"].reason
    assert by_row["W=16"].run.startswith("weir run ")
    gaps = {(entry.source, entry.part) for entry in found if entry.verdict == verdicts.MISSING}
    assert ("004", "On one machine") in gaps
    assert ("003", "Two flows of one algorithm") in gaps


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.0, 2.0, True), (1.0, 3.1, None), (3.2, 4.0, False), (None, None, True)],
)
def test_a_range_is_decided_by_the_whole_interval(
    low: float | None, high: float | None, verdict: bool | None
) -> None:
    assert decided(Estimate(1.5, low, high, 3), 1.0, 3.0) is verdict


def test_a_reason_is_given_only_where_the_results_bear_it_out() -> None:
    """Source 000 prints Reno's row as if at another delay; that explains what is nearer there."""
    reno = {"table": "000-loss", "row": "Reno", "column": "4%", "published": 12.0, "unit": "s"}
    for late, is_given in ((10.0, True), (2.5, False)):
        other = {**reno, "row": "Reno, if at 10 ms", "published": None}
        cells: list[Cell] = [
            {**reno, "serial": ours(3.0, 2.9, 3.1), "note": ""},
            {**other, "serial": ours(late, late, late), "note": ""},
        ]
        (found,) = [e for e in sources.entries(sources.load(), {"lab-udp": cells}) if e.row]
        assert found.verdict == verdicts.OFF
        assert bool(found.reason) is found.is_explained is is_given


def test_no_reason_has_more_numbers_than_a_reader_can_hold() -> None:
    parts = (part for source in sources.load() for part in source.parts)
    assert not crowded(reason.text for part in parts for reason in part.reasons)


def test_every_expression_over_results_says_no_without_them() -> None:
    nothing = {"table": "t", "row": "r", "column": "c", "published": None}
    reasons = [r for s in sources.load() for part in s.parts for r in part.reasons if r.holds]
    assert len(reasons) > 10
    for reason in reasons:
        assert not sources.Evidence([], "ours").bear_out(reason, nothing), reason.holds


def test_another_setting_stands_beside_a_number() -> None:
    cells = [
        cell(f"cross of 4 hops, {setting}", "Vegas beside NewReno", "delay", "ms",
             Estimate(mean, None, None, 1), published=72.4)
        for setting, mean in (
            ("window 8, AODV of RFC 3561", 93.0), ("window 4", 80.0), ("window 32", 95.0),
            ("window 4, AODV of RFC 3561", 81.0),
        )
    ]  # fmt: skip
    (one,) = [e for e in sources.entries(sources.load(), {"muzha": cells}) if e.row]
    assert one.other_settings == {
        "window 4": 80.0, "window 8": None, "window 32": 95.0, "window 4, AODV of RFC 3561": 81.0,
    }  # fmt: skip


def refused(name: str, _settings: Settings) -> StudyResult:
    raise RunError(f"{name} cannot run here")


def test_a_study_that_fails_is_named_and_the_page_is_written(tmp_path: Path) -> None:
    how: RunOptions = {"out": tmp_path}
    done = compose(Settings(how=how), refused)
    assert "study muzha: no results: muzha cannot run here" in done.warnings
    assert {entry.verdict for entry in done.entries} == {verdicts.MISSING}
    page = done.path.read_text(encoding="utf-8")
    assert "muzha cannot run here" in page
    assert "default-src 'none'" in page
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", page)


def test_an_unknown_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="size 'big': a study has the sizes small and full"):
        published(size="big", out=tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["study"], "NAME is missing"),
        (["study", "muzha", "--published"], "--published is about all sources"),
        (["study", "--published", "--repeat", "3"], "--repeat 3: --published takes --size"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(
    invoke: Invoke, words: list[str], message: str
) -> None:
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
