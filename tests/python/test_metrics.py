"""How the flows and links of a run become one number."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from made import sealed

import weir
from weir.dynamics import sharing
from weir.dynamics.fairness import jain
from weir.results import metrics
from weir.results.metrics import BY_NAME, METRICS, Metric, per_run


@pytest.fixture(scope="module")
def parking_lot(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    return weir.run(
        "parking-lot",
        sets={"measure.duration": "5s", "measure.warmup": "1s"},
        sweep={"flow.*.stack": ["reno"]},
        repeat=2,
        out=tmp_path_factory.mktemp("results"),
        show_progress=False,
    )


def _value(name: str, flows: pl.DataFrame) -> float | None:
    found: float | None = flows.select(BY_NAME[name].value.alias("value"))["value"].item()
    return found


def test_means_over_samples_are_pooled_and_not_averaged() -> None:
    flows = pl.DataFrame(
        {"rtt_ms_mean": [10.0, 40.0, None], "rtt_samples": [300, 100, 0]},
        schema_overrides={"rtt_ms_mean": pl.Float64},
    )
    assert _value("rtt_ms_mean", flows) == 17.5


def test_ratios_are_of_sums() -> None:
    flows = pl.DataFrame({"retransmits": [1, 9], "sent_segments": [100, 900]})
    assert _value("retransmit_ratio", flows) == 0.01
    assert _value("retransmit_ratio", flows * 0) is None


def test_percentiles_of_several_flows_are_not_invented() -> None:
    assert _value("rtt_ms_p95", pl.DataFrame({"rtt_ms_p95": [7.0]})) == 7.0
    assert _value("rtt_ms_p95", pl.DataFrame({"rtt_ms_p95": [7.0, 9.0]})) is None


def test_completion_time_needs_every_flow_to_complete() -> None:
    flows = pl.DataFrame({"completed": [True, True], "fct_s": [1.0, 3.0]})
    assert _value("fct_s", flows) == 2.0
    assert _value("fct_s", flows.with_columns(completed=pl.Series([True, False]))) is None


def test_delay_and_utilisation_are_of_the_same_link(parking_lot: weir.Results) -> None:
    links = parking_lot.links
    assert links.filter(pl.col("monitored")).height > parking_lot.runs.height
    watched = links.filter(pl.col("monitored")).group_by("run", maintain_order=True).first()
    assert watched["utilisation"].to_list() == parking_lot.per_run["utilisation"].to_list()
    assert (
        watched["queue_delay_ms_mean"].to_list()
        == parking_lot.per_run["queue_delay_ms_mean"].to_list()
    )


def test_totals_agree_with_the_flows(parking_lot: weir.Results) -> None:
    totals = parking_lot.flows.group_by("run", maintain_order=True).agg(
        pl.col("delivered_bytes", "retransmits", "sent_segments").sum()
    )
    per_run_ = parking_lot.per_run
    measured_s = 5 - 1
    goodputs = (totals["delivered_bytes"] * 8e-6 / measured_s).to_list()
    assert per_run_["goodput_mbps"].to_list() == pytest.approx(goodputs, rel=1e-3)
    ratios = (totals["retransmits"] / totals["sent_segments"]).to_list()
    assert per_run_["retransmit_ratio"].to_list() == pytest.approx(ratios)


def test_a_run_without_flows_or_links_has_no_values() -> None:
    columns = {"utilisation": 0.5, "jain_index": None, "goodput_mbps": None}
    runs = pl.DataFrame([{"run": 0, "throughput_mbps": None, **columns}])
    empty = pl.DataFrame(schema={"run": pl.Int64, "monitored": pl.Boolean, "link": pl.Int64})
    values = per_run(runs, empty, empty, sharing.per_run({}), empty)
    assert values["utilisation"].to_list() == [0.5]
    assert values["goodput_mbps"].to_list() == [None]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_described_and_can_be_printed(metric: Metric) -> None:
    assert metric.meaning
    assert metric.title == metric.title.strip()
    assert metric.text(None) == "–"
    assert float(metric.text(0.5)) == pytest.approx(0.5 * metric.scale, abs=0.51)


def test_flows_one_after_the_other_never_exceed_the_link(tmp_path: Path) -> None:
    results = weir.run(
        "late-comer",
        sets={"measure.duration": "30s", "flow.1.stop": "30s"},
        sweep={"flow.*.stack": ["cubic"]},
        repeat=1,
        out=tmp_path,
        show_progress=False,
    )
    assert results.flows["goodput_mbps"].sum() > 10
    assert 9 < results.per_run["goodput_mbps"].item() < 10


def test_file_transfers_have_completion_times(tmp_path: Path) -> None:
    results = weir.compare("reno", size="100kb", repeat=2, out=tmp_path, show_progress=False)
    assert "fct_s" in [metric.name for metric in results.measured()]
    assert results.estimate("reno", "fct_s").n == 2
    slowdown = results.estimate("reno", "slowdown").mean
    assert slowdown is not None
    ideal_s = 100_000 * 8 / 10e6 + 0.04
    assert slowdown == pytest.approx((results.estimate("reno", "fct_s").mean or 0) / ideal_s)
    assert slowdown > 1


def test_power_is_goodput_over_delay(parking_lot: weir.Results) -> None:
    values = parking_lot.per_run
    power = (values["goodput_mbps"] / values["rtt_ms_mean"] * 1000).to_list()
    assert values["power_mbps_per_s"].to_list() == pytest.approx(power)
    assert values["log_power"].to_list() == pytest.approx([math.log(p) for p in power])
    assert min(values["rtt_inflation"].to_list()) > 1


def test_fairness_is_over_the_time_that_flows_share(parking_lot: weir.Results) -> None:
    found = parking_lot.per_run["jain_index_common"].to_list()
    for run, index in enumerate(found):
        flows = parking_lot.curves[run]
        start, end = max(f.start_s for f in flows), min(f.seen_s for f in flows)
        assert index == pytest.approx(jain([flow.rate(start, end) for flow in flows]))
    most = parking_lot.flows.group_by("run", maintain_order=True).agg(
        pl.col("goodput_mbps").max() / pl.col("goodput_mbps").min()
    )
    assert parking_lot.per_run["goodput_max_min_ratio"].to_list() == most["goodput_mbps"].to_list()


_RPC = """
name = "rpc"
[topology]
rate = "10mbit"
rtt = "10ms"
[[flow]]
name = "a"
stack = "reno"
workload = { kind = "request", request = "2kb", response = "1b" }
[[flow]]
name = "b"
stack = "reno"
start = "1s"
workload = { kind = "request", request = "20kb", response = "1b" }
[measure]
duration = "4s"
warmup = "1s"
repeat = 2
"""


def _rpc(out: Path, **sets: str) -> weir.Results:
    return weir.run(_RPC, sets=sets, out=out, show_progress=False)


def test_request_percentiles_of_several_flows_are_pooled(tmp_path: Path) -> None:
    results = _rpc(tmp_path)
    (label,) = (case["label"] for case in results.cases)
    first = results.requests.filter(pl.col("run") == 0)["latency_ms"].sort().to_list()
    n = len(first)
    values = results.per_run.row(0, named=True)
    assert values["requests"] == n >= 50
    assert values["request_latency_ms_p50"] == first[math.ceil(n * 0.5) - 1]
    assert values["request_latency_ms_p90"] == first[math.ceil(n * 0.9) - 1]
    assert values["request_latency_ms_p999"] is None
    assert values["request_latency_ms_mean"] == pytest.approx(sum(first) / n)
    pooled = results.requests["latency_ms"].sort().to_list()
    p50, *_, p999 = results.request_percentiles(label)
    assert (p50.value, p50.n) == (pooled[math.ceil(len(pooled) / 2) - 1], len(pooled))
    assert p999.refusal == f"{len(pooled)} samples; P99.9 needs 5000"
    (of_one,) = results.request_percentiles(label, [50], flows=["b"])
    assert of_one.n == results.flows.filter(pl.col("name") == "b")["requests"].sum()
    assert of_one.value is not None
    assert p50.value is not None
    assert of_one.value > p50.value


def test_percentiles_of_requests_that_were_not_all_kept_are_refused(tmp_path: Path) -> None:
    results = _rpc(tmp_path, **{"measure.requests": "10"})
    (label,) = (case["label"] for case in results.cases)
    assert results.per_run["request_latency_ms_p50"].to_list() == [None, None]
    (p50,) = results.request_percentiles(label, [50])
    assert p50.value is None
    assert p50.refusal.endswith("samples were not kept")
    alone = metrics.per_flow(results.flows)  # a single flow's come from all its requests
    assert alone["request_latency_ms_p50"].null_count() == 0


def test_a_column_that_an_older_version_did_not_write_is_a_missing_value(tmp_path: Path) -> None:
    results = _rpc(tmp_path)
    path = results.path / "flows.parquet"
    pl.read_parquet(path).drop("requests_unanswered", "rtt_ms_min").write_parquet(path)
    values = sealed(results).per_run
    assert values["requests_unanswered"].to_list() == [None, None]
    assert values["rtt_inflation"].to_list() == [None, None]
    assert values["requests"].null_count() == 0
