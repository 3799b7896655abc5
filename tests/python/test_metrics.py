"""How the flows and links of a run become one number."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import weir
from weir.metrics import BY_NAME, METRICS, Metric, per_run


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
    values = per_run(runs, empty, empty)
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
