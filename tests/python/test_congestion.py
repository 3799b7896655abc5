"""Controllers written in Python: what they receive and return, and what goes wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from conftest import SHORT, Invoke, started
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import weir
from bench import controllers
from weir.controllers import congestion, trust
from weir.running.execution import run_plan
from weir.running.runner import execute
from weir.scenario.plans import Comparison
from weir.scenario.source import Source

RENO = controllers.RENO.read_text(encoding="utf-8")
AIMD = """
import weir

class Mine(weir.CongestionControl):
    beta = 0.5

    def on_ack(self, cx, ack):
        if self.may_grow(cx, ack):
            step = ack.acked if self.in_slow_start else cx.mss * ack.acked // self.cwnd
            self.cwnd += step

    def on_congestion(self, cx, event):
        if event.first_in_epoch:
            self.ssthresh = self.cwnd = max(int(self.cwnd * self.beta), 2 * cx.mss)
        if event.cause == "timeout":
            self.cwnd = cx.mss
"""


def with_on_ack(body: str, head: str = "") -> str:
    """A controller whose `on_ack` begins with `body`, in line 5 of its file."""
    lines = ["import weir", "class Mine(weir.CongestionControl):", f"    {head or 'pass'}"]
    lines += ["    def on_ack(self, cx, ack):", f"        {body}"]
    return "\n".join([*lines, "    def on_congestion(self, cx, event): pass", ""])


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(AIMD, encoding="utf-8")
    return path


def mean_goodput(results: weir.Results, label: str) -> float:
    mean = results.estimate(label, "goodput_mbps").mean
    assert mean is not None
    return mean


def tables(stack: str, text: str, seed: int, *more: tuple[str, str]) -> dict[str, pl.DataFrame]:
    """All tables of one simulated run, but for the name of the stack."""
    flow = {"stack": stack, "start_jitter": "50ms"}
    toml = "\n".join(
        [
            "[[flow]]",
            *(f"{key} = {json.dumps(value)}" for key, value in flow.items()),
            "[measure]\nevents = 10000\nacks = 10000",
            "[controllers]",
            f"'reno.py' = '''{text}'''",
        ]
    )
    scenario = Source(toml, "scenario", more).effective()
    with trust.deciding(trust.trust_all):
        found = execute(scenario, seed)
    return {
        name: table.drop("stack") if "stack" in table.columns else table
        for name, table in found.items()
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(1, 2**32),
    rate=st.sampled_from(["1mbit", "4mbit", "10mbit"]),
    rtt=st.sampled_from(["5ms", "40ms", "200ms"]),
    queue=st.sampled_from(["4p", "0.5bdp", "2bdp"]),
    loss=st.sampled_from(["0%", "1%", "10%"]),
    reorder=st.sampled_from(["0%", "2%"]),
    recovery=st.sampled_from(["reno", "newreno", "sack", "rack"]),
    workload=st.sampled_from(["bulk", "file", "on-off"]),
    marks=st.booleans(),
)
def test_reno_in_python_gives_the_tables_of_reno(
    seed: int,
    rate: str,
    rtt: str,
    queue: str,
    loss: str,
    reorder: str,
    recovery: str,
    workload: str,
    marks: bool,
) -> None:
    """On any network, each row of each table, bit by bit."""
    more = {
        "topology.rate": rate,
        "topology.rtt": rtt,
        "topology.queue": queue,
        "topology.forward.loss": loss,
        "topology.forward.reorder": reorder,
        "topology.forward.reorder_delay": "15ms",
        "flow.0.workload.kind": workload,
        "flow.0.ecn": str(marks).lower(),
        "measure.duration": "4s",
    }
    if marks:
        more["topology.queue"] = '{ kind = "codel", limit = "100p", ecn = true }'
    native, python = (
        tables(f"{recovery}/{name}", RENO, seed, *more.items()) for name in ("reno", "reno.py:Reno")
    )
    assert native.keys() == python.keys()
    # What loses its SYN twice may have nothing acknowledged within 4 s.
    assert native["acks"].height > 0 or native["flows"]["timeouts"][0] > 0
    for name, table in native.items():
        assert_frame_equal(table, python[name], check_exact=True)


def test_a_stack_names_the_class_in_every_verb(mine: Path, invoke: Invoke) -> None:
    folder = mine.parent / "sub dir"
    folder.mkdir()
    (folder / "other.py").write_text(AIMD, encoding="utf-8")
    stacks = ("mine.py:Mine", "newreno/mine.py:Mine", "sub dir/other.py:Mine", f"rack/{mine}:Mine")
    done = invoke("compare", "reno", *stacks, *SHORT, "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert {row["stack"] for row in rows} == {"reno", *stacks}


def test_a_scenario_finds_the_file_beside_itself(tmp_path: Path, invoke: Invoke) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.py").write_text(AIMD, encoding="utf-8")
    text = '[[flow]]\nstack = "rack/mine.py:Mine"\n[measure]\nduration = "1s"\n'
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    done = invoke("run", folder / "mine.toml", "--trust-controllers", "--quiet")
    assert done.exit_code == 0, done.output
    manifest = weir.load("results/mine/latest").manifest
    assert manifest["controllers"] == {
        "mine.py": {
            "path": str(folder / "mine.py"),
            "sha256": hashlib.sha256(AIMD.encode()).hexdigest(),
        }
    }


def test_a_changed_file_is_another_experiment(mine: Path) -> None:
    def keys() -> list[str]:
        comparison = Comparison(["mine.py:Mine"], duration="1s", repeat=2)
        return [run.key for run in comparison.plan().runs]

    before = keys()
    assert keys() == before
    mine.write_text(AIMD.replace("0.5", "0.6"), encoding="utf-8")
    assert not set(keys()) & set(before)


def test_attributes_of_the_class_are_parameters(mine: Path, invoke: Invoke) -> None:
    swept = "flow.0.stack=mine.py:Mine(beta=0.3),mine.py:Mine(beta=0.9)"
    scenario = '[[flow]]\nstack = "reno"\n[topology]\nqueue = "8p"\n[measure]\nduration = "10s"\n'
    (mine.parent / "some.toml").write_text(scenario, encoding="utf-8")
    done = invoke("run", "some.toml", "--sweep", swept, "--quiet")
    assert done.exit_code == 0, done.output
    results = weir.load("results/some/latest")
    low, high = (mean_goodput(results, f"mine.py:Mine(beta={beta})") for beta in (0.3, 0.9))
    assert low < high


def test_threads_processes_and_hash_seeds_change_nothing(mine: Path) -> None:
    mine.write_text(
        AIMD.replace("beta = 0.5", "beta = 0.5\n    seen = set()").replace(
            "self.cwnd += step", "self.cwnd += int(step * cx.rng.uniform(0.5, 1.5))"
        ),
        encoding="utf-8",
    )
    plan = Comparison(["mine.py:Mine"], duration="2s", repeat=3).plan()
    alone = run_plan(plan, jobs=1, out="a", show_progress=False)
    threads = run_plan(plan, jobs=3, out="b", show_progress=False)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        processes = run_plan(plan, executor=pool, out="c", show_progress=False)
    for other in (threads, processes):
        assert_frame_equal(alone.samples, other.samples, check_exact=True)
    script = (
        "import hashlib, sys; from weir.controllers import trust\n"
        "from weir.running.runner import execute\n"
        "from weir.scenario.source import Effective\n"
        "with trust.deciding(trust.trust_all):\n"
        "    tables = execute(Effective.from_json(sys.stdin.read()), 1)\n"
        "text = ''.join(name + table.write_json() for name, table in sorted(tables.items()))\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            input=plan.cases[0].scenario.text,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(digests) == 1


def test_what_a_run_leaves_in_its_class_does_not_reach_another(mine: Path) -> None:
    text = with_on_ack("self.cwnd += cx.mss * len(Mine.seen); Mine.seen.append(1)", "seen = []")
    mine.write_text(text, encoding="utf-8")
    plan = Comparison(["mine.py:Mine"], duration="1s", repeat=1).plan()
    scenario = plan.cases[0].scenario
    once, again = (execute(scenario, 1)["samples"] for _ in range(2))
    assert_frame_equal(once, again, check_exact=True)


def test_internal_variables_are_columns(mine: Path, invoke: Invoke) -> None:
    method = "    def variables(self):\n        return {{'beta': self.beta, 'last_bytes': {}}}\n"
    mine.write_text(AIMD + method.format("self.cwnd"), encoding="utf-8")
    done = invoke("compare", "dctcp", "mine.py:Mine", *SHORT)
    assert done.exit_code == 0, done.output
    results = weir.load("results/compare/latest")
    labels = results.runs.select("run", "label").with_columns(pl.col("run").cast(pl.UInt32))
    samples = results.samples.join(labels, on="run")
    own, other = (samples.filter(label=label) for label in ("mine.py:Mine", "dctcp"))
    assert own["cc.beta"].unique().to_list() == [0.5]
    # Recovery reduces what the table has in steps, and the peer's window limits it.
    steady = own.filter(state="open")
    assert len(steady) > len(own) // 2
    assert (steady["cc.last_bytes"] >= steady["cwnd_bytes"]).all()
    assert own["cc.alpha"].null_count() == own.height > 0
    assert other["cc.alpha"].null_count() == other["cc.beta"].count() == 0
    mine.write_text(AIMD + method.format("'much'"), encoding="utf-8")
    wrong = invoke("compare", "mine.py:Mine", *SHORT)
    assert wrong.exit_code == 1
    assert (
        "after variables: last_bytes 'much' is not allowed; it is a finite number" in wrong.stderr
    )
    mine.write_text(AIMD + method.replace("last_bytes", "Last").format("1"), encoding="utf-8")
    wrong = invoke("compare", "mine.py:Mine", *SHORT)
    assert "the name 'Last' is not allowed; it is a word of 32 small letters" in wrong.stderr


LOADING = {
    "no file": ("", "missing.py:Mine", "'missing.py' cannot be read"),
    "no class": (AIMD, "mine.py:Other", "mine.py has no class 'Other'; there are: Mine"),
    "no python": ("class Mine(:\n", "mine.py:Mine", "mine.py, line 1: SyntaxError"),
    "an import": ("import nowhere_at_all\n", "mine.py:Mine", "line 1: ModuleNotFoundError"),
    "an exit": ("import sys\nsys.exit(3)\n", "mine.py:Mine", "mine.py, line 2: SystemExit: 3"),
    "another base": ("class Mine: pass\n", "mine.py:Mine", "Mine is not derived from weir."),
    "no method": (
        "import weir\nclass Mine(weir.CongestionControl):\n    def on_ack(self, cx, ack): pass\n",
        "mine.py:Mine",
        "Mine has no method on_congestion(self, cx, event)",
    ),
    "arguments": (
        AIMD.replace("self, cx, ack", "self, ack"),
        "mine.py:Mine",
        "Mine.on_ack has other arguments than (self, cx, ack)",
    ),
    "a window": (
        with_on_ack("pass", "def start(self): self.cwnd = -1"),
        "mine.py:Mine",
        "cwnd = -1 is not allowed; it is a number of bytes from 1 to 2**40",
    ),
    "a start": (
        with_on_ack("pass", "def start(self): 1 / 0"),
        "mine.py:Mine",
        "mine.py, line 3, in start: ZeroDivisionError",
    ),
    "a parameter": (AIMD, "mine.py:Mine(gamma=1)", "no parameter 'gamma'; there are: beta"),
    "its type": (AIMD, "mine.py:Mine(beta=much)", "beta = 'much' is not allowed; it is of type"),
    "no name": (AIMD, "mine.py", "'mine.py' is no controller in Python: write FILE.py:CLASS"),
}


@pytest.mark.parametrize("case", LOADING)
def test_what_cannot_be_a_controller_is_bad_input(case: str, mine: Path, invoke: Invoke) -> None:
    text, stack, message = LOADING[case]
    mine.write_text(text, encoding="utf-8")
    done = invoke("compare", stack, *SHORT)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    sent = invoke("send", "mine.py", "127.0.0.1:9", "--stack", stack, "--quiet")
    assert sent.exit_code == 2, sent.output
    assert message in sent.stderr


RUNNING = {
    "ack.acked / 0": "mine.py, line 5, in on_ack: ZeroDivisionError: division by zero",
    "self.cwnd = 'much'": "mine.py, line 4, after on_ack: cwnd = 'much' is not allowed",
    "self.cwnd = float('nan')": "cwnd = nan is not allowed; it is a number of bytes",
    "self.cwnd -= 10**6": "is not allowed; it is a number of bytes from 1 to 2**40",
    "self.cwnd = 2**70": "is not allowed; it is a number of bytes from 1 to 2**40",
    "self.cwnd = None": "cwnd = None is not allowed",
    "self.ssthresh = [1]": "ssthresh = [1] is not allowed",
    "self.pacing_rate_bps = 0": "pacing_rate_bps = 0 is not allowed; it is a number of bits per",
    "self.phase = 7": "phase = 7 is not allowed",
    "self.phase = 'x' * 40": "is not allowed; it is None or a word of 32 letters at most",
    "del self.cwnd": "AttributeError",
    "self.nothing()": "mine.py, line 5, in on_ack: AttributeError",
    "self.on_ack(cx, ack)": "mine.py, line 5, in on_ack: RecursionError",
    "raise SystemExit": "mine.py, line 5, in on_ack: SystemExit",
    "cx.mss = 1": "mine.py, line 5, in on_ack: AttributeError",
    "import json; json.loads('{')": "mine.py, line 5, in on_ack: JSONDecodeError",
}


@pytest.mark.parametrize("body", RUNNING)
def test_a_mistake_ends_the_run_with_its_place(body: str, mine: Path, invoke: Invoke) -> None:
    mine.write_text(with_on_ack(body), encoding="utf-8")
    # So long that only a run that is broken off ends in time.
    done = invoke("compare", "mine.py:Mine", "--duration", "20000s", "--repeat", "1", "--quiet")
    assert done.exit_code == 1, done.output
    assert RUNNING[body] in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_stacks_survive_one_that_fails(mine: Path, invoke: Invoke) -> None:
    mine.write_text(with_on_ack("1 / 0"), encoding="utf-8")
    done = invoke("compare", "reno", "mine.py:Mine", *SHORT)
    assert done.exit_code == 1, done.output
    assert "3 of 6 runs failed" in done.stderr
    assert weir.load("results/compare/latest").estimate("reno", "goodput_mbps").n == 3


def test_real_datagrams_meet_it_in_world_udp(mine: Path, invoke: Invoke) -> None:
    asked = ("--world", "udp", "--duration", "1s", "--repeat", "1", "--quiet")
    done = invoke("compare", "mine.py:Mine", *asked)
    assert done.exit_code == 0, done.output
    results = weir.load("results/compare/latest")
    assert mean_goodput(results, "mine.py:Mine") > 1
    mine.write_text(with_on_ack("1 / 0"), encoding="utf-8")
    done = invoke("compare", "mine.py:Mine", *asked[:3], "60s", *asked[4:])
    assert done.exit_code == 1, done.output
    assert "mine.py, line 5, in on_ack: ZeroDivisionError" in done.stderr


@pytest.mark.usefixtures("mine")
def test_a_kernel_refuses_it_by_name(invoke: Invoke) -> None:
    done = invoke("compare", "mine.py:Mine", "--world", "kernel", "--virtual", *SHORT)
    assert done.exit_code == 2, done.output
    if sys.platform == "linux":
        message = "stack = rack/mine.py:Mine: a controller written in Python runs in the worlds sim"
        assert message in done.stderr


def test_a_file_travels_under_it(mine: Path, invoke: Invoke) -> None:
    big = mine.parent / "big.bin"
    big.write_bytes(os.urandom(300_000))
    with started("recv", "--dir", "in", "--bind", "127.0.0.1:0", "--once", "--json") as receiver:
        assert receiver.stderr is not None
        address = next(w for w in receiver.stderr.readline().split() if w.startswith("127.0.0.1:"))
        done = invoke("send", big, address.rstrip(".,"), "--stack", "mine.py:Mine", "--quiet")
        assert done.exit_code == 0, done.output
        receiver.wait(timeout=20)
    assert (mine.parent / "in" / "big.bin").read_bytes() == big.read_bytes()


def test_a_mistake_ends_a_transfer(mine: Path, invoke: Invoke) -> None:
    mine.write_text(with_on_ack("1 / 0"), encoding="utf-8")
    (mine.parent / "big.bin").write_bytes(bytes(3_000_000))
    with started("recv", "--dir", "in", "--bind", "127.0.0.1:0", "--once", "--json") as receiver:
        assert receiver.stderr is not None
        address = next(w for w in receiver.stderr.readline().split() if w.startswith("127.0.0.1:"))
        done = invoke("send", "big.bin", address.rstrip(".,"), "--stack", "mine.py:Mine", "--quiet")
    assert done.exit_code == 1, done.output
    assert "mine.py, line 5, in on_ack: ZeroDivisionError" in done.stderr


def test_it_receives_every_event_and_paces(mine: Path) -> None:
    mine.write_text(
        """
import weir

class Mine(weir.CongestionControl):
    def start(self):
        self.sent = self.epochs = 0

    def on_ack(self, cx, ack):
        assert cx.mss == self.mss == 1448
        assert cx.now_s == cx.now_ns / 1e9
        assert cx.srtt_s == cx.srtt_ns / 1e9 and cx.min_rtt_ns <= cx.latest_rtt_ns
        assert ack.rtt_ns is None or ack.rtt_s == ack.rtt_ns / 1e9 >= cx.min_rtt_s
        assert cx.delivered >= ack.acked >= 0 and cx.snd_nxt >= cx.snd_una
        assert ack.delivery_rate_bps is None or ack.delivery_rate_bps > 0
        assert cx.state in ("open", "disorder", "recovery", "loss")
        assert self.sent > 0 or ack.acked == 0, "the handshake acknowledges no byte"
        self.pacing_rate_bps = 2e6
        self.cwnd = 40 * cx.mss
        self.phase = "round_%d" % min(ack.round, 3)

    def on_congestion(self, cx, event):
        assert event.cause in ("fast_retransmit", "timeout") and event.prior_in_flight > 0

    def on_sent(self, cx, size):
        assert 0 < size <= cx.mss
        self.sent += size

    def on_epoch_end(self, cx):
        self.epochs += 1
        self.ssthresh = self.epochs * cx.mss
""",
        encoding="utf-8",
    )
    results = weir.compare("mine.py:Mine", duration="5s", repeat=1, loss="1%", show_progress=False)
    # Of the 2 Mbit/s at which it paces, headers and repairs are no goodput.
    assert mean_goodput(results, "mine.py:Mine") == pytest.approx(2, rel=0.1)
    samples = results.samples
    assert set(samples["phase"]) >= {"round_3"}
    assert samples["ssthresh_bytes"].drop_nulls().to_list()


def test_the_list_says_how_to_use_one(invoke: Invoke) -> None:
    assert "FILE.py:CLASS" in invoke("list", "controllers").output
    rows = json.loads(invoke("list", "--json").stdout)["rows"]
    (row,) = (row for row in rows if row["name"] == "FILE.py:CLASS")
    assert "docs/controllers-python.md" in row["description"]


def test_the_classes_of_the_records_have_names() -> None:
    for name in congestion.__all__:
        assert getattr(congestion, name).__doc__


@pytest.mark.parametrize(
    ("cwnd_limited", "cum_acked", "any_order", "state", "may_grow"),
    [
        (True, 1448, False, "open", True),
        (False, 1448, False, "open", False),
        (True, 0, False, "open", False),
        (True, 0, True, "open", True),
        (True, 1448, True, "recovery", False),
        (True, 1448, False, "recovery", False),
        (True, 1448, False, "cwr", False),
        (True, 1448, False, "loss", True),
    ],
)
def test_a_window_grows_where_linux_lets_it(
    cwnd_limited: bool, cum_acked: int, any_order: bool, state: str, may_grow: bool
) -> None:
    cx: Any = SimpleNamespace(cwnd_limited=cwnd_limited, state=state)
    ack: Any = SimpleNamespace(acked=1448, cum_acked=cum_acked, any_order=any_order)
    assert weir.CongestionControl.may_grow(cx, ack) is may_grow
