"""Exported files: read by the programs whose formats they have, and compared with the tables."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import requires
from conftest import Invoke, free_port
from made import change, compared

import weir
from weir import export
from weir.export.capture_file import segments
from weir.results.results import TABLES

LOSSY = """
name = "lossy"
[topology]
rate = "20mbit"
rtt = "40ms"
queue = "0.5bdp"
[topology.forward]
loss = "1%"
[measure]
duration = "3s"
warmup = "0s"
[[flow]]
stack = "rack/cubic"
count = 2
start_jitter = "100ms"
"""


def run(text: str, folder: Path, **options: Any) -> weir.Results:
    return weir.run(text, out=folder / "results", repeat=1, show_progress=False, **options)


def tshark(path: Path, condition: str, *fields: str) -> list[tuple[str, ...]]:
    """Fields of the packets that fulfil a condition, checksums verified."""
    wanted = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    command += ["-r", str(path), "-Y", condition, "-T", "fields", "-E", "separator=|", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [tuple(line.split("|")) for line in done.stdout.splitlines()]


REPEATED = ("tcp.analysis.retransmission", "tcp.analysis.out_of_order")
"""What tshark calls so: fast and spurious ones are among the first. One that comes within a round
trip of new data is "out of order" to it, but where a sender's packets leave none can be."""
SOUND = ("_ws.malformed", "ip.checksum.status", "tcp.checksum.status")
"""Empty, good, and good, or not verified of what is not all there."""


@requires.programs("tshark")
@pytest.mark.parametrize("stack", ["rack/cubic", "newreno/reno", "go-back-n(30)/none"])
def test_tshark_counts_the_retransmissions_of_the_tables(tmp_path: Path, stack: str) -> None:
    results = run(LOSSY, tmp_path, sets={"flow.0.stack": stack})
    files = export.export(results, "pcapng", tmp_path / "out")
    names = ("after-bottleneck", "before-bottleneck", "receivers", "senders")
    assert [file.name for file in files] == [f"lossy-0-{name}.pcapng" for name in names]
    fields = (*SOUND, "ip.src", "tcp.len", *REPEATED)
    after, before, _, senders = (tshark(file, "tcp", *fields) for file in files)
    for packets in (after, before, senders):
        assert {packet[:2] for packet in packets} == {("", "1")}
        assert {packet[2] for packet in packets} == {"1", "2"}
    flows = {f"10.0.0.{row['flow'] + 1}": row for row in results.flows.iter_rows(named=True)}
    reported = {address: row["retransmits"] for address, row in flows.items()}
    assert sum(reported.values()) > 20
    # A sender's side sees all that it sends; hosts sit at the routers, so the link does, too.
    for packets in (senders, before):
        data = [packet[3:] for packet in packets if packet[4] != "0"]
        assert Counter(source for source, _, *repeated in data if any(repeated)) == reported
        sent = Counter(source for source, *_ in data)
        assert sent == {address: row["sent_segments"] for address, row in flows.items()}
    link = results.links.filter(pl.col("name") == "bottleneck").row(0, named=True)
    passed = [sum(packet[3] in flows for packet in packets) for packets in (before, after)]
    assert passed == [link["offered_packets"], link["delivered_packets"]]


@requires.programs("tshark")
def test_tshark_finds_a_whole_connection(tmp_path: Path) -> None:
    """Options, timestamps, the handshake and the end, of a file that arrives at once."""
    sets = {"flow.0.workload": '{ kind = "file", size = "100kb" }', "flow.0.count": "1"}
    results = run(LOSSY, tmp_path, sets={**sets, "topology.forward.loss": "0%"})
    export.export(results, "pcapng", tmp_path / "out")
    senders = tmp_path / "out" / "lossy-0-senders.pcapng"
    options = [f"tcp.options.{name}" for name in ("wscale.shift", "sack_perm", "timestamp.tsval")]
    fields = ("tcp.flags.str", "frame.time_epoch", "tcp.options.mss_val", *options, *REPEATED)
    packets = tshark(senders, "tcp", *fields)
    (flags, began, mss, *others), (_, answered, *_) = packets[:2]
    assert ("S" in flags, "A" in flags, mss) == (True, False, "1448")
    assert all(others[:3])
    assert 0 <= float(began) < 0.1
    # The round trip, and what the 60 bytes of the SYN and of its answer take at 20 Mbit/s.
    assert 0.04 <= float(answered) - float(began) < 0.0401
    assert sum("F" in packet[0] for packet in packets) == 2
    assert not any(any(packet[-2:]) for packet in packets)


@requires.programs("tshark")
def test_a_run_records_its_bottleneck(invoke: Invoke, tmp_path: Path) -> None:
    words = ("compare", "reno", "--duration", "3s", "-n", "1", "--warmup", "0s", "--quiet")
    assert invoke(*words, "--pcap", "pcap").exit_code == 0
    results = weir.load("results/compare/latest")
    (path,) = (tmp_path / "pcap").iterdir()
    assert path.name == "reno-0.pcapng"
    link = results.links.filter(pl.col("name") == "bottleneck").row(0, named=True)
    forward = "ip.src == 10.0.0.1"
    for end, count in enumerate((link["offered_packets"], link["delivered_packets"])):
        where = f"frame.interface_id == {end} && {forward}"
        assert len(tshark(path, where, "frame.number")) == count
    # Recording changes nothing.
    assert invoke(*words).exit_code == 0
    again = weir.load("results/compare/latest")
    assert again.path != results.path
    assert again.runs["trace_hash"].to_list() == results.runs["trace_hash"].to_list()


def test_captures_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    results = run(LOSSY, tmp_path, sets={"measure.duration": "1s"})
    one, two = (export.export(results, "pcapng", tmp_path / name) for name in ("one", "two"))
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_a_run_with_another_outcome_is_reported(tmp_path: Path) -> None:
    results = run(LOSSY, tmp_path, sets={"measure.duration": "1s"})
    results = change(results, "runs", pl.lit("0").alias("trace_hash"))
    with pytest.raises(weir.RunError, match="its packets went differently"):
        export.export(results, "pcapng", tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"]


def test_connections_that_come_and_go_are_not_recorded_in_part(tmp_path: Path) -> None:
    workload = 'workload = { kind = "flow-sizes", sizes = [[20000, 1]], load = 0.3 }'
    text = LOSSY.replace("count = 2", workload).replace('start_jitter = "100ms"', "")
    results = run(text, tmp_path, sets={"measure.duration": "1s"})
    for wanted in ("pcapng", "qlog"):
        with pytest.raises(weir.InputError, match="flow-sizes"):
            export.export(results, wanted, tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"]


def test_csv_has_every_table(tmp_path: Path) -> None:
    results = compared(tmp_path / "results", "reno", "cubic", duration="2s")
    files = export.export(results, "csv", tmp_path / "out", case="cubic", repeat=1)
    assert {file.stem for file in files} == set(TABLES)
    for name in ("runs", "flows", "samples", "links"):
        read = pl.read_csv(tmp_path / "out" / f"{name}.csv")
        ours = results.scan(name).filter(pl.col("run") == 3).collect()
        assert read.columns == ours.columns
        assert read.height == ours.height > 0
    assert pl.read_csv(tmp_path / "out" / "flows.csv")["goodput_mbps"].to_list() == (
        results.flows.filter(pl.col("run") == 3)["goodput_mbps"].to_list()
    )


@requires.programs("flent")
@pytest.mark.parametrize("plot", ["totals", "upload_with_ping_and_tcp_rtt", "tcp_cwnd"])
def test_flent_plots_what_is_exported(tmp_path: Path, plot: str) -> None:
    (file,) = export.export(run(LOSSY, tmp_path), "flent", tmp_path / "out")
    picture = tmp_path / "plot.png"
    command = ["flent", "-i", str(file), "-p", plot, "-o", str(picture), "-f", "plot"]
    subprocess.run(command, capture_output=True, check=True, timeout=100)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


@requires.programs("flent")
def test_flent_finds_the_goodput_of_the_tables(tmp_path: Path) -> None:
    results = run(LOSSY, tmp_path)
    (file,) = export.export(results, "flent", tmp_path / "out")
    read = tmp_path / "read.csv"
    command = ["flent", "-i", str(file), "-f", "csv", "-o", str(read)]
    subprocess.run(command, capture_output=True, check=True, timeout=100)
    document = json.loads(gzip.decompress(file.read_bytes()))
    times, total = document["x_values"], document["results"]["TCP upload sum"]
    # Flent's first column has the name of its test.
    table = pl.read_csv(read)
    assert table["tcp_nup"].to_list() == times
    assert table["TCP upload sum"].to_list() == pytest.approx(total)
    # Each sample's rate is that since the one before.
    steps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    delivered = sum(rate * step for rate, step in zip(total, steps, strict=True)) / 8 * 1e6
    ours = int(results.flows["delivered_bytes"].sum())
    # What arrives after the last sample is in none.
    assert 0.95 * ours < delivered <= ours


def test_iperf3_has_the_sums_of_the_tables(tmp_path: Path) -> None:
    results = run(LOSSY, tmp_path)
    (file,) = export.export(results, "iperf3", tmp_path / "out")
    document = json.loads(file.read_text(encoding="utf-8"))
    end = document["end"]
    assert end["sum_received"]["bytes"] == results.flows["delivered_bytes"].sum()
    assert end["sum_sent"]["bytes"] == results.flows["sent_bytes"].sum()
    assert end["sum_sent"]["retransmits"] == results.flows["retransmits"].sum() > 0
    for row, stream in zip(results.flows.iter_rows(named=True), end["streams"], strict=True):
        rate = stream["receiver"]["bits_per_second"] / 1e6
        assert rate == pytest.approx(row["goodput_mbps"], rel=1e-6)
        assert 40_000 <= stream["sender"]["min_rtt"] <= stream["sender"]["max_rtt"] < 200_000
    last = results.samples.sort("t_s").group_by("flow").last()
    within = [interval["sum"] for interval in document["intervals"]]
    assert sum(part["bytes"] for part in within) == last["acked_bytes"].sum()
    assert sum(part["retransmits"] for part in within) == last["retransmits"].sum()


def test_iperf3_omits_what_ends_with_the_warmup(tmp_path: Path) -> None:
    results = run(LOSSY, tmp_path, sets={"measure.duration": "2s", "measure.warmup": "1s"})
    (file,) = export.export(results, "iperf3", tmp_path / "out")
    intervals = json.loads(file.read_text(encoding="utf-8"))["intervals"]
    omitted = {stream["end"]: stream["omitted"] for part in intervals for stream in part["streams"]}
    assert 1.0 in omitted
    assert omitted == {end: end <= 1 for end in omitted}
    assert max(omitted) > 1


@requires.programs("iperf3")
def test_iperf3_itself_has_these_members(tmp_path: Path) -> None:
    (file,) = export.export(run(LOSSY, tmp_path), "iperf3", tmp_path / "out")
    port = str(free_port())
    with subprocess.Popen(["iperf3", "-s", "-1", "-p", port], stdout=subprocess.DEVNULL) as server:  # noqa: S607
        try:
            command = ["iperf3", "-c", "127.0.0.1", "-p", port, "-J", "-t", "1", "-P", "2"]
            for _ in range(100):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                theirs = json.loads(done.stdout)
                # The server may not listen yet. With -J iperf 3.12 says so in its document alone,
                # and exits with 0.
                if "error" not in theirs:
                    break
                time.sleep(0.1)
        finally:
            server.kill()
    assert "error" not in theirs, theirs["error"]
    ours = json.loads(file.read_text(encoding="utf-8"))
    assert _members(ours) - _members(theirs) == set()
    # What our runs do not have.
    absent = {"cookie", "sock_bufsize", "sndbuf_actual", "rcvbuf_actual", "snd_wnd", "max_snd_wnd"}
    absent |= {"pmtu", "cpu_utilization_percent"}
    missing = {path.split("/")[-1] for path in _members(theirs) - _members(ours)}
    assert {name for name in missing if "_total" not in name} - absent <= _PROCESSOR


_PROCESSOR = {"host_user", "host_system", "remote_user", "remote_system"}


def _members(value: Any, path: str = "") -> set[str]:
    if isinstance(value, list):
        return {name for item in value[:1] for name in _members(item, path)}
    if not isinstance(value, dict):
        return set()
    own = {f"{path}/{key}" for key in value}
    return own.union(*(_members(item, f"{path}/{key}") for key, item in value.items()))


def test_qlog_numbers_acknowledges_and_loses_packets(tmp_path: Path) -> None:
    results = run(LOSSY, tmp_path)
    files = export.export(results, "qlog", tmp_path / "out")
    sides = [f"flow0-{n}-{side}" for n in (1, 2) for side in ("receiver", "sender")]
    assert len(files) == len(sides) == 4
    for row in results.flows.iter_rows(named=True):
        sender = _events(tmp_path / "out", row["name"], "sender")
        names = Counter(event["name"] for event in sender)
        sent = [e["data"] for e in sender if e["name"] == "transport:packet_sent"]
        data = [packet for packet in sent if packet["raw"]["payload_length"]]
        assert [packet["header"]["packet_number"] for packet in sent] == list(range(len(sent)))
        assert len(data) == row["sent_segments"]
        # Bytes are sent again in the segments in which they went first.
        assert names["recovery:packet_lost"] == row["retransmits"] > 0
        samples = results.samples.filter(pl.col("flow") == row["flow"])
        assert names["recovery:metrics_updated"] == samples.height
        # CUBIC has W_max from the start, and K after its first reduction.
        internal = [e["data"] for e in sender if e["name"] == "weir:controller_updated"]
        assert [own["w_max_segments"] for own in internal] == samples["cc.w_max_segments"].to_list()
        assert sum("k_s" in own for own in internal) == samples["cc.k_s"].count() > 0
        acked = _acked(sender)
        assert len(acked) == len(set(acked))
        assert 0 <= len(data) - len(acked) - row["retransmits"] < 300
        times = [event["time"] for event in sender]
        assert times == sorted(times)
        receiver = _events(tmp_path / "out", row["name"], "receiver")
        arrived = [e["data"] for e in receiver if e["name"] == "transport:packet_received"]
        lengths = [f["length"] for packet in arrived for f in packet["frames"]]
        assert sum(lengths) >= row["delivered_bytes"] > 0


def _events(folder: Path, flow: str, side: str) -> list[dict[str, Any]]:
    (file,) = folder.glob(f"*-{flow}-{side}.qlog")
    events: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["traces"][0][
        "events"
    ]
    return events


def _acked(events: list[dict[str, Any]]) -> list[int]:
    frames = [f for e in events for f in e["data"].get("frames", ()) if f["frame_type"] == "ack"]
    ranges = [pair for frame in frames for pair in frame["acked_ranges"]]
    return [number for first, last in ranges for number in range(first, last + 1)]


def test_qlog_of_other_worlds_has_metrics_only(tmp_path: Path) -> None:
    sets = {"measure.duration": "1s", "flow.0.count": "1"}
    results = run(LOSSY, tmp_path, sets=sets, world="udp")
    (file,) = export.export(results, "qlog", tmp_path / "out")
    (trace,) = json.loads(file.read_text(encoding="utf-8"))["traces"]
    names = {event["name"] for event in trace["events"]}
    metrics = {"recovery:metrics_updated", "recovery:congestion_state_updated"}
    assert names == {*metrics, "weir:controller_updated"}
    with pytest.raises(weir.InputError, match="is of world udp"):
        export.export(results, "pcapng", tmp_path / "other")


def test_segments_are_read_back(tmp_path: Path) -> None:
    """Sequence numbers, SACK blocks and marks, of what the tables count."""
    queue = '{ kind = "ecn-step", threshold = "20p" }'
    sets = {"topology.queue": queue, "flow.0.ecn": "true", "flow.0.count": "1"}
    results = run(LOSSY, tmp_path, sets=sets)
    export.export(results, "pcapng", tmp_path / "out")
    after = list(segments(tmp_path / "out" / "lossy-0-after-bottleneck.pcapng"))
    link = results.links.filter(pl.col("name") == "bottleneck").row(0, named=True)
    marked = [seen for seen in after if seen.is_marked]
    assert len(marked) == link["marked"] > 0
    assert all(seen.source < seen.destination for seen in marked)
    blocks = [block for seen in after for block in seen.sack]
    assert blocks
    assert all(0 < (right - left) % 2**32 < 2**20 for left, right in blocks)


def test_what_cannot_be_exported_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    words = ("compare", "reno", "--duration", "1s", "-n", "1", "--quiet")
    assert invoke(*words).exit_code == 0
    latest = "results/compare/latest"
    (tmp_path / "there").mkdir()
    cases = {
        ("-f", "nonsense"): "--format nonsense: there is none; there are csv, flent, iperf3",
        ("-f", "csv", "--case", "cubic"): "--case cubic: there is none; there are: reno",
        ("-f", "csv", "--repeat", "1"): "--repeat 1: no such run succeeded",
        ("-f", "csv", "-o", "there"): "--out there: it is there already",
    }
    for options, said in cases.items():
        result = invoke("export", latest, *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
    assert (
        invoke("run", "radio-chain", "-n", "1", "--set", "measure.duration=1s", "-q").exit_code == 0
    )
    for wanted in ("pcapng", "qlog"):
        result = invoke("export", "results/radio-chain/latest", "-f", wanted)
        assert result.exit_code == 2
        assert "'radio' has none" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"results", "there"}


def test_names_of_cases_with_commas_are_separate(invoke: Invoke) -> None:
    sweep = ("--sweep", "topology.rtt=9ms,11ms")
    assert invoke("compare", "reno", "--duration", "1s", "-n", "1", "-q", *sweep).exit_code == 0
    result = invoke("export", "results/compare/latest", "-f", "csv", "--case", "cubic")
    assert "there are: reno, topology.rtt=9ms; reno, topology.rtt=11ms" in result.stderr


def test_the_command_says_what_it_wrote(invoke: Invoke, tmp_path: Path) -> None:
    words = ("compare", "reno", "--duration", "1s", "-n", "1", "--quiet")
    assert invoke(*words).exit_code == 0
    result = invoke("export", "results/compare/latest", "--format", "iperf3", "--json")
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)["rows"]
    assert row["file"] == "compare-iperf3/reno-0.json"
    assert row["bytes"] == (tmp_path / row["file"]).stat().st_size
