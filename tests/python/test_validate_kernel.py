"""The set of scenarios in the simulator and in a kernel's TCP."""

from __future__ import annotations

import json
import platform
import socket
from collections import Counter
from fnmatch import filter as matching
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import requires
from conftest import Invoke

from weir import _native, load
from weir.api.reports import write
from weir.kernel import cache, receiver
from weir.recordings import judge
from weir.recordings.truth import Flow, Reference
from weir.scenario.source import KERNEL, SIM
from weir.validation import SIZES, Validation, validate_kernel
from weir.validation import cases as catalogue
from weir.validation import kernel as kernels
from weir.validation.cases import ALL, BUILT_IN, MIXES, Scene, scenes
from weir.validation.known import explained

SCENES = {scene.name: scene for scene in scenes(SIZES["small"], ALL)}


def fields(scene: Scene) -> Any:
    return scene.source.effective().fields


# The set.


def test_the_set_has_what_it_should() -> None:
    for rate in (10, 100):
        for bdp in (1, 4):
            assert len(matching(SCENES, f"{rate}m-{bdp}bdp-*")) == len(ALL) == 9
    assert len(matching(SCENES, "10m-loss1-*")) == len(ALL)
    for test in ("2-flow", "3-flow", "rpc"):
        assert len(matching(SCENES, f"10m-{test}-*")) == len(BUILT_IN)
    assert all(f"10m-{one}-{other}" in SCENES for one, other in MIXES)
    assert len(matching(SCENES, "20m-late2-25ms-*")) == len(BUILT_IN)
    full = {scene.name: scene for scene in scenes(SIZES["full"], ALL)}
    assert len(matching(full, "20m-late*")) == 4 * 3 * len(BUILT_IN)


@pytest.mark.parametrize("size", SIZES)
def test_every_scenario_is_valid_and_ends_with_its_flows(size: str) -> None:
    for scene in scenes(SIZES[size], ALL):
        made = fields(scene)
        assert [flow["stack"] for flow in made["flow"]] == [f"rack/{f.cc}" for f in scene.flows]
        assert all(flow["mss"] == scene.mss for flow in made["flow"])
        ends = [_native.parse_quantity("time", flow["stop"]) for flow in made["flow"]]
        assert ends == [pytest.approx(flow.end_s) for flow in scene.flows]
        duration = _native.parse_quantity("time", made["measure"]["duration"])
        assert duration == pytest.approx(max(ends) + 0.01)


def test_scenarios_are_what_their_names_say() -> None:
    found = fields(SCENES["100m-4bdp-vegas"])
    assert (found["topology"]["rate"], found["topology"]["rtt"]) == ("100mbit", "40ms")
    assert found["topology"]["queue"] == "4bdp"
    assert fields(SCENES["10m-1bdp-dctcp"])["topology"]["queue"]["kind"] == "ecn-step"
    assert fields(SCENES["10m-loss1-reno"])["topology"]["forward"]["loss"] == "1%"
    late = fields(SCENES["20m-late2-25ms-bbr"])["topology"]["forward"]
    assert (late["reorder"], late["reorder_delay"]) == ("2%", "25ms")
    stream, asking = fields(SCENES["10m-rpc-cubic"])["flow"]
    assert (stream["workload"]["kind"], asking["workload"]["kind"]) == ("bulk", "request")
    assert SCENES["10m-3-flow-reno"].flows == tuple(
        Flow("reno", start, end - start) for start, end in ((0, 15), (3, 13), (6.5, 11.5))
    )
    kinds = ("10m-1bdp-reno", "deterministic"), ("10m-1bdp-bbr", "drawn"), ("10m-cubic-bbr", "mix")
    assert [SCENES[name].kind for name, _ in kinds] == [kind for _, kind in kinds]


def test_what_bpf_has_added_to_a_kernel_meets_ours_of_the_plain_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "available", lambda: ["reno", "bpf_vegas", "bpf_mine"])
    assert catalogue.registered() == ("bpf_vegas",)
    made = {scene.name: scene for scene in scenes(SIZES["small"], catalogue.registered())}
    scene = made["10m-1bdp-bpf_vegas"]
    (there,), (here,) = fields(scene)["flow"], scene.simulated.effective().fields["flow"]
    assert (there["stack"], here["stack"]) == ("rack/bpf_vegas", "rack/vegas")


# Judging.


def test_a_ratio_has_an_interval_over_repeats() -> None:
    found = judge.rows(
        Reference(
            "a", {}, "6.1", (Flow("reno", 0, 9),), tuple(({"mean_srtt_ms": v},) for v in (50, 52)),
            None, None,
        ),
        "loss",
        [[{"mean_srtt_ms": 51}], [{"mean_srtt_ms": 53}]],
        judge.VIRTUAL,
    )  # fmt: skip
    (row,) = (row for row in found if row["metric"] == "mean_srtt_ms")
    assert (row["ratio"], row["holds"], row["tolerance"]) == (1.01961, True, "5 %")
    assert row["ratio_interval"]["lo"] < row["ratio"] < row["ratio_interval"]["hi"]
    assert row["ratio_interval"]["n"] == 2


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((100.0, 104.0), (100.1, 104.1), "holds"),
        ((110.0, 114.0), (101.0, 104.0), "differs"),
        ((102.0, 98.0), (90.0, 110.0), "inconclusive"),
        ((90.0, 130.0), (110.0, 90.0), "inconclusive"),
        ((100.0, None), (97.0, None), "holds"),
        ((110.0,), (100.0,), "differs"),
    ],
)
def test_what_few_runs_cannot_tell_is_inconclusive(
    ours: tuple[float | None, ...], theirs: tuple[float | None, ...], verdict: str
) -> None:
    key = "mean_srtt_ms"
    made = Reference(
        "a", {}, "6.1", (Flow("bbr", 0, 9),), tuple(({key: v},) for v in theirs), None, None
    )
    found = judge.rows(made, "shared", [[{key: v}] for v in ours], judge.VIRTUAL)
    (row,) = (row for row in found if row["metric"] == key)
    holds = {"holds": True, "differs": False}.get(verdict)
    assert (row["verdict"], row["holds"]) == (verdict, holds)
    judged = judge.score([row])["all"]
    assert judged == {
        "held": verdict == "holds",
        "inconclusive": verdict == "inconclusive",
        "judged": 1,
    }


def test_notes_say_what_is_known_of_what_does_not_hold() -> None:
    row = {"case": "10m-2-flow-cubic", "verdict": "inconclusive", "note": "ours: mean of 5 seeds"}
    assert "single packets" in explained(row)["note"]
    assert explained(row)["note"].startswith("ours: mean of 5 seeds; ")
    for verdict in ("holds", None):
        assert explained({**row, "verdict": verdict})["note"] == row["note"]
    assert "BBR" not in explained(row)["note"]
    assert "BBR" in explained({**row, "case": "10m-3-flow-bbr"})["note"]
    assert explained({**row, "case": "10m-1bdp-reno"})["note"] == row["note"]


def runs(*health: str | None) -> pl.DataFrame:
    """Rows of the table of runs of which only the verdicts matter."""
    schema = {"run": pl.Int64, "seed": pl.Int64, "health": pl.String}
    return pl.DataFrame([(i, i, said) for i, said in enumerate(health)], schema, orient="row")


def test_runs_that_came_late_are_left_out_and_said() -> None:
    kept, note, is_sure = kernels.trusted(runs("good", "late", "good"))
    assert (kept["run"].to_list(), is_sure) == ([0, 2], True)
    assert note == "left out: 1 of 3 runs of the kernel is not to be believed: late"
    kept, note, is_sure = kernels.trusted(runs("late", "late"))
    assert (kept.height, is_sure) == (2, False)
    assert note == "2 of 2 runs of the kernel are not to be believed: late"
    assert kernels.trusted(runs(None, None))[1:] == ("", True)


# The whole of it, with the simulator in the kernel's place.


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator in the kernel's place."""
    made = kernels.Kernel(SIM, BUILT_IN, judge.VIRTUAL, is_exact=True, extra_us=0)
    monkeypatch.setattr(kernels, "LIVE", made)


@pytest.mark.usefixtures("twin")
def test_what_is_the_same_is_found_the_same(invoke: Invoke) -> None:
    chosen = ("--case", "10m-1bdp-*", "--case", "10m-rpc-cubic", "--repeat", 2)
    result = invoke("validate", *chosen, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    judged = [row for row in document["rows"] if row["tolerance"]]
    assert len(judged) == 3 * 3 + 2 + 1
    assert all(row["ratio"] == 1 and row["holds"] for row in judged)
    held = {"held": len(judged), "inconclusive": 0, "judged": len(judged)}
    assert document["score"]["all"] == held
    (request,) = (row for row in judged if row["metric"] == "request_latency_ms_p50")
    assert (request["flow"], request["ours"] > 40) == (1, True)
    page = write(load(Path("results/validate/latest"))).read_text(encoding="utf-8")
    assert "overlay-10m-1bdp-reno" in page
    assert "overlay-10m-1bdp-reno-kernel" not in page


@pytest.mark.usefixtures("twin")
def test_a_dry_run_lists_both_worlds(invoke: Invoke) -> None:
    result = invoke("validate", "--case", "10m-*bdp-cubic", "--dry-run", "--json")
    labels = [row["label"] for row in json.loads(result.stdout)["rows"]]
    assert sorted(labels) == [f"10m-{bdp}bdp-cubic{k}" for bdp in (1, 4) for k in ("", ", kernel")]


def test_flows_that_meet_in_real_time_are_compared_with_many_simulations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = kernels.Kernel(SIM, BUILT_IN, judge.LIVE, is_exact=False, extra_us=0)
    monkeypatch.setattr(kernels, "LIVE", made)
    found = validate_kernel(cases=["10m-rpc-reno"], repeat=2, out=tmp_path, show_progress=False)
    repeats = Counter(found.results.runs["label"])
    assert repeats == {"10m-rpc-reno": 40, "10m-rpc-reno, kernel": 2}
    judged = [row for row in found.rows if row["tolerance"]]
    assert len(judged) == 2
    assert all(row["holds"] and row["ratio_interval"]["n"] == 2 for row in judged)


NEWER = {"initial_recv_window": "4192856b", "recv_buffer": "5mib", "max_recv_buffer": "16mib"}


@pytest.mark.skipif(
    not hasattr(socket, "TCP_INFO"), reason="this system's sockets have no TCP_INFO"
)
@pytest.mark.parametrize(("version", "is_newer"), [("6.1.192", False), ("6.12.117", True)])
def test_our_receivers_offer_what_a_guests_do(
    version: str, is_newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "default", lambda: cache.Kernel(Path(), version, "", {}))
    newer = {**NEWER, "send_overhead": "832b"}
    assert receiver.of_guest() == (newer if is_newer else receiver.GROWING)
    own = {"recv_buffer": "20000b", "initial_recv_window": "16000b"}
    assert receiver.of_guest_with_buffer("16000b") == (own if is_newer else {})


def test_our_receivers_offer_what_this_kernels_do() -> None:
    major, minor = (int(part) for part in platform.release().split(".")[:2])
    assert receiver.offers_whole_buffer_at_first() or (major, minor) < (6, 11)
    assert receiver.here() == (
        NEWER if receiver.offers_whole_buffer_at_first() else receiver.GROWING
    )


REFUSED = {
    "--case: no such": (("--case", "no-*"), "--case no-*: there is no such case; there are"),
    "--size": (("--size", "huge"), "--size huge: there are small and full"),
    "--seeds": (("--seeds", 3), "--seeds has no effect without --reference; leave it out"),
    "--reference": (
        ("--reference", "x", "--size", "full"),
        "--size has no effect with --reference",
    ),
    "--virtual": (("--reference", "x", "--virtual"), "--virtual has no effect with --reference"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(
    given: tuple[str, ...], message: str, invoke: Invoke
) -> None:
    result = invoke("validate", *given)
    assert result.exit_code == 2
    assert message in result.stderr


# Beside a real kernel.


def _lacks(world: str) -> str:
    """What this machine has not that the world needs."""
    try:
        _ = SCENES["10m-1bdp-reno"].source.in_world(world).at({})
    except Exception as error:
        return str(error)
    return ""


def test_a_live_kernel_stands_beside_the_simulator(tmp_path: Path) -> None:
    lacking = _lacks(KERNEL)
    if lacking:
        pytest.skip(lacking)
    found = _validated(tmp_path, "100m-1bdp-cubic", virtual=False)
    (goodput,) = (row for row in found.rows if row["metric"] == "steady_goodput_mbps")
    # A machine that is busy with other tests may well be too slow, and then says so.
    doubted = "not to be believed" in goodput["note"]
    assert doubted or goodput["ratio_interval"]["n"] == 2, goodput
    assert doubted or goodput["holds"], goodput


@requires.guest
def test_a_kernel_in_virtual_time_does_what_the_simulator_does(tmp_path: Path) -> None:
    # How often DCTCP hears of marks shows each acknowledgement more or less.
    found = _validated(tmp_path, "10m-1bdp-dctcp", virtual=True)
    judged = [row for row in found.rows if row["tolerance"]]
    assert len(judged) == 3
    # Nothing is random, and packets are the same ones: far closer than the tolerances.
    assert all(row["holds"] and abs(row["ratio"] - 1) < 0.003 for row in judged), judged


def _validated(out: Path, case: str, *, virtual: bool) -> Validation:
    return validate_kernel(virtual=virtual, cases=[case], repeat=2, out=out, show_progress=False)
