from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Invoke
from made import compared, sealed

import weir
from weir.base.errors import InputError
from weir.report.compose import compose
from weir.report.model import ReportTable
from weir.results import manifest
from weir.results.joining import LETTERS, join
from weir.results.results import Results


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[weir.Results]:
    root = tmp_path_factory.mktemp("sources")
    return [
        compared(root / "one", "reno", "bbr"),
        compared(root / "two", "reno", "cubic", rate="5mbit", repeat=3),
    ]


def test_every_case_keeps_its_numbers(sources: list[weir.Results], tmp_path: Path) -> None:
    both = join([source.path for source in sources], tmp_path)
    names = ["A: reno", "A: bbr", "B: reno", "B: cubic"]
    assert [case["label"] for case in both.cases] == names
    for letter, source in zip("AB", sources, strict=True):
        for case in source.cases:
            label, joined = case["label"], f"{letter}: {case['label']}"
            for metric in ("goodput_mbps", "queue_delay_ms_mean", "retransmit_ratio"):
                assert both.values(joined, metric) == source.values(label, metric)
    for table in ("flows", "samples", "queues", "links"):
        assert getattr(both, table).height == sum(getattr(s, table).height for s in sources)
    assert both.runs["run"].is_unique().all()
    assert both.manifest["runs"] == {"planned": 10, "ok": 10, "failed": {}}
    assert [source["command"] for source in both.manifest["sources"]] == [
        source.manifest["command"] for source in sources
    ]


def test_one_report_has_both(invoke: Invoke, sources: list[weir.Results], tmp_path: Path) -> None:
    ran = invoke("report", *(source.path for source in sources), "--out", tmp_path)
    assert ran.exit_code == 0, ran.output
    page = Path(ran.stdout.strip()).read_text(encoding="utf-8")
    assert "A and B compared" in page
    assert "How do A: reno, A: bbr, B: reno and B: cubic compare?" in page
    for source in sources:
        assert source.manifest["command"] in page


def test_a_joined_directory_can_be_joined(sources: list[weir.Results], tmp_path: Path) -> None:
    once = join([source.path for source in sources], tmp_path)
    twice = join([once.path, sources[0].path], tmp_path)
    assert twice.values("A: B: cubic", "goodput_mbps") == sources[1].values("cubic", "goodput_mbps")


@pytest.mark.parametrize("count", [1, len(LETTERS) + 1])
def test_a_number_of_directories_is_refused(
    sources: list[weir.Results], tmp_path: Path, count: int
) -> None:
    with pytest.raises(InputError, match=f"{count} directories: 2 to 8 can be joined"):
        join([sources[0].path] * count, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_has_a_report_of_its_own_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    plain, study = (compared(tmp_path / name, "reno", repeat=1) for name in ("a", "b"))
    (study.path / manifest.STUDY).write_text("{}", encoding="utf-8")
    ran = invoke("report", plain.path, study.path, "--out", tmp_path / "out")
    assert ran.exit_code == 2
    assert "a study, which has a report of its own" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_damage_is_one_line(invoke: Invoke, tmp_path: Path) -> None:
    whole, damaged = (compared(tmp_path / name, "reno", repeat=1) for name in ("a", "b"))
    path = damaged.path / "runs.parquet"
    path.write_bytes((damaged.path / "flows.parquet").read_bytes())
    ran = invoke("report", whole.path, damaged.path, "--out", tmp_path / "out")
    assert ran.exit_code == 2
    assert "damaged: its SHA-256 is not that in manifest.json" in ran.stderr
    sealed(damaged)
    ran = invoke("report", whole.path, damaged.path, "--out", tmp_path / "out")
    assert ran.exit_code == 2
    assert "not as Weir writes results" in ran.stderr


def test_worlds_are_mixed_only_with_a_word(sources: list[weir.Results], tmp_path: Path) -> None:
    both = join([source.path for source in sources], tmp_path)
    assert both.mixture == ""
    headers = {table.title: table.headers for table in _tables(both)}
    assert "world" not in [*headers["Measures"], *headers["Cases"]]
    cases = [
        {**case, "world": "udp"} if case["label"].startswith("B: ") else case for case in both.cases
    ]
    mixed = Results(both.path, {**both.manifest, "cases": cases})
    said = compose(mixed).sections[0].warnings[0]
    assert said.startswith("The cases ran in different worlds: A: ")
    assert " in the simulator; B: " in said
    assert said.endswith(
        " in world udp, real UDP in real time. Differences between them are also differences of "
        "their worlds."
    )
    for table in _tables(mixed):
        if table.title in ("Measures", "Cases"):
            worlds = [row[list(table.headers).index("world")].text for row in table.cells]
            assert set(worlds) == {"sim", "udp"}


def _tables(results: Results) -> list[ReportTable]:
    return [table for section in compose(results).sections for table in section.tables]
