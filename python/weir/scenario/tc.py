"""What `tc` says of a link, as keys of a scenario and as options of `weir link`.

The words are read in Rust; docs/interchange.md says what they become.
"""

from __future__ import annotations

from weir import _native
from weir.base.errors import InputError
from weir.scenario.source import Overrides


def keys(forward: str | None, reverse: str | None = None) -> Overrides:
    """Keys of `[topology]` for the way of the data and the way back, as overrides.

    Raises:
        InputError: a word cannot be read, or there is nothing like it here.
    """
    if forward is None:
        if reverse is not None:
            raise InputError(f"--reverse-tc '{reverse}': add --tc for the way of the data")
        return ()
    try:
        found = _native.tc_keys(forward, reverse)
    except ValueError as error:
        name, _, problem = str(error).partition(": ")
        option, text = ("--tc", forward) if name == "tc" else ("--reverse-tc", reverse)
        raise InputError(f"{option} '{text}': {problem}") from None
    return tuple((f"topology.{key}", value) for key, value in found)


def options(text: str | None) -> list[tuple[str, str]]:
    """Options of `weir link` for both directions.

    >>> options("netem delay 20ms loss 1%")
    [('delay', '20ms'), ('loss', '1%')]

    Raises:
        InputError: a word cannot be read, or there is nothing like it here.
    """
    if text is None:
        return []
    try:
        return _native.tc_options(text)
    except ValueError as error:
        raise InputError(f"tc='{text}': {error}") from None
