"""Studies as descriptions: loops and expressions, cells and claims, and the files themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jinja2 import UndefinedError

from weir import ScenarioError
from weir.base.errors import InputError
from weir.cells import claims, texts
from weir.cells.cells import cell
from weir.cells.protocol import SIZES, Settings
from weir.statistics.intervals import Estimate
from weir.studies import catalogue
from weir.studies.described import DescribedStudy

DESCRIBED = [study for study in catalogue.studies().values() if isinstance(study, DescribedStudy)]

LOOP = {"for", "let", "when"}
KEYS = {
    "case": LOOP | {"label", "scenario", "set", "with"},
    "cell": LOOP
    | {"cells", "parts", "table", "row", "column", "unit", "ours", "published", "note", "more"},
    "claim": LOOP | {"says", "measured", "ours", "holds", "note", "published"},
    "section": LOOP | {"title", "text", "table", "figure"},
    "section.table": LOOP | {"kind", "table", "title", "note", "heading", "checked"},
    "section.figure": LOOP
    | {"kind", "name", "title", "caption", "runs", "axes", "numbers", "data", "panel", "levels"}
    | {"moments", "figures"},
}
TOP = {
    "name",
    "description",
    "functions",
    "published",
    "constants",
    "derived",
    "sizes",
    "set",
    "titles",
    "worlds",
    "verdicts",
}


def test_loops_may_use_earlier_names_and_filter() -> None:
    entry = {
        "for": {"a": [1, 2, 3], "b, c": "[(a, 2 * a), (a, 0)]"},
        "let": {"total": "b + c"},
        "when": "total > 2",
    }
    found = [(own["a"], own["total"]) for own in texts.expanded(entry, {})]
    assert found == [(1, 3), (2, 6), (3, 9), (3, 3)]


def test_a_name_that_is_not_defined_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="nowhere"):
        texts.filled("{{ nowhere }}", {})


def test_paragraphs_are_sentences_without_line_breaks() -> None:
    text = "One {% for n in [1, 2] %}\n{{ n }}{{ ',' if not loop.last }}\n{% endfor %}\n\n\nTwo.\n"
    assert texts.sentences(text, {}) == ["One 1, 2", "Two."]


@pytest.mark.parametrize("study", DESCRIBED, ids=lambda study: study.name)
def test_a_description_has_only_keys_that_are_read(study: DescribedStudy) -> None:
    """A slip in a name would otherwise go unseen."""
    assert list(_unknown(study.data)) == []


def _sized(study: DescribedStudy, size: str) -> Any:
    # The Pantheon's traces are read for each of its cases, which takes longest by far.
    marks = [pytest.mark.slow] if (study.name, size) == ("pantheon", "full") else []
    return pytest.param(study, size, id=f"{size}-{study.name}", marks=marks)


@pytest.mark.parametrize(
    ("study", "size"), [_sized(study, size) for size in SIZES for study in DESCRIBED]
)
def test_every_case_is_a_valid_scenario(study: DescribedStudy, size: str) -> None:
    try:
        plan = study.plan(Settings(size, repeat=1, seed=7, world=study.worlds[0]))
    except (InputError, ScenarioError) as error:
        # Stacks of other projects are optional, in a build and on a machine.
        if not re.search("`make foreign` adds it|is not built; `weir stack contender", str(error)):
            raise
        pytest.skip(str(error))
    assert min(run.seed for run in plan.runs) == 7
    assert len({case.label for case in plan.cases}) == len(plan.cases)


@pytest.mark.parametrize(
    ("study", "table", "title"),
    [
        ("lab-udp", "002-loss", "Time against loss, delay 0 ms, report 002"),
        ("lab-udp", "000-loss-throughput", "Throughput against loss, delay 0 ms, report 000"),
        ("udp-vs-tcp", "004-local", "Time on one machine (table 1)"),
        ("udp-vs-tcp", claims.TABLE, "Expectations"),
        ("book", "fig-19-p99.9", "P99.9 latency of 10 KB requests, by number of streams"),
        (
            "netesto",
            "P99 of small, wan-10m, 0.5 BDP",
            "Size tests, WAN, 10 Mbit/s, 40 ms, 0.5 BDP: P99 latency of small requests, by large "
            "connections",
        ),
        ("coexist", "queue delay, 4 BDP", "Mean queueing delay, buffer of 4 BDP"),
        ("steps", "time to settle", "Time to settle"),
    ],
)
def test_tables_have_titles_in_the_words_of_readers(study: str, table: str, title: str) -> None:
    assert catalogue.title(study, table) == title


@pytest.mark.parametrize("study", DESCRIBED, ids=lambda study: study.name)
def test_a_pattern_of_titles_is_reached(study: DescribedStudy) -> None:
    """An earlier pattern that matches the same tables would hide it."""
    patterns = list(study.data.get("titles", {}))
    hidden = [
        later
        for place, later in enumerate(patterns)
        if any(re.fullmatch(earlier, later) for earlier in patterns[:place])
    ]
    assert hidden == []


def test_a_claim_without_a_number_is_left_out() -> None:
    study = catalogue.find("random-loss")
    assert isinstance(study, DescribedStudy)
    known = cell("goodput", "cubic", "1%", "Mbit/s", Estimate(1.0, 0.9, 1.1, 3))
    found = study.claims([known])
    assert [claims.verdict_of(own) for own in found] == ["agrees"]
    assert found[0]["row"].startswith("CUBIC is close to a standstill")


def _unknown(data: dict[str, Any]) -> Iterator[str]:
    yield from data.keys() - TOP - KEYS.keys()
    for kind in ("case", "cell", "claim", "section"):
        for entry in data.get(kind, []):
            yield from (f"{kind}.{key}" for key in entry.keys() - KEYS[kind])
            for part in ("table", "figure"):
                inner = entry.get(part, []) if kind == "section" else []
                for own in inner:
                    allowed = KEYS[f"section.{part}"]
                    yield from (f"section.{part}.{key}" for key in own.keys() - allowed)
