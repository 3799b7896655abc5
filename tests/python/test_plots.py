from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from jsonschema import ValidationError
from made import compared
from vega import check

from weir.base.errors import InputError
from weir.cells import plot
from weir.graphics import figure as drawing
from weir.graphics import select, theme
from weir.graphics.chart import (
    Chart,
    below_each_other,
    beside_each_other,
    channel,
    in_columns,
    inline,
    layered,
)
from weir.graphics.heat import HeatAxes, heat_map
from weir.graphics.lines import LineAxes, lines, lines_if_any
from weir.graphics.paper import Paper
from weir.graphics.select import band, cases, line
from weir.graphics.timeline import TimePanel, timeline
from weir.plots import Figure, across, figures


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    results = compared(tmp_path_factory.mktemp("plain"), duration="20s", repeat=3)
    return {figure.name: figure for figure in figures(results)}


def test_a_comparison_has_every_figure_the_issue_asks_for(drawn: dict[str, Figure]) -> None:
    wanted = ["goodput-delay", "metrics", "goodput", "cwnd", "rtt", "queue"]
    assert list(drawn) == [*wanted, "delay-distribution", "limits"]


def test_every_figure_is_a_valid_specification_and_a_picture(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        assert figure.spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")
        assert figure.svg().startswith("<svg")
        assert figure.caption.endswith(".")
        assert figure.title in figure.alt
        assert not figure.data.is_empty()
        assert figure.runs


def test_figures_stay_small(drawn: dict[str, Figure]) -> None:
    assert max(len(json.dumps(figure.spec)) for figure in drawn.values()) < 300_000


def test_formats_for_papers(drawn: dict[str, Figure], tmp_path: Path) -> None:
    paths = drawn["limits"].save(tmp_path, ["png", "svg", "pdf"])
    assert [path.read_bytes()[:4] for path in paths] == [b"\x89PNG", b"<svg", b"%PDF"]
    with pytest.raises(ValueError, match=r"'gif'.*png, svg, pdf"):
        drawn["limits"].save(tmp_path, ["gif"])


def test_goodput_carries_the_capacity(drawn: dict[str, Figure]) -> None:
    assert "capacity 10 Mbit/s" in json.dumps(drawn["goodput"].spec)


def test_each_stack_has_the_same_colour_in_every_figure(drawn: dict[str, Figure]) -> None:
    colours = theme.stack_colours(["reno", "cubic", "bbr"])
    for name in ("goodput-delay", "metrics", "goodput", "cwnd", "rtt", "queue"):
        text = json.dumps(drawn[name].spec)
        assert all(colour in text for colour in colours.values()), name


def test_colours_are_different_and_do_not_depend_on_company() -> None:
    alone = theme.stack_colours(["rack/cubic"])["rack/cubic"]
    names = ["sack/vegas", "aimd(1,0.5)", "go-back-n(10)/none", "rack/cubic", "newreno/reno"]
    together = theme.stack_colours(names)
    assert together["rack/cubic"] == alone
    assert len(set(together.values())) == len(names)
    assert len(theme.stack_colours([f"stack-{n}" for n in range(20)])) == 20


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0.5bdp", "1bdp"], ([0.5, 1.0], "bdp")),
        (["0%", "1%"], ([0.0, 1.0], "%")),
        (["0", "10ms"], ([0.0, 10.0], "ms")),
        (["10ms", "1s"], ([10.0, 1000.0], "ms")),
        (["500kbit", "2mbit"], ([0.5, 2.0], "Mbit/s")),
        (["1bdp", "64p"], None),
        (["droptail", "codel"], None),
        ([], None),
    ],
)
def test_swept_values_become_numbers_where_they_can(
    values: list[str], expected: tuple[list[float], str] | None
) -> None:
    assert theme.numeric_axis(values) == expected


def test_a_sweep_is_drawn_as_curves_and_one_point_over_time(tmp_path: Path) -> None:
    sweep = {"topology.queue": ("0.5bdp", "1bdp", "2bdp"), "topology.forward.loss": ("0%", "1%")}
    results = compared(tmp_path, "reno", "cubic", sweep=sweep)
    drawn = {figure.name: figure for figure in figures(results)}
    assert {"sweep", "sweep-2", "cwnd"} <= drawn.keys()
    assert drawn["sweep"].title == "Over queue, at loss 0%"
    assert set(drawn["sweep"].data["at"]) == {0.5, 1.0, 2.0}
    assert set(drawn["cwnd"].data["case"]) == {
        "reno, queue 1bdp, loss 0%",
        "cubic, queue 1bdp, loss 0%",
    }


def test_flows_of_one_run_are_distinguished(tmp_path: Path) -> None:
    drawn = {f.name: f for f in figures(compared(tmp_path, "reno", flows=3))}
    assert drawn["flows"].data.height == 3
    assert drawn["goodput"].data["name"].n_unique() == 3


def test_the_typical_run_has_the_median_goodput(tmp_path: Path) -> None:
    results = compared(tmp_path, "reno", loss="1%", repeat=5)
    (case,) = cases(results)
    goodput = results.per_run["goodput_mbps"]
    typical = results.per_run.filter(run=case.typical)["goodput_mbps"].item()
    assert typical == goodput.median()


def test_thinning_keeps_the_peaks() -> None:
    rows = pl.DataFrame(
        {"t_s": [n / 10 for n in range(10_000)], "v": [float(n % 997 == 3) for n in range(10_000)]}
    )
    thin = line(rows, "v")
    assert thin.height <= select._LINE_POINTS + 2
    peaks = rows.filter(v=1.0)
    assert thin.filter(v=1.0)["t_s"].to_list() == peaks["t_s"].to_list()
    spread = band(rows, "v")
    assert spread["hi"].sum() >= peaks.height
    assert (spread["lo"] <= spread["hi"]).all()


def test_missing_numbers_are_missing_in_the_chart() -> None:
    frame = pl.DataFrame(
        {"a": [1.0, None, float("nan"), float("inf")], "b": ["x", "y,z", None, '"']}
    )
    values = inline(frame).csv
    assert values.splitlines() == ["a,b", "1.0,x", ',"y,z"', ",", ',""""']


def test_steps_of_the_capacity_are_drawn(tmp_path: Path) -> None:
    sets = {"topology.forward.rate_steps": '[{ at = "2s", rate = "5mbit" }]'}
    drawn = {f.name: f for f in figures(compared(tmp_path, "reno", sets=sets))}
    assert "t_s,level\\n0.0,10.0\\n2.0,5.0\\n4.0,5.0" in json.dumps(drawn["goodput"].spec)


def test_a_single_case_is_not_compared_with_itself(tmp_path: Path) -> None:
    names = [figure.name for figure in figures(compared(tmp_path, "reno"))]
    assert "goodput" in names
    assert not {"metrics", "goodput-delay"} & set(names)


def test_intervals_that_reach_zero_fit_a_logarithmic_axis() -> None:
    ours = [
        {"mean": 1.0, "lo": -0.5, "hi": 2.5, "n": 3},
        {"mean": 90.0, "lo": 80, "hi": 100, "n": 3},
    ]
    cell = {"table": "t", "row": "r", "unit": "s", "note": ""}
    cells = [
        {**cell, "column": column, "published": 1.5, "our_relay": value}
        for column, value in zip(("0%", "5%"), ours, strict=True)
    ]
    figure = plot.comparison("t", cells)
    text = json.dumps(figure.spec)
    assert '"type": "log"' in text
    assert "r,0%,0.0,1.0,0.1,2.5,3,s" in text
    assert "our relay" in text
    assert figure.data.height == 4


def test_requests_have_a_latency_distribution(tmp_path: Path) -> None:
    sets = {
        "flow.0.workload.kind": "request",
        "flow.0.workload.request": "1kb",
        "flow.0.workload.response": "10kb",
    }
    drawn = {f.name: f for f in figures(compared(tmp_path, "reno", sets=sets))}
    share = drawn["latency"].data["share"]
    assert (share.min(), share.max()) == (0.0, 1.0)
    assert drawn["latency"].data["delay_ms"].is_sorted()


def test_stacks_without_a_window_or_an_rtt_have_no_empty_panel(tmp_path: Path) -> None:
    results = compared(tmp_path, "udp", "stop-and-wait/none", "reno")
    drawn = {figure.name: figure for figure in figures(results)}
    assert set(drawn["cwnd"].data["case"]) == {"stop-and-wait/none", "reno"}
    assert set(drawn["rtt"].data["case"]) == {"stop-and-wait/none", "reno"}
    assert set(drawn["goodput"].data["case"]) == {"udp", "stop-and-wait/none", "reno"}


def test_three_digits_tell_enough() -> None:
    texts = [theme.significant(v) for v in (None, 0.0, 12.3456, 1234.5, -0.00123, 1e12)]
    assert texts == ["–", "0", "12.3", "1234", "−0.00123", "1e+12"]


def test_a_heat_map_prints_each_number_in_an_ink_that_can_be_read() -> None:
    rows = [("1 BDP", "reno", "cubic", 0.97), ("1 BDP", "cubic", "reno", 0.5)]
    data = pl.DataFrame(rows, ["panel", "row", "column", "value"], orient="row")
    axes = HeatAxes("flow", "rival", "share", low=0.0, middle=0.5, high=1.0)
    figure = heat_map("heat", "Shares", "Look.", data, axes, runs=[3])
    assert "reno,cubic,0.97,#000000" in json.dumps(figure.spec)
    assert "cubic,reno,0.5,#000000" in json.dumps(figure.spec)
    assert figure.svg().startswith("<svg")
    assert ">0.97<" in figure.svg()
    assert figure.runs == (3,)


@pytest.mark.parametrize(("low", "middle", "high"), [(0.0, 0.5, 1.0), (0.0, 0.0, 40.0), (-3, 0, 1)])
def test_every_number_of_a_heat_map_has_contrast(low: float, middle: float, high: float) -> None:
    """At least 4.5 with the colour of its cell, which the picture itself shows."""
    values = [low + (high - low) * share / 40 for share in range(-4, 45)]
    rows = [("P", f"row {at}", "column", value) for at, value in enumerate(values)]
    data = pl.DataFrame(rows, ["panel", "row", "column", "value"], orient="row")
    axes = HeatAxes("flow", "rival", "share", low=low, middle=middle, high=high)
    picture = heat_map("heat", "Shares", "Look.", data, axes).svg()
    cells = re.findall(r'aria-roledescription="rect mark"[^>]*fill="(rgb\([^)]*\)|#\w+)"', picture)
    texts = re.findall(r'aria-roledescription="text mark"[^>]*fill="(#\w+)"', picture)
    assert len(cells) == len(texts) == len(values)
    assert len(set(cells)) > 20
    for cell, text in zip(cells, texts, strict=True):
        lighter, darker = sorted(map(_luminance, (cell, text)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (cell, text)


def _luminance(colour: str) -> float:
    """As WCAG 2.2 defines it, of `rgb(r, g, b)` or `#rrggbb`."""
    if colour.startswith("#"):
        whole = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    else:
        whole = [int(part) for part in re.findall(r"\d+", colour)]
    red, green, blue = (theme.luminance((c / 255, 0, 0)) / 0.2126 for c in whole)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_place_of_a_line_has_its_label() -> None:
    places = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    rows = [("P", "reno", at, at, at, at, 3) for at in places]
    columns = ["panel", "series", "at", "value", "lo", "hi", "n"]
    data = pl.DataFrame(rows, columns, orient="row")
    picture = lines("l", "T", "Look.", data, LineAxes("BDP", "ms", is_x_log=True)).svg()
    assert all(f">{place:g}<" in picture for place in places)


def test_what_was_not_measured_is_not_drawn() -> None:
    columns = ["panel", "series", "at", "value", "lo", "hi", "n"]
    assert lines_if_any("l", "T", "Look.", pl.DataFrame(schema=columns), LineAxes("x", "y")) == []


def test_a_single_series_has_points_of_its_own_and_no_legend() -> None:
    rows = [("", "share", at, 0.4, 0.3, 0.5, 3) for at in (1.0, 2.0)]
    columns = ["panel", "series", "at", "value", "lo", "hi", "n"]
    data = pl.DataFrame(rows, columns, orient="row")
    figure = lines("l", "T", "Look.", data, LineAxes("BDP", "share", level=0.5))
    text = json.dumps(figure.spec)
    assert '"legend": null' in text
    assert '"size": {"value": 75.0}' in text
    assert "level" in text


@pytest.mark.parametrize("places", [(1.0, 16.0), ("LAN", "WAN")])
def test_lines_carry_their_intervals(places: tuple[float | str, ...]) -> None:
    rows = [("P", "reno", at, 2.0, -1.0, 5.0, 3) for at in places]
    columns = ["panel", "series", "at", "value", "lo", "hi", "n"]
    data = pl.DataFrame(rows, columns, orient="row")
    axes = LineAxes("streams", "ms", is_x_log=isinstance(places[0], float), is_y_log=True)
    figure = lines("lines", "Latency", "Look.", data, axes)
    assert ",2.0,0.2,5.0,3" in json.dumps(figure.spec)
    assert figure.svg().startswith("<svg")


def test_a_timeline_names_moments_and_levels() -> None:
    points = [("flow 1", 0.0, 1.0), ("flow 1", 60.0, 2.0)]
    data = pl.DataFrame(points, ["series", "t_s", "value"], orient="row")
    panels = [
        TimePanel("goodput", "Mbit/s", data, (10.0, "capacity")),
        TimePanel("cwnd", "kB", data),
    ]
    figure = timeline("time", "Two flows", "Look.", panels, [(22.0, "flow 2 starts")])
    assert "flow 2 starts" in figure.svg()
    assert "capacity" in figure.svg()
    assert figure.data["panel"].unique().sort().to_list() == ["cwnd", "goodput"]


def test_a_series_with_two_values_at_an_instant_is_a_staircase() -> None:
    points = [("link", 0.0, 10.0), ("link", 5.0, 10.0), ("link", 5.0, 1.0), ("link", 9.0, 1.0)]
    data = pl.DataFrame(points, ["series", "t_s", "value"], orient="row")
    figure = timeline("time", "Rate", "Look.", [TimePanel("rate", "Mbit/s", data)])
    shown = figure.explorer() if figure.explorer else None
    assert shown is not None
    (panel,) = shown.panels
    (line,) = panel.lines
    assert (line.shape, line.t_s.to_list()) == ("step", [0.0, 5.0, 9.0])
    assert line.value.to_list() == [10.0, 1.0, 1.0]


def test_data_that_several_parts_of_a_picture_have_are_in_it_once() -> None:
    first, second = (
        Chart(inline(pl.DataFrame({"a": [low, 2.5]}))).mark("line").encode(x="a:Q", y="a:Q")
        for low in (0.5, 1.5)
    )
    layers = layered(first, second).properties(width=300)
    rows = below_each_other(layers, first, spacing=3).resolve_scale(x="shared")
    pictures = (first, layers, rows, beside_each_other(rows, layers, spacing=3))
    specs = [picture.spec() for picture in (*pictures, in_columns(*pictures, columns=2, spacing=3))]
    assert [len(spec["datasets"]) for spec in specs] == [1, 2, 2, 2, 2]
    assert specs[0]["datasets"] == {specs[0]["data"]["name"]: "a\n0.5\n2.5\n"}
    for spec in specs:
        check(spec)


def test_a_method_makes_another_chart() -> None:
    points = Chart(inline(pl.DataFrame({"a": [1.0]}))).mark("point").encode(x="a:Q")
    bars = points.mark("bar", size=3).encode(
        x2="a:Q", tooltip=["a:N", channel("a:Q", format=".1f")]
    )
    assert points.spec()["mark"] == {"type": "point"}
    assert list(points.spec()["encoding"]) == ["x"]
    spec = bars.where("datum.a > 0").spec()
    assert spec["mark"] == {"type": "bar", "size": 3}
    # Vega-Lite takes the other end's type for this one's.
    assert spec["encoding"]["x2"] == {"field": "a"}
    assert spec["encoding"]["tooltip"][0] == {"field": "a", "type": "nominal"}
    assert "transform" not in bars.spec()
    check(spec)


def test_a_chart_that_is_none_is_refused_where_charts_are_checked() -> None:
    chart = Chart(inline(pl.DataFrame({"a": [1.0]}))).mark("line").encode(x="a:Q")
    wrong = layered(chart).properties(width="wide")
    figure = Figure("wide", "Wide", "Look.", wrong, pl.DataFrame({"a": [1.0]}))
    assert drawing.check is check
    with pytest.raises(ValidationError, match="wide"):
        _ = figure.spec


def test_a_quantity_that_cannot_be_negative_has_no_negative_colours() -> None:
    rows = {"panel": ["p"] * 2, "row": ["a"] * 2, "column": ["x", "y"], "value": [0.0, 100.0]}
    axes = HeatAxes("a", "b", "delay, ms", low=0.0, middle=0.0, high=100.0)
    spec = json.dumps(heat_map("heat", "Delay", "Look.", pl.DataFrame(rows), axes).spec)
    assert '"domain": [0.0, 100.0]' in spec
    assert theme.COLD not in spec


def test_a_series_has_the_same_mark_whatever_it_stands_next_to() -> None:
    names = ["NewReno", "SACK", "Vegas", "Muzha"]
    shapes = theme.stack_shapes(names)
    assert len(set(shapes.values())) == len(names)
    assert theme.stack_shapes(["Muzha", "NewReno"]) == {
        name: shapes[name] for name in ("Muzha", "NewReno")
    }
    rows = {"panel": "p", "series": ["Muzha", "NewReno"], "at": [1.0, 1.0], "value": [2.0, 3.0]}
    data = pl.DataFrame(rows | {"n": 1}).with_columns(lo=None, hi=None)
    spec = json.dumps(lines("l", "T", "Look.", data, LineAxes("x", "y")).spec)
    assert f'"range": ["{shapes["Muzha"]}", "{shapes["NewReno"]}"]' in spec


def test_a_series_has_the_mark_that_it_has_in_the_figure_before() -> None:
    names = ["NewReno", "SACK", "Muzha", "Muzha, memory 1 RTT"]
    shapes = theme.stack_shapes(names)
    rows = {"panel": "p", "series": names[1:], "at": [1.0] * 3, "value": [2.0, 3.0, 4.0]}
    data = pl.DataFrame(rows | {"n": 1}).with_columns(lo=None, hi=None)
    for neighbours, is_same in ((tuple(names), True), ((), False)):
        axes = LineAxes("x", "y", neighbours=neighbours)
        spec = json.dumps(lines("l", "T", "Look.", data, axes).spec)
        assert (json.dumps([shapes[name] for name in names[1:]]) in spec) == is_same


def test_more_series_than_colours_differ_in_their_marks() -> None:
    names = ["NewReno", *(f"scheme {number}" for number in range(12))]
    colours, shapes = theme.stack_colours(names), theme.stack_shapes(names)
    assert len(set(colours.values())) < len(names)
    assert len({(colours[name], shapes[name]) for name in names}) == len(names)


def test_published_lines_that_coincide_have_different_widths() -> None:
    cells = [
        {"table": "t", "row": row, "column": column, "unit": "s", "published": 1.0}
        for row in ("W=10", "W=20", "W=30")
        for column in ("1%", "2%")
    ]
    spec = json.dumps(plot.comparison("t", cells).spec)
    scales = re.findall(r'"strokeWidth": {"field": "row", .*?"scale": ({.*?})', spec)
    assert scales
    for scale in map(json.loads, scales):
        widths = dict(zip(scale["domain"], scale["range"], strict=True))
        assert widths["W=10"] > widths["W=20"] > widths["W=30"] > 0


def test_captions_describe_only_what_is_drawn(tmp_path: Path, drawn: dict[str, Figure]) -> None:
    assert "CUBIC" in drawn["cwnd"].caption
    assert "dashed line is ssthresh" in drawn["cwnd"].caption
    assert "red tick" in drawn["queue"].caption
    results = compared(tmp_path, "reno", flows=2, repeat=1, duration="6s", queue="1000bdp")
    found = {figure.name: figure.caption for figure in figures(results)}
    assert "CUBIC" not in found["cwnd"]
    assert "BBR" not in found["cwnd"]
    assert "ssthresh" not in found["cwnd"]
    assert "red tick" not in found["queue"]
    assert "median" not in found["queue"] + found["goodput"] + found["jain"]


@pytest.mark.parametrize(("largest", "kind"), [(19.0, "linear"), (21.0, "log")])
def test_delays_over_a_wide_range_have_a_logarithmic_axis(largest: float, kind: str) -> None:
    values = pl.DataFrame({"value": [1.0, 4.0, largest], "value_y": [5.0, 6.0, 7.0]})
    means = pl.DataFrame({"lo": [1.0], "hi": [largest], "lo_y": [5.0], "hi_y": [7.0]})
    plane = across._Plane(values, means)
    assert plane.scale_x()["type"] == kind
    left, _ = plane.pixel(largest, 6.0)
    middle, _ = plane.pixel(largest**0.5, 6.0)
    right, _ = plane.pixel(1.0, 6.0)
    assert 0 <= left < middle < right <= theme.WIDTH
    assert (middle == pytest.approx((left + right) / 2)) == (kind == "log")


@pytest.mark.parametrize(("width", "points"), [("3.4in", 244.8), ("178mm", 504.6)])
def test_a_figure_for_a_paper_has_its_width_and_one_type_size(
    drawn: dict[str, Figure], width: str, points: float
) -> None:
    for figure in drawn.values():
        fitted = replace(figure, paper=Paper.of(width, 8.0))
        (box,) = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+)", fitted.pdf())
        assert float(box) == pytest.approx(points, rel=0.015), figure.name
        found = re.search(r'<svg[^>]*\swidth="([\d.]+)pt"', fitted.svg())
        assert found is not None
        assert float(found[1]) == pytest.approx(points, rel=0.015)
        assert set(re.findall(r'font-size="([\d.]+)px"', fitted.svg())) <= {"8"}


@pytest.mark.parametrize(
    ("width", "font_size", "reason"),
    [
        ("3", None, "write 1in to 20in"),
        ("3.4em", None, "write 1in to 20in"),
        ("30in", None, "write 1in to 20in"),
        ("0in", None, "write 1in to 20in"),
        (None, 0.0, "4 to 40 points"),
    ],
)
def test_a_size_that_no_paper_has_is_refused(
    width: str | None, font_size: float | None, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        Paper.of(width, font_size)


def test_labels_that_leave_no_space_are_named(drawn: dict[str, Figure]) -> None:
    with pytest.raises(InputError, match="larger width or a smaller --font-size"):
        _ = replace(drawn["metrics"], paper=Paper.of("1in", 40.0)).spec
