from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from conftest import Invoke
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from made import change, compared, drop_rows, fail

import weir
from weir import load, report
from weir.api import reports
from weir.comparison import contrasts, verdicts
from weir.comparison.tables import estimate_text
from weir.report import Files, summary
from weir.report.compose import compose
from weir.report.model import ranges
from weir.results import metrics
from weir.studies.report import write_study

LOADS = {"src", "href", "action", "data", "poster", "srcset"}
VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Checks that elements nest, and collects what a browser would load, show and jump to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.anchors: list[str] = []
        self.targets: set[str] = set()
        self.words: list[str] = []
        self.figures_without_text = 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        given = dict(attrs)
        self.loads += [value or "" for name, value in attrs if name in LOADS]
        if tag == "a":
            self.anchors.append((given["href"] or "").removeprefix("#"))
        if identity := given.get("id"):
            assert identity not in self.targets, f"two elements are called {identity}"
            self.targets.add(identity)
        is_figure = (given.get("class") or "").startswith("plot")
        self.figures_without_text += is_figure and not given.get("aria-label")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def written(results: weir.Results) -> Page:
    return Page(reports.write(results).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[weir.Results, Page]:
    results = compared(tmp_path_factory.mktemp("plain"), duration="20s", repeat=4)
    return results, written(results)


def test_the_page_loads_nothing(plain: tuple[weir.Results, Page]) -> None:
    _, page = plain
    assert page.loads
    assert all(load.startswith(("#", "data:")) for load in page.loads)


def test_every_link_has_a_target_and_every_figure_a_text(plain: tuple[weir.Results, Page]) -> None:
    _, page = plain
    assert page.anchors
    assert set(page.anchors) <= page.targets
    assert page.figures_without_text == 0


def test_the_page_shows_every_estimate_seed_and_hash(plain: tuple[weir.Results, Page]) -> None:
    results, page = plain
    for metric in contrasts.compared(results):
        for case in results.cases:
            assert estimate_text(results.estimate(case["label"], metric.name), metric) in page.text
    for trace_hash in results.runs["trace_hash"]:
        assert trace_hash in page.text
    assert results.manifest["command"] in page.text
    assert "seeds 1–4" in page.text


def test_the_summary_names_the_best_and_what_is_shown(plain: tuple[weir.Results, Page]) -> None:
    results, page = plain
    means = {c["label"]: results.estimate(c["label"], "goodput_mbps") for c in results.cases}
    first, second, *_ = sorted(means, key=lambda label: means[label].mean or 0, reverse=True)
    lead = (means[first].mean or 0) / (means[second].mean or 1)
    said = f"{first} with" if lead >= 1.01 else f"no winner among {first} ("
    assert f"Highest goodput: {said}" in page.text
    assert "Lowest queueing delay: bbr with" in page.text


def test_the_summary_says_each_difference_once(plain: tuple[weir.Results, Page]) -> None:
    results, page = plain
    found = contrasts.contrasts(results)
    relevant = [c for c in found if c.verdict == "significant" and c.is_relevant]
    others = [c for c in relevant if c.metric.name not in verdicts.SAID]
    assert others
    assert len(others) < len(relevant)
    for contrast in others:
        line = f"{contrast.series} also differs from {contrast.reference}:"
        assert page.text.count(line) == 1
    assert "differs from" not in page.text.replace("also differs from", "")


def test_the_summary_of_one_pair_says_fairness_once(tmp_path: Path) -> None:
    mine = f"mine={Path(__file__).with_name('fixed_window.py')}:FixedWindow"
    results = weir.compare(
        mine, against="cubic", duration="10s", repeat=3, out=tmp_path, show_progress=False
    )
    text = reports.write(results).read_text(encoding="utf-8")
    summary = text[text.index("Fairest") : text.index("congestion window limited")]
    assert "also differs" in summary
    assert summary.count("Jain") == 1


def test_the_page_has_the_data_of_every_figure(tmp_path: Path) -> None:
    path = reports.write(compared(tmp_path, "reno"))
    text = path.read_text(encoding="utf-8")
    plots = re.findall(r'data-(?:spec|series)="([a-z-]+)"', text)
    data = dict(re.findall(r'<script type="application/json" id="([a-z-]+)">(.*?)</script>', text))
    assert plots == list(data)
    assert "panels" in json.loads(data["series-cwnd"])
    assert "$schema" in json.loads(data["spec-limits"])
    assert text.count("<noscript>") == len(plots)
    assert "default-src 'none'" in text
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert len(text) < 2_000_000


def test_figures_as_files(tmp_path: Path) -> None:
    directory = reports.write(compared(tmp_path, "reno"), Files(["svg", "pdf"])).parent
    names = {path.name for path in (directory / "figures").iterdir()}
    assert {"cwnd.svg", "cwnd.pdf", "limits.svg"} <= names


def test_named_figures_as_files_for_a_paper(invoke: Invoke, tmp_path: Path) -> None:
    directory = compared(tmp_path, "reno").path
    size = ("--width", "3.4in", "--font-size", "8")
    done = invoke("report", directory, "--svg", *size, "--figure", "cwnd")
    assert done.exit_code == 0, done.output
    (path,) = (directory / "figures").iterdir()
    assert path.name == "cwnd.svg"
    assert 'width="24' in path.read_text()[:300]
    for options, reason in [
        (("--svg", "--figure", "nothing"), "--figure nothing: there are "),
        (size, "--width is of figures in files: give --pdf"),
        (("--svg", "--width", "3 feet"), "--width 3 feet: write 1in to 20in"),
    ]:
        wrong = invoke("report", directory, *options)
        assert (wrong.exit_code, reason in wrong.output) == (2, True), wrong.output


def test_chosen_metrics_are_those_of_tables_and_figures(invoke: Invoke, tmp_path: Path) -> None:
    results = compared(tmp_path, "reno", "cubic")
    first, *rest = ("rtt_ms_p95", "timeouts")
    shown = compose(results, chosen=(first, *rest))
    tables = {table.title: table for section in shown.sections for table in section.tables}
    headings = [metrics.BY_NAME[name].heading for name in (first, *rest)]
    assert tables["Measures"].headers == ["stack", *headings, "repeats"]
    assert tables["Paired differences"].headers == ["pair", *headings]
    drawn = {figure.name: figure for section in shown.sections for figure in section.figures}
    assert drawn["metrics"].data["metric"].unique().sort().to_list() == [first, *rest]
    # The choice comes after the results, so that it makes no difference more significant.
    usual = contrasts.contrasts(results)
    chosen = contrasts.contrasts(results, chosen=(first,))
    assert chosen[0].tests >= usual[0].tests
    for name, reason in (
        ("rtt_ms", "there is no metric 'rtt_ms'; did you mean rtt_ms_"),
        ("fct_s", "no run has a value; there are: goodput_mbps, "),
    ):
        refused = invoke("report", str(results.path), "--metric", name)
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"weir: --metric {name}: {reason}")


def test_the_report_of_a_study_has_its_own_metrics(invoke: Invoke, tmp_path: Path) -> None:
    results = compared(tmp_path, "reno", "cubic")
    (results.path / "study.json").write_text("{}")
    refused = invoke("report", str(results.path), "--metric", "timeouts")
    assert refused.exit_code == 2
    assert "--metric timeouts: the report of a study has tables of its own" in refused.stderr


def test_without_samples_the_rest_is_still_reported(tmp_path: Path) -> None:
    page = written(drop_rows(drop_rows(compared(tmp_path), "samples"), "queues"))
    assert "Congestion window over time" not in page.text
    assert "Each measure, by stack" in page.text


def test_one_repeat_is_distinguished_from_many(tmp_path: Path) -> None:
    page = written(compared(tmp_path, repeat=1))
    assert "There is one repeat only" in page.text
    assert "mostly start-up" in page.text
    assert "differs from" not in page.text


def test_one_run_that_failed_is_one(tmp_path: Path) -> None:
    results = fail(compared(tmp_path, "reno"), "reno", 2, "it broke")
    assert "1 run failed and is left out." in results._repr_html_()


def test_the_length_counts_in_round_trips_that_were_measured(tmp_path: Path) -> None:
    """A graph has no `rtt` of its own: its 300 ms are 20 round trips, or thousands."""
    graph = """
        [topology]
        kind = "graph"
        link = [{ from = "a", to = "b", rate = "5mbit", delay = "DELAY", queue = "50p" }]
        [[flow]]
        from = "a"
        to = "b"
        [measure]
        duration = "300ms"
    """
    said = []
    for delay in ("7ms", "2us"):
        (tmp_path / "graph.toml").write_text(graph.replace("DELAY", delay), encoding="utf-8")
        results = weir.run(tmp_path / "graph.toml", out=tmp_path, show_progress=False)
        said.append([text for text in summary.cautions(results) if "start-up" in text])
    ((slow,), fast) = said
    assert re.match(r"Only 0\.3 s are measured, (19|20|21)(\.\d)? round-trip times: ", slow)
    assert fast == []


def test_a_run_that_ended_early_has_its_own_length(tmp_path: Path) -> None:
    results = compared(tmp_path, "reno", duration="60s", repeat=1)
    assert not [text for text in summary.cautions(results) if "start-up" in text]
    ended = change(results, "runs", pl.lit(8.5).alias("sim_s"))
    (said,) = (text for text in summary.cautions(ended) if "start-up" in text)
    assert said.startswith("Only 2.5 s are measured, ")


def test_only_the_cases_that_are_short_are_named(tmp_path: Path) -> None:
    sweep = {"topology.rtt": ("2ms", "100ms")}
    results = compared(tmp_path, "cubic", duration="3s", repeat=1, sweep=sweep)
    (said,) = (text for text in summary.cautions(results) if "start-up" in text)
    (long,) = (case["label"] for case in results.cases if "100ms" in case["label"])
    assert f"s are measured in {long}, " in said


def test_without_round_trips_nothing_is_said_of_the_length(tmp_path: Path) -> None:
    results = compared(tmp_path, "reno", repeat=1)
    unknown = change(results, "flows", pl.lit(None, pl.Float64).alias("rtt_ms_min"))
    assert not [text for text in summary.cautions(unknown) if "start-up" in text]


@pytest.mark.parametrize(("repeat", "is_warned"), [(4, True), (5, False)])
def test_fewer_than_five_repeats_are_warned_about(
    repeat: int, is_warned: bool, tmp_path: Path
) -> None:
    page = written(compared(tmp_path, "reno", duration="1s", repeat=repeat))
    warned = f"With {repeat} repeats the intervals are wide and may be far off" in page.text
    assert warned == is_warned


def test_failed_runs_are_named(tmp_path: Path) -> None:
    page = written(fail(compared(tmp_path), "cubic", 2, "a checker objected <here>"))
    assert "cubic, seed 2: a checker objected <here>" in page.text
    assert "failed: a checker objected <here>" in page.text


def test_unfinished_flows_are_named(tmp_path: Path) -> None:
    page = written(compared(tmp_path, "reno", "udp", loss="5%", size="200kb"))
    assert "2 of 4 flows did not finish what they were asked to do (udp)" in page.text


def test_a_sweep_is_summarised_point_by_point(tmp_path: Path) -> None:
    sweep = {"topology.queue": ("0.5bdp", "1bdp", "2bdp")}
    page = written(compared(tmp_path, duration="10s", sweep=sweep))
    assert "over queue (0.5bdp, 1bdp, 2bdp)" in page.text
    assert (
        "Lowest queueing delay, where shown and relevant: bbr at every point of the sweep."
        in page.text
    )


def test_a_study_shows_what_was_published_beside_ours(tmp_path: Path) -> None:
    directory = compared(tmp_path, "reno", repeat=1).path
    cell = {
        "table": "002-delay",
        "row": "W=5",
        "column": "20ms",
        "published": 3.431,
        "unit": "s",
        "serial relay": {"mean": 2.54321, "lo": 2.49321, "hi": 2.59321, "n": 5},
        "delay line": {"mean": 97.1, "lo": 92.7, "hi": 98.9, "n": 136},
        "note": "the source rounds",
    }
    cells = [cell, {**cell, "row": "W=10", "published": None, "note": ""}]
    kept = {"study": "lab-udp", "rows": cells, "findings": ["Windows matter."]}
    (directory / "study.json").write_text(json.dumps(kept))
    page = Page(reports.write(load(directory)).read_text(encoding="utf-8"))
    texts = ("Study lab-udp", "Windows matter.", "3.431", "2.54 ± 0.05", "97.1 −4.4 +1.8")
    for text in (*texts, "the source rounds"):
        assert text in page.text
    assert "There is one repeat only" not in page.text, "the study has intervals"


def test_own_sections_become_a_report_with_provenance(tmp_path: Path) -> None:
    directory = compared(tmp_path, "reno").path
    table = report.ReportTable("T", ["a", "b"], [["x & y", report.Cell("1", note="why")]])
    section = report.ReportSection("Mine", paragraphs=["<b>"], tables=[table])
    path = write_study(load(directory), "Title", "Question?", [section])
    page = Page(path.read_text(encoding="utf-8"))
    assert "x & y" in page.text
    assert "<b>" in page.text
    assert "configuration hash" in page.text


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([1, 2, 3, 7, 9, 10], "1–3, 7, 9–10")]
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a report takes too long for shrinking
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    stacks=st.lists(
        st.sampled_from(["reno", "rack/cubic", "udp", "stop-and-wait/none"]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    repeat=st.integers(1, 2),
    flows=st.integers(1, 3),
    duration=st.sampled_from(["101ms", "2s"]),
    emptied=st.sets(st.sampled_from(["flows", "links", "samples", "queues"])),
    value=st.sampled_from([None, float("nan")]),
)
def test_no_result_is_too_poor_for_a_report(
    tmp_path_factory: pytest.TempPathFactory,
    stacks: list[str],
    repeat: int,
    flows: int,
    duration: str,
    emptied: set[str],
    value: float | None,
) -> None:
    out = tmp_path_factory.mktemp("poor")
    results = compared(out, *stacks, repeat=repeat, flows=flows, duration=duration)
    for table in emptied:
        schema = results.scan(table).collect_schema()
        floats = [name for name, kind in schema.items() if kind.is_float() and name != "t_s"]
        results = change(results, table, *(pl.lit(value, pl.Float64).alias(n) for n in floats))
    page = written(results)
    assert "Provenance" in page.text
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b", page.text)
