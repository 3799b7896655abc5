"""The end of a run on one host: its requests, how it ends, and what its records may be."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest

from weir import _native
from weir.hosts import agent
from weir.processes.ready import open_ports
from weir.scenario import source as scenarios
from weir.scenario.source import Source


@contextmanager
def agent_process(*words: str) -> Iterator[Any]:
    command = words or ("-m", "weir", "test", "--server", "--stdio")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *command], stdin=pipe, stdout=pipe, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(**request: Any) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            found: dict[str, Any] = json.loads(process.stdout.readline())
            return found

        try:
            yield process, ask
        finally:
            process.kill()


def _prepared() -> dict[str, Any]:
    text = '[[flow]]\nstack = "reno"\n[measure]\nduration = "60s"\n'
    scenario = Source(text, "test").at({}).text
    return {"do": "prepare", "scenario": scenario, "seed": 1}


def test_an_agent_ends_after_lost_control() -> None:
    with agent_process() as (process, ask):
        ports = ask(**_prepared(), sends={"0": "127.0.0.1"}, receives=[0])["ports"]
        now = time.monotonic_ns()
        peers = {"0": f"127.0.0.1:{ports['0']}"}
        assert ask(do="start", at=now, peers=peers) == {}
        assert ask(do="clock")["ended"] is False
        # Long before the end of the run. How long the interpreter takes depends on the machine.
        assert process.wait(30) == 0
    assert agent.SILENCE_S < 2, "what the protocol promises"


def test_a_run_ends_with_standard_input() -> None:
    patient = "from weir.hosts import agent; agent.SILENCE_S = 60.0; agent.Agent().serve()"
    with agent_process("-c", patient) as (process, ask):
        ports = ask(**_prepared(), sends={}, receives=[0])["ports"]
        ask(do="start", at=time.monotonic_ns(), peers={"0": f"127.0.0.1:{ports['0']}"})
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_new_run_ends_the_one_before() -> None:
    with agent_process() as (process, ask):
        prepare = {**_prepared(), "sends": {}, "receives": [0]}
        first = ask(**prepare)["ports"]["0"]
        later = time.monotonic_ns() + 60_000_000_000
        assert ask(do="start", at=later, peers={"0": f"127.0.0.1:{first}"}) == {}
        began = time.monotonic()
        second = ask(**prepare)["ports"]["0"]
        took_s = time.monotonic() - began
        listening = open_ports(process.pid)
    assert took_s < 10, "it does not wait until the first would have begun"
    assert second in listening
    assert first not in listening


def test_requests_that_are_none_are_answered() -> None:
    with agent_process() as (_, ask):
        for request in ({"do": "x"}, {}, {"do": "prepare"}, {"do": "start", "at": 1, "peers": {}}):
            assert "no request of this version" in ask(**request)["error"]
        assert ask(do="hello")["protocol"] == agent.PROTOCOL


def test_a_flow_that_is_not_there_is_refused() -> None:
    with agent_process() as (_, ask):
        assert (
            "there is no flow 7; the scenario has 1"
            in ask(**_prepared(), sends={}, receives=[7])["error"]
        )
        assert ask(do="hello")["protocol"] == agent.PROTOCOL


Records = dict[str, dict[str, Any]]
"""Those of the hosts `a`, which sends, and `b`."""


def _late(records: Records) -> None:
    records["a"]["sent"][0]["steps"][-1][0] = 2**63


def _forgetful(records: Records) -> None:
    steps = records["a"]["sent"][0]["steps"]
    numbers = [n for _, step in steps for n in _numbers(step)]
    counter = next(i for i, value in enumerate(numbers[-1]) if value)
    steps[-1:-1] = [[steps[-2][0], {"Sample": [*numbers[-1]]}]]
    numbers[-1][counter] = None


def _numbers(step: Any) -> list[list[int | None]]:
    """The counters of a step that has some."""
    kinds = step if isinstance(step, dict) else {}
    closed = [kinds["Close"][0]] if "Close" in kinds else []
    return [kinds[name] for name in ("Open", "Sample") if name in kinds] + closed


def _twice(records: Records) -> None:
    records["a"]["received"] = records["b"]["received"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_late, "a time is after the end of the run"),
        (_forgetful, "a counter decreases"),
        (_twice, "flow 0 has two receivers"),
    ],
)
def test_a_record_that_cannot_be_is_refused(damage: Callable[[Records], None], said: str) -> None:
    scenario, records = recorded("300ms")
    merged(scenario, records)
    damage(records)
    with pytest.raises(RuntimeError, match=f"host 'a': .*{said}"):
        merged(scenario, records)


def test_a_flow_of_which_nothing_arrived_is_a_warning() -> None:
    scenario, records = recorded("1200ms")

    def health() -> str:
        return str(pl.DataFrame(merged(scenario, records).table("summary"))["health"][0])

    said = "flow 'flow0': nothing arrived"
    assert said not in health()
    records["b"]["received"][0]["log"] = []
    assert said in health()


_FILE = """
start = "150ms"
workload = { kind = "file", size = "50kb" }
"""


def test_a_finished_file_has_all_its_bytes_whatever_the_clock_of_its_receiver_says() -> None:
    scenario, records = recorded("300ms", _FILE)
    for entry in records["b"]["received"][0]["log"]:
        entry[0] += 200_000_000
    records["b"]["received"][0]["completed"] += 200_000_000
    row = pl.DataFrame(merged(scenario, records).table("flows")).row(0, named=True)
    assert (row["completed"], row["delivered_bytes"]) == (True, 50_000)


def merged(scenario: scenarios.Effective, records: Records) -> _native.RunResult:
    hosts = [(name, 0, json.dumps(record)) for name, record in records.items()]
    return _native.merge_hosts(scenario.checked, 1, hosts)


def recorded(duration: str, more: str = "") -> tuple[scenarios.Effective, Records]:
    """A run of one flow from a host to another, and their records."""
    text = f"""
[[flow]]
stack = "reno"
max_pacing_rate = "10mbit"
{more}
[measure]
duration = "{duration}"
warmup = "100ms"
"""
    scenario = Source(text, "test").in_world(scenarios.HOSTS).at({})
    prepare = {"do": "prepare", "scenario": scenario.text, "seed": 1}
    with agent_process() as (_, sender), agent_process() as (_, receiver):
        port = receiver(**prepare, sends={}, receives=[0])["ports"]["0"]
        source = sender(**prepare, sends={"0": "127.0.0.1"}, receives=[])["sources"]["0"]
        now = time.monotonic_ns()
        assert receiver(do="start", at=now, peers={"0": source}) == {}
        assert sender(do="start", at=now, peers={"0": f"127.0.0.1:{port}"}) == {}
        end = time.monotonic() + 0.3 + _native.parse_quantity("time", duration)
        while time.monotonic() < end:  # without a message they would end
            for ask in (sender, receiver):
                ask(do="clock")
            time.sleep(0.2)
        texts = {}
        for name, ask in (("a", sender), ("b", receiver)):
            ask(do="stop")
            texts[name] = json.loads(ask(do="record")["record"])
    return scenario, texts


@pytest.mark.parametrize("record", ["", "{}", '{"sent":[],"received":[]}', "[1]"])
def test_a_damaged_record_is_refused(record: str) -> None:
    scenario = Source('[[flow]]\nstack = "reno"\n', "test").at({})
    with pytest.raises(_native.ScenarioError, match="host 'a': its record is damaged"):
        _native.merge_hosts(scenario.checked, 1, [("a", 0, record)])
