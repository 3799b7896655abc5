"""Which congestion controls studies of many schemes take: those of a list that this build has."""

from __future__ import annotations

from collections.abc import Iterable

from weir import _native

_CATALOGUE = tuple(item["name"] for item in _native.catalogue()["controllers"])
_BESIDES_LINUX = ("bbr2", "bbr3", "ledbat", "copa")

END_TO_END = tuple(
    name
    for name in _CATALOGUE
    if name in (*_native.kernel_controllers(), *_BESIDES_LINUX) and name != "dctcp"
)
"""Controls that need nothing of the network but losses and delays.

`dctcp` and `prague` are not among them: without marks they are Reno under another name.
"""

KINDS = ("reno", "cubic", "bbr", "bbr3", "vegas", "ledbat", "copa")
"""At most two of each kind: by loss, by model, by delay, and the two that give way."""


def present(wanted: Iterable[str]) -> tuple[str, ...]:
    """Those of `wanted` that this build has, in their order."""
    return tuple(name for name in wanted if name in _CATALOGUE)
