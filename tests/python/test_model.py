"""`weir model` and `weir advise`: known paths are found, and what would help is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import Invoke
from scipy import stats
from test_schemas import check

import weir
from bench import accuracy
from bench.accuracy import Known
from weir import _native
from weir.advice.predictions import predictive
from weir.estimates import draws
from weir.estimates.quantity import Quantity, share
from weir.modelling import inputs, tested
from weir.modelling.measured import Measurement

EXAMPLE = Path(__file__).parents[1] / "captures/slow.pcap.gz"

KNOWN = [
    Known(5, 20, 8, 0.0),
    Known(10, 40, 33, 0.0),
    Known(10, 40, 133, 0.01),
    Known(20, 100, 60, 0.001),
]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_known_paths_are_found(known: Known) -> None:
    error = accuracy.error_of(known, accuracy.model_of(known, 3))
    assert error.rate is not None
    assert abs(error.rate) < 0.02
    assert abs(error.delay_ms) < 1
    assert known.loss or error.queue is not None
    assert abs(error.queue or 0.0) < 0.1
    assert error.is_loss_covered


def capture(folder: Path, *keys: tuple[str, str]) -> Path:
    """A capture at the sender of one flow over 20 Mbit/s and 40 ms."""
    text = '[topology]\nrate = "20mbit"\n[topology.forward]\n[[flow]]\nstack = "cubic"\n'
    text += '[measure]\nduration = "10s"\n'
    _native.Scenario.parse(text, list(keys), "test").record(2, folder, "run")
    return folder / "run-senders.pcapng"


def test_a_policer_is_part_of_the_model(tmp_path: Path) -> None:
    policer = "{ rate = '5mbit', burst = '100kb' }"
    keys = ("topology.rate", "100mbit"), ("topology.forward.policer", policer)
    path = inputs.measure(capture(tmp_path, *keys)).path
    assert path.policer_mbps
    assert path.policer_bytes
    assert path.policer_mbps.value == pytest.approx(5, rel=0.05)
    assert path.policer_bytes.value == pytest.approx(100_000, rel=0.15)
    assert path.rate_mbps.value == pytest.approx(100, rel=0.02)
    assert path.loss.value == 0


def test_what_a_full_queue_dropped_is_its_loss_until_the_recovery_ends() -> None:
    """A tenth of a second without a repetition, while the queue is short, is part of a recovery."""
    count = 60
    lost, wait, repairs = np.zeros(count), np.full(count, 5.0), np.zeros(count, dtype=bool)
    wait[10:14], lost[12], lost[14], repairs[12:15] = 40.0, 20, 5, True
    lost[40] = 1
    times = np.arange(1, count + 1) / 10
    run = tested._Run(times, np.full(count, 144_800.0), lost, repairs, wait, times, wait)
    _, chance, overflows = tested._losses([run], 40.0, 12.0, 1500)
    assert overflows == 25
    assert chance.value == pytest.approx(1 / 5700, rel=0.1)


def test_a_full_short_queue_is_no_policer(tmp_path: Path) -> None:
    keys = ("topology.rate", "10mbit"), ("topology.rtt", "40ms"), ("topology.queue", "12p")
    measured = inputs.measure(capture(tmp_path, *keys, ("measure.duration", "20s")))
    assert measured.flow
    assert measured.flow.limit == "policer"
    assert measured.path.policer_mbps is None
    assert measured.path.queue_bytes.value == pytest.approx(12 * 1500, rel=0.1)


@pytest.mark.parametrize("name", ["codel", "pie", "red"])
def test_a_managed_queue_is_recognised(tmp_path: Path, invoke: Invoke, name: str) -> None:
    keys = ("topology.queue", f"{{ kind = '{name}' }}"), ("topology.rtt", "20ms")
    file = capture(tmp_path, *keys, ("measure.duration", "20s"))
    result = invoke("model", file, "--stack", "cubic", "--json", "-o", tmp_path / "path.toml")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("model", document)
    (row,) = document["rows"]
    assert row["path"]["discipline"] == name
    assert abs(row["check"]["rtt_ms_p95"]["error"]) < 0.1
    text = (tmp_path / "path.toml").read_text(encoding="utf-8")
    assert f"queue = {{ kind = '{name}' }}" in text


@pytest.mark.parametrize("loss", ["0%", "0.5%"])
def test_a_drop_tail_queue_has_no_discipline(tmp_path: Path, loss: str) -> None:
    keys = ("topology.queue", "1bdp"), ("topology.forward.loss", loss)
    path = inputs.measure(capture(tmp_path, *keys, ("topology.rtt", "20ms"))).path
    assert path.discipline is None


def test_a_small_bucket_is_found_by_simulation(tmp_path: Path) -> None:
    # The rule of weir read misses it: the bucket holds a tenth of what is in flight.
    policer = "{ rate = '2mbit', burst = '30kb' }"
    keys = ("topology.forward.policer", policer), ("topology.rtt", "50ms")
    path = inputs.measure(capture(tmp_path, *keys), stack="cubic").path
    assert path.policer_mbps
    assert path.policer_bytes
    assert path.policer_mbps.value == pytest.approx(2, rel=0.05)
    assert path.policer_bytes.value == pytest.approx(30_000, rel=0.15)
    assert path.loss.value == 0


def test_a_rate_that_changes_has_steps(tmp_path: Path) -> None:
    steps = "[{ at = '4s', rate = '8mbit' }, { at = '7s', rate = '15mbit' }]"
    path = inputs.measure(capture(tmp_path, ("topology.forward.rate_steps", steps))).path
    at = {round(time): rate for time, rate in path.steps}
    assert path.steps[0][1] == pytest.approx(20, rel=0.02)
    assert at[4] == pytest.approx(8, rel=0.03)
    assert at[7] == pytest.approx(15, rel=0.03)
    assert path.queue_bytes.high is not None
    assert path.queue_bytes.value == pytest.approx(66 * path.packet_bytes, rel=0.03)


def test_a_rate_that_changes_all_the_time_has_a_trace(tmp_path: Path) -> None:
    keys = {"topology.forward.rate_trace": str(list(_opportunities())), "topology.queue": "40p"}
    path = inputs.measure(capture(tmp_path, *keys.items())).path
    assert not path.steps
    assert path.queue_bytes.value == pytest.approx(40 * path.packet_bytes, rel=0.03)
    tenths = range(1000, 9000, 100)
    passed = [sum(at < time <= at + 100 for time in path.trace) for at in tenths]
    known = [sum(at < time <= at + 100 for time in _opportunities()) for at in tenths]
    assert passed == pytest.approx(known, abs=2)


def _opportunities() -> Iterator[int]:
    """Milliseconds, between 3 and 9 Mbit/s in periods of a second."""
    credit = 0.0
    for at in range(1, 10_001):
        credit += 0.5 + 0.25 * math.sin(at / 500 * math.pi)
        if credit >= 1:
            credit -= 1
            yield at


def test_losses_in_bursts_have_a_length(tmp_path: Path) -> None:
    bursts = "{ good_to_bad = '0.5%', bad_to_good = '30%' }"
    keys = ("topology.forward.burst_loss", bursts), ("topology.queue", "4bdp")
    path = inputs.measure(capture(tmp_path, *keys)).path
    assert path.loss_run == pytest.approx(1 / 0.3, rel=0.4)
    assert "topology.forward.burst_loss" in path.keys()  # noqa: SIM118


def test_a_limited_sender_gets_its_limit(tmp_path: Path) -> None:
    flow = inputs.measure(capture(tmp_path, ("flow.0.recv_buffer", "40kb"))).flow
    assert flow
    assert flow.limit == "receiver-window"
    assert "flow.0.recv_buffer" in flow.source_keys


def test_the_scenario_of_a_model_can_be_run(tmp_path: Path, invoke: Invoke) -> None:
    file = capture(tmp_path, ("topology.forward.loss", "0.5%"))
    out, report = tmp_path / "path.toml", tmp_path / "path.html"
    result = invoke("model", file, "-o", out, "--report", report, "--quiet", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("model", document)
    (row,) = document["rows"]
    assert abs(row["check"]["goodput_mbps"]["error"]) < 0.25
    assert "Measured and simulated" in report.read_text(encoding="utf-8")
    assert invoke("run", out, "--repeat", "1", "--no-report", "--quiet").exit_code == 0
    assert invoke("model", file, "-o", out).exit_code == 2


def test_a_result_directory_is_captured_again(invoke: Invoke) -> None:
    words = ("--duration", "5s", "--repeat", "1", "--quiet", "--no-report")
    assert invoke("compare", "reno", *words).exit_code == 0
    measured = inputs.measure(Path("results/compare/latest"))
    assert measured.flow
    assert (measured.flow.stack, measured.flow.is_assumed) == ("rack/reno", False)
    assert measured.path.rate_mbps.value == pytest.approx(10, rel=0.02)


def test_results_of_others_run_no_programs(invoke: Invoke) -> None:
    words = ("--duration", "1s", "--repeat", "1", "--quiet", "--no-report")
    assert invoke("compare", "reno", *words).exit_code == 0
    folder = Path("results/compare/latest").resolve()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["cases"][0]["scenario"]["flow"] = [{"stack": "contender:quiche"}]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    result = invoke("model", folder)
    assert result.exit_code == 2
    assert "programs of other projects" in " ".join(result.stderr.split())


def test_a_trace_of_mahimahi_becomes_a_rate_trace(tmp_path: Path, invoke: Invoke) -> None:
    trace, out = tmp_path / "up.trace", tmp_path / "path.toml"
    trace.write_text("1\n3\n3\n10\n", encoding="utf-8")
    result = invoke("model", trace, "-o", out)
    assert result.exit_code == 0, result.output
    assert "rate_trace = [1, 3, 3, 10]" in out.read_text(encoding="utf-8")
    assert invoke("advise", trace).exit_code == 2
    refused = invoke("model", trace, "--stack", "bbr")
    assert refused.exit_code == 2
    assert "--stack is about a measured flow; a trace or profile has none" in refused.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("5\n3\n", "line 2: 3 ms comes after 5 ms: times must not decrease"),
        ("1\n2\nx\n", "line 3: not a time: write whole milliseconds, one per line"),
        ("1 2\n", "line 1: not a time: write whole milliseconds, one per line"),
        ("9" * 20, "line 1: not a time: write whole milliseconds, one per line"),
        ("0\n0\n", "the last time is the length of the cycle and must be above zero"),
    ],
)
def test_a_broken_trace_is_refused_by_its_line(
    tmp_path: Path, invoke: Invoke, content: str, problem: str
) -> None:
    trace = tmp_path / "up.trace"
    trace.write_text(content, encoding="utf-8")
    result = invoke("model", trace)
    assert result.exit_code == 2
    assert f"read as a trace of mahimahi: {problem}" in " ".join(result.stderr.split())


def profile(folder: Path, **uplink: object) -> Path:
    """A profile in the format of microsoft/internet-in-a-box."""
    up = {
        "bottleneck_bandwidth": 1152,
        "buffer_size_bytes": 48_065,
        "propagation_delay": 86,
        "cross_traffic_pattern": [0, 185, 1500],
    }
    down = {"bottleneck_bandwidth": 100_000, "propagation_delay": 0}
    content = {"data_flow_direction": "upload", "config": {"uplink": up | uplink, "downlink": down}}
    file = folder / "profile.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_a_profile_of_ibox_becomes_a_scenario(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "path.toml"
    result = invoke("model", profile(tmp_path), "-o", out, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("model", document)
    (row,) = document["rows"]
    path = row["path"]
    assert path["rate_mbps"]["value"] == 1.152
    assert (path["delay_ms"]["value"], path["queue_bytes"]["value"]) == (86, 48_065)
    assert path["cross_mbps"] == [0, 0.185, 1.5]
    assert "in 1 of 3 seconds the cross traffic is above the rate" in row["warnings"]
    flows = weir.run(str(out), repeat=1).flows
    assert flows["name"].to_list() == ["flow0", "cross-1", "cross-2"]
    sent = dict(zip(flows["name"], flows["sent_bytes"], strict=True))
    # The profile's rate has headers; messages are sent whole.
    assert sent["cross-1"] * 1476 / 1448 == pytest.approx(185e3 / 8, rel=0.05)


@pytest.mark.parametrize(
    ("uplink", "message"),
    [
        ({"bottleneck_bandwidth": 0}, "bottleneck_bandwidth is 0; use a number from 1 to"),
        ({"bottleneck_bandwidth": True}, "bottleneck_bandwidth is True; use a number"),
        ({"buffer_size_bytes": None}, "buffer_size_bytes is None; use a number"),
        ({"propagation_delay": "5"}, "propagation_delay is '5'; use a number from 0 to 60000"),
        ({"cross_traffic_pattern": [1] * 601}, "use a list of at most 600 rates"),
        ({"cross_traffic_pattern": [-1]}, "cross_traffic_pattern is -1; use a number from 0"),
    ],
)
def test_a_profile_with_an_impossible_value_is_refused(
    tmp_path: Path, invoke: Invoke, uplink: dict[str, object], message: str
) -> None:
    result = invoke("model", profile(tmp_path, **uplink))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_file_of_json_that_is_no_profile_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"config": []}', encoding="utf-8")
    result = invoke("model", file)
    assert result.exit_code == 2
    assert "has an object config; this file has none" in " ".join(result.stderr.split())


def test_the_example_gets_an_advice(invoke: Invoke) -> None:
    assert EXAMPLE.stat().st_size < 300_000
    words = ("--stacks", "bbr,reno", "--quiet", "--json")
    result = invoke("advise", EXAMPLE, *words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("advise", document)
    assert document["advice"].startswith("BBR instead of CUBIC: ")
    assert "lost at random" in document["advice"]
    assert document["commands"][1].endswith("tcp_congestion_control=bbr")
    assert document["rows"][0]["name"] == "bbr"


def test_windows_are_tried_with_each_controller(invoke: Invoke) -> None:
    words = ("--stacks", "bbr", "--windows", "20kb,1mb", "--repeat", "3", "--quiet", "--json")
    result = invoke("advise", EXAMPLE, *words)
    assert result.exit_code == 0, result.output
    found = {
        (row["stack"], row["setting"]): row["goodput_mbps"]["value"]
        for row in json.loads(result.stdout)["rows"]
    }
    # A window per round trip of 60 ms and more. A large one limits nothing.
    assert found["bbr", "window 20kb"] < 0.02 * 8 / 0.06
    assert found["bbr", "window 1mb"] == pytest.approx(found["bbr", None], rel=0.05)
    refused = invoke("advise", EXAMPLE, "--windows", "0b")
    assert refused.exit_code == 2
    assert "--windows 0b: 0b is not allowed; one mss" in " ".join(refused.stderr.split())


def test_settings_are_tried_with_each_controller(invoke: Invoke) -> None:
    settings = ("--queues", "fq-codel", "--mss", "536", "--streams", "4")
    words = ("--stacks", "bbr", *settings, "--repeat", "3", "--quiet", "--json")
    result = invoke("advise", EXAMPLE, *words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("advise", document)
    found = {(row["stack"], row["setting"]): row for row in document["rows"]}
    names = [None, "queue fq-codel", "segments of 536", "4 streams"]
    assert set(found) == {(stack, name) for stack in ("cubic", "bbr") for name in names}
    # Losses are random here. Mathis et al. 1997: goodput grows with streams and with segments.
    assert found["cubic", "4 streams"]["gain"]["value"] > 1.5
    assert found["cubic", "segments of 536"]["gain"]["value"] < 0.6
    # A queue for each flow protects the CUBIC flow next to BBR.
    apart, shared = found["bbr", "queue fq-codel"], found["bbr", None]
    assert apart["neighbour"] > shared["neighbour"]


def test_a_larger_window_lifts_the_limit_of_the_receiver(tmp_path: Path, invoke: Invoke) -> None:
    keys = (("flow.0.recv_buffer", "20kb"), ("topology.queue", "100p"))
    file = tmp_path / "window.pcapng"
    recorded = capture(tmp_path, *keys)
    recorded.rename(file)
    result = invoke("advise", file, "--stacks", "reno", "--repeat", "2", "--quiet", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    gains = {row["name"]: row["gain"]["value"] for row in document["rows"]}
    assert gains["reno, larger window"] > 1.5 * gains["reno"]
    assert "the receiver's window limits it" in document["advice"]
    assert "tcp_rmem" in document["commands"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--stacks", "fast"), "--stacks fast: "),
        (("--stack", "fast"), "--stack fast: "),
        (("--size", "big"), "--size "),
        (("--connection", "7"), "it has no connection 7"),
        (("--queues", "fq_codel"), "--queues fq_codel: use a size"),
        (("--queues", "5x"), "--queues 5x: "),
        (("--mss", "0"), "--mss 0: "),
        (("--mss", "big"), "--mss big: "),
        (("--streams", "1"), "--streams 1: use a whole number of connections from 2 to 64"),
        (("--mss", ",".join(map(str, range(100, 120)))), "are 210 options; use at most 200"),
    ],
)
def test_what_is_not_allowed_is_one_line(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    result = invoke("advise", EXAMPLE, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_capture_at_the_receiver_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    capture(tmp_path)
    result = invoke("model", tmp_path / "run-receivers.pcapng")
    assert result.exit_code == 2
    assert "captured at the receiver" in " ".join(result.stderr.split())


def test_drawn_paths_stay_within_the_intervals(tmp_path: Path) -> None:
    path = inputs.measure(capture(tmp_path, ("topology.forward.loss", "0.5%"))).path
    drawn = draws.draw(path, 50, 1)
    losses = [one.loss.value for one in drawn]
    assert path.loss.low <= min(losses) < path.loss.value < max(losses) <= (path.loss.high or 1)
    sizes = sorted(one.queue_bytes.value for one in drawn)
    least, most = path.queue_bytes.value, sizes[-1]
    assert path.queue_bytes.high is None
    assert least <= sizes[0] < least * 1.05
    assert sizes[25] == pytest.approx(math.sqrt(least * most), rel=0.05)


def test_sizes_of_a_full_queue_are_whole_packets(tmp_path: Path) -> None:
    path = inputs.measure(capture(tmp_path)).path
    drawn = draws.draw(path, 8, 1)
    assert path.queue_bytes.high is not None
    sizes = {one.queue_bytes.value / path.packet_bytes for one in drawn}
    usual = path.queue_bytes.value / path.packet_bytes
    assert sizes == {usual - 1, usual, usual + 1}


def test_intervals_have_their_known_width() -> None:
    # Clopper and Pearson, 5 of 100: R's binom.test(5, 100).
    found = share(5, 100)
    assert (found.low, found.high) == pytest.approx((0.01643, 0.11284), abs=1e-5)
    # Two deviations of 0.1 from the measured flow, and of 0.01 from Linux's TCP.
    alike = _predictive([2.0, 2.0], 0.1)
    assert (alike.value, alike.high) == pytest.approx((2.0, 2.0 * math.exp(math.hypot(0.2, 0.02))))
    assert _predictive([1.0, 1.0, 8.0], 0.0).value == 1.0
    # Where one further value of a normal distribution lies: t s √(1 + 1/n) on either side.
    spread = _predictive([1.0, 2.0, 4.0], 0.0, unlike=0.0)
    half = stats.t.ppf(0.975, 2) * math.log(2) * math.sqrt(1 + 1 / 3)
    assert (spread.low, spread.high) == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)))


def _predictive(values: list[float], off: float, **more: float) -> Quantity:
    found = predictive(values, off, **more)  # type: ignore[arg-type]
    assert found is not None
    return found


def _of_late_packets(
    stack: str, duration: str, folder: Path, late: str = "1%"
) -> tuple[Measurement, float]:
    """What is measured where some packets are late by 5 ms, and the share of this run."""
    text = f"""
[topology]
rate = "10mbit"
rtt = "40ms"
[topology.forward]
reorder = "{late}"
reorder_delay = "5ms"
[[flow]]
stack = "{stack}"
[measure]
duration = "{duration}"
"""
    file = folder / "late.toml"
    file.write_text(text, encoding="utf-8")
    results = weir.run(file, repeat=1, out=folder, show_progress=False)
    count = results.scan("links").collect()["reordered"][0]
    return inputs.measure(results.path), count / results.flows["sent_segments"][0]


def test_late_packets_are_found(tmp_path: Path) -> None:
    found, share_late = _of_late_packets("reno", "5s", tmp_path)
    path = found.path
    assert path.reorder
    assert path.reorder.low <= share_late <= (path.reorder.high or 0)
    assert path.reorder_ms
    assert path.reorder_ms.low <= 5 <= (path.reorder_ms.high or 0)


def test_two_late_packets_are_no_property_of_the_path(tmp_path: Path) -> None:
    found, share_late = _of_late_packets("reno", "5s", tmp_path, late="0.03%")
    assert 0 < share_late * 5 * 10e6 / 8 / 1500 < 3
    assert found.path.reorder is None
    assert found.path.reorder_ms is None


def test_late_packets_that_were_sent_again_are_found(tmp_path: Path) -> None:
    found, share_late = _of_late_packets("cubic", "15s", tmp_path)
    assert found.path.reorder
    assert found.path.reorder_ms
    assert found.path.reorder.value == pytest.approx(share_late, rel=0.05)
    assert found.path.reorder_ms.low <= 5 <= (found.path.reorder_ms.high or 0)
    assert found.path.loss.value < 0.001
    assert not any("were not needed" in warning for warning in found.warnings)


def test_other_traffic_is_separated() -> None:
    known = Known(10, 60, 50, 0.0)
    more = accuracy._other(3.0)
    path = accuracy._modelled({**known.keys, **more}, 1, "sim", "10s", accuracy._OTHER)
    assert path.cross
    assert path.cross.low <= 3 <= (path.cross.high or 0)
    assert path.rate_mbps.value == pytest.approx(10, rel=0.002)
    alone = accuracy.model_of(known, 1)
    assert alone.cross is None


def test_jitter_is_no_queue(tmp_path: Path) -> None:
    keys = ("topology.rate", "40mbit"), ("topology.forward.jitter", "4ms")
    path = inputs.measure(capture(tmp_path, *keys, ("topology.forward.loss", "0.2%"))).path
    assert path.jitter_ms
    assert path.jitter_ms.low <= 4 <= (path.jitter_ms.high or 0)
    assert path.rate_mbps.value == pytest.approx(40, rel=0.05)
    assert path.delay_ms.low <= 40 <= (path.delay_ms.high or 0)
    assert inputs.measure(capture(tmp_path, *keys[:1])).path.jitter_ms is None
