"""Why a controller differs in another stack, where that has been found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Reason = Mapping[str, Sequence[str] | str]
"""A text `why` for lists of `hosts`, `controllers`, `paths` and `bounds`; a missing list is all."""


def why(reasons: Sequence[Reason], host: str, controller: str, path: str, bound: str) -> str:
    """Returns the first reason that concerns a cell, with a semicolon in front, or nothing."""
    place = {"hosts": host, "controllers": controller, "paths": path, "bounds": bound}
    for reason in reasons:
        if all(own in reason.get(key, (own,)) for key, own in place.items()):
            return f"; {reason['why']}"
    return ""
