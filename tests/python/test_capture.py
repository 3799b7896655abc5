"""Packet captures of world `kernel`, read by a program that others made."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import requires
from conftest import Invoke, started

import weir
from weir.scenario import capture
from weir.scenario.source import Source
from weir.scenario.sweep import plan

TRANSFER = """
name = "transfer"
[topology]
rate = "20mbit"
rtt = "20ms"
queue = "1bdp"
[topology.forward]
loss = "1%"
[measure]
duration = "30s"
warmup = "0s"
[[flow]]
stack = "reno"
workload = { kind = "file", size = "2mb" }
"""

BEFORE, AFTER = 0, 1
FORWARD = "tcp.dstport == 6000"


def tshark(path: Path, *words: str) -> list[str]:
    """What tshark prints. Port 6000 is no X11 here."""
    command = ["tshark", "--disable-protocol", "x11", "-r", str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def count(path: Path, condition: str) -> int:
    return len(tshark(path, "-Y", condition))


@requires.namespaces
@requires.programs("tshark", "ping")
@pytest.mark.parametrize("rate", ["20mbit", "800mbit"])
def test_the_capture_has_what_the_tables_say(tmp_path: Path, rate: str) -> None:
    """Packet by packet, and above 500 Mbit/s each packet of a superpacket."""
    sets = {"topology.rate": rate}
    results = weir.run(
        TRANSFER,
        world="kernel",
        sets=sets,
        out=tmp_path,
        pcap=tmp_path / "pcap",
        show_progress=False,
    )
    (path,) = (tmp_path / "pcap").iterdir()
    assert path.name == "transfer-0.pcapng"
    assert count(path, "_ws.malformed") == 0
    assert count(path, "ip.len > 1500 || frame.cap_len > 128") == 0
    assert count(path, "tcp.len == 1448") > 1000

    flow = results.flows.row(0, named=True)
    link = results.links.row(0, named=True)
    assert (flow["completed"], link["name"]) == (True, "bottleneck")
    # An interface sees both directions, as a capture there would.
    entered, left = (
        count(path, f"frame.interface_id == {end} && {FORWARD}") for end in (BEFORE, AFTER)
    )
    assert (entered, left) == (link["offered_packets"], link["delivered_packets"])
    assert entered - left == link["dropped_queue"] + link["dropped_loss"] > 0
    assert count(path, "tcp.srcport == 6000") > 200

    # What tshark takes for a repetition at the link's entry, against the kernel's own count
    # (`TCP_INFO`). One that comes within a round trip of new data is "out of order" to tshark, but
    # nothing is reordered or lost before the link: together they are all repetitions.
    near = tmp_path / "near.pcapng"
    tshark(path, "-Y", f"frame.interface_id == {BEFORE}", "-w", str(near))
    repeated = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
    assert count(near, f"{FORWARD} && ({repeated})") == flow["retransmits"] > 0


@requires.namespaces
@requires.programs("tshark", "ping")
@requires.guest
@pytest.mark.timeout(300)
def test_in_a_guest_the_capture_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    files = []
    for folder in ("one", "two"):
        _ = weir.run(
            TRANSFER,
            world="kernel-virtual",
            out=tmp_path,
            pcap=tmp_path / folder,
            show_progress=False,
        )
        files.append(tmp_path / folder / "transfer-0.pcapng")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert count(files[0], FORWARD) > 1000
    (first,) = tshark(files[0], "-c", "1", "-T", "fields", "-e", "frame.time_epoch")
    assert 0 <= float(first) < 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("lab-router", "--world", "udp"),
            "--pcap: world udp records no packets; sim and kernel do",
        ),
        (
            ("radio-chain",),
            "topology: packets are recorded at the ends of links, and 'radio' has none",
        ),
        (("fabric-loads",), "topology: packets are recorded on routes that are those of the"),
        (
            ("fabric-loads", "--set", "topology.routing=single"),
            "topology: packets are recorded on routes that are those of the",
        ),
    ],
)
def test_what_has_no_packets_is_refused(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    result = invoke("run", *words, "--pcap", tmp_path / "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_written_is_reported_before_any_run(tmp_path: Path) -> None:
    source = Source(TRANSFER, "scenario", ()).in_world("kernel-virtual")
    wanted = plan("transfer", "weir run", {"transfer": source}, {})
    (tmp_path / "file").touch()
    with pytest.raises(weir.WeirError, match="file is no folder"):
        capture.files(tmp_path / "file", wanted)
    with pytest.raises(weir.WeirError, match="--pcap: cannot write in "):
        capture.files(tmp_path / "file" / "below", wanted)


def test_every_run_has_a_file_of_its_own(tmp_path: Path) -> None:
    source = Source(TRANSFER, "scenario", ()).in_world("kernel-virtual")
    sources = {"rack/reno": source, "rack-reno": source}
    sweep = {"measure.repeat": ("2",), "topology.rtt": ("1ms", "2ms")}
    wanted = plan("transfer", "weir run", sources, sweep)
    files = capture.files(tmp_path, wanted)
    assert len(wanted.runs) == len(set(files.values())) == 8
    names = {path.name for path in files.values()}
    assert "rack-reno-measure.repeat=2-topology.rtt=1ms-0.pcapng" in names


@requires.namespaces
@requires.programs("tshark", "ping")
def test_a_command_behind_a_link_is_recorded(tmp_path: Path) -> None:
    """Both ends of the link, under the name of the process, when the link is over."""
    asked = ("--rate", "20mbit", "--rtt", "20ms", "--loss", "10%", "--pcap", str(tmp_path / "p"))
    ping = ["sh", "-c", "ping -q -c 50 -i 0.01 $WEIR_LINK_HOST; true"]
    with started("link", *asked, "--", *ping) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    (path,) = (tmp_path / "p").iterdir()
    assert path.name == f"link-{process.pid}.pcapng"
    assert f"link: packets recorded in {path}" in said
    sent = [count(path, f"frame.interface_id == {end} && icmp.type == 8") for end in (0, 1)]
    assert sent[0] == 50 > sent[1] > 25


@requires.namespaces
@requires.programs("ping", "unshare")
@pytest.mark.parametrize("verb", ["run", "link"])
def test_a_full_disk_fails_and_leaves_no_half_of_a_capture(tmp_path: Path, verb: str) -> None:
    (tmp_path / "transfer.toml").write_text(TRANSFER)
    weir_ = shlex.join([sys.executable, "-m", "weir"])
    # What a shell has started ends as well: it would hold stdout for ten minutes.
    flood = "ping -q -c 3000000 -i 0.0002 $WEIR_LINK_HOST >&2; true"
    command = {
        "run": f"{weir_} run transfer.toml --world kernel --pcap full --quiet",
        "link": f"{weir_} link --pcap full -- sh -c {shlex.quote(flood)}",
    }[verb]
    script = (
        f"mkdir full && mount -t tmpfs -o size=160k none full && {command}; "
        "echo code $?; ls -A full; umount full"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],  # noqa: S607
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["code", "1"], done
    assert "No space left on device" in done.stderr
    assert ".pcapng" in done.stderr
