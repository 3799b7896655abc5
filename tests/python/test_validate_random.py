"""Random paths with one flow each, in the simulator and in a guest's kernel."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import requires
from conftest import Invoke
from test_schemas import check

from weir import _native, load
from weir.api.reports import write
from weir.kernel.recipe import CONTROLS
from weir.recordings import judge
from weir.recordings.receiver import GROWING
from weir.recordings.truth import Flow, Reference
from weir.scenario.source import SIM
from weir.statistics.intervals import independent_ratio
from weir.validation import chance, spread
from weir.validation import kernel as kernels
from weir.validation.cases import SEND_BUFFER, Scene
from weir.validation.sampled import (
    DRAWN,
    DURATION_S,
    LOSS,
    RATE_MBIT,
    RTT_MS,
    SIMULATIONS,
    scenes,
)

NAME = re.compile(
    r"(?P<number>\d{3,})-(?P<cc>[a-z]+)-(?P<mbit>[\d.]+)m-(?P<ms>\d+)ms-(?P<packets>\d+)p"
    r"(-loss(?P<percent>[\d.]+))?"
)


def named(scene: Scene) -> dict[str, str]:
    found = NAME.fullmatch(scene.name)
    assert found, scene.name
    return found.groupdict()


def described(made: list[Scene]) -> list[tuple[str, str, str]]:
    return [(scene.name, scene.flows[0].cc, scene.kind) for scene in made]


def test_a_longer_list_begins_with_a_shorter_one() -> None:
    assert list(scenes(20, 1)) == list(islice(scenes(300, 1), 20))
    assert {scene.name for scene in scenes(20, 1)}.isdisjoint(s.name for s in scenes(20, 2))


def test_scenarios_are_what_their_names_say_and_within_the_ranges() -> None:
    made = list(scenes(170, 3))
    assert Counter(named(scene)["cc"] for scene in made) == dict.fromkeys(CONTROLS, 10)
    assert 50 < sum("-loss" in scene.name for scene in made) < 120
    kinds = {(cc in DRAWN, "-loss" in name): kind for name, cc, kind in described(made)}
    assert kinds == {
        (False, False): "deterministic",
        (False, True): "loss",
        (True, False): "drawn",
        (True, True): "drawn",
    }
    for scene in made:
        name, fields = named(scene), scene.source.effective().fields
        path, (flow,) = fields["topology"], fields["flow"]
        rate = _native.parse_quantity("rate", path["rate"])
        rtt_s = _native.parse_quantity("time", path["rtt"])
        packets = int(name["packets"])
        assert rate == pytest.approx(float(name["mbit"]) * 1e6)
        assert rtt_s == pytest.approx(int(name["ms"]) / 1e3)
        assert RATE_MBIT[0] * 1e6 <= rate <= RATE_MBIT[1] * 1e6
        assert RTT_MS[0] / 1e3 <= rtt_s <= RTT_MS[1] / 1e3
        bdps = packets * 1_500 * 8 / (rate * rtt_s)
        assert packets == 2 or 0.2 < bdps < 3.5, scene.name
        loss = float(name["percent"] or "0") / 100
        assert _native.parse_quantity("ratio", path["forward"]["loss"]) == pytest.approx(loss)
        assert loss == 0 or LOSS[0] <= loss <= LOSS[1]
        assert (flow["stack"], scene.flows[0].duration_s) == (f"rack/{name['cc']}", DURATION_S)


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
    assert "agreement" in page


@pytest.mark.usefixtures("twin")
def test_many_draws_are_compared_with_one_run_of_the_kernel(invoke: Invoke) -> None:
    chosen = ("--random", 17, "--virtual", "--dry-run", "--json", "--case", "01[3-5]-*")
    for given, repeats in (((), SIMULATIONS), (("--repeat", 3), 3)):
        result = invoke("validate", *chosen, *given)
        labels = Counter(row["label"] for row in json.loads(result.stdout)["rows"])
        highspeed, nv, cdg = (scene.name for scene in list(scenes(17, 1))[13:16])
        runs = {highspeed: 1, nv: 1, cdg: repeats}
        assert labels == {**runs, **{f"{name}, kernel": 1 for name in runs}}


@pytest.mark.parametrize(
    ("ours", "linux", "verdict"),
    [
        ((100.0, 104.0), 103.0, "holds"),
        ((90.0, 130.0), 129.0, "holds"),
        ((90.0, 130.0), 131.0, "differs"),
        ((90.0,), 100.0, "differs"),
    ],
)
def test_a_run_with_random_numbers_may_be_one_of_ours(
    ours: tuple[float, ...], linux: float, verdict: str
) -> None:
    made = Reference(
        "a", {}, "6.1", (Flow("bbr", 0, 9),), (({spread.GOODPUT: linux},),), None, None
    )
    runs = [[{spread.GOODPUT: value}] for value in ours]
    rows = judge.rows(made, "drawn", runs, judge.SAMPLED, independent_ratio)
    (found,) = (row for row in rows if row["metric"] == spread.GOODPUT)
    assert found["verdict"] == verdict


def test_a_difference_that_microseconds_make_is_called_so() -> None:
    (scene,) = (one for one in scenes(143, 1) if one.name.startswith("142-htcp"))
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
@pytest.mark.parametrize(("count", "case"), [(3, "002-bbr-*"), (143, "142-htcp-*")])
def test_a_guest_agrees_to_a_packet(invoke: Invoke, count: int, case: str) -> None:
    """BBR draws the same phase, and packets tie at a queue of three packets in the same way."""
    chosen = ("--random", count, "--seed", 1, "--virtual", "--case", case)
    result = invoke("validate", *chosen, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    ratios = {
        row["metric"]: row["ratio"] for row in json.loads(result.stdout)["rows"] if row["tolerance"]
    }
    # An acknowledgement at the very end of the measured time may count or not.
    assert ratios == {spread.GOODPUT: pytest.approx(1, abs=1e-3), spread.RETRANSMITS: 1.0}
