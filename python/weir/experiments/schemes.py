"""Which congestion controls studies of many schemes take: those of a list that this build has.

The list is in one place so that a new controller joins all of these studies with one word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from weir import _native

END_TO_END = (
    "reno",
    "cubic",
    "bbr",
    "bbr2",
    "bbr3",
    "vegas",
    "veno",
    "westwood",
    "illinois",
    "htcp",
    "highspeed",
    "scalable",
    "bic",
    "hybla",
    "yeah",
    "lp",
    "nv",
    "cdg",
    "ledbat",
    "copa",
)
"""Controls that need nothing of the network but losses and delays.

`dctcp` and `prague` are not among them: without marks they are Reno under another name.
"""

KINDS = ("reno", "cubic", "bbr", "bbr3", "vegas", "ledbat", "copa")
"""At most two of each kind: by loss, by model, by delay, and the two that give way."""


def present(wanted: Iterable[str]) -> tuple[str, ...]:
    """Those of `wanted` that this build has, in their order."""
    known = {item["name"] for item in json.loads(_native.catalogue())["controllers"]}
    return tuple(name for name in wanted if name in known)
