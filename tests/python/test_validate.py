"""Recorded runs of the kernel's TCP: how they are read, repeated in the simulator and judged."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import figures
import polars as pl
import pytest
from conftest import Invoke

from weir import _native, load
from weir.api.reports import write
from weir.api.verbs import run
from weir.base.errors import InputError
from weir.recordings import judge, truth
from weir.recordings.guest import host
from weir.recordings.reduce import reduce
from weir.recordings.tc import UnhostedError
from weir.recordings.truth import Flow, Reference, Values
from weir.statistics.intervals import Estimate
from weir.validation import Validation, validate
from weir.validation.summary import findings, table

TRUTH = Path(__file__).parents[1] / "truth"
FOUND = truth.read(TRUTH)
REFERENCES = {reference.name: reference for reference in FOUND.references}

FLOW: dict[str, Any] = {
    "cc": "reno",
    "start": 0.0,
    "dur": 30.0,
    "steady_goodput_mbps": 9.5,
    "mean_cwnd": 50.0,
    "peak_cwnd": 70.0,
    "mean_srtt_ms": 60.0,
    "retrans": 93,
    "sawtooth_period_s": None,
}
VALUES: Values = dict.fromkeys(truth.KEYS, 1.0)


def folder(path: Path, cases: Mapping[str, Any], **files: str) -> Path:
    """A folder of traces with this summary and these further files."""
    path.mkdir(exist_ok=True)
    (path / "summary.json").write_text(json.dumps(cases), encoding="utf-8")
    for name, text in files.items():
        (path / f"{name}.csv").write_text(text, encoding="utf-8")
    return path


def case(*flows: Mapping[str, Any], **params: str) -> dict[str, Any]:
    """A member of a summary."""
    return {"params": params, "flows": list(flows) or [FLOW], "kernel": "6.1"}


def reference(*ccs: str, **params: str) -> Reference:
    """A recorded case of which only the parameters matter."""
    flows = tuple(Flow(cc, 0.0, 30.0) for cc in ccs or ("reno",))
    return Reference("made", params, "6.1", flows, (tuple(VALUES for _ in flows),), None, None)


def fields(made: Reference) -> dict[str, Any]:
    """The scenario that repeats a case."""
    return host(made, acks=0).source.effective().fields


# Reading.


def test_the_project_has_the_traces_and_groups_repeats() -> None:
    assert len(REFERENCES) >= 40
    assert not FOUND.unusable
    assert len(REFERENCES["10m-q34-loss1-reno"].recordings) == 5
    assert len(REFERENCES["10m-q34-two-bbr"].recordings) == 7
    assert not any(name.endswith("-s2") for name in REFERENCES)
    windows = REFERENCES["10m-q34-reno"].windows
    assert windows
    assert windows[:4] == (10, 11, 12, 13)
    assert len(windows) > judge.FIRST_ACKS


def test_the_series_say_the_same_as_the_summary() -> None:
    """Our definitions, fed with a recording's own rows, give the recording's own metrics.

    The rows are at 100 ms and rounded, the summary is from 10 ms: hence what it may differ by.
    """
    compared = 0
    for found in REFERENCES.values():
        if found.series is None:
            continue
        samples = [_as_samples(TRUTH / f"{found.name}.csv", i) for i in range(len(found.flows))]
        for ours, theirs in zip(reduce(samples, found.flows, 1), found.recordings[0], strict=True):
            assert ours["retransmits"] == theirs["retransmits"]
            for metric in _ROUNDING.keys() & ours.keys():
                share = _ROUNDING[metric]
                assert ours[metric] == pytest.approx(theirs[metric], rel=share), found.name
            compared += 1
    assert compared >= 45


_ROUNDING = {
    "steady_goodput_mbps": 0.01,
    truth.OVERLAP: 0.01,
    "mean_cwnd_segments": 0.02,
    "mean_srtt_ms": 0.01,
}


def _as_samples(path: Path, flow: int) -> pl.DataFrame:
    cells = pl.read_csv(path, infer_schema=False)
    rows = cells.select(pl.all().replace("", None).cast(pl.Float64)).drop_nulls(f"cwnd{flow}")
    return rows.select(
        pl.col("t").alias("t_s"),
        pl.col(f"cwnd{flow}").alias("cwnd_bytes"),
        pl.col(f"srtt_ms{flow}").alias("srtt_ms"),
        pl.col(f"rtx{flow}").alias("retransmits"),
        (pl.col(f"gput{flow}") * 0.1 / 8e-6).cum_sum().alias("acked_bytes"),
        pl.lit("open").alias("state"),
    )


def test_a_sawtooth_is_the_time_between_reductions_after_slow_start() -> None:
    states = ["open"] * 100
    for at in (5, 6, 20, 50, 51, 90):
        states[at] = "recovery"
    states[52] = "disorder"
    states[53] = "loss"
    rows = pl.DataFrame(
        {
            "t_s": [(i + 1) * 0.01 for i in range(100)],
            "cwnd_bytes": [1000 * (i // 50 + 1) for i in range(100)],
            "srtt_ms": [None] * 50 + [40.0] * 50,
            "retransmits": [i // 10 for i in range(100)],
            "acked_bytes": [1250 * i for i in range(100)],
            "state": states,
        }
    )
    (found,) = reduce([rows], [Flow("reno", 0.0, 1.0)], 1000)
    # Reductions at 0.06 (slow start), 0.21, 0.51, 0.54 and 0.91 s.
    assert found["sawtooth_period_s"] == pytest.approx((0.91 - 0.21) / 3)
    assert found["steady_goodput_mbps"] == pytest.approx(1.0)
    assert found["peak_cwnd_segments"] == 2
    assert found["mean_cwnd_segments"] == pytest.approx((17 * 1 + 50 * 2) / 67)
    assert found["mean_srtt_ms"] == 40
    assert found["retransmits"] == 9


MALFORMED: dict[str, tuple[Any, str]] = {
    "no object": ([1], "an object with one member per case is needed"),
    "empty": ({}, "an object with one member per case is needed"),
    "no params": ({"a": {"flows": [FLOW]}}, "case a: an object with params is needed"),
    "no flows": ({"a": {"params": {}, "flows": []}}, "case a: flows: a list of 1 to 64 objects"),
    "no algorithm": ({"a": case({**FLOW, "cc": 3})}, "flow 0: cc: the name of an algorithm"),
    "no time": ({"a": case({**FLOW, "dur": 0})}, "flow 0: start and dur: times in seconds"),
    "text": ({"a": case({**FLOW, "retrans": "many"})}, "flow 0: retrans: not a finite number"),
    "absent": ({"a": case({**FLOW, "mean_cwnd": None})}, "flow 0: mean_cwnd: not a finite number"),
    "repeat": ({"a": case(), "a-s2": case(FLOW, FLOW)}, "case a-s2: 1 flows are needed"),
}


@pytest.mark.parametrize(("cases", "message"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_summary_is_one_clear_error(cases: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"summary\.json") as caught:
        truth.read(folder(tmp_path / "t", cases))
    assert message in str(caught.value)


def test_malformed_files_are_one_clear_error(tmp_path: Path, invoke: Invoke) -> None:
    made = folder(tmp_path / "t", {"a": case(RATE="10mbit")}, a="t,cwnd0\n0.1,10\n")
    with pytest.raises(InputError, match=r"a\.csv: column srtt_ms0 is missing"):
        truth.read(made)
    (made / "a.csv").write_text("t,cwnd0,srtt_ms0,gput0\n0.1,ten,40,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.csv: not a table of numbers"):
        truth.read(made)
    (made / "a.csv").unlink()
    (made / "packets-a.csv.gz").write_bytes(b"this is not gzip")
    with pytest.raises(InputError, match=r"packets-a\.csv\.gz: not gzip"):
        truth.read(made)
    (made / "packets-a.csv.gz").write_bytes(gzip.compress(b"us,kind\n1,P,ten,20,30\n"))
    with pytest.raises(InputError, match=r"packets-a\.csv\.gz: not a packet trace"):
        truth.read(made)
    (made / "summary.json").write_text("{", encoding="utf-8")
    result = invoke("validate", "--reference", made)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "summary.json: not JSON" in result.stderr
    result = invoke("validate", "--reference", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "no traces here (a folder of traces has a summary.json)" in result.stderr


# Repeating.


def test_a_case_becomes_the_same_network() -> None:
    made = host(REFERENCES["10m-q34-mix-cubic-bbr"], acks=7)
    found = made.source.effective().fields
    first, second, back = found["topology"]["link"]
    assert (first["rate"], first["queue"], first["overhead"]) == ("10mbit", "34p", "14b")
    assert (second["delay"], back["delay"]) == ("20ms", "20ms")
    assert [flow["stack"] for flow in found["flow"]] == ["rack/cubic", "rack/bbr"]
    assert [flow["start"] for flow in found["flow"]] == ["0s", "500ms"]
    assert [flow["stop"] for flow in found["flow"]] == ["60000.001ms", "60000.001ms"]
    measure = found["measure"]
    assert (measure["duration"], measure["sample_interval"], measure["acks"]) == (
        "60.01s",
        "10ms",
        7,
    )
    assert made.draws
    assert made.mss == 1448


def test_flows_start_where_ticks_are_those_of_the_recording() -> None:
    for tick, late in (("750us", "0s"), ("100us", "650us"), ("900us", "850us")):
        flow = fields(reference(TICK=tick, FLOWS="reno:0:9"))["flow"][0]
        assert _native.parse_quantity("time", flow["start"]) == pytest.approx(
            _native.parse_quantity("time", late)
        )


def test_parameters_become_keys() -> None:
    links = fields(reference(RATE="2gbit", QLEN="7", DELAY="1500us", LOSS="0.5%"))["topology"][
        "link"
    ]
    assert (links[0]["rate"], links[0]["queue"]) == ("2gbit", "7p")
    assert (links[1]["delay"], links[1]["impair"]["loss"]) == ("1.5ms", "0.5%")
    netem = fields(reference(QDISC="netem:rate:5mbit:limit:9"))["topology"]["link"][0]
    assert (netem["rate"], netem["queue"]) == ("5mbit", "9p")
    (flow,) = fields(reference(SYSCTL="net.ipv4.tcp_timestamps=0,net.ipv4.tcp_sack=0"))["flow"]
    assert (flow["timestamps"], flow["mss"], flow["sack"]) == (False, 1460, False)
    (flow,) = fields(reference(SYSCTL="net.ipv4.tcp_recovery=0,net.ipv4.tcp_early_retrans=0"))[
        "flow"
    ]
    assert flow["stack"] == "rack(detection=count,tlp=off)/reno"
    (flow,) = fields(reference("cubic", PARAM="tcp_cubic/parameters/hystart=0"))["flow"]
    assert flow["stack"] == "rack/cubic(hystart=off)"
    both = "net.ipv4.tcp_ecn=1,net.ipv4.tcp_congestion_control=dctcp"
    for sysctl, ecn in (("", False), ("net.ipv4.tcp_ecn=1", False), (both, True)):
        assert fields(reference("dctcp", SYSCTL=sysctl))["flow"][0]["ecn"] is ecn


def queue(discipline: str) -> Any:
    """The queue below a shaper that becomes of `tc`'s words."""
    shaper = "tbf:rate:10mbit:burst:2kb:limit:30000"
    (link, *_) = fields(reference(QDISC=shaper, QDISC2=discipline))["topology"]["link"]
    assert (link["rate"], link["burst"], link["overhead"]) == ("10mbit", "2kib", "14b")
    return link["queue"]


def test_disciplines_have_the_defaults_of_tc() -> None:
    assert queue("pfifo:limit:34") == "34p"
    assert queue("bfifo:limit:3000") == "3kb"
    expected = {"kind": "codel", "limit": "1000p", "ecn": False, "target": "5ms"}
    assert expected.items() <= queue("codel").items()
    expected = {"kind": "fq-codel", "limit": "10240p", "ecn": True, "flows": 1024}
    assert expected.items() <= queue("fq_codel").items()
    given = queue("codel:limit:9:target:200ms:interval:500ms:ce_threshold:12ms:ecn")
    expected = {"limit": "9p", "target": "200ms", "ce_threshold": "12ms", "ecn": True}
    assert expected.items() <= given.items()
    words = "red:limit:200000:min:15140:max:45420:avpkt:1514:burst:17:probability:0.1"
    expected = {"min": "15.14kb", "max": "45.42kb", "burst": 17, "probability": "10%"}
    assert expected.items() <= queue(words).items()
    shaped = fields(reference(QDISC="tbf:rate:1mbit:burst:1600:limit:30000"))["topology"]["link"][0]
    assert shaped["queue"] == "30kb"
    expected = {"kind": "pie", "limit": "1000p", "ecn": False, "target": "15ms", "alpha": 2}
    assert expected.items() <= queue("pie").items()
    expected = {"kind": "sfq", "limit": "127p", "flow_limit": 127, "quantum": "1.514kb"}
    assert (expected | {"flows": 1024, "head_drop": False}).items() <= queue("sfq").items()
    given = queue("sfq:limit:64:depth:32:divisor:16:quantum:100:headdrop:perturb:0")
    expected = {"limit": "64p", "flow_limit": 32, "flows": 16, "quantum": "256b"}
    assert (expected | {"head_drop": True}).items() <= given.items()
    expected = {"kind": "fq", "limit": "10000p", "flow_limit": 100, "quantum": "3.028kb"}
    assert (expected | {"flows": 1024}).items() <= queue("fq:nopacing").items()
    given = queue("fq:limit:50:flow_limit:9:quantum:1514:orphan_mask:63:ce_threshold:1ms")
    expected = {"limit": "50p", "flow_limit": 9, "flows": 64, "ce_threshold": "1ms"}
    assert expected.items() <= given.items()
    expected = {"kind": "fq-pie", "limit": "10240p", "flows": 64, "target": "20ms"}
    assert expected.items() <= queue("fq_pie:flows:64:target:20ms").items()
    expected = {"kind": "cake", "isolation": "triple-isolate", "target": "5ms"}
    assert expected.items() <= queue("cake:unlimited:besteffort").items()
    given = queue("cake:flows:rtt:200ms:memlimit:1mb")
    expected = {"isolation": "flows", "interval": "200ms", "target": "10ms", "limit": "1mib"}
    assert expected.items() <= given.items()
    link = fields(reference(QDISC="cake:bandwidth:5mbit:flows"))["topology"]["link"][0]
    assert (link["rate"], link["queue"]["kind"], link["queue"]["shaper"]) == ("5mbit", "cake", True)
    assert link["burst"] is None, "a token bucket would take a packet out of CAKE too early"
    given = queue("pie:limit:9:target:20ms:tupdate:30ms:beta:10:ecn")
    expected = {"limit": "9p", "target": "20ms", "update": "30ms", "beta": 10, "ecn": True}
    assert expected.items() <= given.items()
    for drawing in (words, "pie"):
        made = reference(QDISC="tbf:rate:1mbit:burst:1600:limit:3000", QDISC2=drawing)
        assert judge.kind(made, draws=host(made, acks=0).draws) == "drawn"


UNHOSTED = {
    "the simulator has no controller bpf_own": reference("bpf_own"),
    "the simulator has no switch for net.ipv4.tcp_fack=1": reference(SYSCTL="net.ipv4.tcp_fack=1"),
    "the simulator has no switch for tcp_bbr/x=1": reference(PARAM="tcp_bbr/x=1"),
    "parameter COLOUR is not known": reference(COLOUR="red"),
    "the simulator has no queue hhf": reference(
        QDISC="tbf:rate:1mbit:burst:1600:limit:3000", QDISC2="hhf:limit:9"
    ),
    "the simulator's sfq has no perturb": reference(
        QDISC="tbf:rate:1mbit:burst:1600:limit:3000", QDISC2="sfq:perturb:10"
    ),
    "the simulator's cake has no diffserv4": reference(QDISC="cake:bandwidth:1mbit:diffserv4"),
    "the simulator's pie has no bytemode": reference(
        QDISC="tbf:rate:1mbit:burst:1600:limit:3000", QDISC2="pie:bytemode"
    ),
    "the simulator has no bottleneck cake:unlimited": reference(QDISC="cake:unlimited"),
    "tbf without rate": reference(QDISC="tbf:burst:1600:limit:3000"),
    "the simulator has no loss model 1%:25%": reference(LOSS="1%:25%"),
    "fast is not a rate": reference(RATE="fast"),
}


@pytest.mark.parametrize(("reason", "made"), UNHOSTED.items(), ids=UNHOSTED)
def test_what_cannot_be_hosted_is_said(reason: str, made: Reference) -> None:
    with pytest.raises(UnhostedError) as caught:
        host(made, acks=0)
    assert reason in str(caught.value)


# Judging.


def test_kinds_of_cases() -> None:
    kinds = {
        "10m-q34-reno": "deterministic",
        "10m-q34-two-cubic": "shared",
        "10m-q34-bic": "deterministic",
        "10m-q34-bbr": "drawn",
        "10m-q34-cdg": "drawn",
        "10m-q34-lp": "drawn",
        "10m-q34-nv": "drawn",
        "10m-q34-loss1-bbr": "loss",
        "10m-q34-mix-cubic-bbr": "mix",
    }
    for name, kind in kinds.items():
        found = REFERENCES[name]
        assert judge.kind(found, draws=host(found, acks=0).draws) == kind, name


def test_flows_that_meet_are_judged_as_distributions() -> None:
    """Beyond the tolerance but of one distribution: holds; shifted as a whole: differs."""
    key = "steady_goodput_mbps"
    ours = [{**dict.fromkeys(truth.KEYS, 100.0), key: 90.0 + n % 20} for n in range(40)]

    def verdict(*kernels: float) -> str | None:
        recordings = tuple(({**dict.fromkeys(truth.KEYS, 100.0), key: value},) for value in kernels)
        made = Reference("a", {}, "6.1", (Flow("reno", 0.0, 30.0),), recordings, None, None)
        rows = judge.rows(made, "shared", [[values] for values in ours])
        found: str | None = next(row["verdict"] for row in rows if row["metric"] == key)
        return found

    assert verdict(90.0, 107.0, 103.0, 108.0, 109.0) == "holds"
    assert verdict(115.0, 116.0, 117.0, 118.0, 119.0) == "differs"
    assert verdict(115.0, 116.0, 117.0, 118.0) == "inconclusive", "too few to reject"
    assert verdict(99.0, 100.0) == "holds", "within the tolerance no test is needed"


@pytest.mark.parametrize(
    ("ours", "half", "verdict"),
    [
        (100.5, 0.019, "holds"),
        (100.5, 0.021, "inconclusive"),
        (103.0, 0.029, "differs"),
        (103.0, 0.031, "inconclusive"),
        (97.0, 0.01, "differs"),
    ],
)
def test_an_interval_wider_than_the_tolerance_is_inconclusive(
    ours: float, half: float, verdict: str
) -> None:
    """Unless it excludes that both are the same."""
    ratio = Estimate(ours / 100, ours / 100 - half, ours / 100 + half, 5)
    pair = judge.Pair([ours], [100.0], ours, 100.0, ratio)
    assert judge.Tolerance(0.02).verdict(pair) == verdict


@pytest.mark.parametrize(
    ("metric", "factor", "holds"),
    [
        ("steady_goodput_mbps", 1.0199, True),
        ("steady_goodput_mbps", 0.979, False),
        ("mean_cwnd_segments", 1.049, True),
        ("mean_srtt_ms", 0.949, False),
        ("sawtooth_period_s", 1.051, False),
        ("retransmits", 1.099, True),
        ("retransmits", 1.101, False),
        ("peak_cwnd_segments", 2.0, None),
    ],
)
def test_a_row_holds_within_its_tolerance(metric: str, factor: float, holds: bool | None) -> None:
    theirs: Values = dict.fromkeys(truth.KEYS, 100.0)
    made = Reference("a", {}, "6.1", (Flow("reno", 0.0, 30.0),), ((theirs,),), None, None)
    rows = judge.rows(made, "deterministic", [[{**theirs, metric: 100.0 * factor}]])
    (row,) = (row for row in rows if row["metric"] == metric)
    assert row["holds"] is holds
    assert row["ratio"] == pytest.approx(factor)
    assert judge.score(rows)["all"] == {
        "held": 4 + bool(holds) + (holds is None),
        "inconclusive": 0,
        "judged": 5,
    }


def test_few_retransmissions_may_differ_by_five() -> None:
    rule = judge.RECORDED["deterministic"]["retransmits"]
    assert rule.holds(15, 20)
    assert not rule.holds(14, 20)


@pytest.mark.parametrize(
    ("ours", "holds"), [(45, True), (44, False), (205, True), (206, False), (100, True)]
)
def test_late_packets_cost_up_to_twice_or_half_the_retransmissions(ours: int, holds: bool) -> None:
    rule = judge.VIRTUAL["reordering"]["retransmits"]
    assert rule.holds(ours, 100) is holds
    assert str(rule) == "factor 2 or 5"


def test_what_only_one_side_has_does_not_hold() -> None:
    made = Reference("a", {}, "6.1", (Flow("reno", 0.0, 30.0),), ((VALUES,),), None, None)
    none = {**VALUES, "sawtooth_period_s": None}
    (row,) = (r for r in judge.rows(made, "deterministic", [[none]]) if "sawtooth" in r["metric"])
    assert (row["holds"], row["note"]) == (False, "ours has none")


def test_windows_are_compared_one_by_one() -> None:
    row = judge.packets_row("a", "deterministic", range(1, 41), [*range(1, 40), 7])
    assert (row["ours"], row["holds"]) == (0.975, True)
    assert "the first that differs is number 39: 7, Linux 40" in row["note"]
    assert judge.packets_row("a", "deterministic", range(40), range(30))["holds"] is False
    assert judge.packets_row("a", "drawn", range(40), range(40))["holds"] is None


# All together.


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    """A few cases, which take seconds."""
    cases = ("10m-q34-reno", "10m-q34-cubic", "10m-q34-vegas", "10m-q34-reno+nots")
    return validate(TRUTH, cases=cases, out=tmp_path_factory.mktemp("out"), show_progress=False)


def test_the_simulator_does_what_the_kernel_did(ran: Validation) -> None:
    failing = [row for row in ran.rows if row["holds"] is False]
    assert not failing, failing
    assert ran.score["deterministic"]["judged"] >= 19
    assert ran.score["packets"] == {"held": 2, "inconclusive": 0, "judged": 2}


def test_bbrs_windows_are_the_kernels_in_one_of_its_phases(tmp_path: Path) -> None:
    """All windows of 2,745 recorded acknowledgements, in a run that draws its phase of seven.

    It draws once in that time, for the first phase of its probing. Phases end within three
    acknowledgements of the recording's. With times in nanoseconds instead of whole microseconds
    they would end at the same ones, not known why: today's guest agrees with whole microseconds.
    """
    found = REFERENCES["10m-q34-bbr"]
    hosted = host(found, acks=3_000)
    sets = {"measure.duration": "5s", "flow.0.stop": "5s"}
    text = hosted.source.text
    results = run(text, repeat=14, sets=sets, out=tmp_path, show_progress=False)
    assert found.windows is not None
    rows = results.scan("acks").sort("run", "t_s").collect()
    ran = rows.select("run", pl.col("cwnd_bytes") // hosted.mss).partition_by("run")
    kernels = _changes(found.windows)
    ours = [_changes(tuple(own["cwnd_bytes"])[: len(found.windows)]) for own in ran]
    alike = [own for own in ours if [to for _, to in own] == [to for _, to in kernels]]
    assert len(kernels) > 100
    assert any(
        all(abs(at - there) <= 3 for (at, _), (there, _) in zip(own, kernels, strict=True))
        for own in alike
    )


def _changes(windows: Sequence[int]) -> list[tuple[int, int]]:
    """At which acknowledgements windows change, and to what."""
    pairs = enumerate(itertools.pairwise(windows), 1)
    return [(at, after) for at, (before, after) in pairs if before != after]


def test_json_has_every_row_and_every_reason(invoke: Invoke, tmp_path: Path) -> None:
    made = tmp_path / "truth"
    made.mkdir()
    shutil.copy(TRUTH / "10m-q34-vegas.csv", made)
    summary = json.loads((TRUTH / "summary.json").read_text(encoding="utf-8"))
    chosen = {name: summary[name] for name in summary if name.startswith("10m-q34-loss1-reno")}
    chosen["10m-q34-vegas"] = summary["10m-q34-vegas"]
    chosen["own"] = case({**FLOW, "cc": "bpf_own"}, FLOWS="bpf_own:0:30")
    folder(made, {**chosen, "broken": {"params": {}, "error": "no\nguest"}})
    result = invoke("validate", "--reference", made, "--seeds", 2, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["command"] == "validate"
    keys = {"case", "flow", "metric", "ours", "reference", "ratio", "verdict", "holds", "note"}
    assert all(keys <= row.keys() for row in document["rows"])
    notes = {row["case"]: row["note"] for row in document["rows"] if row["metric"] is None}
    assert notes == {
        "own": "skipped: the simulator has no controller bpf_own",
        "broken": "skipped: the recording failed: no guest",
    }
    loss = [row for row in document["rows"] if row["case"] == "10m-q34-loss1-reno"]
    assert len(loss) == len(truth.KEYS)
    assert [row["metric"] for row in loss if row["holds"] is not None] == ["steady_goodput_mbps"]
    assert loss[0]["ours_interval"]["n"] == 2
    assert "mean of 5 runs" in loss[0]["note"]
    judged = [row for row in document["rows"] if row["holds"] is not None]
    assert document["score"]["all"]["judged"] == len(judged)
    _report_shows_both(Path("results/validate/latest"))


def _report_shows_both(directory: Path) -> None:
    page = write(load(directory)).read_text(encoding="utf-8")
    assert "the simulator has no controller bpf_own" in page
    # Without a series of its own a case has no picture.
    assert "overlay-10m-q34-vegas" in page
    assert "overlay-10m-q34-loss1-reno" not in page
    assert "Flow 0: goodput 9.56 ×1.000 ✓" in page


def test_a_pattern_that_matches_nothing_is_refused(invoke: Invoke) -> None:
    result = invoke("validate", "--reference", TRUTH, "--case", "20m-*")
    assert result.exit_code == 2
    assert "--case 20m-*: there is no such case; there are 100m-q331-reno" in result.stderr


def test_nothing_to_compare_is_refused_with_the_reasons(invoke: Invoke, tmp_path: Path) -> None:
    made = folder(tmp_path / "t", {"own": case({**FLOW, "cc": "bpf_own"})})
    result = invoke("validate", "--reference", made)
    assert result.exit_code == 2
    assert "nothing can be compared: own: the simulator has no controller bpf_own" in result.stderr


# Documented.

DOCUMENT = TRUTH.parents[1] / "docs" / "validation" / "README.md"
_BEGIN = "<!-- results: written by a test from `weir validate --reference tests/truth` -->\n"
_END = "<!-- end of results -->\n"
_STALE = 0.01
"""So far may a documented figure lag behind; beyond that the table is to be written anew."""


def test_the_documented_results_are_those_of_the_command(ran: Validation) -> None:
    documented = _documented()
    compared = {case for case, _ in documented}
    hosted = {name for name, reference in REFERENCES.items() if _is_hosted(reference)}
    assert compared == hosted, "WEIR_BLESS=1 pytest tests/python/test_validate.py rewrites it"
    for case, flow, *cells in table(ran.rows)[1]:
        for ours, theirs in zip(filter(None, cells), documented[case, flow], strict=True):
            assert {"✓", "✗"} & set(ours) == {"✓", "✗"} & set(theirs), (case, ours, theirs)
            assert _figure(ours) == pytest.approx(_figure(theirs), rel=_STALE), (case, ours, theirs)


def _documented() -> dict[tuple[str, str], list[str]]:
    """The cells of each line of the table that are not empty, by case and flow."""
    listed = DOCUMENT.read_text(encoding="utf-8").split(_BEGIN)[1].split(_END)[0]
    lines = [line.strip("| ").split("|") for line in listed.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line] for line in lines[2:]]
    return {(case, flow): [cell for cell in cells if cell] for case, flow, *cells in rows}


def _figure(cell: str) -> float:
    value = cell.split()[0]
    return 0.0 if value == "–" else float(value)


def _is_hosted(found: Reference) -> bool:
    try:
        host(found, acks=0)
    except UnhostedError:
        return False
    return True


@pytest.mark.skipif("WEIR_BLESS" not in os.environ, reason="only on request")
@pytest.mark.timeout(1800)
def test_bless_the_results_in_the_documentation(tmp_path: Path) -> None:
    found = validate(TRUTH, out=tmp_path, show_progress=False)
    headers, lines = table(found.rows)
    shown = [headers, ["---"] * len(headers), *lines]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in shown)
    points = "".join(f"- {text}\n" for text in findings(found.rows))
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(_BEGIN)
    after = rest.split(_END)[1]
    whole = "".join((before, _BEGIN, "\n", text, "\n", points, "\n", _END, after))
    DOCUMENT.write_text(whole, encoding="utf-8")
    figures.write()
