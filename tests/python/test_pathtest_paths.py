"""`weir test` over emulated paths between network namespaces, also over a real sshd."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requires

import weir
from weir import reading
from weir.modelling import inputs
from weir.processes import netns


def measured_up(left: netns.Namespace, right: netns.Namespace, folder: Path, *words: str) -> Any:
    """A test up from left to right; its row."""
    program = [sys.executable, "-m", "weir"]
    serve = [*program, "test", "--server", "--no-key", "--listen", f"{right.address}:9077"]
    with right.start(serve, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert "listening" in server.stderr.readline()
            test = ["test", right.address, "--direction", "up", "-n", "1", *words]
            test += ["--out", str(folder), "--json", "--no-report", "-q"]
            done = left.run([*program, *test], capture_output=True, text=True)
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"][0]


def measured_behind(rule: str, folder: Path, *words: str) -> Any:
    """A test up whose client has this rule for what leaves; its row."""
    rules = f"table ip t {{ chain out {{ type filter hook output priority 0; {rule}; }}; }}"
    with netns.joined(rate="20mbit", delay="5ms") as link:
        left, right = link
        done = left.run(["nft", rules], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this kernel has no packet filter: {done.stderr.splitlines()[0]}")
        return measured_up(left, right, folder, *words)


@requires.namespaces
@requires.programs("nft")
def test_what_this_machine_drops_is_no_loss_of_the_path(tmp_path: Path) -> None:
    rule = "udp dport 9077 numgen inc mod 5 0 drop"
    row = measured_behind(rule, tmp_path, "--udp", "1mbit", "--duration", "3s")
    results = weir.load(str(tmp_path / "test/latest"))
    assert results.runs["probe_loss_ratio"][0] == 0
    assert row["loss_ratio"]["mean"] == 0
    assert "a packet filter of this machine dropped " in results.manifest["health"]["warnings"][0]


@requires.namespaces
@requires.programs("nft")
def test_a_path_that_clears_marks_is_found(tmp_path: Path) -> None:
    """A packet filter in the client's namespace clears ECN and DSCP of what leaves."""
    rule = "udp dport 9077 ip dscp set cs0 ip ecn set not-ect"
    row = measured_behind(rule, tmp_path, "--cc", "reno", "--duration", "4s")
    runs = weir.load(str(tmp_path / "test/latest")).runs
    assert row["direction"] == "up"
    assert [runs[column][0] for column in ("ecn_up", "dscp_up")] == ["cleared", "cleared"]
    assert [runs[column][0] for column in ("ecn_down", "dscp_down")] == ["kept", "kept"]


@requires.namespaces
@requires.programs("nft")
def test_what_this_machine_drops_of_our_transport_is_counted(tmp_path: Path) -> None:
    rule = "udp dport 9077 udp length > 1000 numgen inc mod 50 0 drop"
    row = measured_behind(rule, tmp_path, "--stack", "rack/cubic", "--duration", "3s")
    results = weir.load(str(tmp_path / "test/latest"))
    warning = results.manifest["health"]["warnings"][0]
    assert "a packet filter of this machine dropped " in warning
    # Each is sent again, and some of these are dropped too.
    count = int(warning.split("dropped ")[1].split()[0])
    assert count == pytest.approx(results.samples["retransmits"].to_list()[-1], rel=0.2, abs=5)
    assert row["goodput_mbps"]["mean"] > 0


@requires.namespaces
@pytest.mark.parametrize(
    "load", [("--stack", "rack/cubic"), ("--cc", "cubic"), ("--udp", "20mbit")], ids=" ".join
)
def test_a_load_finds_a_policer(load: tuple[str, str], tmp_path: Path) -> None:
    policer = "policer.rate=10mbit,policer.burst=50kB"
    with netns.joined(rate="50mbit", delay="20ms", queue="1bdp", up=policer) as link:
        row = measured_up(link.left, link.right, tmp_path, *load, "--duration", "5s")
        report = link.report()
    if report["warnings"]:
        pytest.skip(f"the emulator was not on time: {report['warnings'][0]}")
    results = weir.load(str(tmp_path / "test/latest"))
    assert results.runs["limit"][0] == "policer"
    # Of 1500 bytes that pass, 1440 are data, of datagrams 1200 of 1228. The estimate is the rate
    # between the first and the last loss, and CUBIC's window there is at least 0.7 of the one at a
    # loss (RFC 9438 §4.6). That of datagrams is the rate of the policer.
    data = 1200 / 1228 if load[0] == "--udp" else 1440 / 1500
    least = 0.98 if load[0] == "--udp" else 0.7
    assert least < row["policer_mbps"]["mean"] / (10 * data) < 1.02
    assert results.scan("limits").collect()["policer_burst_bytes"][0] > 50_000
    if load[0] == "--udp":
        return
    read = reading.read([tmp_path / "test/latest"]).connections.row(0, named=True)
    assert read["limit"] == "policer"
    assert read["policer_mbps"] == results.runs["policer_mbps"][0]
    shares = [read[column] for column in reading.COLUMNS]
    assert sum(shares) == pytest.approx(1)
    measured = inputs.measure(tmp_path / "test" / "latest")
    path = measured.path
    assert measured.flow is not None
    assert measured.flow.limit == "policer"
    assert path.policer_mbps is not None
    assert path.policer_bytes is not None
    assert least < path.policer_mbps.value / 10 < 1.02
    assert path.policer_mbps.low < 10 < (path.policer_mbps.high or 0)
    assert path.policer_bytes.low < 50_000 < (path.policer_bytes.high or 0)
    # The link is faster, and drops nothing.
    assert path.rate_mbps.value > 1.1 * path.policer_mbps.value
    assert (path.loss.value, path.rate_mbps.high, path.queue_bytes.high) == (0, None, None)


@requires.namespaces
def test_requests_share_flows_of_our_transport(tmp_path: Path) -> None:
    """They take a round trip with the queue of the flow at least, and no two of them."""
    with netns.joined(rate="20mbit", delay="20ms", queue="1bdp") as link:
        row = measured_up(
            link.left, link.right, tmp_path, "--stack", "rack/cubic", "--duration", "5s"
        )
        report = link.report()
    if report["warnings"]:
        pytest.skip(f"the emulator was not on time: {report['warnings'][0]}")
    rpm, loaded = (row[name]["mean"] for name in ("responsiveness_rpm", "loaded_rtt_ms_p50"))
    # Of a handshake, an answer and a request on the flow, each takes about the loaded RTT.
    assert 60_000 / (2 * loaded) < rpm < 60_000 / 40


@requires.namespaces
def test_a_test_measures_an_emulated_path(tmp_path: Path) -> None:
    """Show 2: 20 Mbit/s and 40 ms; goodput within 2 %, round trips within 2 ms of the emulator."""
    with netns.joined(rate="20mbit", delay="20ms", queue="1bdp") as link:
        row, queued = measured_with_queue(link, tmp_path)
        report = link.report()
    if report["warnings"]:
        pytest.skip(f"the emulator was not on time: {report['warnings'][0]}")
    assert row["goodput_mbps"]["mean"] == pytest.approx(20 * 1448 / 1500, rel=0.02)
    assert row["idle_rtt_ms_p50"]["mean"] == pytest.approx(40, abs=2)
    packet_ms = 1500 * 8 / 20e3
    loaded = 40 + packet_ms * statistics.median(queued)
    assert row["loaded_rtt_ms_p50"]["mean"] == pytest.approx(loaded, abs=2)
    assert loaded > 50
    model = inputs.measure(tmp_path / "test" / "latest").path
    assert model.rate_mbps.value == pytest.approx(20, rel=0.02)
    assert model.delay_ms.value == pytest.approx(40, abs=1)
    assert model.queue_bytes.value == pytest.approx(100_000, rel=0.1)
    assert model.loss.low == 0


def measured_with_queue(link: netns.Link, folder: Path) -> tuple[dict[str, Any], list[int]]:
    """A test up a link; its row, and the emulator's queue in the measured interval."""
    queued = list[tuple[float, int]]()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            queued.append((time.monotonic(), link.report()["up"]["queued"]))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        row = measured_up(
            link.left, link.right, folder, "--cc", "cubic", "--duration", "5s", "--warmup", "2s"
        )
    finally:
        ended.set()
        thread.join()
    # The queue is filled until the load ends, and what is measured are the 3 s before.
    last = max(t for t, count in queued if count > 3)
    return row, [count for t, count in queued if last - 3 <= t <= last]


@contextmanager
def sshd(host: netns.Namespace, folder: Path) -> Iterator[str]:
    """A real sshd in a namespace; the command of a client that it admits."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("needs OpenSSH: no sshd, or no ssh")
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True)
    (folder / "user.pub").rename(folder / "authorized")
    Path("/run/sshd").mkdir(exist_ok=True)  # its processes without privileges have this root
    server, client = folder / "sshd.conf", folder / "ssh.conf"
    server.write_text(
        f"ListenAddress {host.address}:2222\nHostKey {folder}/host\nStrictModes no\nUsePAM no\n"
        f"PidFile none\nAuthorizedKeysFile {folder}/authorized\nPermitRootLogin yes\n"
    )
    known = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[{host.address}]:2222 {known}")
    client.write_text(
        f"Host peer\nHostName {host.address}\nPort 2222\nUser root\nIdentitiesOnly yes\n"
        f"IdentityFile {folder}/user\nUserKnownHostsFile {folder}/known\n"
    )
    with host.start([program, "-D", "-e", "-f", str(server)], stderr=subprocess.DEVNULL) as process:
        try:
            yield f"ssh -F {client}"
        finally:
            process.terminate()


@requires.namespaces
def test_over_ssh_a_server_is_started_and_ended(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "weir"]
    words = ["test", "ssh://peer", "--direction", "down", "--cc", "cubic", "-n", "1"]
    words += ["--duration", "4s", "--warmup", "2s", "--out", str(tmp_path), "--json", "-q"]
    path = netns.joined(rate="20mbit", delay="20ms", queue="1bdp")
    with path as link, sshd(link.right, tmp_path) as ssh:
        left, right = link

        def test(remote: list[str]) -> subprocess.CompletedProcess[str]:
            given = [*words, "--no-report", "--ssh", ssh, "--remote", shlex.join(remote)]
            return left.run([*program, *given], capture_output=True, text=True)

        done = test(program)
        listening = right.run(["ss", "-Hltn"], capture_output=True, text=True).stdout
        refused = test(["/nowhere/weir"])
        report = link.report()
    assert done.returncode == 0, done.stderr
    assert len(listening.splitlines()) == 1, listening
    assert (refused.returncode, "--remote" in refused.stderr) == (1, True), refused.stderr
    row = json.loads(done.stdout)["rows"][0]
    if report["warnings"]:
        pytest.skip(f"the emulator was not on time: {report['warnings'][0]}")
    assert row["goodput_mbps"]["mean"] == pytest.approx(20 * 1448 / 1500, rel=0.02)
    assert row["idle_rtt_ms_p50"]["mean"] == pytest.approx(40, abs=2)
