"""`weir explain`: planted settings of papers that were never written, and what cannot be known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from conftest import Invoke
from test_schemas import check

from weir._native import parse_quantity
from weir.running.runner import execute
from weir.scenario.source import Source
from weir.search.expressions import Expression, Observation

FILE = """
[topology]
rate = "5mbit"
rtt = "20ms"
[[flow]]
stack = "stop-and-wait/none"
delayed_ack = "off"
workload = { kind = "file", size = "200kb" }
[measure]
duration = "600s"
sample_interval = "0s"
"""
BULK = """
[topology]
rate = "3mbit"
rtt = "40ms"
[[flow]]
stack = "reno"
[measure]
duration = "4s"
sample_interval = "0s"
"""
RUNS = 5

LOSSES = [{"topology.forward.loss": f"{loss}%"} for loss in (1, 3, 5, 8, 12, 16)]
STACKS = [
    {"flow.0.stack": stack, **loss}
    for stack in ("stop-and-wait/none", "go-back-n(4)/none")
    for loss in LOSSES[::2]
]
RATES = [{"topology.rate": f"{rate}mbit"} for rate in (1, 2, 3, 4)]

PAPERS: Mapping[
    str, tuple[str, Sequence[Mapping[str, str]], str, dict[str, str], dict[str, Any]]
] = {
    "timeout": (
        FILE,
        LOSSES,
        "fct_s",
        {"flow.0.fixed_rto": "270ms"},
        {"flow.0.fixed_rto": "{50ms..2s}"},
    ),
    "timeout-and-packet": (
        FILE,
        STACKS,
        "fct_s",
        {"flow.0.fixed_rto": "430ms", "flow.0.mss": "1000"},
        {"flow.0.fixed_rto": "{50ms..2s}", "flow.0.mss": "{200..1400}"},
    ),
    "queue": (
        BULK,
        RATES,
        "rtt_ms_mean",
        {"topology.queue": "30p"},
        {"topology.queue": "{5p..200p}"},
    ),
    "stack": (
        BULK,
        RATES,
        "queue_delay_ms_mean",
        {"flow.0.stack": "vegas"},
        {"flow.0.stack": ["reno", "vegas", "bbr"]},
    ),
    "round-trip": (
        FILE,
        [{"flow.0.stack": f"go-back-n({n})/none"} for n in (1, 2, 3, 5)],
        "fct_s",
        {"topology.rtt": "75ms"},
        {"topology.rtt": "{5ms..500ms}"},
    ),
}
"""Scenario, rows, metric, planted settings, what the reader knows of them."""


def written(folder: Path, paper: str, *more: str) -> tuple[str, ...]:
    """Measures a paper with its planted settings; returns the words of the command."""
    text, rows, metric, planted, unknowns = PAPERS[paper]
    lines = [",".join([*rows[0], "repeats", metric])]
    for row in rows:
        keys = tuple({**row, **planted}.items())
        scenario = Source(text, paper, keys).effective()
        seen = [Observation.of(execute(scenario, 7000 + seed)) for seed in range(RUNS)]
        values = [Expression.parse(metric).value(one) or 0.0 for one in seen]
        cells = [f'"{value}"' for value in row.values()]
        lines.append(",".join([*cells, str(RUNS), f"{fmean(values):.4g}"]))
    bounds = [f'"{key}" = {json.dumps(value)}' for key, value in unknowns.items()]
    (folder / "table.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "unknowns.toml").write_text("\n".join([*bounds, *more]) + "\n", "utf-8")
    (folder / "paper.toml").write_text(text, "utf-8")
    files = ("--published", "table.csv", "--space", "unknowns.toml")
    return ("explain", "paper.toml", *files, "--jobs", "1", "--quiet", "--json")


def explained(invoke: Invoke, words: Sequence[str], budget: int) -> dict[str, Any]:
    result = invoke(*words, "--budget", str(budget))
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    check("explain", document)
    return document


def number(text: str) -> float:
    """A quantity without its unit, in one scale per kind."""
    return parse_quantity("time", text) if text.endswith("s") else float(text.rstrip("p"))


@pytest.mark.parametrize("paper", PAPERS)
def test_planted_settings_are_within_the_ranges(invoke: Invoke, tmp_path: Path, paper: str) -> None:
    document = explained(
        invoke, written(tmp_path, paper), 600 if len(PAPERS[paper][3]) > 1 else 300
    )
    planted = PAPERS[paper][3]
    found = {fit["key"]: fit for fit in document["fits"]}
    assert set(found) == set(planted)
    for key, value in planted.items():
        fit = found[key]
        assert fit["distinguished"], fit["words"]
        if fit["choices"]:
            assert fit["choices"] == [value]
        else:
            assert number(fit["low"]) <= number(value) <= number(fit["high"]), fit["words"]
            # The bounds have a factor of 7 to 100; two unknowns make up for each other.
            most = 2.0 if len(planted) == 1 else 3.0
            assert number(fit["high"]) < most * number(fit["low"]), fit["words"]
    good, count = document["fitting"]["held_out"]
    assert count >= 1
    assert good == count


def test_a_setting_without_effect_cannot_be_distinguished(invoke: Invoke, tmp_path: Path) -> None:
    words = written(tmp_path, "timeout", '"flow.0.time_wait" = "{1s..100s}"')
    document = explained(invoke, words, 300)
    by_key = {fit["key"]: fit for fit in document["fits"]}
    assert by_key["flow.0.fixed_rto"]["distinguished"]
    assert not by_key["flow.0.time_wait"]["distinguished"]
    assert "cannot be distinguished: 1s to 100s fits as well" in by_key["flow.0.time_wait"]["words"]


def test_a_cell_that_is_wrong_is_named_and_does_not_decide(invoke: Invoke, tmp_path: Path) -> None:
    words = written(tmp_path, "timeout")
    file = tmp_path / "table.csv"
    lines = file.read_text("utf-8").splitlines()
    *start, value = lines[3].split(",")
    lines[3] = ",".join([*start, f"{3 * float(value):.4g}"])
    file.write_text("\n".join(lines) + "\n", "utf-8")
    document = explained(invoke, words, 300)
    (fit,) = document["fits"]
    assert number(fit["low"]) <= 0.27 <= number(fit["high"]), fit["words"]
    assert [row["keys"] for row in document["rows"] if not row["fitted_by_some"]] in (
        [],
        [LOSSES[2]],
    )
    residuals = {row["keys"]["topology.forward.loss"]: row["residual"] for row in document["rows"]}
    assert min(residuals, key=lambda loss: residuals[loss]) == "5%"


def test_the_output_for_people_has_the_ranges_the_cells_and_a_picture(
    invoke: Invoke, tmp_path: Path
) -> None:
    words = [word for word in written(tmp_path, "stack") if word not in ("--json", "--quiet")]
    result = invoke(*words, "--budget", "30")
    assert result.exit_code == 0, result.stderr
    assert "flow.0.stack: any of vegas fits, best vegas." in result.stdout
    assert "Within two errors: " in result.stdout
    assert list((tmp_path / "results/explain").glob("*/residuals.svg"))


def test_settings_without_a_value_on_other_seeds_are_no_answer(
    invoke: Invoke, tmp_path: Path
) -> None:
    # With two seeds every transfer is complete, with other seeds one is not.
    scenario = tmp_path / "lossy.toml"
    scenario.write_text(
        """
        [topology]
        rate = "10mbit"
        forward.loss = "12%"
        [[flow]]
        stack = "reno"
        workload = { kind = "file", size = "30kb" }
        [measure]
        duration = "1.2s"
        """
    )
    table = tmp_path / "published.csv"
    table.write_text("topology.rtt,fct_s\n40ms,0.5\n41ms,0.5\n")
    space = tmp_path / "unknowns.toml"
    space.write_text('"topology.queue" = "{100kb..101kb}"')
    words = ("--published", str(table), "--space", str(space), "--budget", "30", "--jobs", "1")
    result = invoke("explain", str(scenario), *words)
    assert result.exit_code == 2, result.output
    assert "no setting that fits can run with other seeds" in result.stderr


@pytest.mark.parametrize(
    ("table", "bounds", "reason"),
    [
        ("topology.rate,fct\n", 'x = "{1..2}"', "at least one row"),
        ("topology.rate,fct\n1mbit,2\n2mbit,1\n", '"flow.0.mss" = "1000"', "nothing varies"),
        ("topology.rate,fast\n1mbit,2\n2mbit,1\n", '"flow.0.mss" = "{9..99}"', "no metric 'fast'"),
        ("topology.rate,fct\n1mbit,2\n2mbit,1\n", '"flow.0.msss" = "{1..2}"', "flow.0.msss"),
    ],
)
def test_bad_input_is_refused(
    invoke: Invoke, tmp_path: Path, table: str, bounds: str, reason: str
) -> None:
    words = written(tmp_path, "stack")
    (tmp_path / "table.csv").write_text(table, "utf-8")
    (tmp_path / "unknowns.toml").write_text(bounds + "\n", "utf-8")
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert reason in result.stderr
