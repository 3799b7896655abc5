"""Radio networks compared with arithmetic, Bianchi's model and published chains."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import figures
import numpy as np
import polars as pl
import pytest
from conftest import Invoke

from weir import radio_validation
from weir.api.reports import write
from weir.radio_validation import SIZES, comparison, reference
from weir.radio_validation.reference import DSSS, FHSS, FHSS_PAYLOAD, Saturation
from weir.radio_validation.report import compose_radio
from weir.radio_validation.rows import GOODPUT, SHARE, rows
from weir.radio_validation.scenes import AIRTIMES, GROUPS, STOP_AND_WAIT, Group, scenes
from weir.radio_validation.summary import HEADINGS, METRICS, findings, table
from weir.recordings.judge import Row
from weir.statistics.intervals import rounded
from weir.validation import Validation
from weir.validation.summary import mark

SCENES = {scene.name: scene for scene in scenes(SIZES["small"])}
FRAMES = ("rts_us", "cts_us", "ack_us", "data_us", "tcp_ack_us", "exchange_us")
SUBSET = (
    "airtimes-*",
    "stop-and-wait-1000b-2m-1m-*",
    "fhss-w32-m3-basic-n5",
    "fhss-w32-m5-rts-n10",
    "dsss-1040b-rts-n5",
    "udp-chain-[148]",
    "tcp-chain-[148]",
)
"""What is run here, all of it as `weir validate --radio` runs it."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "validation" / "radio.md"
_BEGIN = "<!-- radio: written by a test from `weir validate --radio` -->\n"
_END = "<!-- end of radio -->\n"


# References.


def test_bianchis_durations_are_those_of_his_paper() -> None:
    basic = Saturation(FHSS, FHSS_PAYLOAD, 32, 3, has_rts=False)
    announced = replace(basic, has_rts=True)
    assert (basic.success_us, basic.collision_us) == (8_982, 8_713)
    assert (announced.success_us, announced.collision_us) == (9_568, 417)


@pytest.mark.parametrize(
    ("stations", "tau", "p"),
    [(5, 0.04816, 0.17918), (10, 0.03869, 0.29888), (20, 0.02911, 0.42956), (50, 0.019, 0.60943)],
)
def test_the_models_solution_is_the_one_computed_elsewhere(
    stations: int, tau: float, p: float
) -> None:
    found = Saturation(FHSS, FHSS_PAYLOAD, 32, 3).attempt(stations)
    assert found == pytest.approx(tau, abs=6e-6)
    assert 1 - (1 - found) ** (stations - 1) == pytest.approx(p, abs=6e-6)


@pytest.mark.parametrize(
    ("window", "stages", "has_rts", "expected"),
    [
        (32, 3, False, (0.8097, 0.7532, 0.7117, 0.6788, 0.6273, 0.5529)),
        (32, 3, True, (0.8342, 0.8371, 0.8367, 0.8356, 0.8329, 0.8270)),
        (32, 5, False, (0.8102, 0.7579, 0.7231, 0.6975, 0.6603, 0.6109)),
        (32, 5, True, (0.8342, 0.8370, 0.8368, 0.8362, 0.8346, 0.8317)),
        (128, 3, False, (0.8250, 0.8263, 0.8130, 0.7981, 0.7702, 0.7252)),
        (128, 3, True, (0.7979, 0.8217, 0.8293, 0.8327, 0.8355, 0.8363)),
    ],
)
def test_the_model_gives_known_throughputs(
    window: int, stages: int, has_rts: bool, expected: Sequence[float]
) -> None:
    model = Saturation(FHSS, FHSS_PAYLOAD, window, stages, has_rts)
    found = [model.throughput_mbps(stations) for stations in (5, 10, 15, 20, 30, 50)]
    assert found == pytest.approx(expected, abs=6e-5)


def test_frames_are_bits_over_rates() -> None:
    assert (DSSS.rts, DSSS.cts, DSSS.ack) == (352, 304, 304)
    assert (DSSS.packet(1_040), DSSS.packet(40)) == (4_464, 464)
    mean = 50 + 15 * 20
    assert (mean + DSSS.frames(1_040), mean + DSSS.frames(40)) == (5_804, 1_804)
    plain = [reference.plain_kbps(DSSS, 1_000, hops) for hops in (1, 2, 3, 4)]
    assert [round(kbps) for kbps in plain] == [1_052, 526, 351, 263]


def test_the_game_of_dice_is_fair() -> None:
    """Over one hop two nodes take turns: a Markov chain over what is left to who sends next."""
    drawn = np.full(31, 1 / 31)
    left = np.zeros(31)
    left[0] = 1.0  # nothing: a backoff is drawn
    for _ in range(200):
        wait = left.copy()
        wait[0] = 0.0
        wait += left[0] * drawn
        after = np.zeros(31)
        for slots in range(31):
            for other, chance in enumerate(wait):
                after[max(slots - other, 0)] += chance / 31
        left = after
    mean = float(wait @ np.arange(31))
    assert reference.waits(1) == pytest.approx(2 * mean, rel=2e-3)
    assert reference.waits(1) < reference.waits(4) / 4 < 30


# The set.


def test_the_set_has_what_it_should() -> None:
    found = {group: [s for s in SCENES.values() if s.group == group] for group in GROUPS}
    assert len(found["airtimes"]) == len(AIRTIMES) == 7
    assert all(tuple(scene.known) == FRAMES for scene in found["airtimes"])
    assert len(found["stop-and-wait"]) == 4 * len(STOP_AND_WAIT) == 20
    assert len(found["fhss"]) == 3 * 2 * 6
    assert len(found["dsss"]) == 3 * 6
    assert [s.at for s in found["tcp-chain"]] == [*range(1, 11)]
    judged = {group: [s.tolerance for s in own if s.tolerance] for group, own in found.items()}
    assert {str(t) for t in judged["stop-and-wait"]} == {"1 %"}
    assert {str(t) for t in judged["fhss"] + judged["dsss"]} == {"2 %"}
    assert [str(t) for t in judged["udp-chain"]] == ["20 %"] * 4
    assert [str(t) for t in judged["tcp-chain"]] == ["15 %"] * 3 + ["25 %"] * 6


@pytest.mark.parametrize("size", SIZES)
def test_every_scenario_is_valid(size: str) -> None:
    planned = comparison(size=size).plan
    assert {case.label for case in planned.cases} == set(SCENES)
    for case in planned.cases:
        assert case.scenario.fields["topology"]["kind"] == "radio"
        assert case.scenario.repeat in (1, SIZES[size].seeds)


def test_scenarios_are_what_their_names_say() -> None:
    def radio_of(name: str) -> dict[str, object]:
        found: dict[str, object] = SCENES[name].source.effective().fields["topology"]["radio"]
        return found

    fhss = radio_of("fhss-w128-m3-basic-n20")
    assert (fhss["mac"], fhss["cw_min"], fhss["cw_max"]) == ("bianchi", 127, 1_023)
    dsss = radio_of("dsss-1500b-rts-n50")
    assert (dsss["mac"], dsss["short_retries"], dsss["eifs"]) == ("standard", "unlimited", "50us")
    assert len(SCENES["dsss-1500b-rts-n50"].source.effective().fields["flow"]) == 50
    chain = radio_of("tcp-chain-7")
    assert (chain["routing"], chain["hops"]) == ("dsr", 7)


def test_a_share_comes_with_the_run_that_it_is_of() -> None:
    planned = comparison(cases=["udp-chain-8"])
    assert [scene.name for scene in planned.scenes] == ["udp-chain-8"]
    assert [case.label for case in planned.plan.cases] == ["udp-chain-8", "udp-chain-1"]


# Runs.


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    folder = tmp_path_factory.mktemp("radio")
    return comparison(cases=SUBSET).run_plan(out=folder, show_progress=False)


def test_every_row_is_there_and_holds(found: Validation) -> None:
    by_case: dict[str, list[Row]] = {}
    for row in found.rows:
        by_case.setdefault(row["case"], []).append(row)
    assert len(by_case) >= len(AIRTIMES) + 4 + 3 + 3 + 3
    for name, own in by_case.items():
        scene = SCENES[name]
        metrics = [row["metric"] for row in own]
        if scene.group == "airtimes":
            assert metrics == list(FRAMES)
        else:
            assert metrics == ([SHARE, GOODPUT] if scene.base else [GOODPUT])
        for row in own:
            assert (row["kind"], row["at"], row["series"]) == (scene.group, scene.at, scene.series)
            assert row["ours"] is not None
            if row["tolerance"]:
                assert row["verdict"] == "holds", row
    assert all(any(SCENES[name].group == group for name in by_case) for group in GROUPS)
    assert found.score["all"]["held"] == found.score["all"]["judged"] >= 42 + 4 + 3 + 3


def test_what_is_random_has_an_interval(found: Validation) -> None:
    for row in found.rows:
        if row["kind"] != "airtimes" and row["ratio"] is not None:
            assert row["ratio_interval"]["n"] == SIZES["small"].seeds
            assert row["ratio_interval"]["lo"] <= row["ratio"] <= row["ratio_interval"]["hi"]


def test_wrong_rows_are_reported(found: Validation) -> None:
    frame, stop = SCENES["airtimes-1000b-2m-1m"], SCENES["stop-and-wait-1000b-2m-1m-1h"]
    late = replace(frame, known={**frame.known, "cts_us": frame.known["cts_us"] + 0.01})
    assert stop.expected is not None
    slow = replace(stop, expected=stop.expected * 1.012)
    unknown = replace(stop, name="never-run")
    judged = rows([late, slow, unknown], found.results)
    assert [row["metric"] for row in judged if row["holds"] is False] == ["cts_us", GOODPUT]
    assert judged[-1]["note"] == "skipped: the simulation failed"
    assert judged[-1]["verdict"] is None
    assert any("never-run" in text for text in findings(judged))


def test_the_report_has_a_picture_of_each_group(found: Validation) -> None:
    report = compose_radio(found.results)
    sections = {section.title: section for section in report.sections}
    for group in GROUPS:
        section = sections[HEADINGS[group]]
        assert section.figures, group
        assert all(figure.svg().startswith("<svg") for figure in section.figures)
        assert section.tables[0].rows
    assert "Rows that do not hold" not in sections
    assert "Validation of radio networks" in write(found.results).read_text(encoding="utf-8")


def test_the_rows_stay_beside_the_results(found: Validation) -> None:
    kept = json.loads((found.results.path / radio_validation.FILE).read_text(encoding="utf-8"))
    assert kept["rows"] == json.loads(json.dumps(list(found.rows)))
    assert kept["score"] == found.score
    headers, lines = table(found.rows)
    assert len(lines) == len(found.rows)
    assert all(len(line) == len(headers) for line in lines)


# The document.


@pytest.mark.timeout(1_800)
def test_the_document_has_what_the_command_printed(found: Validation, tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    listed, after = rest.split(_END)
    if os.environ.get("WEIR_BLESS") is not None:
        whole = comparison().run_plan(out=tmp_path, show_progress=False)
        points = "".join(f"- {point}\n" for point in findings(whole.rows))
        tables = "\n".join(_table(group, whole.rows) for group in GROUPS)
        DOCUMENT.write_text(
            f"{before}{_BEGIN}\n{tables}\n{points}\n{_END}{after}", encoding="utf-8"
        )
        figures.write()
        return
    cells = {cell.strip() for line in listed.splitlines() for cell in line.split("|")}
    for row in found.rows:
        assert _cell(row) in cells, f"{row['case']}: WEIR_BLESS=1 rewrites the table"


def _table(group: Group, found: Sequence[Row]) -> str:
    """A group's rows; a line per series, a column per place or metric."""
    own = [row for row in found if row["kind"] == group]
    is_frames = group == "airtimes"
    lines: dict[str, list[str]] = {}
    columns: dict[str, None] = {}
    for row in own:
        metric = METRICS[row["metric"]]
        columns[metric if is_frames else f"{row['at']:g}"] = None
        name = row["series"] if is_frames or metric == "goodput" else f"{row['series']}: {metric}"
        lines.setdefault(name, []).append(_cell(row))
    head = f"| {HEADINGS[group]} | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}\n"
    return head + "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in lines.items())


def _cell(row: Row) -> str:
    digits = f"{row['ours']:.4f}" if row["metric"] == SHARE else f"{row['ours']:.0f}"
    if row["ratio"] is None:
        return digits
    return " ".join(filter(None, [digits, f"×{row['ratio']:.3f}", mark(row)]))


# The command.


def test_the_command_prints_rows(invoke: Invoke) -> None:
    result = invoke("validate", "--radio", "--case", "airtimes-1000b-2m-1m", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert [row["metric"] for row in printed["rows"]] == list(FRAMES)
    expected = SCENES["airtimes-1000b-2m-1m"].known.values()
    assert [row["reference"] for row in printed["rows"]] == [rounded(v) for v in expected]
    assert printed["score"]["airtimes"] == {"held": 6, "inconclusive": 0, "judged": 6}


def test_one_frame_that_is_off_is_enough(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all frames of a kind the farthest from its time is judged."""
    module = import_module("weir.radio_validation.rows")  # the package has a function `rows`
    found = module._frame_times

    def one_late(frames: pl.DataFrame) -> dict[str, list[float]]:
        return {metric: [*times, times[0] + 0.1] for metric, times in found(frames).items()}

    monkeypatch.setattr(module, "_frame_times", one_late)
    result = invoke("validate", "--radio", "--case", "airtimes-1000b-2m-1m", "--json", "--quiet")
    score = json.loads(result.stdout)["score"]["airtimes"]
    assert score == {"held": 0, "inconclusive": 0, "judged": 6}


def test_the_command_prints_a_table(invoke: Invoke) -> None:
    result = invoke("validate", "--radio", "--case", "airtimes-512b-*", "--quiet")
    assert result.exit_code == 0, result.output
    assert "2512" in result.stdout
    assert "Frames on the air: 6 of 6 rows hold (exact)" in result.stdout


def test_a_dry_run_lists_every_run(invoke: Invoke) -> None:
    result = invoke("validate", "--radio", "--size", "full", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    listed = json.loads(result.stdout)["rows"]
    random = len(SCENES) - len(AIRTIMES)
    assert len(listed) == len(AIRTIMES) + random * SIZES["full"].seeds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--virtual",), "--virtual has no effect with --radio"),
        (("--reference", "."), "--radio has no effect with --reference"),
        (("--seeds", "3"), "--seeds has no effect without --reference"),
        (("--size", "huge"), "--size huge: there are small and full"),
        (("--case", "wired-*"), "--case wired-*: there is no such case"),
    ],
)
def test_invalid_options_are_refused(invoke: Invoke, options: Sequence[str], message: str) -> None:
    result = invoke("validate", "--radio", *options)
    assert result.exit_code == 2
    assert message in result.output
