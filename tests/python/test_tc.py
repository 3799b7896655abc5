"""Links in the words of `tc`, on the command line."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
import requires
from conftest import Invoke, started

import weir
from weir.scenario.plans import Comparison

QUICK = ("--duration", "1s", "-n", "1", "--quiet")
NETEM = "netem delay 30ms 2ms loss 1% rate 5mbit limit 40"


def topology(path: str) -> dict[str, object]:
    scenario = weir.load(path).cases[0]["scenario"]
    found: dict[str, object] = scenario["topology"]
    return found


def test_compare_runs_what_tc_says(invoke: Invoke) -> None:
    assert invoke("compare", "reno", "--tc", NETEM, *QUICK).exit_code == 0
    found = topology("results/compare/latest")
    assert (found["rate"], found["rtt"], found["queue"]) == ("5mbit", "30ms", "40p")
    forward = found["forward"]
    assert isinstance(forward, dict)
    assert (forward["loss"], forward["jitter"], forward["jitter_order"]) == ("1%", "2ms", "kept")


def test_its_command_repeats_it() -> None:
    plan = Comparison(["reno"], tc=NETEM, reverse_tc="netem delay 5ms", repeat=1).plan()
    words = plan.command.split("weir ")[1]
    assert "--tc 'netem delay 30ms" in words
    assert "--reverse-tc 'netem delay 5ms'" in words
    assert plan.cases[0].scenario.fields["topology"]["rtt"] == "35ms"


def test_run_puts_it_on_top_of_a_file(invoke: Invoke) -> None:
    words = ("--tc", NETEM, "--set", "topology.queue=7p", "--dry-run", "--json")
    assert invoke("run", "two-flows", *words).exit_code == 0
    short = ("--set", "measure.duration=12s", "--set", "measure.warmup=0s", "-n", "1", "-q")
    assert invoke("run", "two-flows", *words[:4], *short).exit_code == 0
    found = topology("results/two-flows/latest")
    assert (found["rate"], found["queue"]) == ("5mbit", "7p")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tc", "netem slot 5ms"), "--tc 'netem slot 5ms': 'slot' of netem has no like here"),
        (("--tc", "fq limit 5"), "'fq' is no qdisc known here; there are netem, tbf"),
        (
            ("--tc", NETEM, "--rate", "1mbit"),
            "--rate 1mbit: --tc sets 5mbit; give only one of them",
        ),
        (("--reverse-tc", NETEM), "add --tc for the way of the data"),
        (("--tc", "netem", "--reverse-tc", "tbf"), "--reverse-tc 'tbf': a tbf has 'rate'"),
    ],
)
def test_what_it_cannot_mean_is_refused(invoke: Invoke, words: tuple[str, ...], said: str) -> None:
    result = invoke("compare", "reno", *words, *QUICK)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_scenario_has_it_as_a_key(invoke: Invoke, tmp_path: Path) -> None:
    text = f'[topology]\ntc = "{NETEM}"\n[[flow]]\n[measure]\nduration = "1s"\nwarmup = "0s"\n'
    (tmp_path / "mine.toml").write_text(text)
    assert invoke("run", "mine.toml", "-n", "1", "--quiet").exit_code == 0
    assert topology("results/mine/latest")["queue"] == "40p"
    swept = "topology.tc=netem delay 5ms,netem delay 10ms rate 2mbit"
    result = invoke("run", "mine.toml", "--sweep", swept, "-n", "1", "--dry-run", "--json")
    assert len(json.loads(result.stdout)["rows"]) == 2
    (tmp_path / "mine.toml").write_text(text.replace("tc =", 'rtt = "5ms"\ntc ='))
    result = invoke("run", "mine.toml")
    assert result.exit_code == 2
    assert "mine.toml, line 3: topology.tc: it says 'rtt' too" in result.stderr


@requires.namespaces
def test_a_link_delays_as_tc_says() -> None:
    code = (
        "import os, socket, sys, time; began = time.monotonic(); "
        "socket.create_connection((os.environ['WEIR_LINK_HOST'], int(sys.argv[1]))); "
        "print(time.monotonic() - began)"
    )
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104
        command = [sys.executable, "-c", code, str(server.getsockname()[1])]
        with started("link", "--tc", "netem delay 15ms", "--", *command) as process:
            said, problem = process.communicate(timeout=60)
    assert process.returncode == 0, problem
    # Nothing is quicker than both directions' delays.
    assert float(said) >= 0.03


def test_a_link_refuses_what_is_said_twice(invoke: Invoke) -> None:
    result = invoke("link", "--tc", NETEM, "--rate", "1mbit", "--", "true")
    assert result.exit_code == 2
    assert "--tc: it sets 'rate' too; give it only once" in result.stderr
