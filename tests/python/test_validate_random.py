"""Random paths of many kinds, in the simulator and in a guest's kernel."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import requires
from conftest import Invoke
from test_schemas import check

from weir import _native, load
from weir.api.reports import write
from weir.kernel.receiver import GROWING, SEND_BUFFER
from weir.kernel.recipe import CONTROLS
from weir.recordings import judge
from weir.recordings.truth import COMPLETION, REQUEST, Flow, Reference
from weir.scenario.source import SIM, VIRTUAL, Source
from weir.statistics.intervals import independent_ratio
from weir.validation import chance, spread
from weir.validation import kernel as kernels
from weir.validation.cases import Scene
from weir.validation.kinds import KINDS, LEAST_PACKETS, log_uniform
from weir.validation.sampled import DRAWN, MOST_BDP, RUNS, SIMULATIONS, scenes

_KIND = "|".join(sorted(KINDS, key=len, reverse=True))
NAME = re.compile(
    rf"(?P<number>\d{{3,}})-(?P<kind>{_KIND})-(?P<cc>[a-z]+(-[a-z]+)*)-"
    r"(?P<mbit>[\d.]+)m-(?P<ms>\d+)ms-(?P<packets>\d+)p(-.*)?"
)


def test_a_longer_list_begins_with_a_shorter_one() -> None:
    assert list(scenes(20, 1)) == list(islice(scenes(300, 1), 20))
    assert {scene.name for scene in scenes(20, 1)}.isdisjoint(s.name for s in scenes(20, 2))


def test_every_kind_meets_every_controller() -> None:
    made = list(scenes(len(KINDS) * len(CONTROLS), 3))
    pairs = Counter((scene.group, scene.flows[0].cc) for scene in made)
    assert pairs == {(kind, cc): 1 for kind in KINDS for cc in CONTROLS}


def test_paths_are_what_their_names_say_and_within_the_ranges() -> None:
    for scene in scenes(8 * len(KINDS), 3):
        found = NAME.fullmatch(scene.name)
        assert found, scene.name
        kind, fields = KINDS[scene.group], scene.source.effective().fields
        path, flows = fields["topology"], fields["flow"]
        assert found["kind"] == scene.group
        assert [flow["stack"] for flow in flows] == [f"rack/{f.cc}" for f in scene.flows]
        assert len(flows) == kind.flows
        mbit = _native.parse_quantity("rate", path["rate"]) / 1e6
        rtt_ms = _native.parse_quantity("time", path["rtt"]) * 1e3
        assert mbit == pytest.approx(float(found["mbit"]))
        assert rtt_ms == float(found["ms"])
        assert mbit <= kind.rate_mbit[1]
        assert kind.rtt_ms[0] - 1 <= rtt_ms <= kind.rtt_ms[1]
        assert mbit * rtt_ms * 1e3 / 8 <= MOST_BDP
        bdps = int(found["packets"]) * 1_500 * 8 / (mbit * rtt_ms * 1e3)
        low, high = kind.queue_bdp
        assert int(found["packets"]) == LEAST_PACKETS or 0.8 * low < bdps < 1.2 * high, scene.name
        draws = kind.is_random or any(flow.cc in DRAWN for flow in scene.flows)
        assert (scene.kind != "deterministic", scene.simulations > 0) == (draws, draws)


def test_every_path_runs_in_both_worlds() -> None:
    for scene in scenes(2 * len(KINDS), 4):
        scene.source.in_world(VIRTUAL).at({})
        scene.simulated.in_world(SIM).at({})


def forward(scene: Scene) -> Any:
    return scene.source.effective().fields["topology"]["forward"]


def test_kinds_set_the_keys_that_they_are_named_after() -> None:
    made = {scene.group: scene for scene in scenes(len(KINDS), 5)}
    fields = {kind: scene.source.effective().fields for kind, scene in made.items()}
    for kind, key in {"loss": "loss", "reordering": "reorder", "duplicates": "duplicate"}.items():
        assert 0 < _native.parse_quantity("ratio", forward(made[kind])[key]) <= 0.05
        assert _native.parse_quantity("ratio", forward(made["plain"])[key]) == 0
    assert fields["codel"]["topology"]["queue"]["kind"] == "codel"
    assert fields["ecn"]["topology"]["queue"]["ecn"] is True
    assert fields["window"]["flow"][0]["recv_buffer"] != fields["plain"]["flow"][0]["recv_buffer"]
    works = {kind: fields[kind]["flow"][0]["workload"]["kind"] for kind in fields}
    own = {"file": "file", "requests": "request", "paced": "rate"}
    assert works == {kind: own.get(kind, "bulk") for kind in KINDS}
    pause, end = forward(made["blackout"])["rate_steps"]
    assert (pause["rate"], end["rate"]) == ("0bit", fields["blackout"]["topology"]["rate"])


def test_logarithms_are_uniform() -> None:
    rng = Random(1)  # noqa: S311
    drawn = [log_uniform(rng, (1.0, 100.0)) for _ in range(2_000)]
    assert 1 <= min(drawn) < 1.1
    assert 90 < max(drawn) <= 100
    assert sum(value < 10 for value in drawn) == pytest.approx(1_000, abs=100)


def test_a_receive_buffer_of_a_path_is_not_that_of_the_hosts() -> None:
    made = {scene.group: scene for scene in scenes(len(KINDS), 1)}
    for kind, grows in (("plain", True), ("window", False)):
        own = kernels._simulated(made[kind], kernels.IN_VIRTUAL_TIME).effective().fields["flow"][0]
        assert ("max_recv_buffer" in own and own["max_recv_buffer"] is not None) == grows


# The whole of it, with the simulator in the kernel's place.


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator whose round trips are 3 ms longer in the kernel's place."""
    made = kernels.Kernel(SIM, (), judge.VIRTUAL, is_exact=True, extra_us=-3_000)
    monkeypatch.setattr(kernels, "IN_VIRTUAL_TIME", made)


@pytest.mark.usefixtures("twin")
def test_rows_come_with_their_distribution_by_controller(invoke: Invoke) -> None:
    chosen = ("--random", 12, "--virtual", "--seed", 5, "--case", "00[0-4]-*", "--repeat", 2)
    result = invoke("validate", *chosen, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    check("validate", document)
    judged = [row for row in document["rows"] if row["tolerance"]]
    assert {row["metric"] for row in judged} == {spread.GOODPUT, spread.RETRANSMITS}
    assert {row["controller"] for row in judged} == set(CONTROLS[:5])
    *kinds, every = document["kinds"]
    assert [entry["kind"] for entry in kinds] == list(KINDS)[:5]
    assert (every["kind"], every["paths"], every["rows"]) == ("all", 5, len(judged))
    assert every["held"] == sum(row["holds"] is True for row in judged)
    *each, whole = document["controllers"]
    assert [entry["controller"] for entry in each] == sorted(CONTROLS[:5])
    assert (whole["controller"], whole["flows"]) == ("all", 5)
    goodput = [row for row in judged if row["metric"] == spread.GOODPUT]
    assert whole["goodput_held"] == sum(row["holds"] is True for row in goodput)
    assert whole["goodput_ratio"]["least"] == min(row["ratio"] for row in goodput)
    # The simulator's round trips are shorter, so that not everything is equal.
    assert whole["goodput_ratio"]["least"] < whole["goodput_ratio"]["most"] != 1
    page = write(load(Path("results/validate/latest"))).read_text(encoding="utf-8")
    assert "By controller" in page
    assert "By kind of path" in page
    assert "agreement" in page


@pytest.mark.usefixtures("twin")
def test_what_is_random_runs_often(invoke: Invoke) -> None:
    chosen = ("--random", 16, "--virtual", "--dry-run", "--json", "--case", "01[35]-*")
    plain = ("--random", 1, "--virtual", "--dry-run", "--json")
    for given, repeats in (((), RUNS), (("--repeat", 2), 2)):
        result = invoke("validate", *chosen, *given)
        labels = Counter(row["label"] for row in json.loads(result.stdout)["rows"])
        bursts, cdg = (scene.name for scene in list(scenes(16, 1))[13::2])
        here = {bursts: SIMULATIONS, cdg: SIMULATIONS}
        assert labels == {**here, **{f"{name}, kernel": repeats for name in here}}
        rows = json.loads(invoke("validate", *plain, *given).stdout)["rows"]
        assert len(rows) == 2, "nothing is random"


@pytest.mark.parametrize(
    ("ours", "linux", "verdict", "near"),
    [
        ((100.0, 104.0, 90.0, 91.0), (103.0, 101.0), "holds", True),
        ((100.0, 110.0, 90.0, 104.0), (112.0, 118.0), "holds", False),
        ((100.0, 101.0) * 10, (110.0, 112.0, 109.0), "differs", False),
        ((100.0,), (103.0,), "holds", False),
    ],
)
def test_what_is_random_holds_by_the_same_seeds_or_by_distribution(
    ours: tuple[float, ...], linux: tuple[float, ...], verdict: str, near: bool
) -> None:
    made = Reference(
        *("a", {}, "6.1", (Flow("bbr", 0, 9),)),
        tuple(({spread.GOODPUT: value},) for value in linux),
        *(None, None),
    )
    runs = [[{spread.GOODPUT: value}] for value in ours]
    rows = judge.rows(made, "loss", runs, judge.SAMPLED, independent_ratio)
    (found,) = (row for row in rows if row["metric"] == spread.GOODPUT)
    assert (found["verdict"], found["near"]) == (verdict, near)


def test_files_and_requests_are_judged_by_their_times() -> None:
    values = {spread.GOODPUT: 5.0, spread.RETRANSMITS: 2}
    assert kernels._timed(values, None, None) == values
    assert kernels._timed(values, 12.5, None) == {**values, REQUEST: 12.5}
    assert kernels._timed(values, None, 0.5) == {spread.RETRANSMITS: 2, COMPLETION: 0.5}


SMALL_QUEUE = """
name = "tie"
[topology]
rate = "4.3mbit"
rtt = "26ms"
queue = "3p"
[[flow]]
name = "flow0"
stack = "htcp"
stop = "12s"
[measure]
duration = "12010ms"
sample_interval = "10ms"
"""


def test_a_difference_that_microseconds_make_is_called_so() -> None:
    flows = (Flow("htcp", 0, 12),)
    scene = Scene("tie", "deterministic", flows, Source(SMALL_QUEUE, "tie"), rtt_ms=26)
    own = scene.simulated
    for key, value in {**SEND_BUFFER, **GROWING}.items():
        own = own.with_override(f"flow.*.{key}", value)
    row = {"metric": spread.GOODPUT, "kind": "deterministic", "note": "", "verdict": "differs"}
    rate = {**row, "reference": 4.3}  # the rate of the link
    (beyond,) = chance.examined(scene, own, 26_006, [rate], judge.SAMPLED, 1)
    least, most = beyond["chance"]["least"], beyond["chance"]["most"]
    assert least < 0.95 * most, "three packets of queue make microseconds matter"
    between, holding = {**row, "reference": (least + most) / 2}, {**rate, "verdict": "holds"}
    found = chance.examined(scene, own, 26_006, [between, rate, holding], judge.SAMPLED, 1)
    assert [one["chance"]["includes"] for one in found[:2]] == [True, False]
    assert found[2] == holding
    (said,) = spread.by_chance(found)
    assert said.startswith("Of the 2 rows that differ, 1 are among 40 more simulations")


@pytest.mark.usefixtures("twin")
def test_a_terminal_shows_the_distribution(invoke: Invoke) -> None:
    result = invoke("validate", "--random", 1, "--virtual", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert "Goodput within tolerance: " in result.stdout
    assert re.search(r"reno\s+1\s+\d\.\d{4} · ", result.stdout)


def row(controller: str, metric: str, ours: float | None, linux: float | None) -> dict[str, Any]:
    ratio = None if not linux or ours is None else ours / linux
    holds = None if ratio is None else abs(ratio - 1) < 0.02
    return {
        **{"controller": controller, "metric": metric, "ours": ours, "reference": linux},
        **{"ratio": ratio, "holds": holds},
    }


def test_kinds_below_the_goal_are_named() -> None:
    rows = [
        {**row("reno", spread.GOODPUT, 9.9, 10.0), "group": "loss", "case": "a"},
        {**row("reno", spread.GOODPUT, 9.0, 10.0), "group": "codel", "case": "b"},
        {**row("reno", spread.GOODPUT, 9.0, 10.0), "case": "not drawn"},
    ]
    rows = [{**one, "verdict": "holds" if one["holds"] else "differs"} for one in rows]
    found = spread.by_kind([{**one, "near": one["holds"]} for one in rows])
    assert [(s["kind"], s["held"], s["rows"], s["paths"]) for s in found] == [
        ("loss", 1, 1, 1),
        ("codel", 0, 1, 1),
        ("all", 1, 2, 2),
    ]
    assert list(spread.kinds_sentences(found)) == ["Below 95 % of rows: codel."]
    assert list(spread.kinds_sentences(found[:1])) == ["Below 95 % of rows: no kind."]
    assert [line[5] for line in spread.kinds_table(found)] == ["100 %", "0 %", "50 %"]
    assert spread.by_kind([]) == []


def test_the_distribution_counts_each_controller_and_all() -> None:
    found = spread.by_controller(
        [
            row("reno", spread.GOODPUT, 9.0, 10.0),
            row("reno", spread.GOODPUT, 10.0, 10.0),
            row("cubic", spread.GOODPUT, 10.1, 10.0),
            row("cubic", spread.RETRANSMITS, 3, 0),
            row("cubic", spread.RETRANSMITS, 4, 4),
            row("cubic", spread.RETRANSMITS, None, 4),
        ]
    )
    cubic, reno, whole = found
    assert [entry["controller"] for entry in found] == ["cubic", "reno", "all"]
    assert reno["goodput_ratio"] == {"least": 0.9, "median": 0.95, "most": 1.0}
    assert (reno["flows"], reno["goodput_near"], reno["goodput_held"]) == (2, 1, 1)
    assert cubic["retransmits_difference"] == {"least": 0, "median": 1.5, "most": 3}
    assert (cubic["retransmits_equal"], whole["flows"]) == (1, 3)
    assert spread.by_controller([]) == []


REFUSED = {
    "live": (
        ("--random", 3),
        "--random 3: it compares with a guest in virtual time; add --virtual",
    ),
    "--size": (
        ("--random", 3, "--virtual", "--size", "full"),
        "--size has no effect with --random; leave it out",
    ),
    "--radio": (
        ("--random", 3, "--radio"),
        "--radio has no effect with --random; leave it out",
    ),
    "--reference": (
        ("--random", 3, "--reference", "x"),
        "--random has no effect with --reference; leave it out",
    ),
    "none": (("--random", 0, "--virtual"), "--random 0: 0 is not allowed; at least 1"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(
    given: tuple[str, ...], message: str, invoke: Invoke
) -> None:
    result = invoke("validate", *given)
    assert result.exit_code == 2
    assert message in result.stderr


@requires.guest
@pytest.mark.parametrize("case", ["002-shallow-bbr-*", "067-blackout-lp-*", "122-window-vegas-*"])
def test_a_guest_agrees_to_a_packet(invoke: Invoke, case: str) -> None:
    """BBR draws the same phase, with ties at three packets; timeouts wait for Linux's ticks.

    The receive buffer of the third is larger than `net.core.rmem_max`.
    """
    chosen = ("--random", 125, "--seed", 1, "--virtual", "--case", case)
    result = invoke("validate", *chosen, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    rows = [row for row in json.loads(result.stdout)["rows"] if row["tolerance"] and row["verdict"]]
    assert {row["metric"] for row in rows} == {spread.GOODPUT, spread.RETRANSMITS}
    for row in rows:
        assert row["ours"] == pytest.approx(row["reference"], rel=1e-2), row["metric"]
