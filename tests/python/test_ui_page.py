"""The page of `weir ui` in headless Chromium, with the native engine behind it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from loopback import serving

import weir
from weir.base.errors import InputError
from weir.laboratory import page as files
from weir.laboratory.explorer import Explorer
from weir.laboratory.job import Job
from weir.laboratory.server import Server
from weir.results.results import Results
from weir.scenario.plans import scenario_plan
from weir.scenario.source import read

ROOT = Path(__file__).parents[2]
SETS = {
    "flow.1.start": "1s",
    "measure.duration": "20s",
    "measure.warmup": "1s",
    "measure.sample_interval": "1ms",
    "measure.acks": "1000000",
}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The page, which `make lab` builds; an old one proves nothing."""
    try:
        files.read()
    except InputError as error:
        pytest.skip(str(error))
    page = ROOT / "web/dist/index.html"
    sources = [path for path in (ROOT / "web/src").rglob("*") if path.is_file()]
    assert len(sources) > 20
    if max(path.stat().st_mtime for path in sources) > page.stat().st_mtime:
        pytest.skip("the page is older than its sources: make lab builds it")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("ui")
    return weir.run("two-flows", sets=SETS, repeat=2, out=out, jobs=1, show_progress=False)


@pytest.fixture(scope="module")
def server(results: Results) -> Iterator[Server]:
    with serving(files.read(), Explorer(results)) as started:
        yield started


Opened = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any) -> Iterator[Opened]:
    """Opens an address; the test fails on an error in the page or a request elsewhere."""
    problems: list[str] = []
    tab = chromium.new_page(viewport={"width": 1280, "height": 900})
    tab.set_default_timeout(30_000)
    tab.on("pageerror", lambda error: problems.append(str(error)))

    def goto(url: str, *, done: bool = True) -> Any:
        origin = url.split("#")[0]
        own = (origin, "data:", "blob:")

        def note(request: Any) -> None:
            if not request.url.startswith(own):
                problems.append(request.url)

        tab.on("request", note)
        tab.goto(url)
        if done:
            tab.locator("body[data-state=done]").wait_for()
        return tab

    yield goto
    tab.close()
    assert not problems, problems


def test_results_open_and_the_token_leaves_the_address(
    server: Server, results: Results, opened: Opened
) -> None:
    tab = opened(server.url)
    assert server.token not in tab.url
    assert tab.locator("#status").text_content() == "two-flows, seed 1: 20 s"
    assert str(results.runs["trace_hash"][0]) in tab.locator("#facts").text_content()
    charts = tab.locator("#charts figure").evaluate_all("all => all.map(one => one.dataset.chart)")
    assert charts == ["window", "rtt", "queue", "rates", "shares", "acked"]
    assert not tab.locator("#diagram").is_visible()
    tab.reload()
    tab.locator("body[data-state=done]").wait_for()
    assert tab.locator("#runs option").count() == 2


def test_a_chart_shows_the_values_of_the_table(
    server: Server, results: Results, opened: Opened
) -> None:
    tab = opened(server.url)
    tab.locator("#runs").select_option("1")
    tab.locator("#status", has_text="seed 2").wait_for()
    own = results.queues.filter(pl.col("run") == 1, pl.col("link") == 0)
    most = float(tab.locator("[data-chart=queue]").get_attribute("data-max"))
    assert most == pytest.approx(max(own["bytes"]) / 1000)


def test_a_zoom_asks_for_more_detail_within_bounds(server: Server, opened: Opened) -> None:
    tab = opened(server.url)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    over = tab.locator("[data-chart=window] .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + 0.4 * box["width"], middle)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=4)
    with tab.expect_response(re.compile(r"/api/detail")) as answered:
        tab.mouse.up()
    fields = dict(part.split("=") for part in asked[0].partition("?")[2].split("&"))
    assert float(fields["from"]) == pytest.approx(7, abs=0.2)
    assert float(fields["to"]) == pytest.approx(11, abs=0.2)
    assert int(fields["bins"]) <= 4 * box["width"]
    # A chart of this width has no use for more, however many rows there are.
    assert len(answered.value.body()) < 8 * 80 * 2 * int(fields["bins"])
    over.dblclick()
    tab.wait_for_timeout(500)
    fields = dict(part.split("=") for part in asked[-1].partition("?")[2].split("&"))
    assert (float(fields["from"]), float(fields["to"])) == (0, 20)


def test_the_next_loss_is_found_in_the_whole_run(
    server: Server, results: Results, opened: Opened
) -> None:
    tab = opened(server.url)
    queue = results.queues.filter(pl.col("run") == 0).sort("link", "t_s")
    more = queue.filter(pl.col("drops").cast(pl.Int64).diff().over("link") > 0)["t_s"].sort()
    for expected in more[:2]:
        tab.locator("#loss").click()
        tab.locator("#time", has_text=f"{expected:.4f} s").wait_for()
    tab.locator("#timeout").click()
    tab.locator("#status", has_text="or none was stored").wait_for()


def test_a_change_of_the_scenario_simulates_in_the_page(server: Server, opened: Opened) -> None:
    tab = opened(f"{server.url}&duration_s=2")
    assert not tab.locator("#seed").is_visible()
    tab.locator("#example").select_option("parking-lot")
    tab.locator("#status", has_text="s simulated in").wait_for()
    assert tab.locator("#diagram").is_visible()
    tab.locator("#runs").select_option("1")
    tab.locator("#status", has_text="two-flows, seed 2").wait_for()
    assert not tab.locator("#diagram").is_visible()


def test_without_the_token_the_page_says_what_to_open(server: Server, opened: Opened) -> None:
    tab = opened(server.url.split("#")[0], done=False)
    tab.locator("#error", has_text="open the address that weir ui printed").wait_for()


def test_a_scenario_is_shown_when_its_run_ends(tmp_path: Path, opened: Opened) -> None:
    sets = {**SETS, "measure.duration": "300s", "measure.acks": "0"}
    job = Job(scenario_plan(read("two-flows", tuple(sets.items())), {}, repeat=1), tmp_path, 1)
    with serving(files.read(), None, job) as server:
        job.start()
        tab = opened(server.url, done=False)
        tab.locator("#status", has_text=re.compile(r"Running natively: 0 of 1 runs")).wait_for()
        tab.locator("#status", has_text="two-flows, seed 1: 300 s").wait_for()
    job.stop()


def test_a_run_that_fails_is_a_message(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "file").touch()
    plan = scenario_plan(read("two-flows", tuple(SETS.items())), {}, repeat=1)
    job = Job(plan, tmp_path / "file", 1)
    with serving(files.read(), None, job) as server:
        job.start()
        tab = opened(server.url, done=False)
        tab.locator("#error", has_text=str(tmp_path / "file")).wait_for()


def test_without_results_the_page_simulates(opened: Opened) -> None:
    with serving(files.read(), None) as server:
        tab = opened(f"{server.url}&stack=reno&duration_s=2")
        assert not tab.locator("#results").is_visible()
        assert "s simulated in" in tab.locator("#status").text_content()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_the_frame_rate_is_measured(results: Results) -> None:
    """What `make bench-ui` prints of a larger run; no bound, because others use the machine too."""
    code = (
        "import sys; from bench.ui import explore; from weir.results.results import load; "
        "print(explore(load(sys.argv[1]), 1.0))"
    )
    command = [sys.executable, "-c", code, str(results.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = ast.literal_eval(done.stdout)
    assert found["data_packets"] > 10_000
    assert found["answers"] > 2
    assert 0 < found["frames_per_s"] < 200
    assert found["frame_ms_max"] >= found["frame_ms_p95"] > 0
