"""Linux's TCP in a guest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requires
from conftest import Invoke

import weir
from weir.guest import world
from weir.running.runner import execute
from weir.scenario.plans import Comparison
from weir.scenario.source import SIM, VIRTUAL, Effective, Source

pytestmark = [requires.guest, pytest.mark.timeout(300)]


def scenario(stack: str, loss: str = "0%") -> str:
    """One flow for three seconds."""
    made = Comparison(stacks=(stack,), duration="3s", start_jitter="0s", repeat=1, loss=loss)
    return made.plan().runs[0].case.scenario.text


def test_a_guest_computes_what_its_host_does() -> None:
    text = scenario("rack/cubic", loss="1%")
    ours = execute(Effective.from_json(text), 7, SIM)
    theirs = world.run(text, 7, SIM)
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equals(theirs[name]) for name in ours)


@pytest.mark.parametrize("stack", ["reno", "bbr"])
def test_the_same_seed_gives_the_same_tables(stack: str) -> None:
    """BBR draws random numbers in the kernel."""
    text = scenario(stack)
    first, again = (world.run(text, 3) for _ in range(2))
    assert first["samples"].height > 20
    assert all(first[name].equals(again[name]) for name in first)


def test_a_flow_from_the_start_measures_its_path() -> None:
    """A SYN that waited for the links would be BBR's minimum for 10 s."""
    fields = json.loads(scenario("bbr"))
    fields["measure"]["sample_interval"] = "10ms"
    samples = world.run(json.dumps(fields), 3)["samples"].sort("t_s")
    # 40 ms, two segments of 60 bytes at 10 Mbit/s, and the readings of the guest's clock.
    assert samples["srtt_ms"].drop_nulls()[0] == pytest.approx(40.1, abs=0.01)


def test_flows_start_on_time() -> None:
    """A poll of 19 ms may last 19 us longer."""
    source = Source(
        """
        topology = { rate = "10mbit", rtt = "40ms", queue = "1bdp" }
        flow = [{ stack = "reno", start = "19.3ms" }]
        measure = { duration = "200ms", events = 10 }
        """,
        "late",
        (),
    )
    rows = world.run(source.effective().text, 1)["events"]
    start = rows.filter(kind="start")["t_s"].item()
    assert start == pytest.approx(0.0193, abs=2e-9)


def test_algorithms_that_no_usual_kernel_has(tmp_path: Path) -> None:
    stacks = ("vegas", "illinois")
    found = weir.compare(
        *stacks,
        duration="3s",
        repeat=1,
        world=VIRTUAL,
        out=tmp_path,
        show_progress=False,
    )
    assert set(found.flows["stack"]) == {f"rack/{stack}" for stack in stacks}
    assert all(goodput > 8.5 for goodput in found.flows["goodput_mbps"].to_list())
    assert found.manifest["guest_kernel"]["version"].startswith("6.")
    assert found.manifest["health"]["verdict"] == "good"


def test_what_the_kernel_does_not_have_is_refused_by_name(invoke: Invoke) -> None:
    result = invoke("compare", "go-back-n(4)/none", "--world", "kernel", "--virtual")
    assert result.exit_code == 2
    assert "recovers from losses as rack does" in result.stderr


def test_dctcp_gets_its_marks() -> None:
    marking = (("topology.queue.kind", "ecn-step"), ("topology.queue.threshold", "10p"))
    made = Comparison(stacks=("dctcp",), duration="3s", repeat=1, sets=marking)
    tables = world.run(made.plan().runs[0].case.scenario.text, 1)
    assert tables["flows"]["retransmits"].to_list() == [0]
    assert max(tables["queues"]["marks"].to_list()) > 0
