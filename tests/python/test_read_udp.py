"""`weir read` of flows of UDP."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Invoke
from test_schemas import check

from weir import _native, reading
from weir.reading.flows import flow_grid

SCENARIO = """
[topology]
rate = "10mbit"
rtt = "40ms"
queue = "1bdp"

[[flow]]
stack = "udp"
workload = { kind = "rate", rate = "2mbit" }

[measure]
duration = "5s"
"""
TWO = SCENARIO.replace("[measure]", '[[flow]]\nstack = "rack/cubic"\n\n[measure]')


def _record(scenario: str, folder: Path) -> tuple[Path, pl.DataFrame]:
    folder.mkdir(exist_ok=True)
    run = _native.Scenario.parse(scenario, [], "test.toml").record(1, folder, "run")
    return folder / "run-senders.pcapng", pl.DataFrame(run.table("flows"))


def test_the_row_has_what_the_run_counted(tmp_path: Path) -> None:
    file, flows = _record(SCENARIO, tmp_path)
    sent = flows.row(0, named=True)
    (row,) = reading.read([file]).udp_flows.iter_rows(named=True)
    assert row["client_packets"] == sent["sent_segments"] > 500
    assert row["client_bytes"] == sent["sent_bytes"]
    assert row["client_mbps"] == pytest.approx(2, rel=0.01)
    assert (row["protocol"], row["server_packets"]) == ("UDP", 0)
    assert row["first_answer_ms"] is None


def test_connections_and_flows_have_a_table_each(tmp_path: Path, invoke: Invoke) -> None:
    file, _ = _record(TWO, tmp_path)
    result = invoke("read", file)
    assert result.exit_code == 0, result.output
    assert "1 connection" in result.stdout
    assert "1 flow of UDP" in result.stdout
    document = json.loads(invoke("read", file, "--json").stdout)
    check("read", document)
    assert (len(document["rows"]), len(document["udp_flows"])) == (1, 1)


def test_a_capture_of_udp_alone_has_no_empty_table(tmp_path: Path, invoke: Invoke) -> None:
    file, _ = _record(SCENARIO, tmp_path)
    out = tmp_path / "read"
    result = invoke("read", file, "--out", out)
    assert result.exit_code == 0, result.output
    assert "connection" not in result.stdout
    assert pl.read_parquet(out / "udp_flows.parquet").height == 1
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Flows of UDP" in page
    assert "Connections" not in page


def test_flows_of_two_inputs_are_numbered_by_size(tmp_path: Path) -> None:
    small, _ = _record(SCENARIO, tmp_path / "small")
    large, _ = _record(SCENARIO.replace("2mbit", "4mbit"), tmp_path / "large")
    rows = reading.read([small, large]).udp_flows.rows(named=True)
    assert [row["flow"] for row in rows] == [0, 1]
    assert [Path(row["file"]) for row in rows] == [large, small]


def test_flows_at_several_interfaces_name_them(tmp_path: Path) -> None:
    file, _ = _record(SCENARIO, tmp_path)
    flows = reading.read([file]).udp_flows
    both = pl.concat([flows, flows.with_columns(interface=flows["interface"] + 1)])
    one, two = flow_grid(flows, 20), flow_grid(both, 20)
    assert "interface" not in one.headers
    assert two.headers[1] == "interface"
    assert [row[1] for row in two.rows] == [str(number) for number in both["interface"]]
    for grid in (one, two):
        assert grid.headers[grid.names] == "s"
        assert {len(row) for row in grid.rows} == {len(grid.headers)}
