"""Reads the suites: one TOML file each in the folder `suites`.

A file has `name`, `title`, `source`, `stacks` (judged by default), `controllers` (those that it is
about; all if absent), `hosts` (`quinn` of `quinn/cubic`; all if absent), `[scenarios]` (TOML texts
by name), `[reasons]` (texts by name, for the known failures of several criteria), a list `case`,
and `scripts`, patterns of packet scripts. `[recordings]` makes recorded runs of Linux its cases; it
has the reasons of known failures by recording and criterion. A case inherits `source`,
`controllers`, `hosts`, `seeds` and `needs` of its file, and `stacks` unless it has its own. `each`
repeats a case for the values of a list, which replace `{name}` in its texts.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from weir.base import bounded
from weir.base.errors import InputError, unknown
from weir.conform.cases import recorded, scripts
from weir.conform.cases.bounds import Envelope
from weir.conform.cases.model import Case, Check, Picture, Suite, Trigger, Variant

Entry = Mapping[str, Any]

SUITE = ".toml"
"""The end of the name of a file that has a suite."""

_UNDER_TEST = ("flow.0.stack",)


@cache
def suites() -> dict[str, Suite]:
    """Every suite by name, in the order of the alphabet."""
    folder = files("weir.conform") / "suites"
    found = (
        parsed(file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(SUITE)
    )
    return {suite.name: suite for suite in sorted(found, key=lambda suite: suite.name)}


def find(name: str) -> Suite:
    """The suite called `name`, or the one in a file of that name, as `weir search` writes them.

    Raises:
        InputError: there is none of that name, or the file is none.
    """
    if name.endswith(SUITE):
        try:
            return parsed(bounded.read_text(Path(name)))
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{name}: not a suite ({type(error).__name__}: {error})") from None
    known = suites()
    if name not in known:
        raise InputError(unknown("suite", name, known))
    return known[name]


def parsed(text: str) -> Suite:
    """The suite that a TOML text describes."""
    data = tomllib.loads(text)
    cases = [
        _case(data, _filled(entry, values))
        for entry in data.get("case", [])
        for values in _values(entry.get("each", {}))
    ]
    cases += scripts.cases(data["name"], data.get("scripts", []))
    cases += recorded.cases(data["name"], data["recordings"]) if "recordings" in data else []
    return Suite(data["name"], data["title"], data["source"], data["stacks"], cases)


def _values(each: Entry) -> Iterator[dict[str, Any]]:
    """The combinations of the values that a case is repeated for."""
    for values in itertools.product(*each.values()):
        yield dict(zip(each, values, strict=True))


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with `{name}` replaced in its texts; a text of only a name becomes the value."""
    if isinstance(value, str):
        for name, own in values.items():
            if value == f"{{{name}}}":
                return own
            value = value.replace(f"{{{name}}}", str(own))
        return value
    if isinstance(value, dict):
        return {_filled(key, values): _filled(inner, values) for key, inner in value.items()}
    return [_filled(inner, values) for inner in value] if isinstance(value, list) else value


def _case(data: Entry, entry: Entry) -> Case:
    variants = {name: _variant(data, entry, name) for name in entry.get("variant", {"": {}})}
    trigger = entry.get("trigger")
    return Case(
        suite=data["name"],
        id=entry["id"],
        title=entry["title"],
        source=entry.get("source", data["source"]),
        procedure=entry["procedure"],
        controllers=entry.get("controllers", data.get("controllers", [])),
        needs=entry.get("needs", data.get("needs", [])),
        seeds=entry.get("seeds", data.get("seeds", 3)),
        variants=variants,
        checks=[_check(data, entry["id"], check, next(iter(variants))) for check in entry["check"]],
        picture=_picture(entry.get("picture", {}), next(iter(variants))),
        trigger=Trigger(trigger["phase"], trigger.get("occurrence", 1)) if trigger else None,
        script="",
        stacks=entry.get("stacks", []),
        hosts=entry.get("hosts", data.get("hosts", [])),
    )


def _variant(data: Entry, entry: Entry, name: str) -> Variant:
    own: Entry = entry.get("variant", {}).get(name, {})
    keys = {**entry.get("set", {}), **own.get("set", {})}
    # The stack comes first, so that keys may refine flows that have it.
    under_test = own.get("under_test", entry.get("under_test", _UNDER_TEST))
    texts = [*((key, "{stack}") for key in under_test), *((k, str(v)) for k, v in keys.items())]
    scenario = own.get("scenario", entry.get("scenario", ""))
    text = data.get("scenarios", {}).get(scenario, "")
    return Variant(name, text, tuple(texts), own.get("stack", ""))


def _check(data: Entry, case_id: str, entry: Entry, first: str) -> Check:
    is_yes_or_no = bool(entry.get("yes", False))
    low, high = (1, 1) if is_yes_or_no else (entry.get("low"), entry.get("high"))
    return Check(
        name=entry["name"],
        measure=entry["measure"],
        arguments=entry.get("with", {}),
        envelope=Envelope(low, high),
        unit=entry.get("unit", ""),
        join=entry.get("join", "worst"),
        of=entry.get("of", first),
        against=entry.get("against", []),
        is_ours=bool(entry.get("ours", False)),
        is_yes_or_no=is_yes_or_no,
        origin=entry.get("origin", ""),
        needs=entry.get("needs", []),
        known=_known(entry.get("known", {}), case_id, data.get("reasons", {})),
    )


def _known(entry: Entry, case_id: str, reasons: Entry) -> dict[str, str]:
    """Reasons by stack. A key `N3-1 reno` is about one case of those that `each` makes."""
    found = {}
    for key, text in entry.items():
        case, _, stack = key.rpartition(" ")
        if case in ("", case_id):
            found[stack] = reasons.get(text, text)
    return found


def _picture(entry: Entry, first: str) -> Picture:
    columns = entry.get("columns", ["goodput_mbps"])
    moments = [(float(at), str(text)) for at, text in entry.get("moments", [])]
    levels = {name: (float(at), str(text)) for name, (at, text) in entry.get("levels", {}).items()}
    return Picture(columns, entry.get("of", first), moments, levels)
