"""Rows as JUnit XML, which CI systems show.

Source: the schema of Jenkins' xUnit plugin (junit-10.xsd): `testsuites`, `testsuite`, `testcase`
with `properties`, `failure`, `error`, `skipped`. A suite is a `testsuite`, a criterion with a stack
a `testcase`. A known failure is `skipped`, as expected failures of pytest are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from weir.base.plain import plain
from weir.conform.cases.bounds import INCONCLUSIVE, NOT_APPLICABLE, PASS, REPORTED
from weir.conform.outcome import KNOWN, Row
from weir.conform.words import value_text

_KINDS = {
    PASS: "",
    REPORTED: "",
    KNOWN: "skipped",
    NOT_APPLICABLE: "skipped",
    INCONCLUSIVE: "error",
}
"""The element that stands for an outcome; `failure` for all others."""
_PROPERTIES = ("source", "procedure", "criterion", "origin", "value", "unit", "margin")
_OPTIONAL = ("world", "health")


def junit(rows: Sequence[Row]) -> str:
    """The document."""
    root = Xml.Element("testsuites", {"name": "weir conform", **_counts(rows)})
    for name in dict.fromkeys(row["suite"] for row in rows):
        own = [row for row in rows if row["suite"] == name]
        suite = Xml.SubElement(root, "testsuite", {"name": name, **_counts(own)})
        for row in own:
            _add(suite, row)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add(suite: Xml.Element, row: Row) -> None:
    name = plain(f"{row['case']}: {row['check']} [{row['stack']}]")
    case = Xml.SubElement(suite, "testcase", {"name": name, "classname": f"weir.{row['suite']}"})
    properties = Xml.SubElement(case, "properties")
    for key in (*_PROPERTIES, *_OPTIONAL):
        if row.get(key) not in (None, ""):
            Xml.SubElement(properties, "property", {"name": key, "value": plain(str(row[key]))})
    seeds = " ".join(map(str, row["seeds"]))
    Xml.SubElement(properties, "property", {"name": "seeds", "value": seeds})
    if kind := _kind(row):
        text = f"{row['outcome']}: {value_text(row, 'value')}, required {row['criterion']}"
        reason = f"{text}; {row['reason']}" if row["reason"] else text
        Xml.SubElement(case, kind, {"message": plain(reason)})


def _kind(row: Row) -> str:
    return _KINDS.get(row["outcome"], "failure")


def _counts(rows: Sequence[Row]) -> dict[str, str]:
    counts = Counter(map(_kind, rows))
    return {
        "tests": str(len(rows)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
    }
