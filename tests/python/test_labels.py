"""Labels of stacks, `name=stack`, and figures that show names as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Invoke

import weir
from weir.base.errors import InputError
from weir.graphics import names
from weir.plots import figures
from weir.report.compose import compose
from weir.scenario.labels import Named, checked, named

LONG = "cubic(hystart=off,friendliness=off,beta={})"
SHORT = ("--duration", "2s", "--repeat", "2")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cubic", Named("cubic", "cubic")),
        ("a=cubic", Named("a", "cubic")),
        ("cubic(beta=0.8)", Named("cubic(beta=0.8)", "cubic(beta=0.8)")),
        ("slow start = cubic(beta=0.8)", Named("slow start", "cubic(beta=0.8)")),
        ("β+1=rack/reno", Named("β+1", "rack/reno")),
        ("./a=b.py:Mine", Named("./a=b.py:Mine", "./a=b.py:Mine")),
        ("m=mine.py:Mine(beta=0.5)", Named("m", "mine.py:Mine(beta=0.5)")),
        ("p=contender:./a=b.toml", Named("p", "contender:./a=b.toml")),
    ],
)
def test_a_label_stands_before_the_stack(text: str, found: Named) -> None:
    assert named(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=cubic", "=cubic: the label before '=' is missing; write name=stack, as in fast="),
        ("fast=", "fast=: the stack after '=' is missing; write name=stack, as in fast="),
        ("a,b=cubic", "a,b=cubic: label 'a,b' is not allowed; use letters, digits, spaces"),
        (f"{'x' * 41}=cubic", "is not allowed; use letters"),
    ],
)
def test_a_label_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        named(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("stacks", "message"),
    [
        (("a=cubic", "a=reno"), "weir: a is given twice"),
        (("a=cubic", "b=cubic"), "weir: b=cubic: cubic is given twice, as a before"),
        (("a=cubci",), "weir: unknown controller 'cubci'; did you mean cubic?"),
        (("a=cubic", "--against", "a=reno"), "weir: a is given twice"),
        (("reno alone=cubic", "--against", "reno"), "weir: reno alone: this names the neighbour"),
    ],
)
def test_wrong_labels_of_a_comparison(
    invoke: Invoke, stacks: tuple[str, ...], message: str
) -> None:
    result = invoke("compare", *stacks)
    assert result.exit_code == 2
    assert result.output.startswith(message)


def test_tables_have_the_label_and_say_what_it_means(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("compare", "fast=cubic(beta=0.8)", "slow=cubic", *SHORT)
    assert done.exit_code == 0
    assert "slow against fast: " in done.output
    assert "fast is cubic(beta=0.8); slow is cubic." in done.output
    results = weir.load(tmp_path / "results/compare/latest")
    assert [case["label"] for case in results.cases] == ["fast", "slow"]
    assert results.runs["stack"].unique().sort().to_list() == [
        "rack/cubic",
        "rack/cubic(beta=0.8)",
    ]
    assert "'fast=cubic(beta=0.8)'" in results.manifest["command"]
    assert compose(results).question.endswith(" fast is cubic(beta=0.8); slow is cubic.")


def test_stacks_of_a_sweep_and_of_a_neighbour_have_labels(tmp_path: Path) -> None:
    how = {"duration": "2s", "repeat": 1, "out": tmp_path, "show_progress": False}
    swept = weir.run(
        "two-flows",
        sweep={"flow.0.stack": ["fast=cubic(beta=0.8)", "reno"]},
        sets={"measure.duration": "2s", "measure.warmup": "0s", "flow.1.start": "0s"},
        repeat=1,
        out=tmp_path,
        show_progress=False,
    )
    assert [case["series"] for case in swept.cases] == ["fast", "reno"]
    assert swept.cases[0]["labels"] == {"fast": "cubic(beta=0.8)"}
    shared = weir.compare("new=bbr", against="old=cubic", **how)  # type: ignore[arg-type]
    assert [case["series"] for case in shared.cases] == ["old", "new", "old alone"]
    own = weir.compare("same=cubic", against="cubic", **how)  # type: ignore[arg-type]
    assert [case["series"] for case in own.cases] == ["same", "same alone"]


def test_stacks_of_a_file_that_sweeps_them_have_labels(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    stacks = '"flow.0.stack" = ["keen=cubic(beta=0.9)", "reno"]'
    file.write_text(
        f'[topology]\nrate = "10mbit"\n[[flow]]\n[measure]\nduration = "2s"\n[sweep]\n{stacks}\n'
    )
    done = invoke("run", str(file), "--repeat", "1", "--no-report")
    assert done.exit_code == 0
    results = weir.load(tmp_path / "results/mine/latest")
    assert [case["series"] for case in results.cases] == ["keen", "reno"]
    assert results.cases[0]["labels"] == {"keen": "cubic(beta=0.9)"}
    file.write_text(file.read_text().replace("keen", "k!"))
    refused = invoke("run", str(file))
    assert refused.exit_code == 2
    assert "label 'k!' is not allowed" in refused.output


def test_a_label_of_a_sweep_names_one_stack(invoke: Invoke) -> None:
    done = invoke("run", "two-flows", "--sweep", "flow.0.stack=a=cubic,a=reno")
    assert done.exit_code == 2
    assert "flow.0.stack=a=cubic,a=reno: a names two stacks" in done.output


def test_conformance_rows_have_labels(invoke: Invoke) -> None:
    words = ("conform", "recovery", "--case", "T6-zero-window-probes", "--stack", "mine=cubic")
    rows = json.loads(invoke(*words, "--json").output)["rows"]
    assert [(row["stack"], row["effective_stack"]) for row in rows] == [("mine", "cubic")]
    with pytest.raises(InputError, match="--stack: a is given twice"):
        checked(["a=cubic,a=reno"], "sim")


def test_a_long_name_is_broken_where_its_parts_end() -> None:
    assert names.lines(LONG.format(0.8)) == ["cubic(hystart=off,", "friendliness=off,beta=0.8)"]
    assert names.lines("x" * 60) == ["x" * 60]
    assert "".join(names.lines(LONG.format(0.8) * 3)) == LONG.format(0.8) * 3
    assert names.row_height(["reno"], 24) == 24
    assert names.row_height([LONG.format(0.8)], 24) > 24


def test_no_figure_cuts_the_parameter_that_differs(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    results = weir.compare(
        *(LONG.format(beta) for beta in (0.8, 0.9)),
        duration="2s",
        repeat=2,
        sweep={"topology.queue": ["1bdp", "2bdp"]},
        out=tmp_path,
        show_progress=False,
    )
    drawn = [figure for figure in figures(results) if figure.name in ("sweep", "metrics", "limits")]
    assert len(drawn) == 3
    for figure in drawn:
        picture = figure.svg()
        assert "…" not in picture
        for beta in (0.8, 0.9):
            assert f"beta={beta})" in picture
