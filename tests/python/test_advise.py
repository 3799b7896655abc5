"""`weir advise`: one decision, from what was measured before what is predicted."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from conftest import Invoke
from test_schemas import check

import weir
from weir import _native
from weir.advice import choices, outcomes, predictions, words
from weir.advice.decision import Role, Verdict, decide
from weir.advice.options import AdviceOptions
from weir.advice.predictions import Prediction, predictive
from weir.advice.table import cells
from weir.base.errors import InputError
from weir.estimates import draws, rate
from weir.estimates.packets import Packets
from weir.estimates.quantity import Quantity
from weir.modelling import inputs
from weir.modelling.loads import Load
from weir.modelling.measured import Measurement
from weir.studies.advise.judge import Judgement, Truth, judge


def capture(folder: Path, *keys: tuple[str, str]) -> Path:
    """A capture at the sender of one CUBIC flow."""
    text = "[topology]\n[topology.forward]\n[[flow]]\nstack = 'cubic'\n[measure]\n"
    every = [("measure.duration", "10s"), *keys]
    _native.Scenario.parse(text, every, "test").record(2, folder, "run")
    return folder / "run-senders.pcapng"


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    """A path that random loss limits CUBIC on."""
    keys = ("topology.rate", "20mbit"), ("topology.rtt", "80ms"), ("topology.forward.loss", "0.3%")
    return inputs.measure(capture(tmp_path_factory.mktemp("lossy"), *keys))


def option(stack: str) -> choices.Option:
    return choices.Option(stack, {})


def predicted(
    stack: str, gain: Quantity, neighbour: float = 1.0, delay: float = 80.0, runs: int = 0
) -> Prediction:
    goodput = Quantity(5 * gain.value, 4 * gain.value, 6 * gain.value)
    delays = Quantity(delay, delay, delay)
    return Prediction(option(stack), goodput, delays, None, gain, neighbour, runs)


ONE = Quantity(1.0, 1.0, 1.0)
CUBIC = predicted("cubic", ONE)


def test_the_sentence_the_table_and_the_commands_agree(lossy: Measurement) -> None:
    assert lossy.flow is not None
    found = [predicted("bbr", Quantity(2.1, 1.5, 2.9)), CUBIC]
    decision = decide(found, lossy.flow)
    assert decision.verdict is Verdict.FASTER
    assert words.sentence(lossy, lossy.flow, decision).startswith("BBR instead of CUBIC: 2.1 ×")
    assert [cells(decision, one)[-1] for one in found] == ["advised", "in use"]
    assert any("congestion_control=bbr" in step for step in words.commands(decision))


def test_a_gain_that_may_be_none_is_inconclusive_and_measured_next(lossy: Measurement) -> None:
    assert lossy.flow is not None
    found = [predicted("illinois", Quantity(2.1, 0.9, 4.2)), CUBIC]
    decision = decide(found, lossy.flow)
    said = words.sentence(lossy, lossy.flow, decision)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert said.startswith("Inconclusive: Illinois instead of CUBIC is likely 2.1 × (0.9 to 4.2)")
    assert decision.role(found[0]) is Role.LIKELY
    assert list(words.commands(decision)) == ["weir test HOST --cc cubic,illinois --repeat 3"]


def test_a_controller_that_gains_and_harms_is_named_with_both_figures(lossy: Measurement) -> None:
    assert lossy.flow is not None
    harmful = predicted("bbr", Quantity(2.1, 1.01, 4.2), neighbour=0.42)
    decision = decide([harmful, CUBIC], lossy.flow)
    said = words.sentence(lossy, lossy.flow, decision)
    assert decision.is_harmful
    assert "BBR instead of CUBIC: 2.1 × (1 to 4.2)" in said
    assert "a CUBIC flow next to it gets only 0.42" in said
    fair = predicted("illinois", Quantity(1.5, 1.2, 1.9))
    decision = decide([harmful, fair, CUBIC], lossy.flow)
    said = words.sentence(lossy, lossy.flow, decision)
    assert (decision.chosen, decision.harmful) == (fair, harmful)
    assert "BBR gains more, 2.1 × (1 to 4.2), but a CUBIC flow next to it gets only 0.42" in said
    assert decision.role(harmful) is Role.HARMFUL


def test_nothing_that_helps_has_no_commands(lossy: Measurement) -> None:
    assert lossy.flow is not None
    decision = decide([predicted("bbr", Quantity(1.03, 0.8, 1.3)), CUBIC], lossy.flow)
    assert decision.verdict is Verdict.NONE
    assert list(words.commands(decision)) == []
    said = words.sentence(lossy, lossy.flow, decision)
    assert said.startswith("No other controller probably gets more than CUBIC here")
    assert "already uses the path well" not in said


def test_what_was_measured_outranks_what_is_predicted(lossy: Measurement) -> None:
    assert lossy.flow is not None
    found = [
        predicted("bbr", Quantity(0.5, 0.4, 0.6)),
        predicted("reno", Quantity(1.3, 1.2, 1.4)),
        CUBIC,
    ]
    loads = [
        Load("cubic", (5.0, 5.2), (84.0, 86.0)),
        Load("bbr", (19.0, 19.1), (101.0, 103.0)),
    ]
    ranked = outcomes.outranked(found, loads)
    assert [one.option.stack for one in ranked] == ["bbr", "reno", "cubic"]
    assert ranked[0].gain is not None
    assert ranked[0].gain.value == pytest.approx(math.sqrt(19 * 19.1) / math.sqrt(5 * 5.2))
    decision = decide(ranked, lossy.flow)
    said = words.sentence(lossy, lossy.flow, decision)
    assert decision.chosen is ranked[0]
    assert "as measured on the path (19 against 5.1 Mbit/s, 2 runs each)" in said
    # One run each says nothing of how much runs vary.
    once = [Load("cubic", (5.0,), (84.0,)), Load("bbr", (19.0,), (101.0,))]
    decision = decide(outcomes.measured_alone(once), lossy.flow)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert "measured once" in words.sentence(lossy, lossy.flow, decision)


def test_results_of_several_controllers_are_measured(tmp_path: Path, invoke: Invoke) -> None:
    results = weir.compare(
        "cubic",
        "bbr",
        rate="20mbit",
        rtt="80ms",
        loss="0.3%",
        duration="10s",
        repeat=2,
        out=str(tmp_path),
    )
    result = invoke("advise", results.path, "--quiet", "--json", "--report", tmp_path / "a.html")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    check("advise", document)
    rows = {row["name"]: row for row in document["rows"]}
    assert {name for name, row in rows.items() if row["basis"] == "measured"} == {"cubic", "bbr"}
    values = results.flows.filter(results.flows["stack"] == "rack/bbr")["goodput_mbps"]
    assert rows["bbr"]["goodput_mbps"]["value"] == pytest.approx(
        math.exp(np.log(values.to_numpy()).mean()), rel=1e-4
    )
    assert "as measured on the path" in document["advice"]
    assert document["advice"].split(":")[0] == "BBR instead of CUBIC"
    page = unescape((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "BBR instead of CUBIC" in page
    assert "as measured on the path" in page


def test_a_value_that_no_run_has_is_none() -> None:
    assert predictive([None, None, 3.0], 0.0) is None
    assert predictive([], 0.0) is None
    one = predictive([2.0, None, 2.0], 0.0)
    assert one is not None
    assert one.value == pytest.approx(2.0)
    row = {"goodput_mbps": 0.0, "delivered_bytes": 0, "rtt_ms_p95": None, "fct_s": 1.0}
    assert predictions.combined([row])["goodput_mbps"] is None


def test_a_load_with_a_warm_up_is_predicted_for_its_time(lossy: Measurement) -> None:
    assert lossy.flow is not None
    keys = {predictions.WARMUP: "2s"}
    load = replace(lossy.flow, source_keys=keys, duration_s=6.0)
    assert predictions.workload_of(load, None).keys(1) == {"measure.duration": "6000ms"}
    # A transfer is measured from its first byte, however short it is.
    assert predictions.workload_of(load, "10kb").keys(1)[predictions.WARMUP] == "0ms"


def test_no_advice_is_built_on_a_model_that_fails(lossy: Measurement) -> None:
    assert lossy.flow is not None
    flow = replace(lossy.flow, goodput_mbps=lossy.flow.goodput_mbps / 10)
    wrong = replace(lossy, flow=flow)
    options = choices.options(flow, ["bbr"])
    with pytest.raises(InputError, match="no advice: the model does not repeat"):
        outcomes.outcome(wrong, options, None, repeat=2, seed=1)
    loads = (Load("cubic", (1.0, 1.1), (80.0,)), Load("bbr", (3.0, 3.1), (90.0,)))
    found, checked = outcomes.outcome(replace(wrong, loads=loads), options, None, repeat=2, seed=1)
    assert checked.refusal is not None
    assert {one.option.stack: one.runs for one in found} == {"bbr": 2, "cubic": 2}


def test_controllers_to_try_have_labels_and_parameters(lossy: Measurement) -> None:
    tried = AdviceOptions(stacks="keen=cubic(beta=0.9,c=1),bbr")
    assert lossy.flow is not None
    options = choices.options(lossy.flow, tried.names())
    found = [(one.name, one.stack) for one in options]
    assert ("keen", "cubic(beta=0.9,c=1)") in found
    assert ("bbr", "bbr") in found
    with pytest.raises(InputError, match="--stacks: a is given twice"):
        AdviceOptions(stacks="a=bbr,a=reno").names()


def test_rates_are_never_negative() -> None:
    found = rate.middle(np.array([100.0, 3000.0, 9000.0, 200.0]))
    assert found.high is not None
    assert 0 < found.low < found.value < found.high


def _packets(gap_s: float, round_trips: int, burst: int) -> Packets:
    """Bursts that nothing queues for long: one per round trip of 100 ms."""
    sent = np.repeat(np.arange(round_trips) * 0.1, burst)
    place = np.tile(np.arange(burst), round_trips)
    rtt = (0.08 + place * gap_s).astype(np.float64)
    size = np.full(sent.size, 1500.0)
    every = np.arange(sent.size)
    lost = np.zeros(sent.size, bool)
    return Packets(sent, size, rtt, lost, 1500, every, every[:0], 0.08)


def test_bursts_show_a_rate_that_the_flow_never_used() -> None:
    found = rate.of_bursts(_packets(0.6e-3, 4, 5))
    assert found is not None
    assert found.value == pytest.approx(20.0, rel=0.02)
    assert rate.of_bursts(_packets(0.6e-3, 1, 3)) is None


def test_a_lower_bound_is_drawn_up_to_its_limit_and_swept(
    tmp_path: Path, invoke: Invoke, lossy: Measurement
) -> None:
    goodput = lossy.flow.goodput_mbps if lossy.flow else 0.0
    bound = Quantity(goodput, goodput, None, 10 * goodput)
    path = replace(lossy.path, rate_mbps=bound, queue_bytes=Quantity(6e3, 6e3, None))
    drawn = [one.rate_mbps.value for one in draws.draw(path, 40, 1)]
    assert goodput <= min(drawn) < 1.3 * goodput
    assert 7 * goodput < max(drawn) <= 10 * goodput
    assert lossy.flow is not None
    options = choices.options(lossy.flow, ["bbr"])
    limited = replace(path, rate_mbps=replace(bound, most=1.2 * goodput))
    found, _ = outcomes.outcome(replace(lossy, path=limited), options, None, repeat=4, seed=1)
    assert all(
        one.goodput_mbps and (one.goodput_mbps.high or math.inf) <= 1.2 * goodput for one in found
    )
    file = capture(tmp_path, ("topology.rate", "50mbit"), ("topology.forward.loss", "2%"))
    out = tmp_path / "path.toml"
    result = invoke("model", file, "-o", out)
    assert result.exit_code == 0, result.output
    document = tomllib.loads(out.read_text(encoding="utf-8"))
    (least, _, most) = document["sweep"]["topology.queue"]
    assert document["topology"]["queue"] == least
    assert int(most.rstrip("b")) > 2 * int(least.rstrip("b"))
    _native.Scenario.parse(out.read_text(encoding="utf-8"), [], "path").check("sim")


@pytest.mark.parametrize(
    ("verdict", "stack", "gains", "judgement"),
    [
        (Verdict.FASTER, "bbr", {"bbr": 2.0}, Judgement.RIGHT),
        (Verdict.FASTER, "reno", {"bbr": 2.0, "reno": 1.2}, Judgement.WRONG),
        (Verdict.FASTER, "bbr", {"bbr": 0.9}, Judgement.WRONG),
        (Verdict.NONE, None, {"bbr": 1.05}, Judgement.RIGHT),
        (Verdict.NONE, None, {"bbr": 1.3}, Judgement.WRONG),
        (Verdict.INCONCLUSIVE, "bbr", {"bbr": 3.0}, Judgement.INCONCLUSIVE),
        (None, None, {"bbr": 3.0}, Judgement.INCONCLUSIVE),
    ],
)
def test_an_advice_is_judged_by_what_was_got(
    verdict: Verdict | None, stack: str | None, gains: dict[str, float], judgement: Judgement
) -> None:
    truths = {name: Truth(10 * gain, 50.0) for name, gain in gains.items()}
    assert judge(verdict, stack, "cubic", {"cubic": Truth(10.0, 60.0), **truths}) is judgement
