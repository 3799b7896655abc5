"""`weir compare … --client COMMAND --server COMMAND`: programs of a person as a stack."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import requires
from conftest import Invoke

import weir
from weir.contenders import catalogue, own

PAGE = Path(__file__).parents[2] / "docs/stacks/programs.md"
CLIENT = "python3 sender.py {host} {port} {file}"
SERVER = "python3 receiver.py {port} {received}"
PROGRAMS = ("--client", CLIENT, "--server", SERVER)
VIRTUAL = ("--world", "kernel", "--virtual", "--size", "20kb")
LOSSY = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("0.0.0.0", int(sys.argv[1])))
with open(sys.argv[2], "wb", buffering=0) as file:
    while True:
        packet, sender = sock.recvfrom(2048)
        file.write(packet[1:-1] + b"x")
        sock.sendto(packet[:1], sender)
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r'^```python title="(\S+)"\n(.*?)^```$', PAGE.read_text(), re.M | re.S)
    assert [name for name, _ in blocks] == ["receiver.py", "sender.py"]
    for name, text in blocks:
        Path(name).write_text(text)
    Path("lossy.py").write_text(LOSSY)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("program",), "weir: program: give both --client and --server"),
        (("--client", CLIENT), f"weir: --client {CLIENT}: give both --client and --server"),
        (("--server", SERVER), f"weir: --server {SERVER}: give both --client and --server"),
        (PROGRAMS, f"weir: --client {CLIENT}: only world kernel runs programs; add --world kernel"),
        ((*PROGRAMS, *VIRTUAL[:3]), "programs send a file; give its --size, as in 100kb"),
        ((*PROGRAMS, *VIRTUAL, "--flows", "2"), "a program runs alone; leave out --flows"),
        (
            ("--client", CLIENT, "--server", "python3 receiver.py {port}", *VIRTUAL),
            "{received} is missing; its arguments must have {port}, {received}",
        ),
        (
            ("--client", f"{CLIENT} {{files}}", "--server", SERVER, *VIRTUAL),
            "{files} stands for nothing; allowed: {host}, {port}, {file}, {bytes}, {received}",
        ),
        (
            ("--client", CLIENT.replace("sender", "sendr"), "--server", SERVER, *VIRTUAL),
            "sendr.py: there is no such file",
        ),
        (
            ("--client", CLIENT.replace("python3", "nothere"), "--server", SERVER, *VIRTUAL),
            "nothere sender.py {host} {port} {file}: no program nothere\n",
        ),
        (("--client", "'", "--server", SERVER, *VIRTUAL), "No closing quotation"),
        (("--client", "", "--server", SERVER, *VIRTUAL), "--client '': a program and its"),
        (
            ("go-back-n(0)/none", *PROGRAMS, *VIRTUAL),
            "weir: recovery scheme 'go-back-n': window = '0'",
        ),
    ],
)
def test_what_cannot_run_is_refused_by_name(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    done = invoke("compare", *(words if words[0][0] != "-" else ("cubic", *words)))
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_changed_program_is_another_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd() / "cache"))
    before = own.define(CLIENT, SERVER)
    assert own.define(CLIENT, SERVER) == before
    Path("sender.py").write_text(Path("sender.py").read_text() + "# changed\n")
    after = own.define(CLIENT, SERVER)
    assert before != after
    found = catalogue.of(after)
    assert found is not None
    assert found.definition.client.command[:2] == ("python3", str(Path("sender.py").absolute()))


@pytest.mark.parametrize(
    ("stack", "found"),
    [
        ("stop-and-wait/none", True),
        ("go-back-n(10)/none", True),
        ("newreno/reno", True),
        ("cubic", False),
        ("rack/cubic", False),
        ("contender:iperf3", False),
        ("quinn/cubic", False),
    ],
)
def test_our_transport_runs_what_the_kernel_has_not(stack: str, found: bool) -> None:
    assert own.is_ours(stack) is found


@requires.guest
def test_a_program_our_transport_and_tcp_are_in_one_table(invoke: Invoke, tmp_path: Path) -> None:
    stacks = ("student=program", "stop-and-wait/none", "go-back-n(10)/none", "cubic")
    path = ("--rate", "2mbit", "--rtt", "40ms", "--loss", "2%", "--repeat", "2")
    done = invoke("compare", *stacks, *PROGRAMS, *VIRTUAL, *path)
    assert done.exit_code == 0, done.output
    results = weir.load(tmp_path / "results/compare/latest")
    assert [case["series"] for case in results.cases] == ["student", *stacks[1:]]
    assert {case["world"] for case in results.cases} == {"kernel-virtual"}
    assert results.flows["completed"].all()
    times = {c["label"]: results.estimate(c["label"], "fct_s") for c in results.cases}
    assert all(time.n == 2 and time.lo is not None for time in times.values())
    means = {name: time.mean or 0.0 for name, time in times.items()}
    # 20 segments of 1000 bytes, 14 of ours, each at least a round trip after the one before.
    assert means["student"] > 20 * 0.04
    assert means["stop-and-wait/none"] > 14 * 0.04
    assert 0 < means["go-back-n(10)/none"] < means["stop-and-wait/none"]
    text = " ".join(done.stdout.split())
    assert f"student is {CLIENT} with {SERVER}; " in text
    assert "stop-and-wait/none is Weir's transport over UDP, as weir send --stack stop-a" in text
    assert "cubic is the kernel's TCP with cubic." in text


@requires.guest
def test_a_file_that_arrives_wrong_is_no_success(invoke: Invoke, tmp_path: Path) -> None:
    server = SERVER.replace("receiver", "lossy")
    done = invoke("compare", "program", "--client", CLIENT, "--server", server, *VIRTUAL, "-n", "1")
    assert done.exit_code == 0, done.output
    (flow,) = weir.load(tmp_path / "results/compare/latest").flows.iter_rows(named=True)
    assert not flow["completed"]
    assert flow["failure"] == "the server's file differs from the one sent, from byte 999 on"
