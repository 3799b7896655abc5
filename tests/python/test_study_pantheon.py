"""The study of the Pantheon's paths: what they are, what is measured, and the scatter."""

from __future__ import annotations

import itertools
import math
import statistics
from pathlib import Path

import polars as pl
import pytest
from made import described
from prose import crowded

from weir.api import reports
from weir.api.studies import study
from weir.cells.cells import Cells
from weir.cells.protocol import StudyResult
from weir.experiments.schemes import END_TO_END, KINDS, present
from weir.graphics.scatter import ScatterAxes, scatter
from weir.studies import catalogue
from weir.studies.pantheon.measures import SECONDS, packet_ms, poisson, titled

COUNTS = ("1 flow", "3 flows")
SCHEMES = ("cubic", "bbr", "vegas")

pytestmark = pytest.mark.timeout(600)
"""Each study runs in seconds, but a machine may have other things to do."""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Every path with one seed and a scheme of each kind: by loss, by model, by delay."""
    out = tmp_path_factory.mktemp("pantheon")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("weir.studies.pantheon.measures.KINDS", SCHEMES)
        own = described("pantheon")
        patched.setattr(catalogue, "find", lambda _: own)
        return study("pantheon", repeat=1, out=out, show_progress=False)


PATHS = described("pantheon").constants["paths"]
TITLES = titled(PATHS)


def test_there_are_the_eighteen_paths() -> None:
    assert [path["number"] for path in PATHS] == list(range(1, 19))
    delays = [28, 88, 130, 27, 51, 45, 10, 10, 10, 50, 50, 50, 10, 10, 30, 30, 30, 30]
    assert [path["delay"] for path in PATHS] == delays
    assert {p["number"]: p["loss"] for p in PATHS if "loss" in p} == {1: 0.0477, 5: 0.0006}


def test_the_shallow_buffers_are_the_named_parts_of_the_bdp() -> None:
    bdp_kb = 12e6 * 0.06 / 8 / 1000
    parts = [float(path["queue"].removesuffix("kb")) / bdp_kb for path in PATHS[14:]]
    assert parts == pytest.approx([0.1, 1 / 3, 0.5, 1.0])


@pytest.mark.parametrize("mbps", [0.57, 2.64, 3.04])
def test_opportunities_are_a_poisson_process_of_the_paths_rate(mbps: float) -> None:
    times = poisson(mbps)
    assert list(times) == sorted(times)
    assert times[-1] == SECONDS * 1000
    assert len(times) * 1500 * 8 / SECONDS / 1e6 == pytest.approx(mbps, rel=1e-3)
    gaps = [later - one for one, later in itertools.pairwise((0, *times))]
    mean = statistics.fmean(gaps)
    # Exponential gaps have the mean as their deviation; rounding to milliseconds adds 1/6 ms², and
    # over n gaps the ratio itself deviates by about 1/√n: four of these are allowed.
    expected = math.sqrt(mean**2 + 1 / 6) / mean
    assert statistics.stdev(gaps) / mean == pytest.approx(expected, abs=4 / math.sqrt(len(gaps)))
    assert times == poisson(mbps), "the same in every run"


def test_schemes_are_those_of_the_list_that_exist() -> None:
    assert set(present(KINDS)) <= set(present(END_TO_END))
    assert set(SCHEMES) <= set(present(KINDS))
    assert present(("cubic", "no such control", "reno")) == ("cubic", "reno")


def test_no_path_carries_more_than_its_rate(done: StudyResult) -> None:
    cells = Cells(done.rows)
    for flows, path in itertools.product(COUNTS, PATHS):
        throughput = cells.table(f"throughput, {flows}")
        assert tuple(throughput.columns()) == SCHEMES
        for stack in throughput.columns():
            mean = throughput.mean(TITLES[path["number"]], stack)
            assert mean is not None
            # What waits at the sender when the log begins may add the first way's worth.
            assert 0 < mean <= path["up"] * (1 + path["delay"] / 1e3 / SECONDS) * 1.01
            for kind in ("loss", "utilisation"):
                share = cells.table(f"{kind}, {flows}").mean(TITLES[path["number"]], stack)
                assert share is not None
                assert 0 <= share <= 1


def test_no_packet_is_faster_than_its_path(done: StudyResult) -> None:
    cells = Cells(done.rows)
    for flows, path in itertools.product(COUNTS, PATHS):
        delay = cells.table(f"P95 one-way delay, {flows}")
        for stack in delay.columns():
            mean = delay.mean(TITLES[path["number"]], stack)
            if mean is not None:
                assert mean >= path["delay"]


def test_a_single_flows_delay_is_also_the_queues(done: StudyResult) -> None:
    """What stands in for the percentile of three flows is right where there is one."""
    ok = done.results.runs.filter(status="ok").select("run", "label")
    flows = done.results.flows.join(ok, on="run")
    links = done.results.links.filter(name="up").join(ok, on="run")
    compared = 0
    for path in PATHS:
        name = f"path {path['number']}, 1 flow, cubic"
        own = flows.filter(label=name)["delay_ms_p95"][0]
        queue = links.filter(label=name)["queue_delay_ms_p95"][0]
        if own is not None and queue is not None:
            compared += 1
            # Buckets are a thousandth wide, and the link counts the packets that open a connection.
            assert queue + packet_ms(path) + path["delay"] == pytest.approx(own, rel=0.01, abs=0.2)
    assert compared >= 12


def test_the_report_has_a_panel_per_path(done: StudyResult) -> None:
    text = Path(reports.write(done.results)).read_text(encoding="utf-8")
    assert "What was expected" in text
    for title in TITLES.values():
        assert title in text


def test_findings_are_sentences(done: StudyResult) -> None:
    assert not crowded(done.findings)
    for finding in done.findings:
        assert finding[0].isupper() or finding[0].isdigit(), finding
        assert finding.endswith("."), finding
        assert not {"nan", "None"} & set(finding.split()), finding


def test_names_of_points_at_one_place_stand_apart() -> None:
    names = [f"control{number}" for number in range(12)]
    rows = [("path", name, 50.0, 49.0, 51.0, 10.0, 9.9, 10.1) for name in names]
    schema = ("panel", "series", "x", "x_lo", "x_hi", "y", "y_lo", "y_hi")
    data = pl.DataFrame(rows, schema, orient="row")
    figure = scatter("s", "S", "A scatter.", data, {"path": 12.0}, ScatterAxes("ms", "Mbit/s"))
    texts = [
        layer for layer in figure.spec["concat"][0]["layer"] if layer["mark"]["type"] == "text"
    ]
    places = pl.read_csv(figure.spec["datasets"][texts[0]["data"]["name"]].encode())
    assert sorted(places["series"]) == sorted(names)
    assert places.select("x", "y").n_unique() == len(names)
    x = figure.spec["concat"][0]["layer"][-1]["encoding"]["x"]["scale"]
    assert (x["type"], x["reverse"]) == ("log", True), "as the Pantheon draws delays"
