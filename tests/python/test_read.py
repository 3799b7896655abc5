"""`weir read`: its table, its JSON, its files, and what it refuses."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import struct
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import requires
from conftest import Invoke
from test_schemas import check

from bench import limits
from weir import _native, load, reading, run
from weir.export import export

SCENARIO = """
[topology]
rate = "10mbit"
rtt = "40ms"
queue = "1bdp"

[topology.forward]
loss = "0.5%"
reorder = "0.2%"

[[flow]]
stack = "rack/cubic"

[measure]
duration = "5s"
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the captures of one run, made at all its interfaces."""
    folder = tmp_path_factory.mktemp("captures")
    _native.Scenario.parse(SCENARIO, [], "test.toml").record(1, folder, "run")
    return folder


def test_counts_equal_those_of_the_run(tmp_path: Path) -> None:
    run = _native.Scenario.parse(SCENARIO, [], "test.toml").record(1, tmp_path, "run")
    flow = pl.DataFrame(run.table("flows")).row(0, named=True)
    (row,) = reading.read([tmp_path / "run-senders.pcapng"]).connections.iter_rows(named=True)
    names = ("retransmits", "retransmits_fast", "retransmits_rto", "retransmits_tlp")
    assert flow["retransmits"] > 10
    assert {name: row[name] for name in names} == {name: flow[name] for name in names}
    assert row["data_packets"] == flow["sent_segments"]
    # The sender's first sample is that of the handshake, whose packets are short.
    least = min(row["handshake_rtt_ms"], row["rtt_ms_min"])
    assert least == pytest.approx(flow["rtt_ms_min"], abs=0.1)


@requires.programs("tshark")
@pytest.mark.parametrize("stack", ["rack/cubic", "rack/bbr", "go-back-n/reno"])
@pytest.mark.parametrize("place", ["senders", "receivers"])
def test_counts_equal_those_of_tshark(tmp_path: Path, stack: str, place: str) -> None:
    """All nine, of two connections that leave none out."""
    scenario = SCENARIO.replace('"rack/cubic"', f'"{stack}"\ncount = 2')
    _native.Scenario.parse(scenario, [], "test.toml").record(1, tmp_path, "run")
    file = tmp_path / f"run-{place}.pcapng"
    found = reading.read([file])
    own = limits.own_counts(found.connections.rows(named=True))
    theirs = limits.tshark_counts(file, list(own))
    assert own == theirs
    assert theirs["retransmission"] + theirs["out_of_order"] > 10
    streams = limits.tshark_streams(file)
    assert sorted(found.connections["packets"]) == sorted(streams)


def test_every_place_of_the_path_recognises_itself(captures: Path) -> None:
    places = {
        file.stem: reading.read([file]).connections["capture_point"][0]
        for file in captures.glob("*.pcapng")
    }
    assert places["run-senders"] == "sender"
    assert places["run-receivers"] == "receiver"


def test_json_fits_its_schema(captures: Path, invoke: Invoke) -> None:
    result = invoke("read", captures / "run-senders.pcapng", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("read", document)
    assert sum(document["rows"][0]["limits"].values()) == pytest.approx(1)


def test_files_and_report_are_written(captures: Path, invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "read"
    result = invoke("read", captures / "run-senders.pcapng", "--out", out)
    assert result.exit_code == 0, result.output
    for name in reading.TABLES:
        assert pl.read_parquet(out / f"{name}.parquet").height > 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Limited by" in page
    assert invoke("read", captures / "run-senders.pcapng", "--out", out).exit_code == 2


def test_a_compressed_capture_gives_the_same(captures: Path, tmp_path: Path) -> None:
    plain = captures / "run-senders.pcapng"
    packed = tmp_path / "run.pcapng.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    expected = reading.read([plain]).connections.drop("file")
    assert reading.read([packed]).connections.drop("file").equals(expected)


def test_pipes_standard_input_and_xz_are_read(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = captures / "run-senders.pcapng"
    columns = ("delivered_bytes", "retransmits", "rtt_ms_min", "limit")
    expected = reading.read([plain]).connections.select(columns)
    packed = tmp_path / "run.pcapng.xz"
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    found = reading.read([packed])
    assert found.connections.select(columns).equals(expected)
    assert found.connections["file"][0] == str(packed)
    cut = tmp_path / "cut.pcapng.xz"
    cut.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    found = reading.read([cut])
    assert found.connections.height == 1
    assert any("ends early or is not valid" in warning for warning in found.warnings)
    for content in (plain.read_bytes(), packed.read_bytes()):
        with monkeypatch.context() as patched:
            patched.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
            found = reading.read(["-"])
        assert found.connections.select(columns).equals(expected)
        assert found.connections["file"][0] == "standard input"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(plain.read_bytes(),))
    writer.start()
    found = reading.read([pipe])
    writer.join()
    assert found.connections.select(columns).equals(expected)


def test_an_input_without_connections_is_not_silent(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "other.pcap"
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 147)
    file.write_bytes(head + 3 * (struct.pack("<IIII", 1, 0, 4, 4) + b"abcd"))
    result = invoke("read", file)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert "no connection of TCP and no flow of UDP; not read: 3 × link type 147" in said
    document = json.loads(invoke("read", file, "--json", "--quiet").stdout)
    check("read", document)
    assert document["unread"] == {"link type 147": 3}


def test_senders_that_their_application_holds_have_no_controller(tmp_path: Path) -> None:
    workloads = (
        "{ kind = 'rate', rate = '2mbit' }",
        "{ kind = 'rate', rate = '1mbit' }",
    )
    for number, workload in enumerate(workloads):
        keys = [("flow.0.workload", workload), ("measure.duration", "8s")]
        folder = tmp_path / str(number)
        folder.mkdir()
        _native.Scenario.parse(SCENARIO, keys, "test").record(number, folder, "run")
        (row,) = reading.read([folder / "run-senders.pcapng"]).connections.iter_rows(named=True)
        assert row["controller"] == "unknown"
        assert row["controller_note"] is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello, this is a text file", "it is no packet capture and no qlog: allowed are pcap"),
        (b'{"answer": 42}', "it has no events, so it is no qlog"),
        (b'{"traces": [7]}', "it is no valid qlog: invalid type"),
        (b"", "it ends before its first packet"),
        (None, "is not there; give a capture (pcap, pcapng), a qlog or a result directory"),
    ],
)
def test_what_is_no_capture_is_one_line(
    invoke: Invoke, tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "notes.txt"
    if content is not None:
        file.write_bytes(content)
    result = invoke("read", file)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/dev/zero", "is no regular file; give a capture"),
        (".", "manifest.json"),
    ],
)
def test_what_is_no_file_is_one_line(invoke: Invoke, path: str, what: str) -> None:
    result = invoke("read", path)
    assert result.exit_code == 2
    assert what in " ".join(result.stderr.split())


def test_a_capture_that_was_cut_is_read_with_a_warning(
    captures: Path, invoke: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "cut.pcapng"
    file.write_bytes((captures / "run-senders.pcapng").read_bytes()[:-10])
    result = invoke("read", file)
    assert result.exit_code == 0
    assert "it ends inside the block at byte" in " ".join(result.stderr.split())


@pytest.mark.parametrize("stack", ["cubic", "bbr", "reno", "vegas", "illinois"])
def test_the_controller_of_a_capture_is_named(stack: str, tmp_path: Path) -> None:
    row = _identified(stack, tmp_path)
    assert stack in row["controller"].split(", ")
    least = next(iter(reading.candidates(row).values()))
    assert least < 0.03
    assert row["controller_note"] is None


@pytest.mark.parametrize("stack", ["bbr2", "bbr3", "copa"])
def test_a_controller_that_is_no_candidate_is_unknown(stack: str, tmp_path: Path) -> None:
    row = _identified(stack, tmp_path)
    assert row["controller"] == "unknown"
    assert row["controller_note"] == "no candidate predicts the window"
    assert min(reading.candidates(row).values()) > 0.05


def test_at_the_receiver_the_controller_is_unknown(captures: Path) -> None:
    (row,) = reading.read([captures / "run-receivers.pcapng"]).connections.iter_rows(named=True)
    assert (row["controller"], row["controller_confidence"]) == ("unknown", None)
    assert reading.candidates(row) == {}
    assert "made at the receiver" in reading.controller(row)


def test_the_table_has_the_controller(captures: Path, invoke: Invoke) -> None:
    result = invoke("read", captures / "run-senders.pcapng")
    assert result.exit_code == 0, result.output
    assert "controller" in result.stdout
    assert "cubic" in result.stdout


def _identified(stack: str, folder: Path) -> dict[str, Any]:
    keys = [("flow.0.stack", stack), ("topology.forward.loss", "0.1%")]
    _native.Scenario.parse(SCENARIO, keys, "test.toml").record(1, folder, "run")
    (row,) = reading.read([folder / "run-senders.pcapng"]).connections.iter_rows(named=True)
    return row


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of two runs of two flows."""
    out = tmp_path_factory.mktemp("results") / "two"
    scenario = SCENARIO.replace("0.2%", "0%").replace("[[flow]]", "[[flow]]\ncount = 2")
    file = out.parent / "two.toml"
    file.write_text(scenario, encoding="utf-8")
    return run(file, repeat=2, seed=3, out=out).path


def test_results_are_read_as_captures_of_all_their_runs(results: Path) -> None:
    found = reading.read([results])
    flows = load(results).flows.sort("run", "flow")
    assert found.connections.height == 4
    assert sorted(found.connections["retransmits"]) == sorted(flows["retransmits"])
    assert found.connections["connection"].to_list() == list(range(4))
    names = found.connections["file"].unique().sort().to_list()
    assert [name.split(", ", 1)[1] for name in names] == ["repeat 0, seed 3", "repeat 1, seed 4"]
    ends = found.slices.group_by("connection").agg(pl.col("end_s").max())
    assert ends["connection"].sort().to_list() == list(range(4))


def test_a_log_of_a_run_says_what_its_capture_says(results: Path, tmp_path: Path) -> None:
    export(load(results), "qlog", tmp_path / "logs", repeat=0)
    export(load(results), "pcapng", tmp_path / "packets", repeat=0)
    (capture,) = (tmp_path / "packets").glob("*-senders.pcapng")
    theirs = reading.read([capture]).connections.sort("client")
    logs = sorted((tmp_path / "logs").glob("*-sender.qlog"))
    ours = reading.read(logs).connections.sort("file")
    assert ours.height == theirs.height == 2
    assert ours["controller"].to_list() == ["cubic", "cubic"]
    for log, packets in zip(ours.to_dicts(), theirs.to_dicts(), strict=True):
        same = ("sent_bytes", "data_packets", "retransmits", "mss_bytes")
        assert {name: log[name] for name in same} == {name: packets[name] for name in same}
        assert log["delivered_bytes"] == pytest.approx(packets["delivered_bytes"], rel=0.01)
        assert log["goodput_mbps"] == pytest.approx(packets["goodput_mbps"], rel=0.02)
        assert log["rtt_ms_p50"] == pytest.approx(packets["rtt_ms_p50"], rel=0.02)
        network = ("congestion", "random_loss", "path_capacity", "policer", "unknown")
        ours_held, theirs_held = (
            sum(row[f"limited_{name}"] for name in network) for row in (log, packets)
        )
        assert ours_held == pytest.approx(theirs_held, abs=0.05)


def test_the_log_of_a_receiver_has_its_rates(results: Path, tmp_path: Path) -> None:
    export(load(results), "qlog", tmp_path / "logs", repeat=0)
    logs = sorted((tmp_path / "logs").glob("*-receiver.qlog"))
    for row in reading.read(logs).connections.to_dicts():
        assert (row["sender"], row["capture_point"]) == ("client", "receiver")
        assert row["goodput_mbps"] > 3
        assert row["limit"] is None


def test_json_and_report_of_a_log_are_written(invoke: Invoke, tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "web/tests/qlogs/quinn.sqlog"
    result = invoke("read", log, "--json", "--out", tmp_path / "read")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("read", document)
    assert document["rows"][0]["source"] == "qlog"
    page = (tmp_path / "read/report.html").read_text(encoding="utf-8")
    assert "congestion window" in page
    assert "quinn.sqlog" in invoke("read", log).stdout


def test_a_log_with_smoothed_round_trips_alone_shows_a_queue(tmp_path: Path) -> None:
    """As of the kernel's TCP: samples have no newest round trip, and totals in place of packets."""
    events = []
    for tenth in range(100):
        rtt = 40 + 4 * (tenth % 10)  # a queue that is full once a second
        metrics = {"smoothed_rtt": rtt, "congestion_window": 1250 * rtt, "ssthresh": 60_000}
        totals = {"acked_bytes": 125_000 * tenth, "retransmits": (tenth + 1) // 10}
        data = {**metrics, **totals, "bytes_in_flight": 1250 * rtt}
        events.append({"time": 100 * tenth, "name": "recovery:metrics_updated", "data": data})
    common = {"ODCID": "00", "time_format": "relative", "reference_time": 0}
    trace = {"vantage_point": {"name": "a", "type": "client"}, "common_fields": common}
    log = {"qlog_version": "0.3", "qlog_format": "JSON", "traces": [{**trace, "events": events}]}
    file = tmp_path / "kernel.qlog"
    file.write_text(json.dumps(log), encoding="utf-8")
    row = reading.read([file]).connections.row(0, named=True)
    assert row["retransmits"] == 10
    assert row["rtt_ms_min"] == pytest.approx(40, rel=0.01)
    assert row["limit"] == "congestion"
