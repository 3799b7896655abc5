"""`weir run --hosts`: the list of hosts, what is refused, runs on one machine and over sshd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl
import pytest
import requires
from conftest import Invoke
from test_pathtest_paths import sshd
from test_schemas import printed

import weir
from weir.base.errors import InputError
from weir.hosts import agent, listed, running
from weir.hosts.machine import Exchange, HostError, best
from weir.processes import netns
from weir.scenario import source as scenarios
from weir.scenario.source import Source

TWO = """
[hosts.a]
ssh = "ssh://a"
address = "127.0.0.1"
[hosts.b]
ssh = "ssh://b"
address = "127.0.0.2"
"""
ALL = '[flows."*"]\nfrom = "a"\nto = "b"\n'
SHORT = """
name = "short"
[[flow]]
name = "big"
stack = "reno"
max_pacing_rate = "40mbit"
workload = { kind = "bulk" }
stop = "900ms"
[[flow]]
name = "file"
stack = "cubic"
start = "200ms"
workload = { kind = "file", size = "200kb" }
[[flow]]
name = "asks"
stack = "reno"
workload = { kind = "request", request = "100b", response = "1kb", gap = "10ms" }
[measure]
duration = "1s"
warmup = "100ms"
"""
LEAN = ("--no-report", "--quiet")


def written(folder: Path, text: str = TWO + ALL, name: str = "hosts.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def local_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client `ssh` that runs its command on this machine; hosts take part by their addresses."""
    folder = tmp_path / "bin"
    folder.mkdir()
    client = folder / "ssh"
    client.write_text(
        '#!/bin/sh\nfor word; do :; done\nexec sh -c "exec $word"\n', encoding="ascii"
    )
    client.chmod(0o755)
    program = folder / "weir"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m weir "$@"\n', encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


# The list of hosts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no hosts; add [hosts.NAME] with ssh and address"),
        ('[hosts.a]\nssh = "ssh://a"\n', "[hosts.a] has no address"),
        (TWO.replace("ssh://b", "b"), 'hosts.b.ssh = "b": allowed is ssh://[USER@]HOST[:PORT]'),
        (TWO.replace("127.0.0.2", "::1"), 'hosts.b.address = "::1": allowed is an IPv4 address'),
        (TWO.replace('"127.0.0.2"', "7"), "hosts.b.address = 7: allowed is text in quotes"),
        (TWO + "port = 5\n", "[hosts.b]: there is no key 'port'; there are: ssh, address, program"),
        (TWO + ALL.replace('"b"', '"c"'), "flows.*.to: there is no host 'c'; there are: a, b"),
        (TWO + ALL.replace('"b"', '"a"'), "[flows.*]: from and to are the same host, a"),
        (TWO + '[flows.x]\nfrom = "a"\n', "[flows.x] has no to"),
        ("hosts = 3", "hosts = 3: allowed is a table"),
        (TWO + 'program = "we\'ir"\n', 'hosts.b.program = "we\'ir": No closing quotation'),
        (TWO + 'program = ""\n', "hosts.b.program is empty; allowed is a command"),
        (TWO + 'ssh_options = "-o \'x"\n', 'hosts.b.ssh_options = "-o \'x": No closing quotation'),
        ("[hosts", "hosts.toml: "),
    ],
)
def test_what_a_file_of_hosts_may_not_be(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        listed.read(written(tmp_path, text))
    assert said in str(refused.value)


def test_flows_find_their_hosts(tmp_path: Path) -> None:
    text = TWO + '[flows.one]\nfrom = "b"\nto = "a"\n' + ALL
    scenario = """
[[flow]]
name = "one"
stack = "reno"
[[flow]]
stack = "reno"
count = 2
[[flow]]
stack = "reno"
from_host = "b"
to_host = "a"
"""
    hosts = listed.read(written(tmp_path, text))
    effective = Source(scenario, "test").effective()
    assert hosts.ends(effective) == [("b", "a"), ("a", "b"), ("a", "b"), ("b", "a")]
    lacking = listed.read(written(tmp_path, TWO))
    with pytest.raises(InputError, match="flow 'one' has no hosts; add"):
        lacking.ends(effective)
    other = listed.read(written(tmp_path, text + '[flows.two]\nfrom = "a"\nto = "b"\n'))
    with pytest.raises(InputError, match=r"\[flows.two\]: there is no flow 'two'"):
        other.ends(effective)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--world", "kernel"), "--world has no effect with --hosts"),
        (("--jobs", "2"), "--jobs has no effect with --hosts"),
        (("--pcap", "x"), "--pcap has no effect with --hosts"),
        (("--tc", "netem delay 3ms"), "--tc has no effect with --hosts"),
        (("--set", "topology.rate=3mbit"), "--set topology.rate=3mbit: it has no effect"),
        (("--sweep", "topology.rtt=3ms,4ms"), "--sweep topology.rtt=3ms,4ms: it has no effect"),
        (("--set", "flow.1.stack=udp"), "stack = udp: between hosts there are no bare datagrams"),
        (("--set", "flow.1.stack=quinn/cubic"), "its stack runs on one machine only"),
    ],
)
def test_what_has_no_effect_between_hosts_is_refused(
    words: tuple[str, ...], said: str, tmp_path: Path, invoke: Invoke
) -> None:
    scenario = written(tmp_path, SHORT, "short.toml")
    result = invoke("run", str(scenario), "--hosts", str(written(tmp_path)), *words, *LEAN)
    requires.foreign_stacks(result.output)
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_a_scenario_that_sweeps_its_network_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    result = invoke("run", "bufferbloat", "--hosts", str(written(tmp_path)), *LEAN)
    assert result.exit_code == 2
    assert "[sweep] topology.queue: it has no effect" in result.output


def test_the_best_exchange_is_the_fastest() -> None:
    slow = Exchange(0, 1_000_900, 1_000_900, 1_000)
    fast = Exchange(0, 1_000_050, 1_000_060, 110)
    assert best([slow, fast]) is fast
    assert (fast.rtt_ns, fast.offset_ns) == (100, 1_000_000)


# Runs on this machine


@pytest.mark.usefixtures("local_ssh")
def test_flows_run_between_two_processes(tmp_path: Path, invoke: Invoke) -> None:
    scenario = written(tmp_path, SHORT, "short.toml")
    words = ["run", str(scenario), "--hosts", str(written(tmp_path)), "--out", str(tmp_path)]
    document = printed(invoke, "run", *words, "--json", "--repeat", "2", *LEAN)
    assert document["rows"][0]["goodput_mbps"]["n"] == 2
    found = weir.load(tmp_path / "short" / "latest")
    flows = found.flows.filter(pl.col("run") == 0).sort("flow")
    assert flows["name"].to_list() == ["big", "file", "asks"]
    assert flows["failure"].to_list() == [None] * 3
    assert flows["completed"][1]
    big, file, asks = flows.to_dicts()
    assert 20 < big["goodput_mbps"] < 41
    assert big["end_s"] == pytest.approx(0.9, abs=0.2)
    assert (file["fct_s"] > 0, file["delivered_bytes"]) == (True, 200_000)
    assert asks["requests"] > 5
    assert found.links.is_empty()
    assert found.manifest["hosts"]["b"]["address"] == "127.0.0.2"
    assert found.manifest["flows"] == {"*": {"from": "a", "to": "b"}}
    assert found.runs["clock_error_ms"].is_between(0, 100).to_list() == [True, True]
    assert found.runs["clock_drift_ppm"].null_count() == 0


@pytest.mark.usefixtures("local_ssh")
def test_a_control_that_a_host_lacks_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    scenario = written(tmp_path, SHORT, "short.toml")
    words = ["run", str(scenario), "--hosts", str(written(tmp_path)), "--out", str(tmp_path)]
    result = invoke(*words, "--set", "flow.0.stack=cdg", *LEAN)
    said = "host 'a' (ssh://a): flow 'big': stack = rack/cdg: this kernel's TCP has no congestion"
    assert (result.exit_code, said in result.output) == (2, True), result.output
    assert not (tmp_path / "short").exists()


@pytest.mark.usefixtures("local_ssh")
def test_a_host_without_weir_is_named(tmp_path: Path, invoke: Invoke) -> None:
    scenario = written(tmp_path, SHORT, "short.toml")
    text = TWO.replace('ssh = "ssh://b"', 'ssh = "ssh://b"\nprogram = "/nowhere/weir"') + ALL
    result = invoke("run", str(scenario), "--hosts", str(written(tmp_path, text)), *LEAN)
    said = "host 'b' (ssh://b): there is no /nowhere/weir there; name it with program"
    assert (result.exit_code, said in result.output) == (1, True), result.output


OURS = """
name = "ours"
[[flow]]
name = "big"
stack = "rack/cubic"
ends = "weir"
max_pacing_rate = "20mbit"
mss = 1400
stop = "1900ms"
[[flow]]
name = "file"
stack = "sack/reno"
ends = "weir"
start = "200ms"
mss = 1400
workload = { kind = "file", size = "300kb" }
[[flow]]
name = "kernel"
stack = "cubic"
max_pacing_rate = "20mbit"
stop = "1900ms"
[measure]
duration = "2s"
warmup = "100ms"
events = 100
"""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("[1]", "it answers in another protocol"),
        ('{"protocol":99,"version":"9"}', "it has Weir 9, which has another protocol"),
        ("yes", "closed the connection|ssh ended with exit code"),
    ],
)
def test_a_host_that_answers_otherwise_is_named(
    output: str, said: str, local_ssh: Path, tmp_path: Path
) -> None:
    # `yes` without an end: what a host sends stays bounded.
    program = "yes x" if output == "yes" else f"echo '{output}'; sleep 0.2"
    (local_ssh / "weir").write_text(f"#!/bin/sh\n{program}\n", encoding="ascii")
    hosts = listed.read(written(tmp_path))
    with pytest.raises(HostError, match=rf"host '[ab]'.*({said})"), running.started(hosts):
        pass


def test_an_answer_without_its_fields_is_named(local_ssh: Path, tmp_path: Path) -> None:
    answer = json.dumps({"protocol": agent.PROTOCOL, "sources": {}})
    program = f"#!/bin/sh\nwhile read -r _; do echo '{answer}'; done\n"
    (local_ssh / "weir").write_text(program, encoding="ascii")
    scenario = Source('[[flow]]\nstack = "reno"\n', "test").in_world(scenarios.HOSTS).at({})
    with (
        running.started(listed.read(written(tmp_path))) as testbed,
        pytest.raises(HostError, match=r"host 'a'.* it answers in another protocol"),
    ):
        testbed._prepare(scenario, 1, [("a", "b")])


@pytest.mark.usefixtures("local_ssh")
def test_a_host_that_is_lost_in_one_run_takes_part_in_the_next(tmp_path: Path) -> None:
    text = """
[[flow]]
stack = "reno"
workload = { kind = "file", size = "100kb" }
[measure]
duration = "3s"
"""
    scenario = Source(text, "test").in_world(scenarios.HOSTS).at({})
    with running.started(listed.read(written(tmp_path))) as testbed:
        testbed._machines["b"]._process.kill()
        with pytest.raises(HostError, match="host 'b'"):
            testbed.run(scenario, 1, scenarios.HOSTS)
        flows = testbed.run(scenario, 2, scenarios.HOSTS)["flows"]
    assert flows["delivered_bytes"].to_list() == [100_000]


@pytest.mark.usefixtures("local_ssh")
def test_our_transport_runs_next_to_the_kernels(tmp_path: Path, invoke: Invoke) -> None:
    scenario = written(tmp_path, OURS, "ours.toml")
    words = ["run", str(scenario), "--hosts", str(written(tmp_path)), "--out", str(tmp_path)]
    _ = printed(invoke, "run", *words, "--json", "--repeat", "1", *LEAN)
    found = weir.load(tmp_path / "ours" / "latest")
    flows = found.flows.sort("flow")
    assert flows["stack"].to_list() == ["rack/cubic", "sack/reno", "rack/cubic"]
    assert flows["failure"].to_list() == [None] * 3
    big, file, kernel = flows.to_dicts()
    assert (file["completed"], file["delivered_bytes"]) == (True, 300_000)
    for one in (big, kernel):
        assert 10 < one["goodput_mbps"] < 20.5, one["name"]
        assert one["end_s"] == pytest.approx(1.9, abs=0.2)
    ours = found.samples.filter(flow=0)
    assert (ours["cwnd_bytes"] > 14_000).any()
    assert ours["time_busy_s"].null_count() == ours.height > 50
    assert found.events.filter(kind="start")["flow"].sort().to_list() == [0, 1, 2]


def test_our_transport_makes_no_requests_between_hosts(tmp_path: Path, invoke: Invoke) -> None:
    words = ["run", str(written(tmp_path, SHORT, "x.toml")), "--hosts", str(written(tmp_path))]
    result = invoke(*words, "--set", "flow.2.ends=weir", *LEAN)
    said = "flow 'asks': ends = weir: between hosts our own connections make no requests"
    assert (result.exit_code, said in result.output) == (2, True), result.output


# Three hosts

THREE = """
name = "three"
[topology]
rate = "20mbit"
rtt = "40ms"
queue = "1bdp"
[[flow]]
name = "first"
stack = "cubic"
[[flow]]
name = "second"
stack = "cubic"
start = "2400ms"
duration = "8s"
[[flow]]
name = "third"
stack = "rack/reno"
ends = "weir"
mss = 1400
start = "5200ms"
duration = "4s"
[measure]
duration = "12s"
warmup = "1s"
events = 100
"""
HOSTS = """
[hosts.server]
ssh = "ssh://peer"
address = "{server}"
program = "{program}"
ssh_options = "{ssh_server}"
[hosts.near]
ssh = "ssh://peer"
address = "{near}"
program = "{program}"
ssh_options = "{ssh_near}"
[hosts.far]
ssh = "ssh://peer"
address = "{far}"
program = "{program}"
ssh_options = "{ssh_far}"
[flows.first]
from = "server"
to = "near"
[flows.second]
from = "server"
to = "far"
[flows.third]
from = "server"
to = "far"
"""
FAR, GATEWAY = "10.78.0.2", "10.78.0.1"


@contextmanager
def third(link: netns.Link) -> Iterator[netns.Namespace]:
    """A host behind the right end of a link, which forwards for it."""
    name = f"weir-far-{os.getpid()}"
    file = Path("/run/netns", name)
    left, right = link.left, link.right

    def ip(text: str) -> list[str]:
        return ["ip", *text.split()]

    subprocess.run(ip(f"netns add {name}"), check=True)
    try:
        far = netns.Namespace(file, FAR)
        right.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"]).check_returncode()
        right.run(ip(f"link add toward type veth peer name back netns {file}")).check_returncode()
        for host, command in (
            (right, f"addr add {GATEWAY}/24 dev toward"),
            (right, "link set toward up"),
            (far, f"addr add {FAR}/24 dev back"),
            (far, "link set lo up"),
            (far, "link set back up"),
            (far, f"route add default via {GATEWAY}"),
            (left, f"route add {FAR}/32 via {right.address}"),
            (left, "link set lo up"),
        ):
            host.run(ip(command)).check_returncode()
        yield far
    finally:
        subprocess.run(ip(f"netns del {name}"), check=True)


@requires.namespaces
def test_three_hosts_write_the_tables_of_world_kernel(tmp_path: Path) -> None:
    """The book's 3-flow test in a fifth of its time: a server and two clients."""
    scenario = written(tmp_path, THREE, "three.toml")
    program = [sys.executable, "-m", "weir"]
    words = ["run", str(scenario), "--repeat", "1", "--json", "-q", "--no-report", "--out"]
    with netns.joined(rate="20mbit", delay="20ms", queue="1bdp") as link, ExitStack() as stack:
        machines = {
            "server": link.left,
            "near": link.right,
            "far": stack.enter_context(third(link)),
        }
        named = {"program": " ".join(program)}
        for name, machine in machines.items():
            folder = tmp_path / name
            folder.mkdir()
            client = stack.enter_context(sshd(machine, folder))
            named |= {name: machine.address, f"ssh_{name}": client.removeprefix("ssh ")}
        hosts = written(tmp_path, HOSTS.format(**named))
        command = [*program, *words, str(tmp_path / "hosts"), "--hosts", str(hosts)]
        done = link.left.run(command, capture_output=True, text=True)
        long = link.left.run([*command, "--set", "flow.2.mss=1448"], capture_output=True, text=True)
        remaining = link.left.run(["ss", "-Htn"], capture_output=True, text=True).stdout
        report = link.report()
    assert done.returncode == 0, done.stderr
    assert FAR not in remaining
    said = "flow 'third': mss = 1448: a datagram takes 60 bytes more, and the path to 10.78.0.2"
    assert (long.returncode, said in long.stderr) == (2, True), long.stderr
    between = weir.load(tmp_path / "hosts" / "three" / "latest")
    command = [*program, *words, str(tmp_path / "kernel"), "--world", "kernel"]
    subprocess.run(command, check=True, capture_output=True)
    on_one = weir.load(tmp_path / "kernel" / "three" / "latest")
    for table in ("flows", "samples", "requests", "events", "queues", "links"):
        assert getattr(between, table).schema == getattr(on_one, table).schema, table
    if report["warnings"] or on_one.manifest["health"]["verdict"] != "good":
        pytest.skip(f"the machine was too busy: {report['warnings'] or on_one.manifest['health']}")
    ours, theirs = (found.flows.sort("flow") for found in (between, on_one))
    assert ours["name"].to_list() == ["first", "second", "third"]
    totals = [float(flows["delivered_bytes"].to_numpy().sum()) for flows in (ours, theirs)]
    assert totals[0] == pytest.approx(totals[1], rel=0.05)
    # The handshake of the first flow meets no queue, as smoothed round trips do.
    first = between.events.filter(flow=0)
    began, connected = (first.filter(kind=kind)["t_s"].item() for kind in ("start", "connected"))
    assert (connected - began) * 1e3 == pytest.approx(40, abs=2)
    for flow, start in ((0, 0.0), (1, 2.4), (2, 5.2)):
        assert ours["start_s"][flow] == pytest.approx(start)
        began = between.events.filter(kind="start", flow=flow)["t_s"].item()
        assert began == pytest.approx(start, abs=0.02)
