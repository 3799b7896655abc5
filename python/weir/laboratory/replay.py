"""A run over links as one HTML file: the laboratory's page with scenario, seed and time in it.

The page simulates the run itself when it opens. So the file has no packets, however many there are.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from urllib.parse import quote, urlencode

from weir import _native
from weir.base.errors import InputError
from weir.laboratory import page
from weir.report.animation import Excerpt, span_of
from weir.scenario.source import Effective
from weir.scenario.toml import toml

_SCRIPT = '<script defer src="./lab.js"></script>'
_SOURCES = "script-src 'self' file: 'wasm-unsafe-eval'"
_TITLE = "<title>Weir: the laboratory</title>"
_BODY = "</body>"


def replay(wish: Excerpt, whole: Effective) -> str:
    """The page that opens the run of a checked scenario at the time of the wish.

    Raises:
        InputError: the page cannot run the scenario, was not built, or the run ends before.
    """
    start, end = span_of(wish, whole)
    _check(whole, wish.source.origin)
    data: dict[str, str | float] = {
        "text": toml(whole.fields),
        "seed": str(whole.seed if wish.seed is None else wish.seed),
        "from_s": start,
        "to_s": end,
        "command": wish.command(whole.name),
    }
    return _page(whole.name, data)


def fragment(whole: Effective, origin: str, seed: int, time_s: float = 0) -> str:
    """What follows `#` in a link that opens a time of a checked scenario's run in the laboratory.

    Raises:
        InputError: the page cannot run the scenario.
    """
    _check(whole, origin)
    fields = {"text": toml(whole.fields), "seed": seed, **({"t": time_s} if time_s else {})}
    return urlencode(fields, quote_via=quote)


def _check(whole: Effective, origin: str) -> None:
    """Refuses what only this machine can run."""
    if whole.controllers:
        files = ", ".join(whole.controllers)
        raise InputError(f"{origin}: {files}: a page cannot run controllers in Python")
    for stack in whole.stacks:
        if _native.stack_parts(stack)[0] != "weir":
            raise InputError(f"{origin}: stack = {stack}: a page has no stacks of other projects")


def _page(title: str, data: Mapping[str, str | float]) -> str:
    """The page with its script and the data in it. It may run this script, and request nothing."""
    index, script = page.texts()
    # Both are the same text in strings and in regular expressions.
    script = re.sub("</(script)", r"<\\/\1", script, flags=re.IGNORECASE)
    script = script.replace("<!--", r"<\x21--")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    inside = json.dumps(data).replace("<", "\\u003c")
    parts = {
        _SCRIPT: "",
        _SOURCES: f"script-src 'sha256-{digest}' 'wasm-unsafe-eval'",
        _TITLE: f"<title>{escape(title)}</title>",
        _BODY: f'<script type="application/json" id="animation">{inside}</script>'
        f"<script>{script}</script>{_BODY}",
    }
    for old, new in parts.items():
        if index.count(old) != 1:
            raise InputError(f"not the page of this version ({old}); build it with make lab")
        index = index.replace(old, new)
    return index.rstrip("\n")
