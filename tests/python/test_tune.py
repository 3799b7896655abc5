"""`weir tune`: textbook optima, a flat goal, a front, and an answer that does not carry over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke
from test_schemas import check

from weir.scenario.plans import Comparison
from weir.search.problem import Problem

CLEAN = ("--rate", "5mbit", "--rtt", "40ms", "--jobs", "1", "--quiet")


def tuned(invoke: Invoke, *words: str) -> dict[str, Any]:
    result = invoke("tune", *words, *CLEAN, "--json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    check("tune", document)
    return document


def ends(document: dict[str, Any]) -> tuple[float, float]:
    """The only range within which candidates are as good as the best."""
    ((low, high),) = document["within"].values()
    return tuple(float(end.removesuffix("ms")) for end in (low, high))  # type: ignore[return-value]


def test_the_best_window_is_the_bandwidth_delay_product(invoke: Invoke) -> None:
    words = ("go-back-n({1..64})/none", "--budget", "90")
    options = ("--duration", "3s", "--queue", "2bdp", "--fresh", "3")
    document = tuned(invoke, *words, *options)
    low, high = ends(document)
    # 5 Mbit/s times 40 ms are 16.7 packets of 1500 bytes; a packet is also being sent.
    assert 16 <= low <= 17.7 <= high + 1 <= 20
    assert document["verdict"].startswith("Best: flow.0.stack=go-back-n(")
    comparison = Comparison([words[0]], rate="5mbit", rtt="40ms")
    problem = Problem.of(comparison.source(words[0]), {}, {}, None)
    assert problem.window == "The bandwidth-delay product is 16.7 segments of 1500 bytes"


def test_the_least_factor_that_keeps_the_link_full(invoke: Invoke) -> None:
    """A buffer of B BDP needs 1 / (1 + B): 0.667 of half a BDP."""
    document = tuned(
        invoke,
        "aimd(1,{0.4..0.95})",
        *("--queue", "0.5bdp", "--duration", "20s", "--start-jitter", "0s"),
        *("--minimise", "queue_delay_ms_mean", "--subject-to", "utilisation >= 0.985"),
        *("--budget", "120", "--fresh", "3"),
    )
    best = next(row for row in document["rows"] if not row["is_default"])
    factor = float(best["keys"]["flow.0.stack"].removeprefix("aimd(1,").removesuffix(")"))
    assert factor == pytest.approx(1 / 1.5, abs=0.03)
    assert best["keeps_bounds"]


def test_the_least_buffer_that_keeps_the_link_full(invoke: Invoke) -> None:
    """Reno, which halves its window, needs one BDP (Villamizar and Song 1994)."""
    document = tuned(
        invoke,
        *("reno", "--queue", "{0.2bdp..4bdp}", "--duration", "20s", "--start-jitter", "0s"),
        *("--minimise", "queue_delay_ms_mean", "--subject-to", "utilisation >= 0.985"),
        *("--budget", "120", "--fresh", "3"),
    )
    best = next(row for row in document["rows"] if not row["is_default"])
    assert best["keeps_bounds"]
    assert float(best["keys"]["topology.queue"].removesuffix("bdp")) == pytest.approx(1, abs=0.15)


def test_a_higher_target_of_codel_buys_use_with_delay(invoke: Invoke) -> None:
    queue = '{ kind = "codel", target = "{0.5ms..50ms}" }'
    document = tuned(
        invoke,
        *("reno", "--rtt", "100ms", "--set", f"topology.queue={queue}", "--duration", "20s"),
        *("--maximise", "utilisation", "--minimise", "queue_delay_ms_mean"),
        *("--budget", "120", "--fresh", "3"),
    )
    assert document["hypervolume"] > 0
    front = [row for row in document["rows"] if not row["is_default"]]
    delays = [row["value"]["mean"] for row in front if row["direction"] == "minimise"]
    uses = [row["value"]["mean"] for row in front if row["direction"] == "maximise"]
    assert len(delays) >= 3
    pairs = sorted(zip(delays, uses, strict=True))
    assert pairs == sorted(pairs, key=lambda pair: pair[1])


def test_a_setting_without_effect_is_no_better_than_the_default(invoke: Invoke) -> None:
    document = tuned(
        invoke,
        *("reno", "--loss", "1%", "--duration", "3s", "--set", "flow.0.time_wait={1s..100s}"),
        *("--maximise", "goodput", "--budget", "60", "--fresh", "4"),
    )
    assert document["verdict"] == "No better than the default"
    assert not document["warnings"]


def test_a_front_after_a_single_round_has_what_was_measured(invoke: Invoke) -> None:
    document = tuned(
        invoke,
        *("reno", "--queue", "{0.2bdp..4bdp}", "--duration", "3s", "--budget", "40"),
        *("--fresh", "2", "--maximise", "goodput", "--minimise", "queue_delay_ms_mean"),
    )
    found = {json.dumps(row["keys"]) for row in document["rows"] if not row["is_default"]}
    assert len(found) > 1
    assert all(row["value"]["mean"] is not None for row in document["rows"])


def test_a_window_for_one_path_does_not_carry_over(invoke: Invoke) -> None:
    one = tuned(
        invoke,
        *("go-back-n({1..64})/none", "--default", "go-back-n(45)/none", "--duration", "3s"),
        *("--maximise", "log_power", "--held-out", "topology.rate=20mbit"),
        *("--budget", "60", "--fresh", "3", "--queue", "4bdp"),
    )
    assert "does not carry over" in one["warnings"][0]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("reno",), "nothing varies"),
        (("reno", "--set", "flow.0.mss={500..1400}", "--budget", "0"), "a number of runs"),
        (("copa(delta={0.1..1})", "--maximise", "speed"), "there is no metric 'speed'"),
        (("copa(delta={5ms..9ms})", "--maximise", "goodput"), "delta"),
        (
            ("copa(delta={0.1..1})", "--maximise", "goodput", "--budget", "9", "--resume"),
            "nothing to resume",
        ),
        (("copa(delta={0.1..1})", "--minimise", "fct", "--budget", "9"), "cannot be measured"),
        (
            (
                *("copa(delta={0.1..1})", "--budget", "9", "--maximise", "goodput"),
                *("--minimise", "queue_delay_ms_mean", "--subject-to", "goodput > 100"),
            ),
            "keeps the bounds",
        ),
    ],
)
def test_bad_input_is_refused(invoke: Invoke, words: tuple[str, ...], reason: str) -> None:
    result = invoke("tune", *words, "--duration", "1s", *CLEAN)
    assert result.exit_code == 2, result.output
    assert reason in result.stderr


def test_bounds_of_a_file_and_a_scenario(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "bounds.toml").write_text('topology.queue = "{0.2bdp..4bdp}"\n', "utf-8")
    (tmp_path / "own.toml").write_text(
        '[topology]\nrate = "2mbit"\n[[flow]]\nstack = "cubic"\n[measure]\nduration = "3s"\n',
        "utf-8",
    )
    words = ("--scenario", "own.toml", "--space", "bounds.toml", "--maximise", "goodput")
    result = invoke("tune", *words, "--budget", "40", "--fresh", "2", "--quiet", "--json")
    assert result.exit_code == 0, result.stderr
    assert set(json.loads(result.stdout)["within"]) == {"topology.queue"}
