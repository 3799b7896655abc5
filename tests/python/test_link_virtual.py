"""`weir link --virtual`: commands in a guest."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars
import pytest
import requires
from conftest import Invoke

import weir
from weir.base.errors import InputError
from weir.guest import programs
from weir.guest.programs import Done, LimitError
from weir.kernel import cache
from weir.links.ends import HOST6, with_addresses
from weir.links.options import LinkOptions
from weir.processes.ready import Ready

LINK = LinkOptions(rate="20mbit", rtt="40ms", queue="1bdp")

SERVER = """
import socket, sys
with socket.create_server(("", 5000)) as server:
    print("listening", flush=True)
    connection, address = server.accept()
    with connection:
        total = 0
        while data := connection.recv(1 << 16):
            total += len(data)
        connection.sendall(str(total).encode())
print(address[0], total)
"""
CLIENT = """
import os, socket, time
began = time.monotonic()
with socket.create_connection((os.environ["WEIR_LINK_HOST"], 5000)) as s:
    s.sendall(bytes(1_000_000))
    s.shutdown(socket.SHUT_WR)
    print(s.recv(100).decode(), round(time.monotonic() - began, 3))
print(os.urandom(8).hex(), file=__import__("sys").stderr)
"""


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def both(tmp_path: Path, **options: Any) -> Done:
    """A server and a client that sends it a megabyte."""
    given = {"server": python(SERVER), "ready": Ready.parse("port:5000"), "link": LINK, **options}
    return programs.run(given.pop("client", python(CLIENT)), folder=tmp_path, **given)


@requires.guest
def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.pcapng" for number in range(2)]
    first, again = (both(tmp_path, pcap=file) for file in files)
    assert first.client.code == 0
    total, took = first.client.stdout.split()
    assert total == b"1000000"
    # 1 MB at 20 Mbit/s, a handshake, and slow start of a few round trips.
    assert 0.44 < float(took) < 0.9
    assert first.server is not None
    assert first.server.stdout == b"listening\n100.64.0.2 1000000\n"
    assert (first.client, first.server, first.report) == (again.client, again.server, again.report)
    captured = [file.read_bytes() for file in files]
    assert len(captured[0]) > 50_000
    assert captured[0] == captured[1]
    assert first.report["warnings"] == []


@requires.guest
def test_ipv6_crosses_the_link_as_ipv4_does(tmp_path: Path) -> None:
    """A server of both families; of the kernel's own packets of IPv6, none crosses the link."""
    server = python(SERVER.replace('("", 5000)', '("::", 5000), family=10, dualstack_ipv6=True'))
    four, six = (
        both(tmp_path, server=server, client=python(CLIENT.replace("LINK_HOST", variable)))
        for variable in ("LINK_HOST", "LINK_HOST6")
    )
    assert four.server is not None
    assert four.server.stdout == b"listening\n::ffff:100.64.0.2 1000000\n"
    assert six.server is not None
    assert six.server.stdout == b"listening\nfd00:100:64::2 1000000\n"
    times = [float(done.client.stdout.split()[1]) for done in (four, six)]
    # Headers are 20 bytes longer: 1.4 % of a packet.
    assert times[0] < times[1] < 1.03 * times[0]
    quiet = programs.run(["sleep", "5"], link=LINK, folder=tmp_path)
    assert (quiet.report["up"]["sent"], quiet.report["down"]["sent"]) == (0, 0)


NAMES = """
import os, socket, time
print(socket.getaddrinfo("weir-host6", 1)[0][4][0] == os.environ["WEIR_LINK_HOST6"])
began = time.monotonic()
try:
    socket.gethostbyname("example.org")
except socket.gaierror:
    print(time.monotonic() - began < 0.1)
with open("/etc/hosts", "a") as hosts:
    hosts.write(os.environ["WEIR_LINK_HOST"] + " example.org")
print(socket.gethostbyname("example.org"))
"""


@requires.guest
def test_names_are_those_of_hosts_and_others_are_refused_at_once(tmp_path: Path) -> None:
    done = programs.run(python(NAMES), folder=tmp_path)
    assert done.client.stdout == b"True\nTrue\n100.64.0.1\n", done.client.stderr
    assert done.report["up"]["received"] == 0


@requires.guest
def test_another_seed_gives_other_random_numbers_and_losses(tmp_path: Path) -> None:
    link = LinkOptions(rate="20mbit", rtt="40ms", loss="2%")
    first, other = (both(tmp_path, link=link, seed=seed) for seed in (1, 2))
    assert first.client.stderr != other.client.stderr
    assert first.report["up"]["lost"] > 0
    assert first.report["up"] != other.report["up"]


@requires.guest
def test_files_are_the_hosts_and_what_is_written_goes_to_out(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    (work / "given").write_text("old")
    (work / "gone").write_text("old")
    script = (
        "cat given; rm gone; echo new >> given; mkdir sub; echo deep > sub/file; ln -s sub s; id -u"
    )
    done = programs.run(["sh", "-c", script], folder=work, out=out)
    assert done.client.stdout == b"old0\n"
    assert done.files == ("given", "s", "sub/file")
    assert (out / "given").read_text() == "oldnew\n"
    assert (out / "sub/file").read_text() == "deep\n"
    assert (out / "s").readlink() == Path("sub")
    assert sorted(path.name for path in work.iterdir()) == ["given", "gone"]
    assert (work / "given").read_text() == "old"


@requires.guest
def test_codes_and_signals_are_those_of_the_commands(tmp_path: Path) -> None:
    killed = programs.run(["sh", "-c", "kill -9 $$"], folder=tmp_path)
    assert killed.client.code == -9
    assert killed.server is None
    failed = both(tmp_path, server=["sh", "-c", "trap 'exit 7' TERM; sleep 99 & wait"], ready=NOW)
    # No server listens: the client fails, and the server gets SIGTERM a second later.
    assert failed.client.code == 1
    assert b"Connection refused" in failed.client.stderr
    assert failed.server is not None
    assert failed.server.code == 7


NOW = Ready.parse("delay:0s")

REFUSED = {
    "no-command": ({"client": ["nothere"]}, r"^nothere: No such file or directory$"),
    "no-server": ({"server": ["nothere"]}, r"^nothere: No such file or directory$"),
    "server-ended": (
        {"server": ["false"]},
        r"ended with exit code 1 before it was ready \(port:9\)",
    ),
    "never-ready": (
        {"server": ["sleep", "99"]},
        r"not ready \(port:9\) when the time limit was over",
    ),
}


@requires.guest
@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_start_is_bad_input(options: Any, message: str, tmp_path: Path) -> None:
    given = {"client": ["true"], "ready": Ready.parse("port:9"), "time_limit_s": 3.0, **options}
    with pytest.raises(InputError, match=message):
        programs.run(given.pop("client"), folder=tmp_path, **given)


@requires.guest
def test_a_line_that_is_printed_late_gets_a_hint(tmp_path: Path) -> None:
    late = python("import time; print('ready'); time.sleep(60)")
    options: Any = {"server": late, "ready": Ready.parse("line:ready"), "time_limit_s": 2.0}
    # PYTHONUNBUFFERED would make Python print at once.
    with pytest.raises(InputError, match=r"try port:NUMBER or stdbuf -oL$"):
        programs.run(["true"], folder=tmp_path, environment={"PATH": os.defpath}, **options)


@requires.guest
def test_a_deadlock_ends_at_the_time_limit(tmp_path: Path) -> None:
    with pytest.raises(
        LimitError, match=r"time limit of 30 s \(virtual\) reached: the command sti"
    ):
        programs.run(["sleep", "infinity"], time_limit_s=30.0, folder=tmp_path)


SPINS = {
    "sched_yield": "os.sched_yield()",
    "poll": "poll.poll(0)",
    "epoll": "epoll.poll(0)",
    "clock": "time.monotonic()",
    "again": "recv(other)",
}
SPIN = """
import os, select, socket, sys, time
one, other = socket.socketpair()
other.setblocking(False)
poll, epoll = select.poll(), select.epoll()
poll.register(other, select.POLLIN)
epoll.register(other, select.EPOLLIN)
def recv(s):
    try:
        s.recv(1)
    except BlockingIOError:
        pass
if os.fork() == 0:
    time.sleep(0.05)
    one.send(b"x")
    os._exit(0)
for turn in range(10**9):
    ACTION
    if turn % 100 == 0 and select.select([other], [], [], 0)[0]:
        break
print("over")
"""


@requires.guest
@pytest.mark.parametrize("action", SPINS.values(), ids=SPINS)
def test_a_loop_of_calls_lets_time_go_by(action: str, tmp_path: Path) -> None:
    """Without a price of calls, the first three would stop virtual time for ever."""
    program = SPIN.replace("ACTION", action if action != "recv(other)" else "recv(one)")
    program = program.replace("other.setblocking(False)", "one.setblocking(False)")
    done = programs.run(python(program), folder=tmp_path, wall_limit_s=120.0)
    assert done.client.stdout == b"over\n"
    # It is seen some calls later, each of which costs 10 us at most.
    assert 0.05 < done.virtual_s < 0.5


@requires.guest
def test_a_loop_without_calls_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_STALLED_CPU_S", 2.0)
    with pytest.raises(
        LimitError, match="virtual time stands still at 0 s, after 2 s of computing"
    ):
        programs.run(python("while True: pass"), folder=tmp_path)
    with pytest.raises(LimitError, match="wall limit of 2 s reached"):
        programs.run(python("while True: pass"), folder=tmp_path, wall_limit_s=2.0)


FEATURES = """
import ctypes, os, socket, tempfile, threading, time
def say(name, value): print(name, value)
results = []
thread = threading.Thread(target=lambda: results.append(1)); thread.start(); thread.join()
say("threads", results == [1])
a, b = socket.socketpair(socket.AF_UNIX); a.send(b"x"); say("unix", b.recv(1) == b"x")
with socket.socket(socket.AF_UNIX) as s: s.bind("\\0abstract"); say("abstract", True)
with socket.create_server(("::1", 0), family=socket.AF_INET6) as s: say("ipv6", True)
with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
    with socket.create_connection(("127.0.0.1", server.getsockname()[1])): say("dualstack", True)
say("names", socket.gethostbyname("weir-host") == os.environ["WEIR_LINK_HOST"])
say("year", time.gmtime().tm_year)
say("processors", os.cpu_count())
parent, child = os.openpty(); say("pty", os.isatty(child))
libc = ctypes.CDLL(None, use_errno=True)
say("io_uring", libc.syscall(425, 4, ctypes.create_string_buffer(120)) >= 0)
say("inotify", libc.inotify_init() >= 0)
say("getrandom", len(os.getrandom(16)) == 16)
with tempfile.NamedTemporaryFile() as file: say("tmp", file.write(b"x") == 1)
with open("/dev/shm/x", "w") as file: say("shm", True)
if (pid := os.fork()) == 0: os._exit(libc.unshare(CLONE_NEWUSER))
say("users", os.waitpid(pid, 0)[1] == 0)
""".replace("CLONE_NEWUSER", "0x10000000")


@requires.guest
def test_what_programs_expect_is_there(tmp_path: Path) -> None:
    """The list of docs/link.md."""
    done = programs.run(python(FEATURES), folder=tmp_path)
    assert done.client.stderr == b""
    found = dict(line.split() for line in done.client.stdout.decode().splitlines())
    assert (found.pop("year"), found.pop("processors")) == ("2017", "1")
    assert len(found) == 13
    assert set(found.values()) == {"True"}, found


COUNTER = """
import ctypes, mmap, time
pages = []
def reading(code):
    # The instruction; then rdx moves up 32 bits and joins rax, and the function returns.
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex(code + "48c1e220 4809d0 c3"))
    pages.append(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(pages[-1]))
rdtsc, rdtscp = reading("0f31"), reading("0f01f9")
before = rdtsc()
time.sleep(0.5)
between = rdtscp()
turns = 1
while rdtsc() < between + 100_000:
    turns += 1
print(before, between, turns, rdtsc() - time.monotonic_ns())
"""


@requires.guest_with_counters
def test_counters_of_processors_read_virtual_time(tmp_path: Path) -> None:
    """Otherwise they are those of the host, and differ from run to run."""
    first, again = (
        programs.run(python(COUNTER), folder=tmp_path, virtual_tsc=True).client for _ in range(2)
    )
    assert first.code == 0, first.stderr
    assert first == again
    before, between, turns, off = map(int, first.stdout.split())
    # Computing takes no time, but each call of the program and each reading of a clock some.
    assert between - before == pytest.approx(500_000_000, rel=0.001)
    # From the 10,000th reading in an instant on, each takes 256 ns.
    assert 10_000 < turns < 10_400
    assert -100_000 < off < 0


@requires.guest_with_counters
def test_another_instruction_that_faults_still_ends_a_process(tmp_path: Path) -> None:
    halting = COUNTER.replace('"0f31"', '"f4"')
    assert halting != COUNTER
    done = programs.run(python(halting), folder=tmp_path, virtual_tsc=True)
    assert done.client.code == -11


READINGS = """
import time
time.sleep(0.1)
print(len({time.monotonic_ns() for _ in range(500)}))
"""


@requires.guest
def test_reading_the_clock_takes_no_time(tmp_path: Path) -> None:
    done = programs.run(python(READINGS), folder=tmp_path)
    assert done.client.code == 0, done.client.stderr
    assert done.client.stdout.split() == [b"1"]


@requires.guest
def test_memory_is_the_same_at_each_boot_and_as_requested(tmp_path: Path) -> None:
    command = ["cat", "/proc/meminfo", "/proc/sys/net/ipv4/tcp_rmem"]
    totals = []
    for memory_mb in (768, 768, 256):
        text = programs.run(command, folder=tmp_path, memory_mb=memory_mb).client.stdout.decode()
        lines = text.splitlines()
        totals.append((int(lines[0].split()[1]), lines[-1]))
    if totals[0] != totals[1] and not _may_fix_addresses():
        pytest.skip("personality(2) is not permitted here")
    assert totals[0] == totals[1]
    assert totals[2][0] < 256 * 1024


def _may_fix_addresses() -> bool:
    import ctypes

    libc = ctypes.CDLL(None)
    before = libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    permitted: bool = libc.personality(ctypes.c_ulong(0x0040000)) >= 0
    libc.personality(ctypes.c_ulong(before))
    return permitted


# The command line.


@requires.guest
def test_the_command_shows_both_outputs_apart(invoke: Invoke, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--rate", "10mbit", "--rtt", "20ms", "--report", str(report)]
    server = ["--server", "echo ready; sleep 1; echo bye >&2; exit 3", "--ready", "line:ready"]
    result = invoke("link", "--virtual", *options, *server, "--", "sh", "-c", "echo client; exit 5")
    assert result.exit_code == 5
    assert result.stdout == "client\n"
    assert "server: ready\n" in result.stderr
    assert "server: bye\n" in result.stderr
    assert "link: server ended with exit code 3\n" in result.stderr
    assert re.search(r"^link: 0\.\d s of virtual time in ", result.stderr, re.MULTILINE)
    found = json.loads(report.read_text())
    assert found["exit_code"] == 5
    assert found["server"] == {"exit_code": 3, "stdout": "ready\n", "stderr": "bye\n"}


@requires.guest
def test_an_argument_may_be_the_address(invoke: Invoke) -> None:
    result = invoke("link", "--virtual", "--", "echo", "$WEIR_LINK_HOST", "$WEIR_LINK_HOST6")
    assert (result.exit_code, result.stdout) == (0, f"100.64.0.1 {HOST6}\n")


def test_only_a_whole_argument_is_replaced() -> None:
    command = ["sh", "-c", "ping $WEIR_LINK_HOST", "$WEIR_LINK_HOST", "$WEIR_LINK_HOST6", "$HOME"]
    replaced = with_addresses(command, {"WEIR_LINK_HOST": "100.64.3.1", "HOME": "/"})
    assert replaced == [*command[:3], "100.64.3.1", *command[4:]]


@requires.guest
def test_the_date_is_the_requested_one(invoke: Invoke) -> None:
    for date, printed in (("2026-11-25", "2026-11-25"), ("2200-12-31", "2200-12-31")):
        result = invoke("link", "--virtual", "--date", date, "--", "date", "-u", "+%F")
        assert (result.exit_code, result.stdout) == (0, f"{printed}\n")


@requires.guest
def test_an_option_of_the_link_that_is_not_allowed_is_bad_input(invoke: Invoke) -> None:
    result = invoke("link", "--virtual", "--rate", "fast", "--", "true")
    assert result.exit_code == 2
    assert "'fast' is not a rate" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ready", "port:1", "--", "true"], "there is no --server"),
        (["--out", "x", "--", "true"], "--out needs --virtual"),
        (["--memory", "1gb", "--", "true"], "--memory needs --virtual"),
        (["--virtual-tsc", "--", "true"], "--virtual-tsc needs --virtual"),
        (["--virtual"], "--virtual: give a command"),
        (["--virtual", "--ready", "port:1", "--", "true"], "there is no --server"),
        (["--virtual", "--server", "x", "--ready", "5", "--", "true"], "use port:NUMBER"),
        (["--virtual", "--memory", "1mb", "--", "true"], "--memory 1mb: a guest needs 128mb"),
        (["--virtual", "--date", "today", "--", "true"], "--date today: write YEAR-MONTH-DAY"),
        (["--virtual", "--date", "1960-01-01", "--", "true"], "a year from 1971 to 2200"),
        (["--virtual", "--memory", "big", "--", "true"], "--memory big: "),
        (["--virtual", "--time-limit", "never", "--", "true"], "--time-limit: 'never'"),
        (["--virtual", "--rtt", "1ms", "--delay", "1ms", "--", "true"], "give only one of them"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], message: str, invoke: Invoke
) -> None:
    result = invoke("link", *options)
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr


def test_without_a_kernel_the_message_says_how_to_get_one(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = invoke("link", "--virtual", "--", "true")
    assert result.exit_code == 1
    assert "`weir stack kernel` makes it" in result.stderr


@pytest.fixture
def readable_home() -> Iterator[Path]:
    """A folder that any user may read, with a guest kernel in its cache."""
    kernel = cache.default()
    assert kernel is not None
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        shutil.copytree(kernel.path, home / "weir/kernel" / kernel.path.name)
        (home / "work").mkdir(mode=0o777)
        yield home


@requires.guest
@requires.programs("iperf3")
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which requires root")
def test_iperf3_as_an_unprivileged_user_is_the_same_each_time(readable_home: Path) -> None:
    as_another: dict[str, Any] = {
        "cwd": readable_home / "work",
        "env": {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, IMPORTED)),
            "XDG_CACHE_HOME": str(readable_home),
        },
        **{"user": ANOTHER_USER, "group": ANOTHER_USER, "extra_groups": [], "capture_output": True},
        **{"check": False, "text": True},
    }
    command = [
        *(_interpreter(as_another), "-m", "weir", "link", "--virtual", "--rate", "10mbit"),
        *("--rtt", "40ms", "--queue", "1bdp", "--server", "iperf3 -s -1", "--ready", "port:5201"),
        *("--quiet", "--", "sh", "-c", "iperf3 -c $WEIR_LINK_HOST -t 3 -J"),
    ]
    first, again = (subprocess.run(command, **as_another) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == again.stdout
    received = json.loads(first.stdout)["end"]["sum_received"]["bits_per_second"]
    # The payload's share of the rate, less the slow start.
    assert 0.9 < received / 10e6 / PAYLOAD_SHARE < 1.0


def _interpreter(as_another: dict[str, Any]) -> str:
    """A Python of the same version that this user may run."""
    version = "{}.{}".format(*sys.version_info)
    ask = ["-c", "import sys, weir, polars; print('{}.{}'.format(*sys.version_info))"]
    for candidate in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            found = subprocess.run([candidate, *ask], **as_another)
            if found.stdout.strip() == version:
                return candidate
    pytest.skip(f"another user can run no Python {version} with Weir")


ANOTHER_USER = 65534
IMPORTED = [Path(module.__file__).parents[1] for module in (weir, polars) if module.__file__]
PAYLOAD_SHARE = 1448 / 1500
