"""Options stand once: in the API, from which the command line and docstrings take them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from conftest import Invoke

import weir
from weir import cli, validation
from weir.advice.options import AdviceOptions
from weir.api.studies import study
from weir.base.options import Option, documented, flag, of, parameters
from weir.conform.cases.plans import Request
from weir.export import export
from weir.guest.options import GuestOptions
from weir.links.link import Link
from weir.links.relay import Relay
from weir.modelling.inputs import measure
from weir.pathtest import ssh
from weir.pathtest.options import PathTest, ServerOptions
from weir.running.execution import Execution
from weir.scenario.plans import Comparison
from weir.search.explain import ExplainOptions
from weir.search.goals import Aim
from weir.search.hunt import SearchOptions
from weir.search.tune import TuneOptions
from weir.transfer.files import receive, send

VERBS: dict[str, tuple[Callable[..., Any], ...]] = {
    "compare": (Comparison, Execution),
    "run": (weir.run, Execution),
    "study": (study,),
    "send": (send,),
    "recv": (receive,),
    "relay": (Relay,),
    "link": (Link, GuestOptions),
    "test": (PathTest, ServerOptions, ssh.started),
    "export": (export,),
    "model": (measure,),
    "advise": (AdviceOptions, measure),
    "conform": (Request,),
    "validate": (validation.comparison, validation.validate),
    "tune": (TuneOptions, Execution),
    "explain": (ExplainOptions, Execution),
    "search": (Aim, SearchOptions, Execution),
}
"""What the options of a verb are those of."""
MOST_WRITTEN = 45
"""Options that only the command line has, and what turns all into Typer's."""

FOLDER = Path(cli.__file__).parent


@pytest.mark.parametrize("verb", VERBS)
def test_no_default_is_repeated_by_a_verb(verb: str) -> None:
    known = [one for source in VERBS[verb] for one in _with_defaults(source)]
    defaults = {one.name: one.default for one in known}
    assert len(defaults) > 1
    tree = ast.parse((FOLDER / f"{verb}.py").read_text(encoding="utf-8"))
    written = {n: v.value for n, v in _defaults(tree) if isinstance(v, ast.Constant)}
    assert [name for name in written.keys() & defaults if written[name] == defaults[name]] == []


def _with_defaults(source: Callable[..., Any]) -> list[inspect.Parameter]:
    known = inspect.signature(source).parameters.values()
    return [one for one in known if one.default is not one.empty]


def _defaults(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            rules = function.args
            ends = rules.args[len(rules.args) - len(rules.defaults) :]
            yield from ((one.arg, value) for one, value in zip(ends, rules.defaults, strict=True))
            for one, default in zip(rules.kwonlyargs, rules.kw_defaults, strict=True):
                if default is not None:
                    yield one.arg, default


def test_few_options_are_written_for_the_command_line_alone() -> None:
    texts = [file.read_text(encoding="utf-8") for file in FOLDER.glob("*.py")]
    assert len(texts) > 20
    assert sum(len(re.findall(r"\bOption\(", text)) for text in texts) < MOST_WRITTEN


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_the_options_of_the_api(invoke: Invoke, verb: str) -> None:
    page = invoke(verb, "--help").stdout
    for source in VERBS[verb]:
        for name, option in of(source).items():
            if not option.python_only and name not in ("pcap", "dask"):
                assert re.search(rf"{option.flag or flag(name)}\b", page), name


@pytest.mark.parametrize("source", [study, send, receive, export, Relay, Link, weir.compare])
def test_docstrings_have_every_option(source: Callable[..., Any]) -> None:
    lines = (source.__doc__ or "").splitlines()
    for name in of(source):
        assert any(line.startswith(f"        {name}: ") for line in lines), name
    assert lines.count("    Args:") == 1


def test_an_option_stands_next_to_its_type() -> None:
    @documented()
    def dig(
        place: str,
        deep: Annotated[str, Option("How deep; with {wet}, less.", metavar="SIZE")] = "1m",
        *,
        wet: Annotated[bool, Option("Whether `it rains`.")] = False,
    ) -> None:
        """Digs.

        Args:
            place: Where.

        Raises:
            ValueError: there is a rock.
        """

    assert [one.default for one in parameters(dig)] == ["1m", False]
    assert of(dig)["deep"].help() == "How deep; with --wet, less."
    assert of(dig)["wet"].help() == "Whether `it rains`."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("test --server --cc reno", "--cc reno has no effect with --server"),
        ("test --server h", "h has no effect with --server"),
        ("test h --max-time 3s", "--max-time 3s: it is for --server"),
        ("test h --no-key", "--no-key: it is for --server"),
        ("test h --remote w", "--remote w: it is for ssh://HOST"),
        ("test", "HOST: name the machine"),
        ("ui two-flows --for 1s", "--for 1s: it is for --save FILE"),
        ("ui two-flows --save a.html --world udp", "--world udp has no effect with --save"),
        ("ui two-flows --save a.html --no-open", "--no-open has no effect with --save"),
        ("ui --save a.html", "--save a.html: it plays a run of a scenario"),
        ("validate --record traces", "--record traces: it records in guests; add --virtual"),
        ("validate --reference truth --size full", "--size has no effect with --reference"),
        ("link --memory 1gb true", "--memory needs --virtual"),
        ("stack contender a b --version 3", "--version 3: name one program, not 2"),
    ],
)
def test_options_of_another_use_are_refused(invoke: Invoke, words: str, message: str) -> None:
    refused = invoke(*words.split())
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"weir: {message}"), refused.stderr
