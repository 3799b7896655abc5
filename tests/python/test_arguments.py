"""What the public functions refuse: by name, with what there is and what was meant."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from conftest import Invoke
from typer.main import get_command

import weir
from weir.api.verbs import CompareOptions
from weir.base import options
from weir.cli.app import app
from weir.cli.help import Group
from weir.running.execution import Execution
from weir.scenario.plans import Comparison

SMALL: dict[str, Any] = {"duration": "1s", "repeat": 2, "show_progress": False}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    return weir.compare("reno", "cubic", **SMALL, out=tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize(
    ("function", "wrong", "meant"),
    [
        (weir.compare, "durtion", "did you mean duration?"),
        (weir.run, "swep", "did you mean sweep?"),
        (weir.study, "sed", "did you mean seed?"),
    ],
)
def test_unknown_arguments_are_refused(function: Any, wrong: str, meant: str) -> None:
    with pytest.raises(TypeError, match=meant) as refused:
        function("reno", **{wrong: "1s"})
    assert f"there is no argument '{wrong}'" in str(refused.value)
    assert "show_progress" in str(refused.value)


@pytest.mark.parametrize("function", [weir.compare, weir.run, weir.study])
def test_every_argument_is_named_and_explained(function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters)
    for parameter in parameters:
        assert f"        {parameter.name}: " in (function.__doc__ or ""), parameter.name


@pytest.mark.parametrize("tables", [(Comparison, Execution)])
def test_keywords_and_options_are_those_of_the_table(tables: tuple[type, ...]) -> None:
    """A static type has to repeat names and types; nothing else repeats them."""
    keywords = get_type_hints(CompareOptions)
    declared = {name: get_type_hints(t)[name] for t in tables for name in options.of(t)}
    assert len(declared) > 20
    assert keywords.keys() == declared.keys()
    as_mappings = {"sets", "sweep"}
    same = {name for name in declared if declared[name] == keywords[name]}
    assert same == declared.keys() - as_mappings

    context = get_command(app).make_context("weir", [], resilient_parsing=True)
    root = get_command(app)
    assert isinstance(root, Group)
    verb = root.get_command(context, "compare")
    assert verb
    taken = {flag for param in verb.params for flag in param.opts}
    for table in tables:
        for name, one in options.of(table).items():
            assert one.python_only or options.flag(name) in taken, name
            assert not one.short or one.short in taken, name
    defaults = {p.name: p.default for p in inspect.signature(weir.compare).parameters.values()}
    assert (defaults["flows"], defaults["rate"], defaults["out"]) == (1, "10mbit", "results")


def test_every_key_of_the_table_exists_in_a_scenario() -> None:
    file = Comparison(["reno"], size="1mb", duration="1s", repeat=1)
    stream = Comparison(["reno"], against="reno", duration="1s", repeat=1)
    for key, name in options.names_of_keys(Comparison).items():
        run = (stream if name == "against" else file).plan().runs[0]
        found: Any = run.case.scenario.fields
        for part in key.split("."):
            found = found[int(part)] if part.isdigit() else found[part]
        assert found not in (None, {}), name


@pytest.mark.parametrize(
    ("name", "value", "example"),
    [
        ("rate", 10e6, "10mbit"),
        ("rtt", 0.04, "40ms"),
        ("queue", 64, "1bdp"),
        ("loss", 0.01, "1%"),
        ("duration", 1.5, "60s"),
        ("warmup", 1, "5s"),
        ("start_jitter", 0.1, "100ms"),
        ("size", 1e6, "10mb"),
    ],
)
def test_a_number_without_its_unit_is_refused_by_name(
    tmp_path: Path, name: str, value: float, example: str
) -> None:
    given = {**SMALL, name: value}
    with pytest.raises(weir.InputError) as refused:
        weir.compare("reno", **given, out=tmp_path)
    expected = f"{name}={value!r}: write it as text with its unit, as in {name}='{example}'"
    assert str(refused.value) == expected
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": "10"}, "rate='10': 10 is not allowed; write a number with bit"),
        ({"loss": "101%"}, "loss='101%': '101%' is not a ratio"),
        ({"loss": "1"}, "loss='1': '1' is not a ratio: is it 1% or 100%?"),
        ({"duration": "5parsec"}, "duration='5parsec': "),
        ({"world": "moon"}, "there is no world 'moon'; there are: sim, udp, kernel"),
        ({"sweep": {"topology.queue": "1bdp"}}, "sweep of topology.queue: '1bdp' is not a list"),
        ({"sets": {"topology.rat": "1mbit"}}, "topology.rat=1mbit: there is no such key; did you"),
    ],
)
def test_errors_name_the_argument(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises((weir.InputError, weir.ScenarioError)) as refused:
        weir.compare("reno", **{**SMALL, **given}, out=tmp_path)
    assert str(refused.value).startswith(message)


def test_numbers_may_set_and_sweep_keys_that_are_numbers(tmp_path: Path) -> None:
    made = weir.compare(
        "reno", sets={"flow.0.mss": 1000}, sweep={"flow.0.count": [1, 2]}, **SMALL, out=tmp_path
    )
    assert [case["point"]["flow.0.count"] for case in made.cases] == ["1", "2"]
    assert made.cases[0]["scenario"]["flow"][0]["mss"] == 1000


def test_a_list_of_stacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(weir.InputError, match=r"as in compare\('reno', 'cubic'\)"):
        weir.compare(["reno", "cubic"], **SMALL, out=tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("label", "metric", "message"),
    [
        ("cubik", "goodput_mbps", "there is no case 'cubik'; did you mean cubic? There are: reno,"),
        ("cubic", "goodput", "there is no metric 'goodput'; did you mean goodput_mbps? There are"),
        ("cubic", "x", "there is no metric 'x'; there are: goodput_mbps, "),
    ],
)
def test_results_know_their_cases_and_metrics(
    results: weir.Results, label: str, metric: str, message: str
) -> None:
    with pytest.raises(weir.InputError) as refused:
        results.estimate(label, metric)
    assert str(refused.value).startswith(message)


def test_results_know_their_figures_and_tables(results: weir.Results) -> None:
    with pytest.raises(weir.InputError, match=r"did you mean queue\?"):
        results.plot("queues")
    with pytest.raises(weir.InputError, match=r"did you mean flows\?"):
        results.scan("flow")


def test_figures_and_the_report_are_made_when_asked_for(results: weir.Results) -> None:
    assert not (results.path / "report.html").exists()
    assert results.report() == results.path / "report.html"
    assert results.plot("cwnd").svg().startswith("<svg")
    assert {"cwnd", "queue"} <= {figure.name for figure in results.plot()}


def test_a_notebook_shows_all_tables_and_charts_offline(results: weir.Results) -> None:
    page = results._repr_html_()
    assert "Paired differences to reno" in page
    assert page.count('<img src="data:image/svg+xml;base64,') == len(results.plot()) > 5
    assert "<script" not in page
    assert 'src="http' not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--loss", "1"), "--loss 1: '1' is not a ratio: is it 1% or 100%? write it with %"),
        (("--loss", "0.6"), "--loss 0.6: '0.6' is not a ratio: is it 0.6% or 60%?"),
        (("--rate", "fast"), "--rate fast: 'fast' is not a rate"),
        (("--start-jitter", "4"), "--start-jitter 4: 4 is not allowed; write a number with ns"),
        (("--duration", "5parsec"), "--duration 5parsec: '5parsec' is not a time"),
        (("--set", "topology.rate=fast"), "topology.rate=fast: 'fast' is not a rate"),
        (("--relevant", "1"), "--relevant 1: '1' is not a ratio: is it 1% or 100%?"),
        (("cubci",), "unknown controller 'cubci'; did you mean cubic? There are none, reno, "),
        (("rak/cubic",), "unknown recovery scheme 'rak'; did you mean rack? There are "),
        (("--world", "simm"), "there is no world 'simm'; did you mean sim? There are: "),
    ],
)
def test_the_command_line_says_what_was_typed(
    invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    result = invoke("compare", "reno", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"weir: {message}"), result.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("run", "two-flow"), "two-flows"),
        (("list", "controler"), "controllers"),
        (("study", "labudp"), "lab-udp"),
    ],
)
def test_other_names_are_suggested(invoke: Invoke, arguments: tuple[str, ...], meant: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert f"did you mean {meant}?" in result.stderr


def test_a_loss_of_half_needs_no_sign(invoke: Invoke) -> None:
    assert invoke("compare", "reno", "--loss", "0.5", "--dry-run").exit_code == 0
    assert invoke("compare", "reno", "--loss", "100%", "--dry-run").exit_code == 0


@pytest.mark.parametrize(
    ("called", "there"),
    [
        ("packetdrill", "conform SCRIPTS"),
        ("serve", "test --server"),
        ("animate", "ui SCENARIO --save FILE"),
    ],
)
def test_a_command_of_another_name_is_pointed_to(invoke: Invoke, called: str, there: str) -> None:
    result = invoke(called)
    assert result.exit_code == 2
    assert result.stderr == f"weir: there is no command '{called}'; use weir {there}\n"
