"""Animations of radio networks: the page holds what the simulator did, and needs nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from conftest import Invoke

from weir.base.errors import InputError
from weir.report import write_animation
from weir.report.animation import FRAME, KINDS, Animation, Excerpt, animation
from weir.running import runner
from weir.scenario.source import Source

CHAIN = """
name = "chain"
description = "ends </script><b>early"
[topology]
kind = "radio"
[topology.radio]
placement = "chain"
hops = 6
feedback = { kind = "drai" }
[[flow]]
stack = "muzha"
[measure]
duration = "5s"
frames = 100000
"""


CROWD = CHAIN.replace(
    '"chain"\nhops = 6', '"random"\nnodes = 8\nwidth = "400m"\nmobility = "waypoint"'
)


def wish(start: str, span: str, *overrides: tuple[str, str]) -> Excerpt:
    return Excerpt(Source(CHAIN, "chain.toml", overrides), None, start, span)


@pytest.fixture(scope="module")
def second() -> Animation:
    return animation(wish("1s", "500ms"))


def columns(made: Animation) -> pl.DataFrame:
    return pl.DataFrame(made.data["frames"], schema=list(FRAME), orient="row")


def test_it_holds_every_frame_of_the_span_in_order(second: Animation) -> None:
    whole = runner.execute(Source(CHAIN, "chain.toml").at({}), 1)["frames"]
    inside = whole.filter((pl.col("end_s") > 1.0) & (pl.col("t_s") < 1.5)).sort("t_s", "end_s")
    shown = columns(second)
    assert shown.height == second.frames == inside.height > 100
    assert shown["start"].is_sorted()
    assert [KINDS[kind] for kind in shown["kind"]] == inside["kind"].to_list()
    for name in ("node", "to", "flow", "seq", "mark", "readers"):
        assert shown[name].to_list() == inside[name].to_list(), name
    spans = zip(shown["start"], inside["t_s"], strict=True)
    assert all(abs(ns - (t_s - 1.0) * 1e9) <= 1 for ns, t_s in spans)


def test_frames_are_distinguished(second: Animation) -> None:
    shown = columns(second)
    data = shown.filter(kind=KINDS.index("data")).drop_nulls("flow")
    assert set(data["reverse"]) == {0, 1}
    assert shown.filter(pl.col("kind") == KINDS.index("cts"))["flow"].null_count() > 0
    assert (shown["readers"] == 0).any(), "on six hops frames collide"
    marks = data.filter(reverse=0)["mark"]
    assert shown.filter(pl.col("reverse") == 1)["mark"].null_count() > 0
    assert second.data["levels"] == 5
    assert data.filter(reverse=1)["seq"].null_count() == data.filter(reverse=1).height
    offsets = data.filter(reverse=0)["seq"].drop_nulls()
    assert len(offsets) > 20
    assert set(offsets % 1436) == {0}, "segments follow each other"
    assert marks.null_count() == 0
    assert set(marks) <= {1, 2, 3, 4, 5}


def test_it_knows_the_nodes_and_the_flows(second: Animation) -> None:
    assert second.data["nodes"] == [[200.0 * node, 0.0] for node in range(7)]
    (flow,) = second.data["flows"]
    assert (flow["from"], flow["to"], flow["stack"]) == (0, 6, "rack/muzha")
    assert second.data["places"] is None


@pytest.mark.parametrize(("metres", "is_read"), [(250, True), (251, False)])
def test_the_circle_is_as_wide_as_frames_are_read(metres: int, *, is_read: bool) -> None:
    spacing = ("topology.radio.spacing", f"{metres}m")
    one = animation(wish("0s", "1s", ("topology.radio.hops", "1"), spacing))
    assert bool(columns(one)["readers"].max()) is is_read
    assert (metres <= one.data["read_m"]) is is_read


def test_nodes_that_move_are_followed() -> None:
    moving = animation(Excerpt(Source(CROWD, "crowd.toml"), 3, "1s", "1s")).data["places"]
    assert moving is not None
    assert any(len(seen) > 2 for seen in moving)
    for seen in moving:
        assert [time for time, *_ in seen] == sorted(time for time, *_ in seen)


def test_events_of_flows_have_their_node() -> None:
    made = animation(wish("0s", "5s", ("topology.radio.queue", "1"), ("flow.0.stack", "reno")))
    kinds = {kind for _, _, kind, _, _ in made.data["events"]}
    assert "connected" in kinds
    dropped = [node for _, _, kind, _, node in made.data["events"] if kind == "dropped"]
    assert dropped
    assert all(0 <= node <= 6 for node in dropped)


def test_the_page_needs_nothing_else(second: Animation, tmp_path: Path) -> None:
    text = write_animation(second, tmp_path / "a.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]+\.", text)
    assert not re.findall(r"<(?:script|img|iframe)[^>]* src=", text)
    assert "default-src 'none'" in text
    assert len(text) < 1_000_000
    assert text.count("</script>") == 2
    assert "ends &lt;/script&gt;&lt;b&gt;early" in text
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert json.loads(data) == json.loads(json.dumps(second.data))


def test_texts_from_a_scenario_cannot_end_the_data(tmp_path: Path) -> None:
    name = ("flow.0.name", "</script><script>alert(1)")
    path = write_animation(animation(wish("1s", "20ms", name)), tmp_path / "a.html")
    text = path.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert text.count("</script>") == 2


def test_every_element_that_the_script_names_is_there(second: Animation, tmp_path: Path) -> None:
    text = write_animation(second, tmp_path / "a.html").read_text(encoding="utf-8")
    named = set(re.findall(r'\$\("([a-z]+)"\)', text))
    assert len(named) > 8
    assert named <= set(re.findall(r' id="([a-z]+)"', text))


def test_too_many_frames_are_refused_with_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.report.animation.MOST_FRAMES", 100)
    with pytest.raises(InputError, match="a page holds 100; ask for less, as in --for") as caught:
        animation(wish("1s", "2s"))
    (fits,) = re.findall(r"as in --for (\d+ms)", str(caught.value))
    assert 50 < animation(wish("1s", fits)).frames <= 100


def test_what_was_not_recorded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.report.animation._MOST_RECORDED", 500)
    assert animation(wish("0s", "50ms")).frames > 0
    with pytest.raises(InputError, match="only the first 500 frames of a run are recorded"):
        animation(wish("3s", "50ms"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "6s"), "the run ends at 5s"),
        (("--for", "0s"), "--for 0s: above 0s is needed"),
        (("--from", "soon"), "--from soon: "),
        (("--for", "-1s"), "--for -1s: "),
        (("--set", "flow.0.start=2s"), "no frame is sent then; the next one begins at 2.0"),
        (("--set", "topology.radio.hops=none"), "topology.radio.hops"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    invoke: Invoke, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "chain.toml").write_text(CHAIN, encoding="utf-8")
    result = invoke("ui", "chain.toml", "--save", "chain.html", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("weir: ")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_the_command_says_where_the_page_is(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("ui", "radio-chain", "--for", "50ms", "--seed", 4, "--save", "radio-chain.html")
    assert (result.exit_code, result.stdout) == (0, "radio-chain.html\n")
    assert "frames" in result.stderr
    text = (tmp_path / "radio-chain.html").read_text(encoding="utf-8")
    assert "weir ui radio-chain --seed 4 --save radio-chain.html --from 0s --for 50ms" in text
    again = invoke("ui", "radio-chain", "--for", "50ms", "--seed", 4, "--save", "b.html", "-q")
    assert again.stderr == ""
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == text


def test_a_folder_that_is_not_there_is_an_error(invoke: Invoke) -> None:
    result = invoke("ui", "radio-chain", "--for", "5ms", "--save", "none/a.html")
    assert result.exit_code == 1
    assert result.stderr.startswith("weir: ")
