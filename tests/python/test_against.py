"""`weir compare STACK --against STACK`: shares, harm and convergence next to another flow."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Invoke
from jsonschema import Draft202012Validator
from test_schemas import registry

import weir
from weir.comparison.contrasts import contrasts
from weir.comparison.neighbour import HEADERS, _compare, neighbours, sentences
from weir.report.compose import compose
from weir.results import schemas
from weir.statistics.intervals import mean_interval

WORDS = ("compare", "bbr", "--against", "cubic", "--duration", "8s", "--repeat", "2", "--quiet")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    return weir.compare(
        "bbr",
        against="cubic",
        flows=2,
        duration="8s",
        repeat=2,
        sweep={"topology.queue": ["0.5bdp", "2bdp"]},
        out=tmp_path_factory.mktemp("results"),
        show_progress=False,
    )


def test_the_neighbour_is_also_run_next_to_itself_and_alone(shared: weir.Results) -> None:
    assert list(dict.fromkeys(case["series"] for case in shared.cases)) == [
        "cubic",
        "bbr",
        "cubic alone",
    ]
    alone = shared.runs.filter(pl.col("label").str.contains("alone"))
    flows = shared.flows.join(alone.select("run"), on="run")
    assert flows.group_by("run").len()["len"].unique().to_list() == [1]


def test_harm_is_what_the_neighbour_loses_of_its_goodput_alone(shared: weir.Results) -> None:
    flows = shared.flows.join(shared.runs.select("run", "label", "seed"), on="run")
    alone = {case["label"]: case for case in shared.cases if case["series"] == "cubic alone"}
    rows = neighbours(shared)
    assert len(rows) == 4
    for row in rows:
        case = next(case for case in shared.cases if case["label"] == row["label"])
        solo = next(label for label, own in alone.items() if own["point"] == case["point"])
        lost = []
        parts = []
        for seed in (1, 2):
            own = flows.filter((pl.col("label") == row["label"]) & (pl.col("seed") == seed))
            theirs = sum(own.filter(pl.col("name") == "neighbour")["goodput_mbps"].to_list())
            had = flows.filter((pl.col("label") == solo) & (pl.col("seed") == seed))
            lost.append(1 - theirs / sum(had["goodput_mbps"].to_list()))
            parts.append(1 - theirs / sum(own["goodput_mbps"].to_list()))
        assert row["harm"].mean == pytest.approx(sum(lost) / 2)
        assert row["share"].mean == pytest.approx(sum(parts) / 2)


def test_the_command_prints_and_repeats_it(invoke: Invoke, tmp_path: Path) -> None:
    text = invoke(*WORDS).output
    assert "Next to rack/cubic" in text
    assert "harm, %" in text
    document = json.loads(invoke(*WORDS, "--json").output)
    Draft202012Validator(schemas.read("compare"), registry=registry()).validate(document)
    found = [row["next_to"]["harm"]["n"] for row in document["rows"] if "next_to" in row]
    assert found == [2, 2]
    manifest = json.loads(next(tmp_path.glob("results/compare/*/manifest.json")).read_text())
    assert "--against cubic" in json.dumps(manifest)


def test_the_neighbour_alone_is_compared_with_nothing(shared: weir.Results) -> None:
    found = contrasts(shared)
    assert {contrast.series for contrast in found} == {"bbr"}
    assert {contrast.reference for contrast in found} == {"cubic"}


def test_the_report_has_shares_harm_and_times_with_their_reading(shared: weir.Results) -> None:
    report = compose(shared)
    assert report.title == "bbr next to cubic"
    assert report.question.startswith("What does bbr take from a flow of cubic")
    section = next(one for one in report.sections if one.title == "Next to rack/cubic")
    (table,) = section.tables
    assert [row[0].text for row in table.cells] == ["cubic", "cubic", "bbr", "bbr"]
    assert [row[1].text for row in table.cells] == ["0.5bdp", "2bdp"] * 2
    assert list(table.headers[2:]) == [*HEADERS, "verdict on the harm"]
    said = report.sections[0].points[:2]
    assert all(text.startswith("bbr next to rack/cubic, topology.queue ") for text in said)
    assert all("% of all goodput, and the neighbour loses" in text for text in said)


@pytest.mark.parametrize(
    ("harms", "words"),
    [
        ([0.80, 0.82, 0.81], ", more than next to its own kind (+31.00 ± "),
        ([0.20, 0.22, 0.21], ", less than next to its own kind (-29.00 ± "),
        ([0.501, 0.499, 0.500], ", as next to its own kind (0.00 ± "),
        ([0.9, 0.1, 0.6], "; whether more than next to its own kind (+3.33 ± "),
    ],
)
def test_the_reading_follows_from_the_paired_differences(harms: list[float], words: str) -> None:
    base = {"point": {}, "neighbour": "cubic", "share": mean_interval(harms)}
    rows = [
        {**base, "label": name, "series": name, "harm": mean_interval(values), "more": None}
        for name, values in (("cubic", [0.5, 0.5, 0.5]), ("mine", harms))
    ]
    both = {"cubic": dict.fromkeys(range(3), 0.5), "mine": dict(enumerate(harms))}
    _compare(rows, both, 0.01)
    (said,) = sentences(rows)
    assert words in said


def test_a_notebook_has_the_table_too(shared: weir.Results) -> None:
    page = shared._repr_html_()
    assert "<caption>Next to rack/cubic</caption>" in page
    assert "<b>bbr next to rack/cubic, topology.queue 0.5bdp: it has " in page


def test_a_neighbour_that_is_no_stack_is_refused_by_name(invoke: Invoke) -> None:
    result = invoke("compare", "bbr", "--against", "cubci")
    assert result.exit_code == 2
    assert result.output.startswith("weir: unknown controller 'cubci'; did you mean cubic?")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--size", "1mb"), "compares streams; leave out the size 1mb"),
        (("--set", "flow.0.mss=500"), "flow.0.mss is of one flow; set flow.*.mss, of all flows"),
        (("--sweep", "flow.1.mss=500,900"), "flow.1.mss is of one flow"),
    ],
)
def test_what_would_change_the_flow_alone_is_refused(
    invoke: Invoke, words: tuple[str, ...], reason: str
) -> None:
    result = invoke("compare", "bbr", "--against", "cubic", *words)
    assert result.exit_code == 2
    assert result.output.startswith(f"weir: --against cubic: {reason}")


def test_a_key_of_all_flows_is_swept(invoke: Invoke) -> None:
    document = json.loads(invoke(*WORDS, "--sweep", "flow.*.mss=700,1400", "--json").output)
    assert [row["next_to"]["harm"]["n"] for row in document["rows"] if "next_to" in row] == [2] * 4
