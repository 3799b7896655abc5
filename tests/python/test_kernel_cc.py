"""Congestion controls in BPF for the running kernel; skipped where it takes none."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requires
from conftest import Invoke, started

import weir
from weir.base.errors import InputError
from weir.controllers import kernel_cc
from weir.controllers.kernel_cc import machine, objects
from weir.processes import netns

needs_bpf = requires.unless(kernel_cc.missing())

NAME = f"bpf_t{os.getpid() % 10**7}"
"""What no one else on this machine registers."""

SOURCE = kernel_cc.shipped()["vegas"].read_text(encoding="ascii")

SEND = """
import socket, struct, sys, time
with socket.socket() as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
    s.connect((sys.argv[1], 9000))
    s.settimeout(1)
    began, data = time.monotonic(), bytes(1 << 14)
    while time.monotonic() < began + 5:
        s.send(data)
        if time.monotonic() > began + 2:
            info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            print(*struct.unpack_from("I", info, 80))
"""
DISCARD = """
import socket, sys
with socket.create_server((sys.argv[1], 9000)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 16):
        pass
"""


@pytest.fixture
def vegas(tmp_path: Path) -> Iterator[Path]:
    """The shipped program under a name of its own; not registered when the test is over."""
    path = tmp_path / "vegas.bpf.c"
    path.write_text(SOURCE.replace('"bpf_vegas"', f'"{NAME}"'), encoding="ascii")
    yield path
    if any((item.name, item.state) == (NAME, "registered") for item in kernel_cc.listed()):
        kernel_cc.remove(NAME)


def there() -> list[kernel_cc.Listed]:
    """What is there to stay: what was removed leaves when its last connection does."""
    return [item for item in kernel_cc.listed() if item.state != "leaving"]


def state_of(name: str) -> str | None:
    return next((item.state for item in kernel_cc.listed() if item.name == name), None)


@needs_bpf
def test_it_is_registered_until_it_is_removed(vegas: Path, invoke: Invoke) -> None:
    before = there()
    with started("stack", "bpf", vegas) as process:
        _, stderr = process.communicate()
    assert (process.returncode, NAME in stderr) == (0, True), stderr
    # That process has ended; what it registered has not.
    assert state_of(NAME) == "registered"
    assert NAME in invoke("stack", "list").stdout
    again = invoke("stack", "bpf", vegas)
    assert again.exit_code == 2
    assert f"'{NAME}' is registered already; `weir stack remove {NAME}`" in again.stderr
    assert invoke("stack", "remove", NAME).exit_code == 0
    assert there() == before
    gone = invoke("stack", "remove", NAME)
    assert gone.exit_code == 2
    assert f"no '{NAME}' is registered" in gone.stderr


@needs_bpf
def test_open_connections_keep_what_is_removed(vegas: Path) -> None:
    kernel_cc.install(vegas)
    with socket.socket() as held:
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME.encode())
        kernel_cc.remove(NAME)
        assert state_of(NAME) == "leaving"
        kept = held.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert kept.rstrip(b"\0").decode() == NAME


@needs_bpf
@requires.namespaces
def test_vegas_keeps_the_queue_short_that_reno_fills(vegas: Path) -> None:
    """33 segments in flight, space for 100 more: Vegas aims at 2 to 4 of these."""
    kernel_cc.install(vegas)
    windows = {name: median_window(name) for name in (NAME, "reno")}
    assert 25 < windows[NAME] < 50, windows
    assert windows["reno"] > 60, windows


@needs_bpf
@requires.namespaces
def test_world_kernel_runs_it(vegas: Path, tmp_path: Path) -> None:
    kernel_cc.install(vegas)
    asked = (
        f"flow.0.stack={NAME}",
        "topology.queue=4bdp",
        "measure.duration=6s",
        "measure.warmup=4s",
    )
    sets = dict(key.split("=") for key in asked)
    results = weir.run("[[flow]]\n", world="kernel", sets=sets, out=tmp_path, show_progress=False)
    (flow,) = results.flows.iter_rows(named=True)
    assert (flow["stack"], flow["retransmits"]) == (f"rack/{NAME}", 0)
    assert flow["goodput_mbps"] > 5
    # Reno would have filled the queue.
    assert flow["queue_delay_ms_p95"] < 20


def median_window(controller: str) -> float:
    """The window in segments over 20 Mbit/s and 20 ms, when slow start is over."""
    with netns.joined(rate="20mbit", delay="10ms", queue="100p") as link:
        discard = [sys.executable, "-c", DISCARD, link.right.address]
        with link.right.start(discard, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == b"ready\n"
                send = [sys.executable, "-c", SEND, link.right.address, controller]
                done = link.left.run(send, capture_output=True, text=True, timeout=60)
                assert done.returncode == 0, done.stderr
            finally:
                server.kill()
    return statistics.median(map(int, done.stdout.split()))


@needs_bpf
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("tp->snd_cwnd = cwnd;", "tp->snd_una = cwnd;"), "no write support to tcp_sock"),
        (("begin(sk);", "begin(sk"), "does not compile: .*error: expected"),
        ((f'"{NAME}"', '"reno"'), "this kernel has a 'reno' of its own"),
        ((f'"{NAME}"', '""'), "without a .name"),
        (('SEC(".struct_ops")', 'SEC(".struct_ops.link")'), r'write SEC\("\.struct_ops"\)'),
        (('SEC(".struct_ops")', ""), "has no struct tcp_congestion_ops"),
    ],
)
def test_what_cannot_be_installed_is_refused_with_the_reason(
    vegas: Path, change: tuple[str, str], message: str
) -> None:
    text = vegas.read_text(encoding="ascii")
    assert change[0] in text
    vegas.write_text(text.replace(*change), encoding="ascii")
    before = there()
    with pytest.raises(InputError, match=f"(?s){message}"):
        kernel_cc.install(vegas)
    assert there() == before


@needs_bpf
def test_what_is_the_kernels_own_stays() -> None:
    with pytest.raises(InputError, match="'reno' is part of the kernel"):
        kernel_cc.remove("reno")


@needs_bpf
def test_a_damaged_object_is_refused(vegas: Path, tmp_path: Path) -> None:
    made = objects.compile_c(vegas, tmp_path)
    assert objects.names(made) == [NAME]
    whole = made.read_bytes()
    for length in (0, 4, 30, 63, 64, len(whole) // 2, len(whole) - 1):
        made.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"is no BPF object|has no BTF"):
            objects.names(made)


def test_a_file_that_is_not_there_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file 'nosuch', and with Weir come only: vegas"):
        kernel_cc.install("nosuch")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"neither C \(\.c\) nor a BPF object"):
        kernel_cc.install(tmp_path / "notes.txt")


Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.skipif(sys.platform != "linux", reason="congestion controls in BPF are Linux's")
@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (lambda m: m.setattr("os.geteuid", lambda: 1000), "only root .* still simulates"),
        (lambda m: m.setattr(machine, "BTF", Path("/nowhere")), "CONFIG_DEBUG_INFO_BTF=y"),
        (lambda m: m.setattr(machine, "program", lambda _: None), "apt-get install bpftool"),
        (
            lambda m: m.setattr(machine, "program", {"bpftool": "bpftool"}.get),
            "apt-get install clang.* an object compiled elsewhere",
        ),
    ],
    ids=["root", "BTF", "bpftool", "clang"],
)
def test_what_is_missing_is_said_with_what_still_works(
    patch: Patch, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(machine, "BTF", Path("/"))
    monkeypatch.setattr(machine, "program", str)
    patch(monkeypatch)
    with pytest.raises(kernel_cc.KernelCcError, match=message):
        kernel_cc.install("vegas")


def test_a_scenario_may_name_it_but_the_simulator_has_it_not(invoke: Invoke) -> None:
    result = invoke("compare", "bpf_vegas", "reno", "--dry-run")
    assert result.exit_code == 2
    assert "only a kernel's TCP has 'bpf_vegas'" in result.stderr


def test_anyone_may_list(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("weir.controllers.kernel_cc.registry.available", lambda: ["reno", "cubic"])
    shown = invoke("stack", "list").stdout
    assert "reno" in shown
    assert "comes with Weir" in shown
