"""Results of other programs: what Weir writes for them is read again, and what they write too."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke

import weir
from weir import importing
from weir.base.errors import InputError
from weir.export import export


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    out = tmp_path_factory.mktemp("own")
    return weir.compare(
        "cubic", "bbr", rate="20mbit", rtt="40ms", duration="5s", repeat=1, out=str(out)
    )


@pytest.mark.parametrize("kind", ["flent", "iperf3"])
def test_what_is_written_is_read_again(
    results: weir.Results, kind: str, tmp_path: Path, invoke: Invoke
) -> None:
    files = export(results, kind, tmp_path / "files")
    assert len(files) == 2
    for file in files:
        run = importing.read(file)
        (flow,) = run.flows
        own = results.flows.filter(results.flows["stack"] == f"rack/{file.name.split('-')[0]}")
        assert flow.goodput_mbps == pytest.approx(own["goodput_mbps"][0], rel=0.1)
        assert len(flow.samples) > 20
        found = importing.loaded(file, tmp_path / "read")
        assert found.flows["goodput_mbps"][0] == pytest.approx(flow.goodput_mbps)
    report = invoke("report", *files, "-o", tmp_path / "reports")
    assert report.exit_code == 0, report.output
    assert Path(report.stdout.strip().splitlines()[-1]).is_file()
    folders = [tmp_path / name for name in ("before", "after")]
    for folder, file in zip(folders, files, strict=True):
        folder.mkdir()
        for number in range(2):
            (folder / f"{number}{''.join(file.suffixes)}").write_bytes(file.read_bytes())
    diff = invoke("diff", *folders, "--all")
    assert diff.exit_code in (0, 1), diff.output
    assert "goodput" in diff.output
    refused = invoke("diff", *files)
    assert refused.exit_code == 2
    assert "too few repeats" in refused.stderr


def iperf(**end: Any) -> dict[str, Any]:
    """The output of iperf 3.1, which names neither RTTs nor controllers."""
    stream = {
        "socket": 5,
        "start": 0,
        "end": 1.0,
        "seconds": 1.0,
        "bytes": 1_250_000,
        "bits_per_second": 1e7,
        "retransmits": 2,
        "omitted": False,
    }
    whole = {"socket": 5, "start": 0, "end": 2.0, "bytes": 2_500_000, "retransmits": 4}
    second = {**stream, "start": 1.0, "end": 2.0}
    return {
        "start": {"version": "iperf 3.1.3", "test_start": {"protocol": "TCP"}},
        "intervals": [{"streams": [stream]}, {"streams": [second]}],
        "end": {"streams": [{"sender": whole, "receiver": {**whole, "bytes": 2_400_000}}], **end},
    }


def test_old_output_of_iperf3_is_read(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps(iperf()), encoding="utf-8")
    (flow,) = importing.read(file).flows
    assert (flow.stack, flow.goodput_mbps, flow.retransmits) == ("unknown", 9.6, 4)
    # What the program did not measure is no number.
    row = importing.loaded(file, tmp_path / "out").flows.row(0, named=True)
    assert (row["rtt_ms_p50"], row["sent_segments"], row["retransmit_ratio"]) == (None, None, None)
    file.write_text(json.dumps(iperf(sender_tcp_congestion="bbr")), encoding="utf-8")
    assert importing.read(file).stack == "bbr"


def test_a_log_of_ss_is_read(tmp_path: Path) -> None:
    lines = []
    for second, acked in enumerate((1_000, 1_251_000, 2_501_000)):
        lines += [
            f"{1_795_000_000 + second}.5",
            "ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5201",
            f"\t cubic wscale:7,7 rto:240 rtt:{40 + second}/0.5 mss:1448 cwnd:100 "
            f"bytes_acked:{acked} data_segs_out:{acked // 1448} retrans:0/{second}",
        ]
    file = tmp_path / "ss.log"
    file.write_text("\n".join(lines), encoding="utf-8")
    (flow,) = importing.read(file).flows
    assert (flow.stack, flow.goodput_mbps, flow.retransmits) == ("cubic", 10.0, 2)
    assert [one.rtt_ms for one in flow.samples] == [40, 41, 42]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "no results that are read: give a result directory, a .flent.gz"),
        (b"{}", "no results that are read"),
        (b"{", "it is no valid JSON"),
        (
            json.dumps({**iperf(), "end": {}, "error": "unable to connect"}).encode(),
            "iperf3 failed",
        ),
        (
            # Without a time, which would be part of the test's name.
            gzip.compress(json.dumps({"x_values": [], "results": {}}).encode(), mtime=0),
            "no TCP flow",
        ),
        (b"ESTAB\n cubic cwnd:10 bytes_acked:5", "no time stands before"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        importing.read(file)
