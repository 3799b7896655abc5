"""`weir link`: commands behind real links; skipped where namespaces cannot be made."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
import requires
from conftest import PATIENCE_S, Invoke, started, until

from weir.processes import cleanup

PAYLOAD_SHARE = 1448 / 1500
"""Of a full TCP segment with timestamps, in IP bytes."""

ECHO = """
import os, socket, sys, time
with socket.create_connection((os.environ["WEIR_LINK_HOST"], int(sys.argv[1]))) as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(int(sys.argv[2])):
        began = time.monotonic()
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        times.append(time.monotonic() - began)
    # A link that ends drops what is in flight: the server must receive the FIN before.
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b""
print(*times)
"""
SEND = """
import os, socket, sys
with socket.create_connection((os.environ["WEIR_LINK_HOST"], int(sys.argv[1]))) as s:
    s.sendall(bytes(int(sys.argv[2])))
    s.shutdown(socket.SHUT_WR)
    s.recv(1)
"""
RECEIVE = """
import os, socket, sys, time
got = []
with socket.create_connection((os.environ["WEIR_LINK_HOST"], int(sys.argv[1]))) as s:
    while part := s.recv(1 << 16):
        got.append((time.monotonic(), len(part)))
print(*(x for pair in got for x in pair))
"""
WAIT = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]


def behind(*asked: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """`weir link ASKED -- COMMAND` as a process of its own, at its end."""
    with started("link", *asked, "--", *command) as process:
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


@contextmanager
def serving() -> Iterator[socket.socket]:
    """A server of this namespace."""
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104 – the link's address too
        server.settimeout(PATIENCE_S)
        yield server


def port(server: socket.socket) -> str:
    return str(server.getsockname()[1])


@contextmanager
def echoing() -> Iterator[str]:
    """The port of a server that answers one byte with the same."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(1):
                connection.sendall(data)

    with serving() as server:
        thread = Thread(target=serve, args=[server])
        thread.start()
        yield port(server)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def steady_mbps(arrivals: list[tuple[float, int]]) -> float:
    """The rate from the second quarter of the bytes on: when slow start is over."""
    total, so_far = sum(size for _, size in arrivals), 0
    for number, (_, size) in enumerate(arrivals):
        so_far += size
        if so_far >= total / 4:
            span = arrivals[-1][0] - arrivals[number][0]
            return (total - so_far) * 8e-6 / span
    raise AssertionError("nothing arrived")


def outside() -> dict[str, str]:
    """Everything of this namespace that a link touches."""
    nft = shutil.which("nft")
    listing = subprocess.check_output([nft, "list", "tables"], text=True) if nft else ""
    devices = Path("/proc/net/dev").read_text().splitlines()
    return {
        "routes": Path("/proc/net/route").read_text(),
        "devices": " ".join(sorted(line.split(":")[0].strip() for line in devices)),
        "named namespaces": " ".join(sorted(p.name for p in Path("/run/netns").glob("*"))),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "tables": listing,
        "records": " ".join(cleanup.found()),
    }


@requires.namespaces
def test_a_round_trip_takes_what_was_asked_and_all_is_as_before(tmp_path: Path) -> None:
    before, report = outside(), tmp_path / "report.json"
    with echoing() as at:
        asked = ("--rtt", "40ms", "--rate", "20mbit", "--queue", "1bdp", "--report", str(report))
        done = behind(*asked, command=[sys.executable, "-c", ECHO, at, "20"])
    assert done.returncode == 0, done.stderr
    fastest = min(map(float, done.stdout.split()))
    assert 0.040 <= fastest < 0.0403 + 0.001
    found = json.loads(report.read_text())
    up, down = found["rows"]
    assert (up["way"], down["way"], found["exit_code"]) == ("up", "down", 0)
    # The last acknowledgement may still be in flight when the command has ended.
    assert 20 <= up["sent"] <= up["received"] <= up["sent"] + 1
    assert up["lost"] == up["queue_dropped"] == down["lost"] == down["queue_dropped"] == 0
    assert "health" in done.stderr
    assert outside() == before


def sent_up(path: tuple[str, ...], size: int) -> list[tuple[float, int]]:
    """Arrivals here of what a command behind the link sends."""
    arrivals = list[tuple[float, int]]()

    def take(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            while data := connection.recv(1 << 16):
                arrivals.append((time.monotonic(), len(data)))

    with serving() as server:
        thread = Thread(target=take, args=[server])
        thread.start()
        done = behind(*path, command=[sys.executable, "-c", SEND, port(server), str(size)])
        thread.join(PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return arrivals


def sent_down(path: tuple[str, ...], size: int) -> list[tuple[float, int]]:
    """Arrivals behind the link of what is sent from here."""

    def give(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            connection.sendall(bytes(size))

    with serving() as server:
        thread = Thread(target=give, args=[server])
        thread.start()
        done = behind(*path, command=[sys.executable, "-c", RECEIVE, port(server)])
        thread.join(PATIENCE_S)
    assert done.returncode == 0, done.stderr
    numbers = done.stdout.split()
    return [(float(at), int(n)) for at, n in zip(numbers[::2], numbers[1::2], strict=True)]


@requires.namespaces
@pytest.mark.parametrize("transfer", [sent_up, sent_down])
def test_the_kernels_tcp_gets_the_rate(
    transfer: Callable[[tuple[str, ...], int], list[tuple[float, int]]],
) -> None:
    """20 Mbit/s and a queue of one bandwidth-delay product: 3 % of its payload share.

    No run may have more. What a busy host takes from a run says nothing about the link, so the
    best of a few counts.
    """
    size, share = 6_000_000, 20 * PAYLOAD_SHARE
    path = ("--rate", "20mbit", "--rtt", "20ms", "--queue", "1bdp", "--quiet")
    for _ in range(5):
        arrivals = transfer(path, size)
        assert sum(n for _, n in arrivals) == size
        found = steady_mbps(arrivals)
        assert found <= share * 1.03
        if found >= share * 0.97:
            return
    pytest.fail(f"five runs, the last with {found} Mbit/s of {share}")


@requires.namespaces
@pytest.mark.parametrize(
    ("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("true", 0)]
)
def test_it_ends_as_the_command_does(script: str, code: int) -> None:
    before = outside()
    assert behind("--quiet", command=["sh", "-c", script]).returncode == code
    assert outside() == before


@requires.namespaces
def test_the_link_is_the_only_way_out() -> None:
    done = behind(command=["cat", "/proc/net/dev"])
    devices = {line.split(":")[0].strip() for line in done.stdout.splitlines() if ":" in line}
    assert len(devices) == 2
    assert {name.rstrip("0123456789") for name in devices} == {"lo", "weir-"}


@requires.namespaces
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_the_commands(number: signal.Signals) -> None:
    """Without a terminal it is ours to hand them on."""
    before = outside()
    script = "trap 'echo heard; exit 3' INT TERM; echo ready; while :; do sleep 0.1; done"
    with started("link", "--", "sh", "-c", script, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (3, "heard\n"), stderr
    assert outside() == before


@requires.namespaces
@requires.programs("nft")
def test_what_a_killed_link_leaves_is_found_and_removed(invoke: Invoke) -> None:
    before = outside()
    with started("link", "--quiet", "--", *WAIT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        during = outside()
        [command] = children(process.pid)
        process.kill()
        process.wait(PATIENCE_S)
    os.kill(command, signal.SIGKILL)
    assert f"weir-{process.pid}" in during["devices"]
    after = outside()
    assert (after["devices"], after["routes"]) == (before["devices"], before["routes"])
    assert f"weir-{process.pid}" in after["tables"]
    rows = {row["name"]: row for row in json.loads(invoke("doctor", "--json").stdout)["rows"]}
    assert rows["leftovers"]["state"] == "absent"
    assert f"weir-{process.pid}" in invoke("doctor", "--clean").stdout
    assert outside() == before
    assert "leftovers: none" in invoke("doctor", "--clean").stdout


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(text)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if task.name != str(pid)
        for text in (task / "children").read_text().split()
    ]


@requires.namespaces
@requires.programs("nft")
def test_links_nest_and_reach_beyond_their_host() -> None:
    """The inner command talks to the outermost host, over both links."""
    before = outside()
    with echoing() as at:
        inner = ["-m", "weir", "link", "--quiet", "--rtt", "30ms", "--"]
        echo = [sys.executable, "-c", ECHO, at, "5"]
        command = [sys.executable, *inner, *echo]
        done = behind("--quiet", "--rtt", "20ms", command=command)
    assert done.returncode == 0, done.stderr
    assert min(map(float, done.stdout.split())) >= 0.050
    assert outside() == before


@requires.namespaces
def test_three_links_deep_every_address_is_another() -> None:
    """Behind two links the addresses of the outer one are not to be seen, but are in use."""
    link = (sys.executable, "-m", "weir", "link", "--rtt", "1ms", "--")
    done = behind("--rtt", "1ms", command=[*link, *link, "true"])
    assert done.returncode == 0, done.stderr
    networks = re.findall(r"link: (100\.64\.\d+)\.2;", done.stderr)
    assert len(networks) == len(set(networks)) == 3, done.stderr


@requires.namespaces
@requires.programs("nft")
def test_links_side_by_side_have_their_own_addresses_and_the_last_one_cleans_up() -> None:
    before = outside()
    command = ["sh", "-c", "echo $WEIR_LINK_HOST; read -r _"]
    with (
        started("link", "--", *command, stdin=subprocess.PIPE) as first,
        started("link", "--", *command, stdin=subprocess.PIPE) as second,
    ):
        assert first.stdout is not None
        assert second.stdout is not None
        assert first.stdout.readline() != second.stdout.readline()
        first.communicate("\n", timeout=PATIENCE_S)
        assert outside()["forwarding"] == "1\n"
        second.communicate("\n", timeout=PATIENCE_S)
    assert outside() == before


@requires.namespaces
def test_a_trace_of_mahimahi_serves_one_packet_at_a_time(tmp_path: Path) -> None:
    trace = tmp_path / "slow.trace"
    trace.write_text("50\n")
    with echoing() as at:
        asked = ("--trace", str(trace), "--down", "rate_trace=[1]", "--quiet")
        done = behind(*asked, command=[sys.executable, "-c", ECHO, at, "5"])
    # Between two opportunities on the way up lie 50 ms.
    assert sum(map(float, done.stdout.split())) >= 0.2


@requires.namespaces
def test_under_sudo_the_command_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "65534")
    done = behind("--quiet", command=["sh", "-c", "id -u; echo $USER"])
    assert done.stdout.split() == ["65534", pwd.getpwuid(65534).pw_name], done.stderr


@requires.namespaces
def test_what_is_missing_outside_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nft the host alone is there, and nothing outside is touched."""
    forwarding = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        with started("link", "--", *WAIT) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == forwarding
            process.terminate()
            _, stderr = process.communicate(timeout=PATIENCE_S)
    assert "this host only: program nft not found" in stderr


@requires.namespaces
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--rate", "10mbps"), "10mbps"),
        (("--queue", "64p"), "give a rate as well"),
        (("--rtt", "40ms", "--delay", "20ms"), "give only one of them"),
        (("--rtt", "forty"), "--rtt"),
        (("--trace", "/no/such.trace"), "/no/such.trace"),
        (("--up", "los=1%"), "los"),
        (("--report", "/no/such/report.json", "--", "true"), "its directory does not exist"),
        (("no-such-command",), "no-such-command"),
    ],
)
def test_mistakes_are_reported_and_leave_no_interfaces(args: tuple[str, ...], message: str) -> None:
    before = outside()
    with started("link", *args, "true") as process:
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, stderr
    assert message in stderr.splitlines()[-1]
    assert outside() == before


def test_what_a_machine_lacks_is_said(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "weir.processes.netns.missing", lambda: "only root may make network namespaces"
    )
    result = invoke("link", "--", "true")
    assert result.exit_code == 1
    assert "only root may" in result.stderr
    assert "weir relay works without it" in result.stderr


# A server at the far end.


@requires.namespaces
@pytest.mark.parametrize(
    "ready",
    [
        pytest.param("port:5000", id="port"),
        pytest.param("line:listening", id="line"),
        pytest.param("delay:1s", id="delay"),
    ],
)
def test_a_server_runs_at_the_far_end(ready: str, tmp_path: Path) -> None:
    """Its port is not one of this host's: two such links work at the same time."""
    report = tmp_path / "report.json"
    options = ("--rtt", "20ms", "--report", str(report), "--ready", ready)
    program = f"{sys.executable} -c '{SERVER}'"
    done = behind(*options, "--server", program, command=[sys.executable, "-c", CLIENT])
    assert (done.returncode, done.stdout) == (0, "got 5\n"), done.stderr
    assert "server: listening" in done.stderr
    assert "link: server ended with exit code 3" in done.stderr
    found = json.loads(report.read_text())["server"]
    assert (found["exit_code"], found["stderr"]) == (3, "bye\n")


@requires.namespaces
def test_a_server_inside_another_link_is_the_host_of_its_own() -> None:
    """The host of the outer link is out of reach, though an inherited variable names it."""
    inner = [sys.executable, "-m", "weir", "link", "--quiet", "--ready", "port:5000"]
    server = ["--server", f"{sys.executable} -c '{SERVER}'", "--"]
    done = behind("--quiet", command=[*inner, *server, sys.executable, "-c", CLIENT])
    assert (done.returncode, done.stdout) == (0, "got 5\n"), done.stderr


SERVER = """
import socket, sys
with socket.create_server(("", 5000)) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    with connection:
        connection.sendall(str(len(connection.recv(5))).encode())
print("bye", file=sys.stderr)
sys.exit(3)
"""
CLIENT = """
import os, socket
with socket.create_connection((os.environ["WEIR_LINK_HOST"], 5000)) as s:
    s.sendall(b"hello")
    print("got", s.recv(9).decode())
"""


@requires.namespaces
@pytest.mark.skipif(not Path("/proc/sys/net/ipv6").is_dir(), reason="the kernel has no IPv6")
def test_ipv6_crosses_the_link_to_a_server(tmp_path: Path) -> None:
    """Only what the programs send: a datagram and its answer, and no packets of the kernel."""
    report = tmp_path / "report.json"
    options = ("--rtt", "20ms", "--report", str(report), "--ready", "port:5000")
    program = f"{sys.executable} -c '{SERVER6}'"
    done = behind(*options, "--server", program, command=[sys.executable, "-c", CLIENT6])
    assert (done.returncode, done.stdout) == (0, "fd00:100:64::2\n"), done.stderr
    assert [row["sent"] for row in json.loads(report.read_text())["rows"]] == [1, 1]


@requires.namespaces
@pytest.mark.skipif(not Path("/proc/sys/net/ipv6").is_dir(), reason="the kernel has no IPv6")
def test_ipv6_crosses_the_link_to_this_host(tmp_path: Path) -> None:
    """Here, too, only what the programs send, and the host's own settings stay as they are."""
    report = tmp_path / "report.json"
    loopback = Path("/proc/sys/net/ipv6/conf/lo/disable_ipv6")
    before = loopback.read_text()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server:
        server.bind(("::", 0))
        server.settimeout(PATIENCE_S)
        # The kernel solicits routers within a second, where it does (RFC 4861 §6.3.7).
        program = f"import time; time.sleep(1.2){CLIENT6.replace('5000', port(server))}"
        client = [sys.executable, "-c", program]
        with started("link", "--rtt", "20ms", "--report", str(report), "--", *client) as process:
            _, address = server.recvfrom(9)
            server.sendto(address[0].encode(), address)
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    assert re.fullmatch(r"fd00:100:64:\S*:2\n", stdout)
    assert [row["sent"] for row in json.loads(report.read_text())["rows"]] == [1, 1]
    assert loopback.read_text() == before


@requires.namespaces
@pytest.mark.parametrize(("variable", "family"), [("HOST", "AF_INET"), ("HOST6", "AF_INET6")])
def test_a_connection_that_outlives_its_link_does_not_cross_the_next(
    tmp_path: Path, variable: str, family: str
) -> None:
    """The server sends its answer again and again, to an address that is not the next link's."""
    connect = CLIENT.replace("HOST", variable).split("    s.sendall")[0] + "    pass"
    with socket.socket(getattr(socket, family)) as server:
        server.bind(("", 0))
        server.listen()
        server.settimeout(PATIENCE_S)
        report = tmp_path / "report.json"
        behind(command=[sys.executable, "-c", connect.replace("5000", port(server))])
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"late")
            done = behind("--report", str(report), command=["sleep", "1"])
    assert done.returncode == 0, done.stderr
    assert [row["sent"] for row in json.loads(report.read_text())["rows"]] == [0, 0]


SERVER6 = """
import socket
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    s.bind(("::", 5000))
    address = s.recvfrom(9)[1]
    s.sendto(address[0].encode(), address)
"""
CLIENT6 = """
import os, socket
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    s.settimeout(30)
    s.sendto(b"hello", (os.environ["WEIR_LINK_HOST6"], 5000))
    print(s.recv(99).decode())
"""


@requires.namespaces
def test_a_server_that_goes_on_is_stopped_with_what_it_started() -> None:
    child = f"sleep 97.{os.getpid()}"
    server = f"{child} & echo started; wait"
    done = behind("--server", server, "--ready", "line:started", command=["true"])
    assert done.returncode == 0, done.stderr
    assert f"link: server was ended by signal {signal.SIGTERM.value}" in done.stderr
    assert not _running(child)


@requires.namespaces
@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("exit 4", "--server: it ended with exit code 4 before it was ready (port:9)"),
        ("nothere", "exit code 127 before it was ready"),
    ],
)
def test_a_server_that_ends_early_is_bad_input(server: str, message: str) -> None:
    done = behind("--server", server, "--ready", "port:9", command=["echo", "started"])
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@requires.namespaces
def test_ctrl_c_ends_the_wait_for_a_server() -> None:
    """Nothing of the server goes on."""
    mark = f"sleep 71.{os.getpid()}"
    with started("link", "--server", mark, "--ready", "port:9", "--", "true") as process:
        until(lambda: _running(mark))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT
    assert not _running(mark)


def _running(command: str) -> bool:
    """Whether a process has exactly this command line."""
    wanted = "\0".join([*command.split(), ""]).encode()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if process.read_bytes() == wanted:
                return True
    return False
